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
    SubscriberReport,
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

Id = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Version = Annotated[int, msgspec.Meta(ge=VERSION, le=VERSION)]
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
RatePpb = Annotated[int, msgspec.Meta(ge=-10_000_000, le=10_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
ShortText = Annotated[str, msgspec.Meta(max_length=4096)]
Seq = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=1, le=2**32 - 1)]
"""The number of a command among those of its epoch."""
SystemObject = dict[str, Any] | None
"""An object of the system under test, which only the code of that system interprets."""

# A message in memory has every id, and every report, separately; ``encode`` and the decoders translate.
if TYPE_CHECKING:
    Ids = list[int]
    PublisherReports = list[PublisherReport]
    SubscriberReports = list[SubscriberReport]
else:
    # (msgspec 0.22 crashes on a union of a constrained number and a tuple.)
    Ids = list[Id | Annotated[list[Id], msgspec.Meta(min_length=2, max_length=2)]]
    PublisherReports = SubscriberReports = dict[str, list[Any]]


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
    """A client's answer to the command of this ``number`` in this epoch; 0: it answers no command of an epoch."""

    number: Id = 0


class _FromController(_Message, frozen=True, kw_only=True):
    """``ids`` empty means every client of the connection."""

    ids: Ids = []


class EpochCommand(_FromController, frozen=True, kw_only=True):
    """A command to the clients in an epoch.

    A relay resends it to each client that has not answered: with an ``ack`` if the command is ``acknowledged``, with an
    ``error``, or with a report. The answer repeats ``number``, which tells this command from the
    others of its epoch; a resent command keeps it. What one command says to different clients has one number.
    """

    relay: ClassVar[Treatment] = "pass"
    acknowledged: ClassVar[bool] = False
    epoch: Epoch
    number: Number


# --- client → controller -------------------------------------------------------------------------------------------


class Hello(_FromClient, frozen=True, tag="hello", kw_only=True):
    """First message of a connection.

    A relay sends it to the controller for all clients of its group; a server to the controller; a client to its relay.
    """

    v: Version = VERSION
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


class Joined(_FromClient, frozen=True, tag="joined", kw_only=True):
    """From a relay: these clients have joined, each with the incarnation and the pid of its process."""

    incarnations: list[Id]
    pids: list[Id]


class Ready(CommandReply, frozen=True, tag="ready", kw_only=True):
    """A publisher is configured and bound; ``endpoint`` is its data endpoint ("" if the system has none).

    A subscriber has received a probe of every publisher since ``configure``. A server, with epoch 0, will listen at
    ``endpoint``, in the format of its system.
    """

    relay: ClassVar[Treatment] = "gather"
    endpoint: ShortText = ""


class Ack(CommandReply, frozen=True, tag="ack", kw_only=True):
    """The command of this epoch took effect. ``time_ns`` is the client's clock, ``echo`` the time in the ping."""

    relay: ClassVar[Treatment] = "gather"
    command: ShortText
    time_ns: Nanoseconds = 0
    echo: Nanoseconds = 0


class Progress(EpochReply, frozen=True, tag="progress", kw_only=True):
    """The number of messages in this epoch until now."""

    relay: ClassVar[Treatment] = "pass"
    messages: Count
    time_ns: Nanoseconds


class Report(CommandReply, frozen=True, tag="report", kw_only=True):
    """One client's account of an epoch, with exactly one of the two bodies. Resent if the command is repeated."""

    relay: ClassVar[Treatment] = "merge"
    publisher: PublisherReport | None = None
    subscriber: SubscriberReport | None = None


class Reports(CommandReply, frozen=True, tag="reports", kw_only=True):
    """The reports of several clients of a connection, in the order of ``ids``; equivalent to one ``report`` each."""

    relay: ClassVar[Treatment] = "merge"
    publisher: PublisherReports | None = None
    subscriber: SubscriberReports | None = None

    def each(self) -> list[Report]:
        """The equivalent messages, one for each client."""
        bodies: dict[str, Any] = {"publisher": self.publisher, "subscriber": self.subscriber}
        return [
            Report(ids=[client], seq=self.seq, epoch=self.epoch, number=self.number, **{role: body})
            for role, theirs in bodies.items()
            for client, body in zip(self.ids, theirs or (), strict=False)
        ]


class Batch(EpochReply, frozen=True, tag="batch", kw_only=True):
    """From a relay: its subscribers' reports of an epoch, or some of them.

    ``columns`` describes the second frame: the names of the columns and the number of values in each.
    """

    columns: Annotated[list[tuple[ShortText, Count]], msgspec.Meta(max_length=MAX_COLUMNS)]


class SecondCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One second of a step, counted from its start: the number of messages sent or received, and their latency.

    ``latency`` is empty in messages of publishers.
    """

    second: Count
    messages: Count
    latency: Histogram = Histogram()


class TimeSeries(EpochReply, frozen=True, tag="course", kw_only=True):
    """Counts of the clients in seconds of a step; the numbers add to those of earlier messages.

    ``cohort`` has the counts of the clients in the step's cohort.
    """

    relay: ClassVar[Treatment] = "merge"
    seconds: Annotated[list[SecondCounts], msgspec.Meta(max_length=MAX_SECONDS)]
    cohort: Annotated[list[SecondCounts], msgspec.Meta(max_length=MAX_SECONDS)] = []


class Error(CommandReply, frozen=True, tag="error", kw_only=True):
    """The clients cannot obey a command; they exit afterwards if the error is ``fatal``."""

    relay: ClassVar[Treatment] = "gather"
    message: ShortText
    fatal: bool = False


class ChildExit(_FromClient, frozen=True, tag="child_exit", kw_only=True):
    """From the relay: a client process ended. ``status`` is its exit code, or minus the number of the signal."""

    incarnation: Id
    pid: Id
    status: Annotated[int, msgspec.Meta(ge=-255, le=255)]
    replaced: bool


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading at ``time_ns`` (sender's CLOCK_MONOTONIC): its host's counters, and its group's busy threads.

    The figures of threads and TCP connections cover the time since the reading before.
    """

    time_ns: Nanoseconds
    host: HostCounters | None = None
    threads: Annotated[list[BusyThread], msgspec.Meta(max_length=MAX_THREADS)] = []
    connections: TcpConnections | None = None


class HostReadings(_FromClient, frozen=True, tag="host", kw_only=True):
    """From a relay or server that obeys ``watch``: its samples since its last message.

    The relay or server answers the end of a watch with this message too, which then may have no samples.
    """

    epoch: Epoch
    samples: Annotated[list[Sample], msgspec.Meta(max_length=MAX_SAMPLES)]


class KernelTexts(_FromClient, frozen=True, tag="texts", kw_only=True):
    """From a relay or server that obeys ``look``: the beginnings of the files that match its patterns, by path.

    ``time_ns`` is the sender's CLOCK_MONOTONIC at the reading; ``complete`` is false if files were left out, because
    they are too long for one message.
    """

    number: Id
    time_ns: Nanoseconds
    texts: dict[str, str]
    complete: bool = True


# --- controller → client -------------------------------------------------------------------------------------------


class Welcome(_FromController, frozen=True, tag="welcome", kw_only=True):
    """Answer to ``hello``. A process that receives nothing for ``silence_s`` exits (0: it never does).

    With ids, it answers a relay's ``joined``: the controller knows these clients now.
    """

    v: Version = VERSION
    run: str
    silence_s: Seconds


class PublisherEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The address of a publisher's data; ``endpoint`` is "" if the server knows it."""

    publisher: Id
    endpoint: str = ""


class Impairment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the window, in seconds since its start, in which a subscriber is ``slow`` or ``gone``.

    A slow subscriber reads at most ``rate`` messages/s; one that is ``gone`` has no connection.
    """

    kind: Literal["slow", "gone"]
    begin_s: Seconds
    end_s: Seconds
    rate: Annotated[float, msgspec.Meta(ge=0)] = 0.0


_TableEntry = tuple[Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)], Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]]


class Traffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The topics, keys and sizes of a step's messages (:mod:`hydra.wire.traffic`).

    ``topics_per_client`` 0 is all topics, by one pattern if ``wildcard``. ``keys`` 0 is no keys. ``sizes`` are ranges,
    smallest and largest size of each (bytes, headers included); none: ``settings`` has the sizes. A table is empty if
    its choices are equally likely.
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
    """The step's clock on the receiver's host: it shows ``step_ns`` when CLOCK_MONOTONIC shows ``at_ns``.

    From then on it is faster than CLOCK_MONOTONIC by ``rate_ppb`` (1e-9); :class:`hydra.wire.clock.StepClock` has the
    formulas.
    """

    at_ns: Nanoseconds
    step_ns: Nanoseconds
    rate_ppb: RatePpb = 0


class Connect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When each subscriber opens a new connection; one that is disconnected in such a step connects again.

    The subscriber ``first`` is due at ``at_ns`` on the step's clock, which ``clock`` gives, and the next ones follow at
    ``rate`` a second (null: all at once). 0: all keep their connections. A subscriber that is not ready ``within_s``
    after it was due stops trying. Publishers send a probe every ``probe_s``.
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
    """Settings of the next epoch; closes the ledger of the last. Answered by ``ack``, and by ``ready`` if ``probe``.

    ``publishers`` lists the publishers that a subscriber reads from (empty for a publisher). ``progress_s`` 0 asks for
    no progress. ``group`` is the consumer group of a subscriber, "" for none. ``payload_share``: random characters in a
    JSON payload, of 10,000. ``cohort``: whether the clients belong to the step's cohort, whose latencies the relay sums
    separately. ``system`` has the settings of the system under test and the address of its data. ``load`` is a rate
    that changes (:mod:`hydra.wire.load_schedule`): seconds since the start and messages/s of this publisher; if it is
    empty, ``settings.rate`` holds all the time. ``course_s`` is the interval of ``course`` in seconds, 0 for none.
    ``spells`` are impairments: times in which a subscriber reads slowly or has no connection. ``traffic`` is absent if
    it is ``ONE_TOPIC``, ``connect`` unless the step measures connecting.
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
    """The step's window, on the step's clock.

    A publisher sends from ``start_at_ns`` and stops by itself at ``stop_at_ns``.
    """

    acknowledged: ClassVar[bool] = True
    start_at_ns: Nanoseconds
    stop_at_ns: Nanoseconds
    clock: HostClock
    system: SystemObject = None


