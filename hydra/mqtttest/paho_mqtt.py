"""paho-mqtt clients: ``mqtt-pub`` and ``mqtt-sub``."""

from __future__ import annotations

import contextlib
import math
import select
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from hydra.client import process_group
from hydra.client.subscriber_connection import AGAIN_NS, ConnectPhases
from hydra.client.transport import DEAF_AT_MOST_S, Answers, Delivery, Kind, SubscriberTransport, read_system
from hydra.control.control_client import poll_ms
from hydra.model.system_reports import LOST_WHY, Disconnection, FirstReason, reported
from hydra.mqtttest.connection import CONNECT_TIMEOUT_S, MqttConnection, reason_word
from hydra.mqtttest.settings import MqttStep, client_id, filters, signals_of, topic_filters, topic_of
from hydra.wire.traffic import client_topics, topic_choice

if TYPE_CHECKING:
    import paho.mqtt.client as mqtt
    from paho.mqtt.reasoncodes import ReasonCode

    from hydra.control.control_client import ControlClient
    from hydra.wire.messages import Configure
    from hydra.wire.traffic import MessageChoice

FULL_WAIT_S: Final = 0.005
FLUSH_STEP_S: Final = 0.005
PROBE_FLUSH_S: Final = 0.05
_RETURN_WITHIN_S: Final = 1.0
_LOOKS: Final = 4
"""How often a client looks in the time of a keepalive whether a ping is due."""
BATCH_NS: Final = 10_000_000
"""How long a subscriber reads a batch at most, ns: all messages of a batch have the time of its end, and 2000 messages
of a process that shares a core with many others can take seconds."""
STREAM_BYTES: Final = 1 << 20
"""Bytes after which a subscriber hands over what it has read without the control channel."""


