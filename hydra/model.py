"""The nouns of Hydra as frozen dataclasses. Standard library only.

Invariants live in ``__post_init__`` and raise ``ValueError`` with a text that says what would be right, so
that whoever builds a noun (the configuration loader, a test, a sweep) gets the same refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

HEADER_BYTES: Final = 24
"""Size of the header at the start of every data message."""

LATENCY_LOWEST_US: Final = 1
LATENCY_HIGHEST_US: Final = 3_600_000_000
LATENCY_DIGITS: Final = 3
"""The range (µs) and precision of every latency histogram: HDR, 1 µs to 1 h, 3 significant digits."""

System = Literal["zmq", "kafka"]
Role = Literal["publisher", "subscriber"]
GroupRole = Literal["publisher", "subscriber", "server"]
"""What a group runs: clients of a role, or one server of the system under test."""
Rate = float | Literal["max"]
"""Messages per second, or ``"max"``: as fast as the library takes them."""

CohortKind = Literal["none", "slow", "reconnecting"]
Payload = Literal["zeros", "random"]
"""What follows the header of a data message: zeros, or bytes that cannot be compressed."""
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
Figure = int | float | str | bool | None
"""One cell of a result row."""


def number(figure: Figure) -> float | None:
    """The figure as a number, None if it is none."""
    return float(figure) if isinstance(figure, int | float) and not isinstance(figure, bool) else None


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


# --- what a step is set to -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SharedSettings:
    """What every system can change between two steps without a new process; sent to every client with ``configure``.

    Attributes:
        rate: of each publisher, messages/s.
        burst: most messages that a publisher that is behind sends back to back; None: the system's own.
        message_size: bytes of a data message, its header included.
        payload: what follows the header.
        receive_rate: messages/s that a slow subscriber reads at most.
        reconnect_rate: reconnections/s of a subscriber.
    """

    rate: Rate = "max"
    burst: int | None = None
    message_size: int = HEADER_BYTES
    payload: Payload = "zeros"
    receive_rate: float | None = None
    reconnect_rate: float | None = None

    def __post_init__(self) -> None:
        _require(self.rate == "max" or self.rate > 0, f"rate must be above 0 or 'max', not {self.rate!r}")
        _require(self.burst is None or self.burst >= 1, f"burst must be at least 1 message, not {self.burst}")
        _require(
            HEADER_BYTES <= self.message_size <= 64 * 1024 * 1024,
            f"message_size must be {HEADER_BYTES} (the header) to 67108864 bytes, not {self.message_size}",
        )
        _require(
            self.receive_rate is None or self.receive_rate > 0,
            f"receive_rate must be above 0 messages/s, not {self.receive_rate}",
        )
        _require(
            self.reconnect_rate is None or 0 < self.reconnect_rate <= 100,
            f"reconnect_rate must be above 0 and at most 100 a second, not {self.reconnect_rate}",
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What can change between two steps without a new process; sent to every client with ``configure``.

    Sizes are in bytes, rates in messages (or reconnections) per second, times as their suffix says. A high-water
    mark of 0 is unbounded. ``batch_bytes`` None derives it from ``msg_batch`` and ``message_size``
    (see ``kafkatest/batching.py``).
    """

    rate: Rate = "max"
    msg_batch: int = 100
    message_size: int = HEADER_BYTES
    # zmq
    sndhwm: int = 1000
    rcvhwm: int = 1000
    nodrop: bool = False
    # kafka
    linger_ms: float = 0.0
    batch_bytes: int | None = None
    compression: Compression = "none"
    acks: Acks = "1"
    # subscribers of a cohort
    receive_rate: float | None = None
    reconnect_rate: float | None = None

    def __post_init__(self) -> None:
        _require(self.rate == "max" or self.rate > 0, f"rate must be above 0 or 'max', not {self.rate!r}")
        _require(self.msg_batch >= 1, f"msg_batch must be at least 1 message, not {self.msg_batch}")
        _require(
            HEADER_BYTES <= self.message_size <= 64 * 1024 * 1024,
            f"message_size must be {HEADER_BYTES} (the header) to 67108864 bytes, not {self.message_size}",
        )
        _require(self.sndhwm >= 0, f"sndhwm must be 0 (unbounded) or more messages, not {self.sndhwm}")
        _require(self.rcvhwm >= 0, f"rcvhwm must be 0 (unbounded) or more messages, not {self.rcvhwm}")
        _require(0 <= self.linger_ms <= 900_000, f"linger_ms must be 0 to 900000, not {self.linger_ms}")
        _require(
            self.batch_bytes is None or 1 <= self.batch_bytes <= 2**31 - 1,
            f"batch_bytes must be 1 to 2147483647, not {self.batch_bytes}",
        )
        _require(
            self.receive_rate is None or self.receive_rate > 0,
            f"receive_rate must be above 0 messages/s, not {self.receive_rate}",
        )
        _require(
            self.reconnect_rate is None or 0 < self.reconnect_rate <= 100,
            f"reconnect_rate must be above 0 and at most 100 a second, not {self.reconnect_rate}",
        )


