"""The messages of the control channel: encode and decode, nothing else.

One message is one ZeroMQ frame with one JSON object; a ``batch`` has a second frame, which
:mod:`hydra.wire.report_batch` writes and :mod:`hydra.wire.subscriber_table` reads. ``docs/control-protocol.md`` is the
specification for clients in any language; ``tests/golden/`` pins the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar

import msgspec

from hydra.model import (
    HEADER_BYTES,
    LATENCY_HIGHEST_US,
    MAX_IMPAIRMENTS,
    BusyThread,
    GroupRole,
    Histogram,
    HostCounters,
    PublisherReport,
    SequenceRange,
    SharedSettings,
    TcpConnections,
    check_points,
)
from hydra.model.settings import MOST_KEYS, MOST_TOPICS
from hydra.wire import compact_encoding
from hydra.wire.report_validation import check_connections, check_counters, check_histogram, check_report, check_thread

VERSION: Final = 3
"""The version of the protocol, which ``hello`` and ``welcome`` state."""
MAX_MESSAGE_BYTES: Final = 512 * 1024
"""Longest message that either side accepts; a longer one is rejected and counted."""
PROBE_EPOCH: Final = 0
MAX_SECONDS: Final = 1024
"""Most seconds in one ``course``."""
MAX_COLUMNS: Final = 64
"""Most columns in the head of a batch."""
MAX_SAMPLES: Final = 64
"""Most samples in one message."""
MAX_THREADS: Final = 10
"""Most busy threads in one sample."""
MAX_PATTERNS: Final = 256
"""Most patterns of files in one ``look``."""
MAX_FILE_BYTES: Final = 65_536
"""Most bytes of one file that a ``look`` may ask for."""
MAX_TEXT_BYTES: Final = 256 * 1024
"""Most bytes of the paths and texts in one ``texts``."""

Id = Annotated[int, msgspec.Meta(title="id", ge=0, le=2**32 - 1)]
Epoch = Annotated[int, msgspec.Meta(title="epoch", ge=0, le=2**32 - 1)]
Count = Annotated[int, msgspec.Meta(title="count", ge=0, le=2**63 - 1)]
Version = Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
Nanoseconds = Annotated[int, msgspec.Meta(title="ns", ge=0, le=2**63 - 1)]
RatePpb = Annotated[int, msgspec.Meta(title="ppb±", ge=-10_000_000, le=10_000_000)]
Seconds = Annotated[float, msgspec.Meta(title="seconds", ge=0, le=1e9)]
ShortText = Annotated[str, msgspec.Meta(title="text", max_length=4096)]
Seq = Annotated[int, msgspec.Meta(title="seq", ge=1, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(title="number", ge=1, le=2**32 - 1)]
"""The number of a command among those of its epoch."""
SystemObject = dict[str, Any] | None
"""An object of the system under test, which only the code of that system interprets."""

# A message in memory has every id separately; ``encode`` and the decoders translate.
if TYPE_CHECKING:
    Ids = list[int]
else:
    # (msgspec 0.22 crashes on a union of a constrained number and a tuple.)
    Ids = list[Id | Annotated[list[Id], msgspec.Meta(min_length=2, max_length=2)]]


Treatment = Literal["pass", "gather", "merge", "own"]
"""What a relay does with a message. ``pass``: forwards it. ``gather``: combines equal messages of many clients into
one. ``merge``: combines different messages of many clients. ``own``: the relay itself receives or sends it."""


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", kw_only=True):
    relay: ClassVar[Treatment] = "own"


class _FromClient(_Message, frozen=True, kw_only=True):
    """``ids`` are the clients that the message concerns; ``seq`` rises with every message of a connection."""

    ids: Ids
    seq: Seq


class EpochReply(_FromClient, frozen=True, kw_only=True):
    """A client's message about an epoch; it counts only in that epoch."""

    epoch: Epoch


class CommandReply(EpochReply, frozen=True, kw_only=True):
    """A client's answer to a command.

    Attributes:
        number: that of the command that it answers, in this epoch; 0: it answers no command of an epoch.
    """

    number: Annotated[int, msgspec.Meta(title="number", ge=0, le=2**32 - 1)] = 0


