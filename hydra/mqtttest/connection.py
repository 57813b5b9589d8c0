"""A connection of paho-mqtt that its owner drives, without a thread or a loop of the library."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import secrets
import select
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from hydra.client.server_interface import endpoint_of
from hydra.client.subscriber_connection import ConnectPhases
from hydra.client.tls import AccessError, access_error, password_error, secured, speaks_tls
from hydra.model.system_reports import CONNECTION_LOST, NO_DESTINATION, NOT_AUTHORIZED, OTHER, QUOTA, TOO_LARGE
from hydra.mqtttest.settings import MqttAccess, MqttStep, Protocol

if TYPE_CHECKING:
    from paho.mqtt.client import DisconnectFlags
    from paho.mqtt.enums import MQTTErrorCode
    from paho.mqtt.reasoncodes import ReasonCode


CONNECT_TIMEOUT_S: Final = 10.0
_CLOSED: Final = "the server closed the connection before it accepted the client"
_OF_LIMITS: Final = ", as servers do at their limit of connections or of open files"
_PROBE_WITHIN_S: Final = 2.0
_ASK_FOR_S: Final = 3.5
"""How long the controller waits for an answer."""
_KEEPALIVE_S: Final = 10
"""The keepalive of the controller's connections."""
SESSION_KEPT_S: Final = 3600
"""How long the server keeps the session of a disconnected client; only MQTT 5 can request it."""
_MISC_EVERY_S: Final = 1.0
_PACKETS_APART: Final = 64
"""The packets of one turn after which the clock is read again."""
_KEEP_ALIVE_FACTOR: Final = 1.5
"""The number of keepalives without a packet after which a server ends the connection."""
_SILENT: Final = 0x8D
"""The reason code of MQTT 5 of a server that did so (keep alive timeout)."""
_FAILURE: Final = 0x80
"""Reason codes from this value on are errors."""
_REASONS: Final = {
    0x87: NOT_AUTHORIZED,
    0x90: NO_DESTINATION,
    0x95: TOO_LARGE,
    0x97: QUOTA,
}
"""What the reason codes of MQTT 5 mean for a message that was rejected, or that ended the connection."""
_OTHER_PROTOCOL: Final = 0x84
"""The reason code for a version of MQTT that the server does not speak; paho translates that of MQTT 3.1.1."""
_LIMITS: Final = ("MaximumPacketSize", "MaximumQoS", "RetainAvailable", "SharedSubscriptionAvailable")
_LOGIN: Final = (0x86, 0x87, 0x8C)
"""Reason codes for a rejected login; paho translates those of MQTT 3.1.1."""


class _Handshake(ssl.SSLSocket):
    """A socket that is closed if its handshake fails, which paho does not do.

    Attributes:
        began_ns, ended_ns: the times of its handshake, CLOCK_MONOTONIC.
    """

    began_ns = ended_ns = 0

    def do_handshake(self, block: bool = False) -> None:
        self.began_ns = time.monotonic_ns()
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise
        self.ended_ns = time.monotonic_ns()


def _phases(began_ns: int, connected: object, opened_ns: int, *, is_plain: bool) -> ConnectPhases:
    """The phases of a connection that the server has just accepted; those that paho does not separate are unknown.

    Args:
        began_ns: when it began, CLOCK_MONOTONIC as all times here.
        connected: the library's socket.
        opened_ns: when the library had opened it, TLS and WebSocket included.
        is_plain: whether it has neither.
    """
    now_ns = time.monotonic_ns()
    tcp_ns, tls_ns = (opened_ns - began_ns if is_plain else None), None
    if isinstance(connected, _Handshake):
        tcp_ns, tls_ns = connected.began_ns - began_ns, connected.ended_ns - connected.began_ns
    return ConnectPhases(
        connected_ns=now_ns,
        subscribed=True,
        tcp_us=None if tcp_ns is None else tcp_ns // 1000,
        tls_us=None if tls_ns is None else tls_ns // 1000,
        login_us=(now_ns - opened_ns) // 1000,
    )


