"""The interfaces between a Python client and its system: every transport implements one of two.

A transport has one data connection. The connection is made after the fork, in the client's own process, and one thread
uses it. The publisher and subscriber loops handle sequences and times; a transport does not.

What a transport offers beyond that is found by the name of a method: ``isinstance`` with a Protocol would copy 0.3 MB
of the pages that a client shares with the other clients of its group.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Protocol, TypeVar

import msgspec
import numpy as np

from hydra.client.ack_ledger import AckLedger
from hydra.client.subscriber_connection import ConnectPhases
from hydra.control.control_client import ControlClient
from hydra.model import Histogram, Role, SequenceRange
from hydra.model.system_reports import Disconnection, FirstReason
from hydra.wire.messages import Configure, SystemObject

DEAF_AT_MOST_S: Final = 0.1
"""How long a transport waits for data when the control channel cannot wake it."""
DEAF_ANSWERS_S: Final = 0.01
"""How long a publisher waits for answers when the control channel cannot wake it, s."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The acknowledgements of the messages sent since the last ``configure``.

    ``last_ack_ns`` is on CLOCK_MONOTONIC (0: none yet); ``pending`` is the number of messages without an answer;
    ``unacknowledged`` are the sequence ranges of failed and pending messages; ``ack_latency`` is the time from the
    hand-over of a message to the library to its acknowledgement, empty if a system does not measure it.
    """

    acknowledged: int
    failed: int
    pending: int
    last_ack_ns: int
    unacknowledged: list[SequenceRange] = field(default_factory=list)
    ack_latency: Histogram = field(default_factory=Histogram)

    @classmethod
    def of(cls, ledger: AckLedger, last_ack_ns: int, ack_latency: Histogram | None = None) -> Delivery:
        """The delivery that a ledger of acknowledgements contains."""
        return cls(
            ledger.acknowledged,
            ledger.failed,
            ledger.pending,
            last_ack_ns,
            ledger.unacknowledged(),
            ack_latency or Histogram(),
        )


class Answers:
    """Answers that a library delivered one by one, and the ledger of their step, which takes them together."""

    def __init__(self) -> None:
        self.ledger = AckLedger()
        self.refused = FirstReason()
        self.last_ns = 0  # when the ledger last took acknowledgements, CLOCK_MONOTONIC
        self.good: list[int] = []
        self.bad: list[int] = []

    def take(self) -> None:
        """Passes the answers that have arrived to the ledger."""
        if self.good:
            self.last_ns = time.monotonic_ns()
            self.ledger.acknowledge(np.array(self.good, np.int64))
            self.good.clear()
        if self.bad:
            self.ledger.fail(np.array(self.bad, np.int64))
            self.bad.clear()


T = TypeVar("T")


def read_system(system: SystemObject, kind: type[T]) -> T:
    """The ``system`` object of a command as the system's own type; null is read as an empty object.

    Args:
        system: the object.
        kind: a dataclass, or a Struct that forbids unknown fields.

    Raises:
        ValueError: a field is unknown, is missing or cannot have this value; the text names it.
    """
    given = system or {}
    if is_dataclass(kind) and (unknown := sorted(given.keys() - {f.name for f in fields(kind)})):
        raise ValueError(f"in the system's part of the command: unknown field {unknown[0]!r}")
    try:
        return msgspec.convert(given, kind, str_keys=True)
    except msgspec.ValidationError as e:
        raise ValueError(f"in the system's part of the command: {e}") from None


def prepare_system(kinds: Iterable[type]) -> None:
    """Has msgspec analyse the types of :func:`read_system` before the fork: it takes each client 0.4 MB and 2 ms."""
    for kind in kinds:
        with contextlib.suppress(msgspec.ValidationError):
            msgspec.convert({}, kind)


class PublisherTransport(Protocol):
    """The sending side of a system. Its default methods suit a system without acknowledgements."""

    @property
    def marks_end(self) -> bool:
        """Whether an end marker informs a subscriber.

        A system needs end markers if a connection keeps the order and nothing else shows where the data ends.
        """

    def configure(self, command: Configure) -> str:
        """Applies the settings of the next step, and makes a new connection only if the library requires it.

        ``command.system`` is the system's own object, see :func:`read_system`. Returns the data endpoint to which
        subscribers connect, "" if the system has none. Forgets the deliveries of the last step. Raises OSError or
        ValueError with a text for the user.
        """

    def probe(self, message: bytes) -> None:
        """Sends one probe or end marker, without a guarantee; ``delivery`` does not count them.

        If there are several topics, it sends one to each of ``Traffic.probed``.
        """

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """Hands consecutive messages to the library, in order, without waiting long (at most some 10 ms).

        Returns how many it accepted, from the front. Fewer than all means that the library's queue is full: the caller
        reads the control channel and offers the rest again.
        """

    def poll(self) -> None:
        """Lets the library deliver acknowledgements and write what it holds; returns at once."""
        return  # with an empty body, mypy takes the method for an abstract one

    def flush(self, timeout_s: float) -> bool:
        """Waits at most ``timeout_s`` for outstanding answers, also to probes; True if all messages are answered."""
        return True

    def delivery(self) -> Delivery | None:
        """The acknowledgements until now; None if the system has none."""
        return None

    def accepted(self) -> int | None:
        """The number of messages acknowledged until now, a cheap form of :meth:`delivery`; None as there."""
        return None

    def refused(self) -> FirstReason | None:
        """Why the first messages were rejected since ``configure``; None if the system has no acknowledgements."""
        return None

    def losses(self) -> tuple[int, str]:
        """How often the connection was lost since ``configure``, and why the first time; 0 if it is not revealed."""
        return 0, ""

    def framed_bytes(self, message_size: int) -> int | None:
        """Bytes that a message of this size needs on the connection, with its frame; None if other things matter."""
        return None

    def report_system(self) -> dict[str, Any] | None:
        """The system's own part of a publisher's report."""
        return None

    def close(self) -> None:
        """Closes the connection at once, without waiting; may be called twice."""


class AwaitingTransport(Protocol):
    """A publisher's transport whose library does nothing for the publisher except in its calls.

    The time of an acknowledgement is that of the ``poll`` that finds it. So while :meth:`awaits` is true, the publisher
    waits in :meth:`wait`: for its next message, for a command, and after its last message.
    """

    def awaits(self) -> bool:
        """Whether answers are due, or data waits to be written, after the last ``poll``."""

    def wait(self, timeout_s: float) -> None:
        """Waits until the library may have something for ``poll``, or the control channel has a message.

        A library that the control channel cannot wake waits at most ``DEAF_ANSWERS_S``.

        Args:
            timeout_s: the longest wait in seconds, whole milliseconds.
        """


class SubscriberTransport(Protocol):
    """The receiving side of a system.

    A class whose messages of several topics arrive out of order with each other has ``keeps_order = False``.
    """

    def configure(self, command: Configure) -> None:
        """Applies the settings; connects to the publishers or seeks to the start. Errors as for publishers."""

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """One batch: waits at most ``timeout_s`` for a message, then takes those that are there, up to ``limit``.

        May return nothing early, if the control channel has a message. With a timeout of 0 it never waits.
        """

    def reconnect(self) -> tuple[int, int]:
        """Closes the connection and opens a new one; returns the interval between the two, ns on CLOCK_MONOTONIC."""

    def undrained(self, system: SystemObject) -> int:
        """Number of messages known to wait for this subscriber; 0 if the number is unknown. Called often.

        Args:
            system: the system's object in ``finish``.

        Raises:
            ValueError: the object is invalid for this system.
        """
        return 0

    def report_system(self) -> dict[str, Any] | None:
        """The system's own part of a subscriber's report."""
        return None

    def close(self) -> None:
        """Closes the connection at once; may be called twice."""


class ConnectingTransport(Protocol):
    """A subscriber's transport that reveals how it connects; of others, only the first message shows it."""

    def connect(self, command: Configure, limit_s: float) -> ConnectPhases:
        """Closes the connection and opens another for these settings: one attempt; returns what is known of it.

        Args:
            command: the settings, as for ``configure``, with the same errors.
            limit_s: the time limit of the attempt in seconds.
        """

    def lost(self) -> bool:
        """Whether the connection was lost and the library does not open another; returns at once."""

    def disconnections(self) -> list[Disconnection]:
        """The disconnections since ``configure`` after which the library connects again, ns on CLOCK_MONOTONIC."""