class PahoPublisher:
    """Publishes to its own topic, or to several that all publishers share.

    At most ``max_inflight`` messages wait for an answer.
    """

    marks_end = True

    def __init__(self, client: int, control: ControlClient) -> None:
        self._client = client
        self._control = control
        self._connection: MqttConnection | None = None
        self._built_for: MqttStep | None = None
        self._topic = ""
        self._signals: list[str] = []
        self._topics: MessageChoice | None = None
        self._names: list[str] = []
        self._qos = 0
        self._retain = False
        self._most = 0
        self._waiting: dict[int, int] = {}
        """Sequences by message id; -1 stands for a probe, or a message of an earlier step."""
        self._answers = Answers()
        self._returns = False  # whether it connects again if the connection is lost in the step
        self._lost = _Losses()  # of earlier connections of the step
        self._again_ns = 0  # when it may try that, CLOCK_MONOTONIC

    def configure(self, command: Configure) -> str:
        """See transport.py. A change of any setting except ``retain`` makes a new connection."""
        step = read_system(command.system, MqttStep)
        if self._connection is not None:
            self._take_answers()
        if self._connection is None or self._connection.lost or _connected_by(step) != self._built_for:
            self.close()
            self._open(step)
        traffic = command.drawn
        self._topics = topic_choice(traffic, self._client) if traffic.several else None
        self._names = topic_filters(step, range(traffic.topics)) if traffic.several else []
        self._topic = topic_of(step, self._client)
        self._signals = self._names[: traffic.probed.stop] or [signals_of(step, self._client)]
        self._qos, self._retain = step.qos, step.retain
        self._most = step.max_inflight
        self._waiting = dict.fromkeys(self._waiting, -1)
        self._answers = Answers()
        self._returns, self._lost = command.connect is not UNSET, _Losses()
        return ""

    def _open(self, step: MqttStep, timeout_s: float = CONNECT_TIMEOUT_S, *, asks_why: bool = True) -> None:
        """Connects; messages that an earlier connection has not acknowledged stay unacknowledged."""
        self._waiting.clear()
        self._connection = MqttConnection(
            client_id(step, self._client), step, on_answer=self._on_answer, timeout_s=timeout_s, asks_why=asks_why
        )
        self._built_for = _connected_by(step)

    def _come_back(self) -> None:
        """Connects again after a loss, one attempt a second, if the step measures that."""
        if self._returns and self._built_for is not None and time.monotonic_ns() >= self._again_ns:
            self._lost.note(self._connection)
            with contextlib.suppress(OSError):
                self._open(self._built_for, _RETURN_WITHIN_S, asks_why=False)
            self._again_ns = time.monotonic_ns() + AGAIN_NS

    def probe(self, message: bytes) -> None:
        """See transport.py. A probe has the QoS of the data, because otherwise one could overtake the other."""
        connection = self._opened()
        for topic in self._signals:
            full = connection.unsent() or len(self._waiting) >= self._most
            if full and (len(self._signals) == 1 or not self.flush(PROBE_FLUSH_S)):
                return
            mid = connection.publish(topic, message, self._qos)
            if mid is not None and self._qos:
                self._waiting[mid] = -1
            if self._qos == 2:
                self.flush(PROBE_FLUSH_S)  # the server delivers it only after the handshake

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py."""
        connection, count = self._opened(), 0
        if connection.lost:
            # Messages under way get no answer; they are reported as unacknowledged.
            time.sleep(FULL_WAIT_S)
            return 0
        topic, qos, retain, waiting = self._topic, self._qos, self._retain, self._waiting
        topics = [] if self._topics is None else self._topics.of(first_sequence, len(messages))
        for message in messages:
            if connection.unsent() or (qos and len(waiting) >= self._most):
                if count == 0:
                    connection.wait(FULL_WAIT_S, to_write=connection.unsent())
                connection.write()
                self._take_answers()
                if connection.unsent() or (qos and len(waiting) >= self._most):
                    break
            if topics:
                topic = self._names[topics[count]]
            mid = connection.publish(topic, message, qos, retain=retain)
            if mid is None:
                break
            if qos:
                waiting[mid] = first_sequence + count
            self._answers.ledger.accept(1)  # one at a time: first answers may arrive before the last send
            count += 1
        return count

    def poll(self) -> None:
        """See transport.py."""
        if self._connection is not None:
            if self._connection.lost:
                self._come_back()
            self._connection.write()
            self._take_answers()

    def awaits(self) -> bool:
        """See transport.py. A lost connection has no answers."""
        connection = self._connection
        return connection is not None and not connection.lost and (bool(self._waiting) or connection.unsent())

    def wait(self, timeout_s: float) -> None:
        """See transport.py."""
        connection_or_control(self._opened(), self._control, timeout_s)

    def tend(self) -> float:
        """See transport.py."""
        return _tend(self._connection, self._built_for)

    def framed_bytes(self, message_size: int) -> int | None:
        """The size of a PUBLISH packet: type, length, topic, message id (QoS 1 and 2), properties (MQTT 5), message.

        None if there are several topics, whose names differ in length.
        """
        if self._topics is not None:
            return None
        is_5 = self._built_for is not None and self._built_for.protocol == "5"
        rest = 2 + len(self._topic.encode()) + (2 if self._qos else 0) + is_5 + message_size
        return 1 + max(1, (rest.bit_length() + 6) // 7) + rest

    def flush(self, timeout_s: float) -> bool:
        """See transport.py."""
        connection, deadline = self._opened(), time.monotonic() + timeout_s
        while True:
            connection.write()
            self._take_answers()
            left_s = deadline - time.monotonic()
            under_way = connection.unsent() or bool(self._waiting)
            if not under_way or connection.lost or left_s <= 0:
                return not under_way
            connection.wait(min(left_s, FLUSH_STEP_S), to_write=connection.unsent())

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        if self._qos == 0:
            return None
        return Delivery.of(self._answers.ledger, self._answers.last_ns)

    def report_system(self) -> dict[str, Any] | None:
        """See transport.py: whether a connection was lost in the step."""
        return self._lost.account(self._connection)

    def accepted(self) -> int | None:
        """See transport.py."""
        return self._answers.ledger.acknowledged if self._qos else None

    def refused(self) -> FirstReason | None:
        """See transport.py. The reason with which the server ended the connection is one, too."""
        first, connection = self._answers.refused, self._connection
        if not first.reason and connection is not None and connection.lost:
            first.add(connection.lost_reason, connection.lost, 0)
        return first

    def losses(self) -> tuple[int, str]:
        """See transport.py."""
        self._lost.note(self._connection)
        return self._lost.count, self._lost.why

    def close(self) -> None:
        """See transport.py. Messages that wait for an answer are abandoned."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _opened(self) -> MqttConnection:
        if self._connection is None:
            raise OSError("the publisher is not configured")
        return self._connection

    def _on_answer(self, mid: int, refusal: ReasonCode | None) -> None:
        sequence = self._waiting.pop(mid, -1)
        if sequence >= 0:
            (self._answers.good if refusal is None else self._answers.bad).append(sequence)
            if refusal is not None:
                self._answers.refused.add(reason_word(refusal), str(refusal))

    def _take_answers(self) -> None:
        connection = self._opened()
        connection.read_all()
        self._answers.take()