class _FromController(_Message, frozen=True, kw_only=True):
    """``ids`` empty means every client of the connection."""

    ids: Ids = []


class EpochCommand(_FromController, frozen=True, kw_only=True):
    """A command to the clients in an epoch.

    A relay resends it to each client that has not answered: with an ``ack`` if the command is ``acknowledged``, with an
    ``error``, or with a report. The answer repeats ``number``, which distinguishes this command from the others of its
    epoch; a resent command keeps it. A command has one number for all clients, also if its contents differ.
    """

    relay: ClassVar[Treatment] = "pass"
    acknowledged: ClassVar[bool] = False
    epoch: Epoch
    number: Number


# --- client → controller -------------------------------------------------------------------------------------------


class Hello(_FromClient, frozen=True, tag="hello", kw_only=True, omit_defaults=True):
    """The first message of a connection.

    The sender repeats it every 2 s, with a new ``seq`` only, until it has been welcomed. A client sends it to its
    relay; a relay sends the controller its own, for all clients of its group; section 11 has that of a server.

    Attributes:
        v: the version of the protocol.
        role: a client's; ``"server"``: section 11.
        group: ``--group``.
        incarnation: 0, and one more for every replacement; 0 for a relay, whose ``ids`` are all clients of the group.
        implementation: the name of the client, as ``--client`` has it: ``native``, ….
        versions: versions of the relevant libraries.
        agent: ``HYDRA_AGENT``.
        host: host name.
        boot_id: ``/proc/sys/kernel/random/boot_id`` without the newline.
        time_namespace: the link of ``/proc/self/ns/time``, ``time:[4026531834]``; ``""`` if there is none. Processes
            with the same ``boot_id`` and ``time_namespace`` share CLOCK_MONOTONIC: this is the meaning of *the same
            host* here.
        network_namespace: the link of ``/proc/self/ns/net``; processes with the same one see the same interfaces.
        pid: the sender's process.
        sources: where a server's programs were found, by name: ``PATH``, or a Python package; absent from clients.
    """

    v: Version
    role: GroupRole
    group: ShortText
    incarnation: Id
    implementation: ShortText
    versions: dict[str, str]
    agent: ShortText
    host: ShortText
    boot_id: ShortText
    time_namespace: ShortText
    network_namespace: ShortText
    pid: Id
    sources: dict[str, str] = {}


class Joined(_FromClient, frozen=True, tag="joined", kw_only=True):
    """From a relay, in place of its clients' ``hello``: these clients have sent ``hello`` to the relay.

    Attributes:
        incarnations, pids: of the processes of these clients: one element for each id of ``ids``, in their order.
    """

    incarnations: list[Id]
    pids: list[Id]


class Ready(CommandReply, frozen=True, tag="ready", kw_only=True):
    """The client is configured, and a publisher has bound.

    A subscriber has read a probe of this epoch from every publisher since ``configure``. Section 11 has that of a
    server.

    Attributes:
        number: that of the ``configure`` that it answers.
        endpoint: where subscribers connect to the publisher; ``""`` if the system has no such endpoints.
    """

    relay: ClassVar[Treatment] = "gather"
    endpoint: ShortText = ""


class Ack(CommandReply, frozen=True, tag="ack", kw_only=True):
    """The command of this epoch took effect.

    Attributes:
        epoch: that of the command; 0 for a ping.
        number: that of the command; 0 for a ping.
        command: ``"configure"``, ``"start"``, ``"stop"`` or ``"ping"``; of a server ``"halt"``, too.
        time_ns: the sender's CLOCK_MONOTONIC when it answers; in a combined ``ack`` the relay's.
        echo: for a ping the ping's ``time_ns``.
    """

    relay: ClassVar[Treatment] = "gather"
    command: ShortText
    time_ns: Nanoseconds = 0
    echo: Nanoseconds = 0