@dataclass(frozen=True, slots=True)
class Cohort:
    """A part of the subscribers that behaves differently in a step.

    ``fraction`` of the subscribers, drawn with ``seed``; ``rate`` is messages/s read by a slow one, reconnections/s
    of a reconnecting one.
    """

    kind: CohortKind = "none"
    fraction: float = 0.0
    rate: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _require(0 <= self.fraction < 1, f"fraction of a cohort must be 0 to below 1, not {self.fraction}")


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One point that a sweep asks for.

    ``series`` names the search or grid that the point belongs to (``"grid"``, ``"max_rate"``, ``"loss"``, ``"slow"``,
    ``"reconnecting"``).
    """

    clients: int
    settings: Settings
    duration_s: float
    series: str = "grid"
    cohort: Cohort = Cohort()

    def __post_init__(self) -> None:
        _require(self.clients >= 1, f"clients must be at least 1, not {self.clients}")
        _require(0 < self.duration_s <= 86_400, f"duration_s must be above 0 and at most 86400, not {self.duration_s}")


StepStatus = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What came of a step: its figures by column name, or why there are none.

    ``histograms`` are the step's merged ones by their stored name, only where rows are repeated: percentiles of several
    steps come of the sum of their counts.
    """

    epoch: int
    plan: StepPlan
    status: StepStatus
    figures: Mapping[str, Figure] = field(default_factory=dict)
    reason: str = ""
    histograms: Mapping[str, Histogram] = field(default_factory=dict)


# --- what clients say ----------------------------------------------------------------------------------------------

DrainEnd = Literal["complete", "marked", "quiet", "deadline"]
"""Why a subscriber stopped draining: it had all, nothing could follow (every publisher's end marker had come), nothing
came any more, or it had taken too long."""

LAG_BINS: Final = 20
"""Equal parts of the window in which a subscriber's lag is averaged."""