class PahoSubscriber(SubscriberTransport):
    """Subscribes to the topics of its publishers."""

    def __init__(self, client: int, control: ControlClient) -> None:
        self._client = client
        self._control = control
        self._connection: MqttConnection | None = None
        self._built_for: tuple[MqttStep, tuple[str, ...]] | None = None
        self._arrived: deque[bytes] = deque()
        self._limit_s = 0.0  # the time limit of a single attempt; 0: that of the library's connections
        self._epoch = 0
        self._lost = _Losses()  # of earlier connections of the step

    def configure(self, command: Configure) -> None:
        """See transport.py. The subscription is kept unless one of its settings changed, or the connection is lost."""
        step, traffic = read_system(command.system, MqttStep), command.drawn
        if command.epoch != self._epoch:
            # A connection that was lost between two steps belongs to neither.
            self._epoch, self._lost = command.epoch, _Losses()
        subscribed = filters(step, command.group, [p.publisher for p in command.publishers])
        if traffic.several:
            topics = topic_filters(step, client_topics(traffic, self._client))
            subscribed = (f"{step.topic}/+",) if traffic.wildcard else tuple(topics)
        required = (_connected_by(step), subscribed)
        if self._connection is not None and required == self._built_for:
            # A read detects a connection that the server has closed meanwhile.
            self._take(len(self._arrived) + 1)
            if not self._connection.lost:
                return
        self._built_for = required
        self._connect()

    def _connect(self) -> None:
        self._disconnect()
        if self._built_for is None:
            raise ValueError("a subscriber is configured before it connects")
        step, subscriptions = self._built_for
        connection = MqttConnection(
            client_id(step, self._client),
            step,
            on_message=self._on_message,
            timeout_s=self._limit_s or CONNECT_TIMEOUT_S,
            asks_why=not self._limit_s,
        )
        try:
            connection.subscribe(subscriptions, step.qos)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """See transport.py. A lost connection returns nothing; the report counts it, the next configure connects."""
        connection = self._connection
        if connection is None:
            return ()
        self._take(limit)
        if not self._arrived and timeout_s > 0:
            if not connection_or_control(connection, self._control, timeout_s):
                return ()
            self._take(limit)
        return self._taken(limit)

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        """See transport.py: the messages of a batch were there without a wait."""
        messages: list[bytes] = []
        batches: list[tuple[int, int]] = []
        connection, now_ns, left_bytes = self._connection, 0, STREAM_BYTES
        while connection is not None and len(messages) < limit and now_ns < until_ns and left_bytes > 0:
            self._take(limit - len(messages))
            if not self._arrived:
                connection.wait(DEAF_AT_MOST_S, to_write=connection.unsent())
                self._take(limit - len(messages))
            now_ns = time.monotonic_ns()
            batch = self._taken(limit - len(messages))
            if not batch:
                break
            messages += batch
            batches.append((now_ns, len(batch)))
            left_bytes -= sum(map(len, batch))
        return messages, batches

    def _taken(self, limit: int) -> list[bytes]:
        """Removes at most ``limit`` messages from those that have arrived."""
        arrived = self._arrived
        return [arrived.popleft() for _ in range(min(limit, len(arrived)))]

    def _take(self, limit: int) -> None:
        """Reads until ``limit`` messages have arrived, no data is left, or the batch takes too long."""
        connection = self._connection
        if connection is None:
            return
        connection.keep_alive()
        until_ns = time.monotonic_ns() + BATCH_NS
        while len(self._arrived) < limit and connection.read() and time.monotonic_ns() < until_ns:
            pass
        connection.write()  # answers that the socket did not accept at once

    def tend(self) -> float:
        """See transport.py. Nothing is read: a slow reader leaves it, and the next step counts what is stale."""
        return _tend(self._connection, self._built_for[0] if self._built_for else None)

    def connect(self, command: Configure, limit_s: float) -> ConnectPhases:
        """See transport.py."""
        self.close()
        self._limit_s = limit_s
        try:
            self.configure(command)
        finally:
            self._limit_s = 0.0
        return self._connection.phases if self._connection is not None else ConnectPhases()

    def lost(self) -> bool:
        """See transport.py: nothing opens another connection."""
        return self._connection is not None and self._connection.lost != ""

    def disconnections(self) -> list[Disconnection]:
        """See transport.py: the library ends none by itself."""
        return []

    def reconnect(self) -> tuple[int, int]:
        """See transport.py. Without a clean session the server keeps messages that arrive meanwhile."""
        begin_ns = time.monotonic_ns()
        self.close()
        self._connect()
        return begin_ns, time.monotonic_ns()

    def report_system(self) -> dict[str, Any] | None:
        """See transport.py: whether a connection was lost in the step, and why."""
        losses = self._lost.account(self._connection)
        return {**losses, **({LOST_WHY: reported(self._lost.why)} if self._lost.count else {})}

    def close(self) -> None:
        """See transport.py. The next connection does not hide that this one was lost."""
        self._lost.note(self._connection)
        self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _on_message(self, message: mqtt.MQTTMessage) -> None:
        self._arrived.append(bytes(message.payload))


