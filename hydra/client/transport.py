"""What a Python client needs of its system: the two interfaces that every transport implements.

A transport owns one data connection. It is made after the fork, in the client's own process, and is used by one
thread. Sequences and times are the business of the publisher and subscriber loops, not of a transport.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np

from hydra.client.ack_ledger import AckLedger
from hydra.control.control_client import ControlClient
from hydra.model import Histogram, Role, SequenceRange
from hydra.wire.messages import Configure, SystemObject

DEAF_AT_MOST_S: Final = 0.1
"""How long a transport waits for data when the control channel cannot wake it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the messages sent since the last ``configure``.

    ``last_ack_ns`` is on CLOCK_MONOTONIC (0: none yet); ``pending`` counts messages without an answer so far;
    ``unacknowledged`` are the sequence ranges of failed and pending messages; ``ack_latency`` is the time from the
    hand-over of a message to the library to its acknowledgement, empty where a system does not measure it.
    """

    acknowledged: int
    failed: int
    pending: int
    last_ack_ns: int
    unacknowledged: list[SequenceRange] = field(default_factory=list)
    ack_latency: Histogram = field(default_factory=Histogram)

    @classmethod
    def of(cls, ledger: AckLedger, last_ack_ns: int, ack_latency: Histogram | None = None) -> Delivery:
        """What a ledger of acknowledgements says."""
        return cls(
            ledger.acknowledged,
            ledger.failed,
            ledger.pending,
            last_ack_ns,
            ledger.unacknowledged(),
            ack_latency or Histogram(),
        )


class Answers:
    """Answers as a library calls back, one by one, and the ledger of their step, which takes them in one go."""

    def __init__(self) -> None:
        self.ledger = AckLedger()
        self.last_ns = 0  # when acknowledgements were taken last, CLOCK_MONOTONIC
        self.good: list[int] = []
        self.bad: list[int] = []

    def take(self) -> None:
        """Has the ledger take those that came."""
        if self.good:
            self.last_ns = time.monotonic_ns()
            self.ledger.acknowledge(np.array(self.good, np.int64))
            self.good.clear()
        if self.bad:
            self.ledger.fail(np.array(self.bad, np.int64))
            self.bad.clear()


T = TypeVar("T")


def read_system(system: SystemObject, kind: type[T]) -> T:
    """The ``system`` object of a command as its system's own type; null is an empty one.

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


class PublisherTransport(Protocol):
    """The sending side of a system. A class of it keeps what is the same for a system that answers nothing."""

    @property
    def marks_end(self) -> bool:
        """Whether an end marker tells a subscriber something.

        It does where a connection keeps the order and nothing else says where the data ends.
        """

    def configure(self, command: Configure) -> str:
        """Takes the settings of the next step, rebuilding the connection only where the library demands it.

        ``command.system`` is the system's own, see :func:`read_system`. Returns the data endpoint that subscribers
        connect to, "" where the system has none. Forgets the deliveries of the last step. Raises OSError or ValueError
        with a text for the user.
        """

    def probe(self, message: bytes) -> None:
        """Sends one probe or end marker, best effort; they are not part of ``delivery``."""

    def send(self, messages: Sequence[bytes], first_sequence: int) -> int:
        """Hands consecutive messages to the library, in order, without waiting long (at most some 10 ms).

        Returns how many it accepted, from the front; fewer than all means that its queue is full: the caller looks
        at the control channel and offers the rest again.
        """

    def poll(self) -> float | None:
        """Lets the library deliver acknowledgements; returns at once.

        Returns how many seconds may pass until it is called again: the time of an acknowledgement is that of the call
        which finds it. None where that does not matter.
        """
        return None

    def flush(self, timeout_s: float) -> bool:
        """Waits at most ``timeout_s`` for outstanding answers, probes included; True when none to a message is left."""
        return True

    def delivery(self) -> Delivery | None:
        """Acknowledgements so far; None where the system has none."""
        return None

    def framed_bytes(self, message_size: int) -> int | None:
        """What a message of this size takes of a connection, its frame included; None where its size does not tell."""
        return None

    def report_system(self) -> dict[str, Any] | None:
        """What only this system's publishers report of a step."""
        return None

    def close(self) -> None:
        """Drops the connection at once, without waiting for anything; may be called twice."""


class SubscriberTransport(Protocol):
    """The receiving side of a system."""

    def configure(self, command: Configure) -> None:
        """Takes the settings, connects to the publishers or seeks to the start. Errors as for publishers."""

    def receive(self, timeout_s: float, limit: int) -> Sequence[bytes]:
        """One drained batch: waits at most ``timeout_s`` for a message, then takes what is there, up to ``limit``.

        May return nothing early, when the control channel has something to say. With a timeout of 0 it never waits.
        """

    def reconnect(self) -> tuple[int, int]:
        """Closes the connection and opens a new one; the interval without one, ns on CLOCK_MONOTONIC."""

    def undrained(self, system: SystemObject) -> int:
        """Messages known to be waiting; 0 where nobody can know. Asked often.

        Args:
            system: that of ``finish``.

        Raises:
            ValueError: it is not what this system says there.
        """
        return 0

    def report_system(self) -> dict[str, Any] | None:
        """What only this system's subscribers report of a step."""
        return None

    def close(self) -> None:
        """Drops the connection at once; may be called twice."""


@runtime_checkable
class BatchReader(Protocol):
    """A subscriber's transport that can read batch after batch by itself."""

    def stream(self, until_ns: int, limit: int) -> tuple[list[bytes], list[tuple[int, int]]]:
        """Batches as they come, deaf to the control channel.

        Args:
            until_ns: CLOCK_MONOTONIC, after which it waits for no other batch.
            limit: so many messages are enough.

        Returns:
            The messages; and when each batch was read (CLOCK_MONOTONIC), with how many messages it has. Fewer where
            nothing came for a while; it returns at most ``DEAF_AT_MOST_S`` after ``until_ns``.
        """


Transport = PublisherTransport | SubscriberTransport


@runtime_checkable
class Driver(Protocol):
    """A client that hands no messages to anybody: it obeys the control channel by itself, with a program of its own."""

    def run(self) -> None:
        """Obeys until told to quit."""

    def close(self) -> None:
        """Ends whatever it runs, within seconds; may be called twice."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of client that a program offers, e.g. ``zmq-sub``.

    ``open`` makes its transport, or what it is instead of one, in the client's process; ``versions`` names the
    libraries for ``hello``. Everything heavy is imported before the fork by whoever builds the Kind.
    """

    role: Role
    implementation: str
    versions: Callable[[], dict[str, str]]
    open: Callable[[int, ControlClient], Transport | Driver]