SequenceRange = tuple[int, int]
"""First and last sequence, both included."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """HDR counts, sparse: ``counts`` alternates bucket index and count; indexes rise.

    The index of a value is HdrHistogram's counts index for 1 µs to 1 h at 3 digits (formula in
    docs/control-protocol.md).
    """

    counts: list[int] = field(default_factory=list)
    min_us: int = 0
    max_us: int = 0


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """A subscriber's exact account of one (publisher, epoch).

    Attributes:
        received: distinct expected sequences received, drain included.
        in_window: of those, received no later than the end of the step.
        missing: expected sequences that never came.
        missing_ranges: the first of them, at most the number that the protocol page allows.
        truncated: whether there were more ranges than that, of either kind.
        duplicates: messages whose sequence had been received already.
        reordered: messages that came after a later sequence.
        extra: distinct sequences received that were not expected (sent but never acknowledged).
        received_ranges: of a member of a group, what it received, as ``missing_ranges`` otherwise.
    """

    publisher: int
    received: int
    in_window: int
    missing: int
    missing_ranges: list[SequenceRange] = field(default_factory=list)
    truncated: bool = False
    duplicates: int = 0
    reordered: int = 0
    extra: int = 0
    received_ranges: list[SequenceRange] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """getrusage over the step: CPU seconds spent in it, peak resident memory (bytes) of the process so far."""

    cpu_user_s: float = 0.0
    cpu_system_s: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ClientClock:
    """The step's clock as a client on another host than the controller's has it.

    ``offset_ns`` is what it added to its CLOCK_MONOTONIC, ``error_ns`` by how much that may be wrong as far as the
    client can tell.
    """

    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class SubscriberReport:
    """What one subscriber got in one epoch.

    ``first_ns``/``last_ns`` are the arrival times of the first and last batch (ns, the step's clock), 0 if none;
    ``first_batch`` the number of messages in the first; ``stale`` counts messages of other epochs; ``undrained`` is
    what is known to be waiting (Kafka: end offset − position); ``absent`` lists the intervals (ns) in which a
    reconnecting client got nothing, each until data flowed again; ``felt`` is false for a slow reader without loss.
    ``lag_bins_us`` is the mean age (µs) of the newest message of each batch, in each of ``LAG_BINS`` equal parts of the
    window; None where no batch was read in that part. Empty at rate ``max``. ``system`` holds what only clients of this
    system report; ``clock`` is None where the client took the controller's.
    """

    ledgers: list[LedgerCounts]
    batches: int
    first_batch: int
    first_ns: int
    last_ns: int
    bytes: int
    stale: int
    latency: Histogram
    usage: ProcessUsage
    undrained: int = 0
    absent: list[tuple[int, int]] = field(default_factory=list)
    reconnects: int = 0
    felt: bool = True
    drain: DrainEnd = "complete"
    lag_bins_us: list[int | None] = field(default_factory=list)
    system: dict[str, Any] | None = None
    clock: ClientClock | None = None


@dataclass(frozen=True, slots=True)
class PublisherReport:
    """What one publisher sent in one epoch; sequences run from 0 to ``sent`` − 1.

    Attributes:
        sent: messages that the library accepted.
        acknowledged: of those, acknowledged by the broker (zmq: equal to ``sent``).
        failed: messages for which the broker or the library reported an error.
        unacknowledged: ranges of sequences that are failed or without an answer.
        first_ns, last_ns: first send; last send (zmq) or last acknowledgement (kafka); ns on the step's clock.
        lag: histogram of send time − due time (µs); empty at rate ``max``.
        blocked_ns: time spent waiting for a full queue.
        stopped_early: why it stopped before the end of the step, or "".
        unacknowledged_joined: whether there were more ranges than a report holds, so that the last of
            ``unacknowledged`` holds acknowledged sequences as well; ``acknowledged`` is exact all the same.
        system: what only clients of this system report.
        clock: None where the client took the controller's.
    """

    sent: int
    acknowledged: int
    failed: int
    first_ns: int
    last_ns: int
    bytes: int
    lag: Histogram
    usage: ProcessUsage
    unacknowledged: list[SequenceRange] = field(default_factory=list)
    blocked_ns: int = 0
    stopped_early: str = ""
    unacknowledged_joined: bool = False
    system: dict[str, Any] | None = None
    clock: ClientClock | None = None


# --- the cluster ---------------------------------------------------------------------------------------------------

Operator = Literal["UNIQUE", "CLUSTER", "GROUP_BY", "LIKE", "UNLIKE", "MAX_PER"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One of Marathon's placement constraints on an attribute or on ``hostname``; ``value`` as its operator needs."""

    field: str
    operator: Operator
    value: str = ""


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of an agent's resources: CPUs, memory and disk in MB, and port ranges (first, last included)."""

    cpus: float = 0.0
    mem: float = 0.0
    disk: float = 0.0
    ports: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A host that runs processes, with the resources that are free on it now."""

    id: str
    hostname: str
    attributes: Mapping[str, str]
    resources: Resources


@dataclass(frozen=True, slots=True)
class Demand:
    """What a group needs: ``base`` once and ``per_client`` for each client; ``ports`` is a number of ports."""

    base_cpus: float = 0.0
    base_mem: float = 0.0
    cpus_per_client: float = 0.0
    mem_per_client: float = 0.0
    ports: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """What the scheduler launches on an agent: one task whose parent process forks ``count`` clients of one kind.

    ``role`` is the name under which constraints count ("publisher", "subscriber", "broker"). ``command`` is the
    program with its arguments, ``environment`` what it needs to dial in (it may hold the run's key; it is never
    logged).
    """

    id: str
    role: str
    first_client: int
    count: int
    command: tuple[str, ...]
    environment: Mapping[str, str]
    demand: Demand
    constraints: tuple[Constraint, ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """A group placed on an agent, with the ports it may bind."""

    group: Group
    agent: Agent
    ports: tuple[int, ...] = ()


GroupState = Literal["starting", "running", "finished", "failed", "killed", "lost"]


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """A change of a launched group's state; ``detail`` is for the user (exit status, the end of its stderr)."""

    group: str
    state: GroupState
    agent: str
    detail: str = ""


# --- scenarios -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """Where one role of a scenario may run and what it needs there."""

    constraints: tuple[Constraint, ...] = ()
    demand: Demand = Demand()


@dataclass(frozen=True, slots=True)
class BrokerSpec(RoleSpec):
    """The brokers that Hydra brings along where none are named: where each may run, what it needs, and how many.

    On agents each is a group of one, and all together one cluster. ``demand.ports`` is 2 (for clients, and for the
    KRaft controllers), or 0: any that are free.
    """

    demand: Demand = Demand(base_cpus=1.0, base_mem=1536.0, ports=2)
    count: int = 1

    def __post_init__(self) -> None:
        _require(self.count >= 1, f"count must be at least 1 broker, not {self.count}")
        _require(
            self.demand.ports in (0, 2),
            f"demand.ports must be 2 (for clients, and for controllers) or 0 (any free ones), not {self.demand.ports}",
        )


SearchSeries = Literal["max_rate", "loss", "slow", "reconnecting", "nodrop"]


LEAST_TARGET: Final = 0.0005
"""A loss target below this is searched for as if it were this: no number of steps that fits into a day tells less from
nothing."""


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """How rates are searched for each client count.

    Rates in messages/s. ``loss_target`` is a fraction. A search for the highest rate stops when
    ``stall_doublings`` doublings in a row each gain less than ``gain_target``; one for a rate within the target when
    the upper limit of its 95 % interval is at most ``width`` times the lower, or after ``steps`` steps. Cohorts are
    ``cohort_fraction`` of the clients: slow ones read ``slow_share`` of the first figure, reconnecting ones do so
    ``reconnect_rate`` times a second. ``sndhwms`` repeats the search below the loss target for each of these high-water
    marks; ``nodrop`` is the highest rate while the publisher waits instead of dropping.
    """

    start_rate: float = 1000.0
    floor_rate: float = 1.0
    loss_target: float = 0.005
    gain_target: float = 0.05
    stall_doublings: int = 2
    max_doublings: int = 12
    width: float = 1.25
    steps: int = 60
    cohort_fraction: float = 0.1
    slow_share: float = 0.5
    reconnect_rate: float = 2.0
    series: tuple[SearchSeries, ...] = ("max_rate", "loss", "slow", "reconnecting")
    sndhwms: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _require(self.start_rate > 0, f"start_rate must be above 0 messages/s, not {self.start_rate}")
        _require(0 < self.floor_rate <= self.start_rate, "floor_rate must be above 0 and at most start_rate")
        _require(0 <= self.loss_target < 1, f"loss_target is a fraction from 0 to below 1, not {self.loss_target}")
        _require(self.width > 1, f"width is the upper limit over the lower, above 1, not {self.width}")
        _require(2 <= self.steps <= 10_000, f"steps must be 2 to 10000, not {self.steps}")
        _require(self.max_doublings >= 1, f"max_doublings must be at least 1, not {self.max_doublings}")
        _require(self.stall_doublings >= 1, f"stall_doublings must be at least 1, not {self.stall_doublings}")
        _require(0 < self.cohort_fraction < 1, f"cohort_fraction must lie between 0 and 1, not {self.cohort_fraction}")
        _require(0 < self.slow_share < 1, f"slow_share must lie between 0 and 1, not {self.slow_share}")
        _require(all(h >= 0 for h in self.sndhwms), f"sndhwms are 0 (unbounded) or more, not {list(self.sndhwms)}")
        _require(len(set(self.sndhwms)) == len(self.sndhwms), f"a mark stands twice in {list(self.sndhwms)}")
        _require(len(self.series) > 0, "series must name at least one search")
        _require(
            "max_rate" in self.series or "slow" not in self.series,
            "the series 'slow' needs 'max_rate': slow clients read a share of that figure",
        )

    @property
    def target(self) -> float:
        """The shortfall that is searched for, a fraction."""
        return max(self.loss_target, LEAST_TARGET)


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """What a scenario varies: client counts, and either a grid of settings or a search.

    ``vary`` maps a field of ``Settings`` to the values it takes; the client count is the outer loop. ``repeat`` is how
    often each row is measured; what a repeated row has is told in ``sweep/repeated.py``.
    """

    clients: tuple[int, ...]
    duration_s: float
    vary: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    search: SearchSpec | None = None
    repeat: int = 1

    def __post_init__(self) -> None:
        _require(self.repeat >= 1, f"repeat must be at least 1, not {self.repeat}")
        _require(len(self.clients) > 0, "clients must name at least one client count")
        _require(all(c >= 1 for c in self.clients), f"every client count must be at least 1, not {list(self.clients)}")
        _require(len(set(self.clients)) == len(self.clients), f"a client count stands twice in {list(self.clients)}")
        _require(0 < self.duration_s <= 86_400, f"duration_s must be above 0 and at most 86400, not {self.duration_s}")
        _require(not (self.vary and self.search), "a sweep has either vary (a grid) or search, not both")
        _require(all(len(v) > 0 for v in self.vary.values()), "every list under vary needs at least one value")


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """The Kafka side of a scenario. ``bootstrap`` "" brings brokers along (``BrokerSpec``).

    ``properties`` are librdkafka/Java client property names and may hold secrets: they travel under CURVE only and
    are never stored.
    """

    bootstrap: str = ""
    partitions: int = 1
    replication_factor: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(self.partitions >= 1, f"partitions must be at least 1, not {self.partitions}")
        _require(self.replication_factor >= 1, f"replication_factor must be at least 1, not {self.replication_factor}")


@dataclass(frozen=True, slots=True)
class NativeSpec:
    """What only the native clients can do; other implementations take the defaults only.

    ``clients_per_process`` packs subscribers, each with a socket, an id and a ledger of its own, into one process.
    ``pacing`` bursty sends each second's messages at its start. ``sndbuf`` and ``rcvbuf`` are the kernel's buffers in
    bytes, 0 leaves them to it. ``secure`` is CURVE on the data plane.
    """

    clients_per_process: int = 1
    pacing: Literal["smooth", "bursty"] = "smooth"
    io_threads: int = 1
    sndbuf: int = 0
    rcvbuf: int = 0
    transport: Literal["tcp", "ipc"] = "tcp"
    secure: bool = False

    def __post_init__(self) -> None:
        _require(self.clients_per_process >= 1, f"clients_per_process is at least 1, not {self.clients_per_process}")
        _require(1 <= self.io_threads <= 64, f"io_threads must be 1 to 64, not {self.io_threads}")
        _require(self.sndbuf >= 0 and self.rcvbuf >= 0, "sndbuf and rcvbuf are bytes, 0 or more")


TableKind = Literal["zmqrate", "rate", "fixed", "batch"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """What to deploy, what to vary, for how long, and which table comes out.

    ``warmup_s`` is sent before the first step of a deployment and is never part of a figure; ``drain_max_s`` None
    means the step's length + 5 s; ``ready_timeout_s`` bounds the wait for clients to be proven ready. A publisher that
    passes ``publisher_memory_mb`` (what waits in its queue) ends its step early, and the row says so.
    """

    name: str
    system: System
    client: str
    table: TableKind
    sweep: SweepSpec
    settings: Settings = Settings()
    publishers: int = 1
    publisher: RoleSpec = RoleSpec()
    subscriber: RoleSpec = RoleSpec()
    broker: BrokerSpec = BrokerSpec()
    kafka: KafkaSpec = KafkaSpec()
    native: NativeSpec = NativeSpec()
    warmup_s: float = 1.0
    drain_max_s: float | None = None
    ready_timeout_s: float = 120.0
    publisher_memory_mb: float = 2048.0
    description: str = ""

    def __post_init__(self) -> None:
        _require(self.publishers >= 1, f"publishers must be at least 1, not {self.publishers}")
        _require(self.warmup_s >= 0, f"warmup_s must be 0 or more, not {self.warmup_s}")
        _require(self.drain_max_s is None or self.drain_max_s > 0, "drain_max_s must be above 0")
        _require(self.publisher_memory_mb > 0, "publisher_memory_mb must be above 0")
        _require(self.ready_timeout_s > 0, f"ready_timeout_s must be above 0, not {self.ready_timeout_s}")


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The cluster that ``conf/hydra.toml`` declares.

    ``agents`` belong to the embedded engine. ``max_group`` bounds the clients of one group; ``fork_window`` how
    many forked clients of a group may be unanswered at a time; ``respawns`` how often one client is replaced.
    """

    agents: tuple[Agent, ...]
    max_group: int = 1000
    fork_window: int = 128
    respawns: int = 3

    def __post_init__(self) -> None:
        _require(len(self.agents) > 0, "the cluster needs at least one agent")
        ids = [a.id for a in self.agents]
        _require(len(set(ids)) == len(ids), f"two agents have the same id: {sorted(ids)}")
        _require(self.max_group >= 1, f"max_group must be at least 1, not {self.max_group}")
        _require(self.fork_window >= 1, f"fork_window must be at least 1, not {self.fork_window}")
        _require(self.respawns >= 0, f"respawns must be 0 or more, not {self.respawns}")


@dataclass(frozen=True, slots=True)
class MesosSpec:
    """How Hydra introduces itself to a Mesos master; it is never stored with a run, as it may hold a secret.

    Attributes:
        name: of the framework, before the run's name.
        user: as whom tasks run; "" is the user who runs hydra.
        role: whose resources are asked for.
        principal, secret: who we are to a master that asks.
        failover_timeout_s: how long the master keeps the framework and its tasks when it hears nothing.
        advertise: this machine's address as agents reach it; "" is the one that routes to the master.
        artifact: the URL of a copy of the agents' archive that somebody else serves; "" serves it here.
    """

    name: str = "hydra"
    user: str = ""
    role: str = "*"
    principal: str = ""
    secret: str = field(default="", repr=False)
    failover_timeout_s: float = 120.0
    advertise: str = ""
    artifact: str = ""

    def __post_init__(self) -> None:
        _require(bool(self.name) and "/" not in self.name, f"name must be a word without a slash, not {self.name!r}")
        _require(bool(self.role), "role must not be empty: * is the default role")
        _require(self.failover_timeout_s >= 0, f"failover_timeout_s must be 0 or more, not {self.failover_timeout_s}")
        _require(not self.secret or bool(self.principal), "secret needs a principal")