class Progress(EpochReply, frozen=True, tag="progress", kw_only=True):
    """The number of messages until now.

    Attributes:
        messages: sent, or received with duplicates, in this epoch until now.
        time_ns: on the step's clock.
    """

    relay: ClassVar[Treatment] = "pass"
    messages: Count
    time_ns: Nanoseconds


class Report(CommandReply, frozen=True, tag="report", kw_only=True):
    """One publisher's account of an epoch; ``ids`` names exactly one client.

    Attributes:
        number: that of the ``stop`` that it answers.
        subscriber: subscribers send a ``batch``.
    """

    relay: ClassVar[Treatment] = "pass"
    publisher: PublisherReport
    subscriber: None = None


class Batch(EpochReply, frozen=True, tag="batch", kw_only=True):
    """The reports of subscribers; a second frame has the items of the columns.

    A process of clients sends those of its clients, a relay those of its processes, joined.

    Attributes:
        number: from a process of clients: that of the ``finish`` that it answers.
        columns: the name of each column and its number of items.
    """

    relay: ClassVar[Treatment] = "merge"
    number: Number | msgspec.UnsetType = msgspec.UNSET
    columns: Annotated[list[tuple[ShortText, Count]], msgspec.Meta(max_length=MAX_COLUMNS)]


class SecondCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The counts of one second of a step.

    Attributes:
        second: seconds since ``start_at_ns``, rounded down; 0 before it.
        messages: sent, or received with duplicates, in that second.
        latency: of the received messages, as in the report; empty for publishers.
    """

    second: Count
    messages: Count
    latency: Histogram = Histogram()


class TimeSeries(EpochReply, frozen=True, tag="course", kw_only=True):
    """Counts of the clients in seconds of a step; every ``course`` adds to the earlier ones.

    A relay adds up those of its clients.

    Attributes:
        seconds: the counts of each second in which there are any.
        cohort: the same, from relays only: of the clients of the step's cohort, who are not in ``seconds``.
    """

    relay: ClassVar[Treatment] = "merge"
    seconds: Annotated[list[SecondCounts], msgspec.Meta(max_length=MAX_SECONDS)]
    cohort: Annotated[list[SecondCounts], msgspec.Meta(max_length=MAX_SECONDS)] = []


class Error(CommandReply, frozen=True, tag="error", kw_only=True):
    """The clients cannot obey a command.

    Attributes:
        epoch: that of the command; 0: of none.
        number: that of the ``configure`` or ``finish`` that it answers; 0: of none.
        message: text for the user.
        fatal: whether the client exits.
    """

    relay: ClassVar[Treatment] = "gather"
    message: ShortText
    fatal: bool = False


class ChildExit(_FromClient, frozen=True, tag="child_exit", kw_only=True):
    """From a relay, about every end of a process, also one with code 0; ``ids`` names the clients of that process.

    Attributes:
        incarnation: of the process that ended.
        pid: of the process that ended.
        status: the exit code, or minus the signal's number.
        replaced: whether the parent forks a replacement.
    """

    incarnation: Id
    pid: Id
    status: Annotated[int, msgspec.Meta(ge=-255, le=255)]
    replaced: bool


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reading.

    Attributes:
        time_ns: the sender's CLOCK_MONOTONIC at the reading.
        host: counters of the sender's host; null if ``watch`` did not ask for them.
        threads: the busiest threads of the group's processes (the parent and all its descendants), ordered by
            ``cpu_pct`` + ``wait_pct``. Empty the first time. 32 processes represent a group of subscribers.
        connections: what the TCP connections of these processes, without the relay's own, waited for since the last
            reading (``sock_diag``, ``struct tcp_info``); null the first time, and if the kernel does not provide it.
    """

    time_ns: Nanoseconds
    host: HostCounters | None = None
    threads: Annotated[list[BusyThread], msgspec.Meta(max_length=MAX_THREADS)] = []
    connections: TcpConnections | None = None


class HostReadings(_FromClient, frozen=True, tag="host", kw_only=True):
    """From a relay or server that obeys ``watch``: its readings since its last message.

    The end of a watch is answered with this message, too, which then may have no samples.

    Attributes:
        epoch: that of the ``watch``.
        samples: the readings since the message before.
    """

    epoch: Epoch
    samples: Annotated[list[Sample], msgspec.Meta(max_length=MAX_SAMPLES)]