def reason_word(code: ReasonCode) -> str:
    """The word of :mod:`hydra.model.system_reports` for the reason code with which a server rejected a message."""
    return _REASONS.get(code.value, OTHER)


class MqttConnection:
    """A session with a server.

    Arguments:
        name: the client id.
        step: the server's address and the settings of the connection.
        on_message: called with every message that arrives, from :meth:`read` only.
        on_answer: called with the message id of every answered message, and the reason code with which the server
            rejected it, None if it did not.
        timeout_s: time limit in seconds for an answer of the server.
        asks_why: whether a second connection finds out why the server ended the first one.
        is_known: whether the server has accepted clients of this run before.

    Attributes:
        server: the server, as the subject of a sentence.
        lost: why the connection was lost, or "".
        lost_reason: this reason as one of the words in :mod:`hydra.model.system_reports`.
        was_silent: whether it was lost because this client sent nothing for longer than the keepalive allows.
        phases: what is known of how the connection was made.
        limits: what a server of MQTT 5 announced of its limits, by paho's names.

    Raises:
        AccessError: the server does not answer, or does not let the client in.
        OSError: the server rejects the client for another reason.
    """

    def __init__(
        self,
        name: str,
        step: MqttStep,
        *,
        on_message: Callable[[mqtt.MQTTMessage], None] | None = None,
        on_answer: Callable[[int, ReasonCode | None], None] | None = None,
        timeout_s: float = CONNECT_TIMEOUT_S,
        asks_why: bool = True,
        is_known: bool = True,
    ) -> None:
        self._step = step
        self._asks_why = asks_why
        self._closed = _CLOSED + (_OF_LIMITS if is_known else "")
        self.server = f"the MQTT server at {endpoint_of(step.host, [step.port])}"
        self._timeout_s = timeout_s
        self._is_5 = step.protocol == "5"
        self._accepted: ReasonCode | None = None
        self._granted: dict[int, Sequence[ReasonCode]] = {}
        self.lost = ""
        self.was_silent = False
        self._alive = False  # whether something was read, or the socket accepted a message, since the last look
        self._served_s = time.monotonic()  # when the library last had the time to ping
        self._late_s = -math.inf  # when it last had it too late for the server
        self.lost_reason = CONNECTION_LOST
        self.phases = ConnectPhases()
        self.limits: dict[str, int] = {}
        self._misc_at_s = 0.0
        self._client = client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            name,
            clean_session=None if self._is_5 else step.clean_session,
            protocol=mqtt.MQTTv5 if self._is_5 else mqtt.MQTTv311,
            transport="websockets" if step.websocket else "tcp",
            reconnect_on_failure=False,
        )
        client.max_inflight_messages_set(step.max_inflight)
        client.connect_timeout = timeout_s
        if step.username:
            client.username_pw_set(step.username, step.password or None)
        if step.websocket:
            client.ws_set_options(step.websocket)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        if on_message is not None:
            client.on_message = lambda _client, _data, message: on_message(message)
        if on_answer is not None and step.qos > 0:
            client.on_publish = lambda _client, _data, mid, code, _properties: on_answer(
                mid, code if code.value >= _FAILURE else None
            )
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    @classmethod
    def of_controller(
        cls, access: MqttAccess, protocol: Protocol, on_message: Callable[[mqtt.MQTTMessage], None] | None = None
    ) -> MqttConnection:
        """A connection of the controller, with a client id of its own; exceptions as above."""
        how = {each.name: getattr(access, each.name) for each in fields(access)}
        step = MqttStep(topic="hydra", keepalive=_KEEPALIVE_S, protocol=protocol, **how)
        return cls(f"hydra-{secrets.token_hex(8)}", step, on_message=on_message, timeout_s=_ASK_FOR_S, is_known=False)

    def _connect(self) -> None:
        step = self._step
        further: dict[str, Any] = {}
        if self._is_5:
            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            properties.ReceiveMaximum = step.max_inflight
            if not step.clean_session:
                properties.SessionExpiryInterval = SESSION_KEPT_S
            further = {"clean_start": step.clean_session, "properties": properties}
        if step.tls:
            context = step.tls.context()
            context.sslsocket_class = _Handshake
            self._client.tls_set_context(context)
        began_ns = time.monotonic_ns()
        try:
            self._client.connect(step.host, step.port, step.keepalive, **further)
        except OSError as e:
            if step.websocket and isinstance(e, ConnectionError | ssl.SSLEOFError):
                raise self._ended("the server does not use WebSocket at this port") from None
            raise access_error(e, step.host, step.tls).at(self.server) from None
        connected = self._client.socket()
        if connected is None:
            raise self._ended(self._closed)
        opened_ns = time.monotonic_ns()
        self._descriptor = connected.fileno()
        # TLS reads a whole record from the socket.
        self._decrypted: Callable[[], int] = getattr(connected, "pending", lambda: 0)
        with socket.socket(fileno=os.dup(self._descriptor)) as same:
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._readable = select.poll()
        self._readable.register(self, select.POLLIN)
        with contextlib.suppress(ConnectionError):
            self.await_(lambda: self._accepted is not None, self._timeout_s, "to the connection")
        if self._accepted is None:
            raise self._ended(self._closed)
        if self._accepted.value in _LOGIN:
            raise password_error(step.username, step.password).at(self.server)
        if self._accepted.value == _OTHER_PROTOCOL:
            reason = f"the server does not speak MQTT {step.protocol}"
            raise AccessError("login", reason, "choose another --protocol", self.server)
        if self._accepted.is_failure:
            raise OSError(f"{self.server} rejects this client: {self._accepted}")
        self.phases = _phases(began_ns, connected, opened_ns, is_plain=not (step.tls or step.websocket))

    def _ended(self, reason: str) -> AccessError:
        """Why the server ended the connection before it accepted the client; a second connection finds it out."""
        step = self._step
        if not self._asks_why:
            return AccessError("network", reason, server=self.server)
        try:
            probe = socket.create_connection((step.host, step.port), _PROBE_WITHIN_S)
            if step.tls:
                secured(probe, step.host, step.tls).close()
            elif speaks_tls(probe):
                return AccessError("TLS", "the server demands TLS", "write mqtts:// or wss://", self.server)
        except OSError as e:
            return access_error(e, step.host, step.tls).at(self.server)
        return AccessError("network", reason, "check the port of --servers", self.server)

    def subscribe(self, filters: Sequence[str], qos: int) -> None:
        """Subscribes and waits until the server has agreed.

        Raises:
            OSError: the server rejected a subscription, or did not answer.
        """
        code, mid = self._client.subscribe([(one, qos) for one in filters])
        if code != mqtt.MQTT_ERR_SUCCESS or mid is None:
            raise OSError(f"cannot subscribe: {mqtt.error_string(code)}")
        self.await_(lambda: mid in self._granted, self._timeout_s, "to a subscription")
        for one, granted in zip(filters, self._granted.pop(mid), strict=True):
            if granted.is_failure:
                raise OSError(f"the MQTT server refuses the subscription of {one}: {granted}")

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> int | None:
        """Hands over one message; returns its message id, None if the connection is lost."""
        # paho returns "no connection" for a message that it keeps for the next connection; there is no next one here.
        answer = self._client.publish(topic, payload, qos, retain)
        if answer.rc == mqtt.MQTT_ERR_SUCCESS:
            self._alive = self._alive or not self._client.want_write()
            return answer.mid
        self._lose(mqtt.error_string(answer.rc))
        return None

    def fileno(self) -> int:
        """The descriptor of the socket, for a poll."""
        return self._descriptor

    def unsent(self) -> bool:
        """Whether data waits until the socket accepts more."""
        return self._client.want_write()

    def write(self) -> None:
        """Sends as much of the waiting data as the socket accepts."""
        if self._client.want_write():
            self._judge(self._client.loop_write())

    def read(self) -> bool:
        """Reads one packet if one is there, and returns at once whether there was something to read."""
        if self.lost or not self._waits():
            return False
        self._alive = True
        self._judge(self._client.loop_read())
        return True

    def read_all(self) -> None:
        """Reads everything that is there, and keeps the connection alive."""
        for packets in itertools.count():
            if packets % _PACKETS_APART == 0:
                self.keep_alive()
            if not self.read():
                return

    def _waits(self) -> bool:
        """Whether there is something to read."""
        return bool(self._readable.poll(0) or self._decrypted())

    def keep_alive(self) -> None:
        """Pings the server if the connection was silent for too long.

        Its owner calls it on every turn, whatever there is to read, and not for each message.

        The answer to a ping may wait behind data that a slow reader leaves, or that either side sends faster than the
        other reads. The library would end the connection, so a ping counts as answered while data move or wait.
        """
        now_s = time.monotonic()
        if now_s < self._misc_at_s or self.lost:
            return
        self._misc_at_s = now_s + _MISC_EVERY_S
        self._note_silence(now_s)
        if self._alive or self._waits():
            self._client._ping_t = 0.0
        self._alive = False
        self._judge(self._client.loop_misc())
        if not self.lost:
            self._served_s = now_s

    def wait(self, timeout_s: float, *, to_write: bool = False) -> None:
        """Waits at most ``timeout_s`` until it can read, or write; returns at once if the connection is lost."""
        if self.lost or self._decrypted():
            return
        waiting = self._readable
        if to_write:
            waiting = select.poll()
            waiting.register(self, select.POLLIN | select.POLLOUT)
        waiting.poll(max(0.0, timeout_s * 1000))

    def await_(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Serves the connection until the condition holds.

        Raises:
            OSError: the condition did not hold in time, or the connection was lost; the text contains ``what``.
        """
        deadline = time.monotonic() + timeout_s
        while not condition():
            if self.lost:
                raise ConnectionError(f"{self.server} closed the connection: {self.lost}")
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise AccessError("network", f"no answer {what} in {timeout_s:g} s", server=self.server)
            self.write()
            self.keep_alive()
            if not self.read():
                self.wait(left_s, to_write=self.unsent())

    def close(self) -> None:
        """Closes the connection at once; may be called twice."""
        with contextlib.suppress(OSError, ValueError):
            if not self.lost:
                self._client.disconnect()
        left = self._client.socket()
        if left is not None:
            left.close()
        self.lost = self.lost or "it was closed"

    def _judge(self, code: MQTTErrorCode) -> None:
        if code not in (mqtt.MQTT_ERR_SUCCESS, mqtt.MQTT_ERR_AGAIN):
            self._lose(mqtt.error_string(code))

    def _note_silence(self, now_s: float) -> None:
        # A server waits for one and a half times the keepalive, and the library pings after one, if it can.
        if now_s - self._served_s >= _KEEP_ALIVE_FACTOR * self._step.keepalive > 0:
            self._late_s = now_s

    def _lose(self, why: str, *, is_silent: bool = False) -> None:
        """Notes why the connection was lost; ``is_silent``: the server named this client's silence."""
        if self.lost:
            return
        now_s = time.monotonic()
        self._note_silence(now_s)
        # A client reads the end of a connection some time after it could ping again.
        self.was_silent = is_silent or now_s - self._late_s < self._step.keepalive
        self.lost = f"this client was silent for longer than its keepalive: {why}" if self.was_silent else why

    def _on_connect(self, _client: object, _data: object, _flags: object, code: ReasonCode, more: object) -> None:
        self._accepted = code
        self.limits = {name: value for name in _LIMITS if (value := getattr(more, name, None)) is not None}

    def _on_disconnect(
        self, _client: object, _data: object, flags: DisconnectFlags, code: ReasonCode, _more: object
    ) -> None:
        if not self.lost:
            self.lost_reason = _REASONS.get(code.value, CONNECTION_LOST)
        # (The library gives this code, too, if a ping of its own had no answer.)
        is_silent = flags.is_disconnect_packet_from_server and code.value == _SILENT
        if code.value == _SILENT and not is_silent:
            self._lose("the server did not answer a ping")
        else:
            self._lose("no reason was given" if code.value == _FAILURE else str(code), is_silent=is_silent)

    def _on_subscribe(
        self, _client: object, _data: object, mid: int, codes: Sequence[ReasonCode], _more: object
    ) -> None:
        self._granted[mid] = codes