def connection_or_control(connection: MqttConnection, control: ControlClient, timeout_s: float) -> bool:
    """Waits for the connection or for the controller; returns whether the connection can be read, or written."""
    if control.socket.poll(0):
        return False
    # After this poll, ZeroMQ's descriptor signals further messages.
    waiting = select.poll()
    waiting.register(control.socket.fileno(), select.POLLIN)
    if not connection.lost:
        waiting.register(connection, select.POLLIN | (select.POLLOUT if connection.unsent() else 0))
    ready = waiting.poll(poll_ms(timeout_s))
    return any(descriptor != control.socket.fileno() for descriptor, _ in ready)


def _connected_by(step: MqttStep) -> MqttStep:
    """The settings on which a connection depends: all except ``retain``."""
    return replace(step, retain=False)


@dataclass
class _Losses:
    """The lost connections of a step: how many, why the first one, and whether one by the client's own silence."""

    count: int = 0
    why: str = ""
    silent: bool = False
    _last: MqttConnection | None = None

    def note(self, connection: MqttConnection | None) -> None:
        """Adds this connection if it is lost, once."""
        if connection is not None and connection.lost and connection is not self._last:
            self._last = connection
            self.count += 1
            self.why = self.why or connection.lost
            self.silent = self.silent or connection.was_silent

    def account(self, connection: MqttConnection | None) -> dict[str, Any]:
        """The report, with the present connection."""
        self.note(connection)
        return {"lost_connections": int(self.count > 0), **({"lost_by_silence": 1} if self.silent else {})}


def _tend(connection: MqttConnection | None, step: MqttStep | None) -> float:
    """Pings if it is due; returns the seconds after which it may be due again."""
    if step is None or not step.keepalive:
        return math.inf
    if connection is None or connection.lost:
        return _RETURN_WITHIN_S  # there may be another one then
    connection.keep_alive()
    connection.write()
    return step.keepalive / _LOOKS


def _versions() -> dict[str, str]:
    return {"paho-mqtt": version("paho-mqtt"), "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The kinds of clients that this program offers, by name."""
    return {
        "mqtt-pub": Kind("publisher", "paho-mqtt", _versions, PahoPublisher, [MqttStep]),
        "mqtt-sub": Kind("subscriber", "paho-mqtt", _versions, PahoSubscriber, [MqttStep]),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