class KernelTexts(_FromClient, frozen=True, tag="texts", kw_only=True):
    """From a relay or server that obeys ``look``: the beginnings of files of its kernel.

    The controller makes the record of a machine of it ([machine.md](machine.md)).

    Attributes:
        number: that of the ``look``.
        time_ns: the sender's CLOCK_MONOTONIC at the reading.
        texts: the beginning of each file that matches a pattern, by path; ``""`` for a file that exists and cannot be
            read. Bytes that are no UTF-8 are replaced.
        complete: false if files were left out, because paths and texts together have more than 262,144 bytes.
    """

    number: Id
    time_ns: Nanoseconds
    texts: dict[str, str]
    complete: bool = True


# --- controller → client -------------------------------------------------------------------------------------------


class Welcome(_FromController, frozen=True, tag="welcome", kw_only=True):
    """The answer to each ``hello``, without ids.

    With ids, from the controller to a relay, it is the answer to ``joined``: the controller knows these clients now.

    Attributes:
        v: the version of the protocol.
        run: the run's name.
        silence_s: how long a relay or server that receives nothing waits before it exits; 0: the sender may be silent
            for ever.
    """

    v: Version
    run: str
    silence_s: Seconds


class PublisherEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A publisher to listen to.

    Attributes:
        endpoint: the address of its data; ``""`` if the server knows it.
    """

    publisher: Id
    endpoint: str = ""


class Impairment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A planned impairment of a subscriber; section 7.

    Attributes:
        kind: whether it reads slowly or has no connection.
        begin_s, end_s: since the start of the window.
        rate: messages/s that a slow subscriber reads at most.
    """

    kind: Literal["slow", "gone"]
    begin_s: Seconds
    end_s: Seconds
    rate: Annotated[float, msgspec.Meta(ge=0)] = 0.0


_TableEntry = tuple[Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)], Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]]


class Traffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Topics, keys and sizes of messages; section 5.

    A *table* has an entry of two numbers for each choice, or is empty if its choices are equally likely.

    Attributes:
        seed: seed of all draws.
        topics: number of topics.
        topic_table: table of ``topics`` choices.
        topics_per_client: number of topics of each subscriber, at most ``topics``; 0: all.
        wildcard: whether subscribers have all topics by one pattern of the system.
        keys: number of keys; 0: none.
        key_table: table of ``keys`` choices.
        sizes: ranges of sizes, smallest and largest in bytes with the header; empty: ``settings`` has the sizes,
            otherwise ``message_size`` is the largest.
        size_table: table of as many choices as ``sizes``.
    """

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 1
    topics: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOPICS)] = 1
    topic_table: list[_TableEntry] = []
    topics_per_client: Annotated[int, msgspec.Meta(ge=0, le=MOST_TOPICS)] = 0
    wildcard: bool = False
    keys: Annotated[int, msgspec.Meta(ge=0, le=MOST_KEYS)] = 0
    key_table: list[_TableEntry] = []
    sizes: list[tuple[Count, Count]] = []
    size_table: list[_TableEntry] = []

    def __post_init__(self) -> None:
        for name, table, count in (
            ("topic_table", self.topic_table, self.topics),
            ("key_table", self.key_table, self.keys),
            ("size_table", self.size_table, len(self.sizes)),
        ):
            if table and (len(table) != count or any(alias >= count for _, alias in table)):
                raise ValueError(f"{name} is no table of {count} choices")
        if self.topics_per_client > self.topics:
            raise ValueError(f"topics_per_client is above topics, {self.topics}")
        if any(not HEADER_BYTES <= low <= high for low, high in self.sizes):
            raise ValueError("sizes has a range that does not rise from the header's size")

    @property
    def several(self) -> bool:
        """Whether there are several topics."""
        return self.topics > 1

    @property
    def chosen(self) -> int:
        """The number of topics of a subscriber."""
        return self.topics_per_client or self.topics

    @property
    def probed(self) -> range:
        """The topics of probes and end markers: every subscriber has at least one of them."""
        return range(self.topics - self.chosen + 1)


ONE_TOPIC: Final = Traffic()
"""The traffic of a step without topics, keys and ranges of sizes."""


class HostClock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The step's clock as the receiver's host reads it; section 4.

    Attributes:
        at_ns: a reading of CLOCK_MONOTONIC of the receiver's host.
        step_ns: the step's time at that moment.
        rate_ppb: how much faster the step's clock runs than the receiver's CLOCK_MONOTONIC.
    """

    at_ns: Nanoseconds
    step_ns: Nanoseconds
    rate_ppb: RatePpb = 0


