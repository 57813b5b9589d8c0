"""The publisher of nats-py clients."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from hydra.client.transport import Answers, Delivery, read_system
from hydra.control.control_client import ControlClient
from hydra.model.system_reports import NOT_AUTHORIZED, FirstReason
from hydra.natstest.connection import ANSWER_TIMEOUT_S, SERVED_EVERY_S, NatsConnection
from hydra.natstest.refusal_reasons import refusal
from hydra.natstest.settings import NatsStep, subjects_of
from hydra.wire.messages import Configure
from hydra.wire.traffic import MessageChoice, topic_choice

UNWRITTEN_BYTES: Final = 2 * 1024 * 1024
"""The number of bytes that may wait to be written before the client accepts no more; nats-py's default."""
FULL_WAIT_S: Final = 0.005
HAND_OVER_S: Final = 0.01
_PROBE: Final = -1


class NatsPublisher:
    """Publishes on one subject, or on several that all publishers share.

    Every message to a stream names a reply subject that ends with its sequence; the server's replies there are counted.
    The library's ``publish_async`` does the same with a future for each message: 16,000 messages/s instead of 28,000.
    """

    def __init__(self, client: int, control: ControlClient) -> None:
        self._client = client
        self._connection = NatsConnection(f"hydra-{client}", control)
        self._step: NatsStep | None = None
        self._topics: MessageChoice | None = None
        self._subjects: list[str] = []
        self._signals: list[str] = []
        self._replies: Subscription | None = None
        self._inbox = ""
        self._prefix = ""
        self._epoch = 0
        self._answers = Answers()
        self._probes = 0
        self._disconnects = 0  # those after which answers were given up
        self._given_up = 0  # answers to messages before this one are not expected
        self._expected = 0  # the other messages without an answer
        self._stirs = False  # whether each answer ends the wait

    @property
    def marks_end(self) -> bool:
        """True in core mode, because a connection keeps the order; a stream's last sequence replaces the marker."""
        return self._step is not None and not self._step.stream

    def configure(self, command: Configure) -> str:
        """See transport.py. The connection is kept if the servers are the same."""
        step = read_system(command.system, NatsStep)
        if self._connection.open(step.access):
            self._replies = None
        if step.stream and self._replies is None:
            client = self._connection.client
            self._inbox = client.new_inbox()
            self._replies = self._connection.do(
                client.subscribe(f"{self._inbox}.*.*", cb=self._on_reply, pending_bytes_limit=0), ANSWER_TIMEOUT_S
            )
        if command.settings.message_size > self._connection.client.max_payload:
            raise ValueError(
                f"the NATS server takes messages of at most {self._connection.client.max_payload} bytes (max_payload)"
            )
        # The reply shows that the server has received everything before, and accepts messages.
        self._connection.confirm(ANSWER_TIMEOUT_S)
        self._connection.begin_step()
        traffic = command.drawn
        self._topics = topic_choice(traffic, self._client) if traffic.several else None
        self._subjects = subjects_of(step, range(traffic.topics)) if traffic.several else [step.subject]
        self._signals = self._subjects[: traffic.probed.stop]
        self._step, self._epoch = step, command.epoch
        self._prefix = f"{self._inbox}.{command.epoch}."
        self._answers = Answers()
        self._probes = self._disconnects = self._given_up = self._expected = 0
        return ""

    def probe(self, message: bytes) -> None:
        """See transport.py."""
        step = self._configured()
        reply = f"{self._prefix}{_PROBE}" if step.stream else ""
        # An unanswered probe shows that the server is slow; more probes would make it slower.
        if (step.stream and self._probes > 0) or not self._room():
            self._connection.turn()
            return
        signals = self._signals
        self._publish([message] * len(signals), [reply] * len(signals), signals)
        self._probes += len(signals) if reply else 0
        self._hand_over()

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """See transport.py. Returns 0 if the window of unacknowledged messages, or the write buffer, is full."""
        step = self._configured()
        acknowledged = bool(step.stream) and step.publish_acks
        self._give_up_answers()
        room = step.publish_window - self._expected if acknowledged else len(messages)
        taken = messages[: max(room, 0)] if self._room() else ()
        if not taken:
            self._connection.wait(FULL_WAIT_S)
            self._answers.take()
            return 0
        prefix = self._prefix
        replies = (
            [f"{prefix}{n}" for n in range(first_sequence, first_sequence + len(taken))]
            if acknowledged
            else [""] * len(taken)
        )
        subjects = self._subjects
        if self._topics is not None:
            subjects = [subjects[topic] for topic in self._topics.of(first_sequence, len(taken))]
        # Before it: the first answers may arrive within it.
        self._expected += len(taken) if acknowledged else 0
        self._publish(taken, replies, subjects)
        self._answers.ledger.accept(len(taken))
        self._hand_over()
        self._answers.take()
        return len(taken)

    def poll(self) -> None:
        """See transport.py."""
        self._connection.turn()
        self._answers.take()

    def awaits(self) -> bool:
        """See transport.py."""
        return self._expected > 0 or self._connection.unwritten

    def wait(self, timeout_s: float) -> None:
        """See transport.py. The library also writes within it what the socket did not accept at once."""
        self._stirs = True
        self._connection.wait(timeout_s)
        self._stirs = False

    def tend(self) -> float:
        """See transport.py."""
        self._connection.keep_alive()
        return SERVED_EVERY_S

    def framed_bytes(self, message_size: int) -> int | None:
        """The size of ``PUB SUBJECT  SIZE``, the message, and two line ends; None if the subjects vary it."""
        step = self._configured()
        if (step.stream and step.publish_acks) or self._topics is not None:
            return None
        return len(f"PUB {step.subject}  {message_size}\r\n\r\n".encode()) + message_size

    def flush(self, timeout_s: float) -> bool:
        """See transport.py. In core mode only a ping has a reply, which arrives after everything before it."""
        step, deadline = self._configured(), time.monotonic() + timeout_s
        if not self._connection.flush(timeout_s):
            return False
        if not step.stream:
            return True
        self._give_up_answers()
        left_s = max(deadline - time.monotonic(), 0)
        done = self._connection.run_while(lambda: self._expected > 0 or self._probes > 0, left_s)
        self._answers.take()
        return done

    def delivery(self) -> Delivery | None:
        """See transport.py."""
        step = self._configured()
        if not step.stream or not step.publish_acks:
            return None
        return Delivery.of(self._answers.ledger, self._answers.last_ns)

    def accepted(self) -> int | None:
        """See transport.py."""
        step = self._configured()
        return self._answers.ledger.acknowledged if step.stream and step.publish_acks else None

    def refused(self) -> FirstReason | None:
        """See transport.py. The server does not answer a message that the client may not publish."""
        if not self._answers.refused.reason and self._connection.not_permitted:
            self._answers.refused.add(NOT_AUTHORIZED, self._connection.not_permitted, 0)
        return self._answers.refused

    def losses(self) -> tuple[int, str]:
        """See transport.py."""
        return self._connection.losses()

    def report_system(self) -> dict[str, Any]:
        """See transport.py."""
        return msgspec.to_builtins(self._connection.trouble())  # type: ignore[no-any-return]

    def close(self) -> None:
        """See transport.py."""
        self._connection.close()

    def _configured(self) -> NatsStep:
        if self._step is None:
            raise OSError("the publisher is not configured")
        return self._step

    def _room(self) -> bool:
        return self._connection.connected and self._connection.client.pending_data_size < UNWRITTEN_BYTES

    def _give_up_answers(self) -> None:
        """Expects no more answers after a disconnection: those that never arrive would fill the window."""
        if self._connection.disconnects != self._disconnects:
            self._disconnects = self._connection.disconnects
            self._given_up, self._expected, self._probes = self._answers.ledger.sent, 0, 0

    def _publish(self, messages: Sequence[bytes], replies: Sequence[str], subjects: Sequence[str]) -> None:
        """Publishes each message on its subject, or all on one."""
        publish = self._connection.client.publish

        async def all_on_one(subject: str) -> None:
            for message, reply in zip(messages, replies, strict=True):
                await publish(subject, message, reply)

        async def each_on_its_own() -> None:
            for message, reply, subject in zip(messages, replies, subjects, strict=True):
                await publish(subject, message, reply)

        try:
            one = len(self._subjects) == 1
            self._connection.do(all_on_one(subjects[0]) if one else each_on_its_own(), ANSWER_TIMEOUT_S)
        except OSError as e:
            raise OSError(f"NATS refuses a message for {self._configured().subject}: {e}") from None

    def _hand_over(self) -> None:
        """Runs the loop until the library has written its messages, for a short time at most."""
        client = self._connection.client
        self._connection.run_while(lambda: client.is_connected and client.pending_data_size > 0, HAND_OVER_S)

    async def _on_reply(self, message: Msg) -> None:
        _, epoch, sequence = message.subject.rsplit(".", 2)
        if int(epoch) != self._epoch:
            return
        refused = refusal(message.data)
        number = int(sequence)
        if number == _PROBE:
            self._probes = max(self._probes - 1, 0)
        else:
            (self._answers.bad if refused else self._answers.good).append(number)
            if refused:
                self._answers.refused.add(*refused)
            self._expected -= number >= self._given_up
        if self._stirs or not self._expected:
            self._connection.stir()