class Stop(EpochCommand, frozen=True, tag="stop", kw_only=True):
    """The window has ended, perhaps early. A publisher answers with its ``report``, a subscriber with ``ack``."""

    acknowledged: ClassVar[bool] = True
    stop_at_ns: Nanoseconds


class PublisherTotal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The messages that one publisher sent in the epoch: sequences 0 … sent − 1, without ``unacknowledged``."""

    publisher: Id
    sent: Count
    unacknowledged: list[SequenceRange] = []


class Finish(EpochCommand, frozen=True, tag="finish", kw_only=True):
    """The messages to expect; a subscriber drains, then reports.

    The drain lasts at most ``drain_max_s``, or until ``quiet_s`` pass without a message. ``system`` states where
    the data ends, in systems that know it.
    """

    publishers: list[PublisherTotal]
    drain_max_s: Seconds
    quiet_s: Seconds = 0.5
    system: SystemObject = None


class Ping(_FromController, frozen=True, tag="ping", kw_only=True):
    """Keeps a client alive; ``reply`` asks for an ``ack`` that echoes ``time_ns``."""

    time_ns: Nanoseconds
    reply: bool = False


class Watch(_FromController, frozen=True, tag="watch", kw_only=True):
    """To a relay or server: read the group's threads every ``every_s``, and the host's counters too if ``host``.

    0 ends the watch; it also ends if the controller does not resend it for a while. Other receivers ignore it.
    """

    epoch: Epoch
    every_s: Seconds
    host: bool


class Look(_FromController, frozen=True, tag="look", kw_only=True):
    """To a relay or server: send the beginnings of these files of the kernel. Other receivers ignore it.

    ``patterns`` are paths below ``/proc`` and ``/sys`` with the wildcards of a shell; at most ``most_bytes`` of each
    file are read. The answer repeats ``number``.
    """

    number: Id
    patterns: Annotated[list[ShortText], msgspec.Meta(max_length=MAX_PATTERNS)]
    most_bytes: Annotated[int, msgspec.Meta(ge=1, le=MAX_FILE_BYTES)]


class Join(_FromController, frozen=True, tag="join", kw_only=True):
    """To a server: what it must know about the other servers before it starts, in the format of its system.

    ``start`` counts the starts of this server; a start above 1 follows a ``halt``.
    """

    system: SystemObject = None
    start: Count = 1


class Halt(_FromController, frozen=True, tag="halt", kw_only=True):
    """To a server: kill its start ``start`` by SIGKILL, and keep its data; an ``ack`` of ``number`` answers."""

    epoch: Epoch
    number: Number
    start: Count


class Quit(_FromController, frozen=True, tag="quit", kw_only=True):
    """Exit now and leave nothing behind."""


class Evict(_FromController, frozen=True, tag="evict", kw_only=True):
    """To a relay: kill these clients, except those whose incarnation is above ``incarnation`` (null: kill all)."""

    incarnation: Id | None = None


FromClient = (
    Hello
    | Joined
    | Ready
    | Ack
    | Progress
    | TimeSeries
    | Report
    | Reports
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
_NO_HOT_TOPICS: Final = b',"hot":null}}'
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
    if isinstance(message, Reports):
        changes["publisher"] = compact_encoding.columns_of_reports(message.publisher) if message.publisher else None
        changes["subscriber"] = compact_encoding.columns_of_reports(message.subscriber) if message.subscriber else None
    frame = _encoder.encode(msgspec.structs.replace(message, **changes) if changes else message)
    # The last field of the last field of a report; a dataclass cannot leave out a field.
    return frame.removesuffix(_NO_HOT_TOPICS) + b"}}" if frame.endswith(_NO_HOT_TOPICS) else frame


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
    """Rejects impossible reports and samples with ValueError; turns columns of reports into bodies."""
    if isinstance(message, Report | Reports) and (message.publisher is None) == (message.subscriber is None):
        raise ValueError("a report has exactly one of publisher and subscriber")
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
        if body := message.publisher or message.subscriber:
            check_report(body)
    elif isinstance(message, Reports):
        _check_columns(message)


def _check_columns(message: Reports) -> None:
    found: Any = message.publisher if message.subscriber is None else message.subscriber
    kind: Any = PublisherReport if message.subscriber is None else SubscriberReport
    bodies = compact_encoding.reports_of_columns(kind, found, len(message.ids))
    for row in bodies:
        check_report(row)
    msgspec.structs.force_setattr(message, "publisher" if message.subscriber is None else "subscriber", bodies)


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