class Connect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When each subscriber opens a new connection; section 7.

    Attributes:
        clock: the step's clock, as in ``start``. For publishers: without meaning.
        at_ns: when the subscriber ``first`` is due to connect, on the step's clock; 0: subscribers keep their
            connections.
        first: the first subscriber of the step.
        rate: subscribers that are due per second, in the order of their ids; null: all are due at ``at_ns``.
        within_s: how long after that a subscriber tries.
        probe_s: to publishers: the longest interval between two probes.
    """

    clock: HostClock
    at_ns: Nanoseconds = 0
    first: Id = 0
    rate: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    within_s: Seconds = 10.0
    probe_s: Seconds = 0.5

    def due_ns(self, client: int) -> int:
        """When a subscriber is due to connect, on the step's clock."""
        return self.at_ns + (0 if self.rate is None else int((client - self.first) * 1e9 / self.rate))


class Configure(EpochCommand, frozen=True, tag="configure", kw_only=True):
    """The settings of the next epoch; it closes the ledger of the last.

    It is answered by ``ack`` or ``error``, and with ``probe`` by ``ready``, too.

    Attributes:
        settings: those that all systems have, below.
        publishers: the publishers to listen to: all or some, which may differ between subscribers; empty for a
            publisher.
        probe: whether clients must prove their readiness.
        progress_s: between ``progress`` messages; 0: none.
        group: the consumer group of all subscribers, in which each message goes to at least one of them; publishers
            receive it, too; ``""``: none.
        payload_share: how many of 10,000 characters of a JSON payload are random.
        cohort: these clients belong to the step's cohort, whose latencies are added up separately.
        load: to publishers only: a rate that changes, as at most 8192 pairs of seconds and messages/s, section 6.
        course_s: between ``course`` messages; 0: none.
        spells: to subscribers only: planned impairments, section 7.
        system: the system's settings, and where its data goes.
        traffic: absent: one topic, no keys, sizes of ``settings``.
        connect: absent unless the step measures connecting.
    """

    acknowledged: ClassVar[bool] = True
    settings: SharedSettings
    publishers: list[PublisherEndpoint]
    probe: bool
    progress_s: Seconds = 0.0
    group: ShortText = ""
    payload_share: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    cohort: bool = False
    load: list[tuple[float, float]] = []
    course_s: Seconds = 0.0
    spells: Annotated[list[Impairment], msgspec.Meta(max_length=MAX_IMPAIRMENTS)] = []
    system: SystemObject = None
    traffic: Traffic | msgspec.UnsetType = msgspec.UNSET
    connect: Connect | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.settings.burst is None:
            raise ValueError("burst is always a number here")
        check_points(self.load)

    @property
    def drawn(self) -> Traffic:
        """The topics, keys and sizes of the messages."""
        return ONE_TOPIC if isinstance(self.traffic, msgspec.UnsetType) else self.traffic

    @property
    def burst(self) -> int:
        """The largest number of messages that a publisher sends back to back."""
        return self.settings.burst or 1


class Start(EpochCommand, frozen=True, tag="start", kw_only=True):
    """The step's window, answered by ``ack``.

    A publisher sends from ``start_at_ns`` and stops by itself at ``stop_at_ns``.

    Attributes:
        start_at_ns, stop_at_ns: the window on the step's clock.
        clock: the step's clock as the receiver's host reads it.
    """

    acknowledged: ClassVar[bool] = True
    start_at_ns: Nanoseconds
    stop_at_ns: Nanoseconds
    clock: HostClock
    system: SystemObject = None


