"""The settings of Kafka's clients, the table [kafka] of a scenario, and what events do to settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from hydra.model import EventSpec, Scenario, Settings, setting, with_values

TABLE: Final = "kafka"
TOOL: Final = "kafka-tool"
"""The implementation that drives performance tools of Kafka's own."""
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
Read = Literal["live", "stored"]
"""When subscribers read: while it is sent, or all of it afterwards."""
MOST_RETRIES: Final = 2**31 - 1
"""As many as the time allows."""
MOST_PARTITIONS: Final = 10_000
"""Their offsets travel in one message of 512 KiB."""
MOST_REPLICAS: Final = 32_767
KILL: Final = "kill_server"
"""The broker that leads the first partition is killed."""
MOVE: Final = "move_partition"
"""The first partition is moved to other brokers: the next ones in the order of their ids."""
_AT_ONCE: Final = 1e-9
_SETTING: Final = {KILL: "kill_broker_at", MOVE: "move_partition_at"}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What can change between two steps.

    ``msg_batch`` is the messages of a producer's batch. ``batch_bytes`` None derives the batch's size from it and the
    message's size (see ``batching.py``).

    Attributes:
        partitions, replication_factor: of the topic of these steps; None: those of [kafka].
        idempotence: whether the producer numbers its batches, so that retries make no duplicates.
        retries: of a batch, at most; None: as often as the delivery timeout allows.
        max_in_flight: requests without an answer on one connection, at most.
        buffer_memory: bytes that wait in the producer, at most.
        delivery_timeout_ms: how long a message may wait for its acknowledgement.
        fetch_min_bytes, fetch_wait_max_ms: the broker answers a fetch when it has so much, or after this time.
        fetch_max_bytes, max_partition_fetch_bytes: of an answer, of a partition in it.
        check_crcs: whether consumers check every batch's checksum.
        group: the consumer group that the subscribers share, "": each of them gets everything.
        session_timeout_ms: after which a silent member of the group is taken for dead; None: the library's.
        read: when subscribers read.
        keep: whether the log keeps all steps; otherwise it holds two.
        kill_broker_at: the part of the window after which one of our own brokers is killed; None: none is.
        move_partition_at: likewise, the topic's first partition is moved to other brokers. Clients are not told of it.
    """

    msg_batch: int = setting(100, "Messages per batch.", least=1, most=1_000_000)  # librdkafka takes no more
    linger_ms: float = setting(0.0, "How long the producer waits for a batch to fill.", metavar="MS")
    batch_bytes: int | None = None
    compression: Compression = "none"
    acks: Acks = "1"
    partitions: int | None = setting(None, least=1, most=MOST_PARTITIONS)
    replication_factor: int | None = setting(None, least=1, most=MOST_REPLICAS)
    idempotence: bool = False
    retries: int | None = setting(None, least=0, most=MOST_RETRIES)
    max_in_flight: int = setting(5, least=1, most=1_000_000)
    buffer_memory: int = setting(67_108_864, least=2**20, most=(2**31 - 1) * 1024)  # librdkafka counts it in KiB
    delivery_timeout_ms: int = setting(120_000, least=1, most=900_000)
    fetch_min_bytes: int = setting(1, least=1, most=100_000_000)
    fetch_wait_max_ms: int = setting(500, least=0, most=300_000)
    fetch_max_bytes: int = setting(52_428_800, least=1000, most=2_147_483_135)  # librdkafka takes no others
    max_partition_fetch_bytes: int = setting(1_048_576, least=1, most=1_000_000_000)
    check_crcs: bool = True
    group: str = ""
    # Kafka's brokers take 6000 and more unless they are told.
    session_timeout_ms: int | None = setting(None, least=100, most=1_800_000)
    read: Read = "live"
    keep: bool = False
    kill_broker_at: float | None = None
    move_partition_at: float | None = None

    def __post_init__(self) -> None:
        if self.msg_batch < 1:
            raise ValueError(f"msg_batch must be at least 1 message, not {self.msg_batch}")
        if self.msg_batch >= 2**63:
            raise ValueError(f"msg_batch must be below {2**63} messages, not {self.msg_batch}")
        if not 0 <= self.linger_ms <= 900_000:
            raise ValueError(f"linger_ms must be 0 to 900000, not {self.linger_ms}")
        if self.batch_bytes is not None and not 1 <= self.batch_bytes <= 2**31 - 1:
            raise ValueError(f"batch_bytes must be 1 to 2147483647, not {self.batch_bytes}")
        for name in ("kill_broker_at", "move_partition_at"):
            at = getattr(self, name)
            if at is not None and not 0 < at < 1:
                raise ValueError(f"{name} is a part of the window, above 0 and below 1, not {at}")
        if self.delivery_timeout_ms < self.linger_ms + 1:
            raise ValueError(
                f"delivery_timeout_ms must be above linger_ms ({self.linger_ms:g}), not {self.delivery_timeout_ms}"
            )
        if self.idempotence:
            _require(self.acks == "all", f"acks all, not {self.acks}")
            _require(self.max_in_flight <= 5, f"max_in_flight of at most 5, not {self.max_in_flight}")
            _require(self.retries != 0, "retries above 0")

    @classmethod
    def of(cls, settings: Settings) -> KafkaSettings:
        """Those among the settings of a step."""
        return cls(**settings.system)  # type: ignore[arg-type]


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"idempotence needs {what}")


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """The Kafka side of a scenario. ``bootstrap`` "" brings brokers along (``Scenario.server``).

    ``properties`` are librdkafka/Java client property names and may hold secrets: they travel under CURVE only and
    are never stored. ``metrics`` are the JMX exporters of brokers of the user's, ``host:port`` each. ``topic`` are
    settings of the run's topic, ``broker`` of brokers of our own, by Kafka's names.
    ``exact_group``: the setting ``group`` is the whole id of the group on the cluster; otherwise the name of the run's
    topic stands before it.
    """

    bootstrap: str = setting("", "Your own cluster (default: brokers come along).", metavar="HOST:PORT")
    partitions: int = setting(1, "Partitions of the run's topic.", least=1, most=MOST_PARTITIONS)
    replication_factor: int = setting(1, "Replicas of the run's topic.", least=1, most=MOST_REPLICAS)
    properties: Mapping[str, str] = field(default_factory=dict)
    exact_group: bool = False
    topic: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"partitions must be at least 1, not {self.partitions}")
        if self.replication_factor < 1:
            raise ValueError(f"replication_factor must be at least 1, not {self.replication_factor}")


def spec_of(scenario: Scenario) -> KafkaSpec:
    """The table [kafka] of a scenario."""
    spec: KafkaSpec = scenario.tables.get(TABLE, KafkaSpec())
    return spec


def groups_of(scenario: Scenario) -> frozenset[str]:
    """The names of all consumer groups of its steps."""
    names = (scenario.settings.system.get("group"), *scenario.values_of("group"))
    return frozenset(str(name) for name in names if name)


def why_no_kill(scenario: Scenario) -> str:
    """Why no broker of this scenario can be killed, or ""."""
    if spec_of(scenario).bootstrap:
        return "brokers of yours are never killed; leave --bootstrap out: Hydra kills brokers of its own"
    if scenario.server.count < 2:
        return f"it needs at least 2 brokers, and server.count is {scenario.server.count}; raise it"
    return _once(scenario, KILL)


def why_no_move(scenario: Scenario) -> str:
    """Why no partition of this scenario can be moved, or ""."""
    if spec_of(scenario).bootstrap:
        return "topics on brokers of yours stay where they are; leave --bootstrap out"
    usual = spec_of(scenario).replication_factor
    replicas = max(int(str(value or usual)) for value in scenario.values_of("replication_factor"))
    if scenario.server.count <= replicas:
        return f"it needs more brokers than replicas, {replicas}, and server.count is {scenario.server.count}; raise it"
    return _once(scenario, MOVE)


def _once(scenario: Scenario, kind: str) -> str:
    return "a step has one such event at most" if sum(e.kind == kind for e in scenario.events) > 1 else ""


def settings_with_event(settings: Settings, event: EventSpec, duration_s: float) -> Settings:
    """The settings of a step with that event."""
    return with_values(settings, {_SETTING[event.kind]: max(event.at_s / duration_s, _AT_ONCE)})