class BackgroundTransport(Protocol):
    """A subscriber's transport whose library connects in the background, or tries again by itself.

    Attributes:
        attempt_s: the time limit of the next ``configure`` in seconds, for a library that waits there.
    """

    attempt_s: float

    def local_limit(self) -> str:
        """The limit of this host at which the library has failed to connect since ``configure``; "": none is known."""


class Tending:
    """Calls a transport's ``tend`` when it is due.

    A transport has this method if its connection ends when nothing serves its library for a while, which pings and
    answers pings: ``tend`` keeps the connection alive without reading messages for the client, also between steps. It
    returns after how many seconds it must be called again at the latest; infinity: not before ``configure``.

    Arguments:
        transport: the transport; it may have no such method.
    """

    def __init__(self, transport: object) -> None:
        self._tend: Callable[[], float] | None = getattr(transport, "tend", None)
        self._next_s = 0.0

    def begin(self) -> None:
        """Makes it due: the connection may be another one."""
        self._next_s = 0.0

    def serve(self) -> float:
        """Returns the seconds until it must be called again."""
        if self._tend is None:
            return math.inf
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + self._tend()
        return self._next_s - now_s


class BatchReader(Protocol):
    """A subscriber's transport that can read batch after batch without the control channel."""

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Batches as they arrive, without reading the control channel.

        Args:
            until_ns: CLOCK_MONOTONIC time after which it does not wait for another batch.
            limit: number of messages after which it returns.

        Returns:
            The messages; and when each batch was read (CLOCK_MONOTONIC), with its number of messages. The call returns
            fewer messages if nothing arrived for a while, and at most ``DEAF_AT_MOST_S`` after ``until_ns``.
        """


Transport = PublisherTransport | SubscriberTransport


class Driver(Protocol):
    """A client that does not use the message loops: it obeys the control channel itself, with a program of its own."""

    def run(self) -> None:
        """Obeys commands until it receives ``quit``."""

    def close(self) -> None:
        """Ends the program that it runs, within seconds; may be called twice."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of client that a program offers, e.g. ``zmq-sub``.

    ``open`` makes its transport or driver in the client's process; ``versions`` names the libraries for ``hello``;
    ``system`` has the types of the system's part of its commands. The caller that builds the Kind imports all large
    modules before the fork.
    """

    role: Role
    implementation: str
    versions: Callable[[], dict[str, str]]
    open: Callable[[int, ControlClient], Transport | Driver]
    system: Sequence[type] = ()