class Stop(EpochCommand, frozen=True, tag="stop", kw_only=True):
    """The window has ended. A publisher answers with its ``report``, a subscriber with ``ack``.

    Attributes:
        stop_at_ns: the window's end, possibly earlier than in ``start``.
    """

    acknowledged: ClassVar[bool] = True
    stop_at_ns: Nanoseconds


class PublisherTotal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a publisher sent.

    Attributes:
        sent: the sequences are 0 … ``sent`` − 1.
        unacknowledged: those without an acknowledgement.
    """

    publisher: Id
    sent: Count
    unacknowledged: list[SequenceRange] = []


class Finish(EpochCommand, frozen=True, tag="finish", kw_only=True):
    """To subscribers: the messages to expect. A subscriber drains, then reports.

    Attributes:
        publishers: the same publishers as in the subscriber's ``configure``; all ranges together have at most 262,144
            bytes, for which the controller joins the last ranges of each publisher into one.
        drain_max_s: how long the drain lasts at most.
        quiet_s: how long without a message the drain waits for more.
        system: where the data ends, in systems that know.
    """

    publishers: list[PublisherTotal]
    drain_max_s: Seconds
    quiet_s: Seconds = 0.5
    system: SystemObject = None


class Ping(_FromController, frozen=True, tag="ping", kw_only=True):
    """Keeps a connection alive.

    A relay answers without its clients.

    Attributes:
        time_ns: opaque; the ``ack`` echoes it.
        reply: whether it requests an immediate ``ack``, also during a step.
    """

    time_ns: Nanoseconds
    reply: bool = False


class Watch(_FromController, frozen=True, tag="watch", kw_only=True):
    """To relays and servers; clients ignore it: read the group's busiest threads and connections.

    They read now and at this interval (section 4, *Load*).

    Attributes:
        every_s: the interval; 0 ends the watch.
        host: whether to read this host's counters, too.
    """

    epoch: Epoch
    every_s: Seconds
    host: bool


class Look(_FromController, frozen=True, tag="look", kw_only=True):
    """To relays and servers; clients ignore it: send the beginnings of these files of the kernel.

    The answer is ``texts``, at once, each time. A client that does not know ``look`` ignores it; the facts of its host
    are then not known.

    Attributes:
        number: the answer repeats it.
        patterns: paths below ``/proc/`` and ``/sys/`` with the wildcards of ``glob(7)``; a pattern that begins
            otherwise, or has a part ``..``, matches nothing.
        most_bytes: the most bytes of each file.
    """

    number: Id
    patterns: Annotated[list[ShortText], msgspec.Meta(max_length=MAX_PATTERNS)]
    most_bytes: Annotated[int, msgspec.Meta(ge=1, le=MAX_FILE_BYTES)]


class Join(_FromController, frozen=True, tag="join", kw_only=True):
    """To a server, section 11.

    Attributes:
        system: what it must know of the other servers, in the form of its system.
        start: counts the starts of this server; a start above 1 follows a ``halt``.
    """

    system: SystemObject = None
    start: Count = 1


class Halt(_FromController, frozen=True, tag="halt", kw_only=True):
    """To a server, section 11: kill the server by SIGKILL, and keep its data; an ``ack`` of this number answers.

    Attributes:
        start: the number of the start to end.
    """

    epoch: Epoch
    number: Number
    start: Count


class Quit(_FromController, frozen=True, tag="quit", kw_only=True):
    """Exit now with code 0, leaving nothing behind.

    A relay passes it on to these clients, or to the whole group including clients that have not joined yet, and ends
    when all have ended.
    """


class Evict(_FromController, frozen=True, tag="evict", kw_only=True):
    """To a relay: kill these clients (SIGKILL in any state), except higher incarnations.

    They count as dead and are replaced. For those that had ended before and were not replaced, the relay sends the
    ``child_exit`` again, which may have been lost.

    Attributes:
        incarnation: the highest incarnation to kill; null: any.
    """

    incarnation: Id | None = None


FromClient = (
    Hello
    | Joined
    | Ready
    | Ack
    | Progress
    | TimeSeries
    | Report
    | Batch
    | Error
    | ChildExit
    | HostReadings
    | KernelTexts
)
FromController = Welcome | Configure | Start | Stop | Finish | Ping | Watch | Look | Join | Halt | Quit | Evict


def name_of(command: FromController | EpochCommand | type[EpochCommand]) -> str:
    """The command's ``type`` on the wire, which an ``ack`` repeats."""
    return str(command.__struct_config__.tag)


_T = TypeVar("_T")


class ProtocolError(ValueError):
    """A frame that is no message of this protocol; the receiver rejects and counts it, and nothing else changes."""


_encoder = msgspec.json.Encoder()
_from_client: msgspec.json.Decoder[FromClient] = msgspec.json.Decoder(FromClient)
_from_controller: msgspec.json.Decoder[FromController] = msgspec.json.Decoder(FromController)


ACKNOWLEDGED: Final[dict[str, type[EpochCommand]]] = {
    name_of(kind): kind for kind in EpochCommand.__subclasses__() if kind.acknowledged
}
"""The acknowledged commands by their names."""


def encode(message: FromClient | FromController | EpochCommand, ids: compact_encoding.Written | None = None) -> bytes:
    """The message's frame: UTF-8 JSON, fields in a fixed order, no white space. ``ids`` replaces the message's ids."""
    changes: dict[str, Any] = {}
    if ids is not None:
        changes["ids"] = ids
    elif len(message.ids) > 1:
        changes["ids"] = compact_encoding.encode_ids(message.ids)
    return _encoder.encode(msgspec.structs.replace(message, **changes) if changes else message)


def decode_from_client(
    frame: bytes,
    most_ids: int = compact_encoding.MOST_IDS,
    read_ids: Callable[[compact_encoding.Items, int], Any] = compact_encoding.decode_ids,
) -> FromClient:
    """The message in a frame from a client, relay or server; of a ``batch``, the content of its first frame.

    Args:
        frame: the first frame.
        most_ids: the largest number of ids that it may name.
        read_ids: converts the encoded ids, given that number, into the message's ``ids``.

    Raises:
        ProtocolError: not JSON, not of this version, an unknown type or field, a value out of range, or too long.
    """
    message = _decode(_from_client, frame, most_ids, read_ids)
    try:
        _check(message)
    except ValueError as e:
        raise ProtocolError(str(e)) from None
    return message


def decode_from_controller(frame: bytes) -> FromController:
    """The message in a frame from the controller; errors as in :func:`decode_from_client`."""
    return _decode(_from_controller, frame)


def _check(message: FromClient) -> None:
    """Rejects impossible reports and samples with ValueError."""
    if isinstance(message, Joined):
        if not len(message.ids) == len(message.incarnations) == len(message.pids):
            raise ValueError("an incarnation and a pid for each client, no more and no less")
    elif isinstance(message, HostReadings):
        for sample in message.samples:
            if sample.host is not None:
                check_counters(sample.host)
            for thread in sample.threads:
                check_thread(thread)
            if sample.connections is not None:
                check_connections(sample.connections)
    elif isinstance(message, TimeSeries):
        for second in (*message.seconds, *message.cohort):
            check_histogram("latency", second.latency, lowest_us=-LATENCY_HIGHEST_US)
    elif isinstance(message, Report):
        check_report(message.publisher)


def _decode(
    decoder: msgspec.json.Decoder[_T],
    frame: bytes,
    most_ids: int = compact_encoding.MOST_IDS,
    read_ids: Callable[[compact_encoding.Items, int], Any] = compact_encoding.decode_ids,
) -> _T:
    if len(frame) > MAX_MESSAGE_BYTES:
        raise ProtocolError(f"a message of {len(frame)} bytes, above the limit of {MAX_MESSAGE_BYTES}")
    try:
        message = decoder.decode(frame)
        either: Any = message
        msgspec.structs.force_setattr(either, "ids", read_ids(either.ids, most_ids))
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise ProtocolError(str(e)) from None
    return message
