"""The settings of Kafka's clients, the table [kafka] of a scenario, and the settings that events change.

Agents import this module, so it imports nothing that only the controller needs, such as :mod:`hydra.system`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from hydra.model import (
    Need,
    Scenario,
    Setting,
    SystemSettings,
    TlsTable,
    setting,
)
from hydra.model.base import require

TABLE: Final = "kafka"
TOOL: Final = "kafka-tool"
"""The implementation that runs Kafka's own performance tools."""
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]
Read = Literal["live", "stored"]
"""When subscribers read messages: while publishers send them, or all of them afterwards."""
MOST_RETRIES: Final = 2**31 - 1
"""Retries that only the delivery timeout limits."""
MOST_PARTITIONS: Final = 10_000
"""The most partitions whose offsets fit into one control message of 512 KiB."""
MOST_REPLICAS: Final = 32_767
KILL: Final = "kill_server"
"""The event that kills the broker that leads the first partition."""
MOVE: Final = "move_partition"
"""The event that moves the first partition to the next brokers in the order of their ids."""
KILL_SETTING: Final = "kill_broker_at"
MOVE_SETTING: Final = "move_partition_at"
LIBRDKAFKA: Final = ("confluent-kafka", "native")
"""The clients with librdkafka."""
_LIBRDKAFKA: Final = Need("client", LIBRDKAFKA)
_LIBRARY: Final = Need("client", ("kafka-python", "confluent-kafka", "native"))
_OWN_CLUSTER: Final = Need(f"{TABLE}.bootstrap")
_STARTED: Final = Need(_OWN_CLUSTER.key, ("",))
_GROUP: Final = "settings.group"


@dataclass(frozen=True, slots=True)
class KafkaSettings(SystemSettings):
    """What can change between two steps.

    Attributes:
        msg_batch: messages in a batch of the producer.
        linger_ms: how long the producer waits until a batch is full, in ms.
        batch_bytes: the size of a batch in bytes; unset: it follows from ``msg_batch`` and ``message_size``.
        compression: the codec of the batches; gzip uses level 6.
        acks: which replicas acknowledge a message: none, the leader, or all in sync.
        partitions: partitions of the step's topic; unset: those of ``[kafka]``. A step with another number than the
            step before gets a new topic, and the old one is deleted.
        replication_factor: replicas of the step's topic; unset: those of ``[kafka]``. Another number than in the step
            before makes a new topic, too.
        idempotence: whether the producer numbers its batches, so a resend makes no duplicate; needs ``acks``
            ``"all"``, ``max_in_flight`` of at most 5, and ``retries`` above 0.
        retries: how often the producer sends a batch again at most; unset: as often as ``delivery_timeout_ms`` allows.
        max_in_flight: the most unanswered requests on one connection.
        buffer_memory: the most bytes of messages that wait in the producer; one message always fits.
        delivery_timeout_ms: how long a message may wait for its acknowledgement, in ms; above ``linger_ms``.
        fetch_min_bytes: the broker answers a fetch when it has this number of bytes.
        fetch_wait_max_ms: the broker answers a fetch after this time at the latest, in ms.
        fetch_max_bytes: the most bytes in the answer to a fetch.
        max_partition_fetch_bytes: the most bytes of one partition in the answer to a fetch; a larger batch is sent
            alone.
        check_crcs: whether consumers check the checksum of every batch.
        group: the consumer group that the subscribers share; ``""``: each subscriber gets every message.
        session_timeout_ms: the time in ms after which a silent member of the consumer group counts as dead; unset: that
            of the client's library.
        read: ``"live"``: subscribers read while publishers send; ``"stored"``: they begin when everything is sent.
        keep: whether the topic keeps the messages of all steps, to measure throughput with stored data; otherwise it
            keeps those of two steps.
        kill_broker_at: the fraction of the window after which Hydra kills (SIGKILL) the broker that leads the first
            partition. The kill needs at least two brokers started by Hydra; the next step gets new
            brokers.
        move_partition_at: the fraction of the window after which Hydra moves the topic's first partition to the next
            brokers in the order of their ids; it needs more brokers than replicas. Clients are not informed.
    """

    msg_batch: int = setting(100, "Messages per batch.", least=1, most=1_000_000, of_publishers=True, compared=True)
    linger_ms: float = setting(
        0.0,
        "Longest wait of the producer for a full batch, such as 5ms.",
        flag=("--linger",),
        unit="ms",
        least=0,
        most=900_000,
        of_publishers=True,
        compared=True,
    )
    batch_bytes: int | None = setting(None, least=1, most=2**31 - 1, of_publishers=True)
    compression: Compression = setting("none", of_publishers=True, compared=True)
    acks: Acks = setting("1", of_publishers=True, compared=True)
    partitions: int | None = setting(None, least=1, most=MOST_PARTITIONS)
    replication_factor: int | None = setting(None, least=1, most=MOST_REPLICAS)
    idempotence: bool = setting(False, of_publishers=True)
    retries: int | None = setting(None, least=0, most=MOST_RETRIES, of_publishers=True)
    max_in_flight: int = setting(5, least=1, most=1_000_000, of_publishers=True)
    # librdkafka counts it in KiB.
    buffer_memory: int = setting(67_108_864, least=2**20, most=(2**31 - 1) * 1024, of_publishers=True)
    delivery_timeout_ms: int = setting(120_000, least=1, most=900_000, of_publishers=True)
    fetch_min_bytes: int = setting(1, least=1, most=100_000_000)
    fetch_wait_max_ms: int = setting(500, least=0, most=300_000)
    fetch_max_bytes: int = setting(52_428_800, least=1000, most=2_147_483_135)  # the limits of librdkafka
    max_partition_fetch_bytes: int = setting(1_048_576, least=1, most=1_000_000_000)
    check_crcs: bool = setting(True, needs=(_LIBRARY,))
    group: str = ""
    # Kafka's brokers accept 6000 and more by default.
    session_timeout_ms: int | None = setting(
        None, least=100, most=1_800_000, needs=(Need(_GROUP, (), Need("client", (TOOL,))),)
    )
    read: Read = "live"
    keep: bool = False
    kill_broker_at: float | None = setting(None, above=0, below=1, needs=(_STARTED,))
    move_partition_at: float | None = setting(None, above=0, below=1, needs=(_STARTED,))

    def __post_init__(self) -> None:
        SystemSettings.__post_init__(self)
        require(
            self.delivery_timeout_ms >= self.linger_ms + 1,
            f"delivery_timeout_ms must be above linger_ms ({self.linger_ms:g}), not {self.delivery_timeout_ms}",
            *("delivery_timeout_ms", "linger_ms"),
        )
        if self.idempotence:
            needed = "idempotence needs"
            require(self.acks == "all", f"{needed} acks all, not {self.acks}", "idempotence", "acks")
            most = f"{needed} max_in_flight of at most 5, not {self.max_in_flight}"
            require(self.max_in_flight <= 5, most, "idempotence", "max_in_flight")
            require(self.retries != 0, f"{needed} retries above 0", "idempotence", "retries")


@dataclass(frozen=True, slots=True)
class KafkaSpec(TlsTable):
    """The Kafka side of a scenario.

    Attributes:
        bootstrap: your own cluster, as ``HOST:PORT``, several separated by commas; ``""``: Hydra starts brokers.
        tls: whether brokers started by Hydra use TLS with clients and other brokers, with a CA and certificates for the
            run.
        partitions: partitions of the run's topic.
        replication_factor: replicas of the run's topic, at most ``server.count``.
        metrics: each JMX exporter on your own brokers, as ``HOST:PORT``; brokers started by Hydra have their own.
        topic: settings of the run's topic by Kafka's names: ``[kafka.topic]``, ``min.insync.replicas = 2``.
        broker: settings of the brokers started by Hydra, by Kafka's names; they override those of
            ``conf/kafka/server.properties``. Listeners, ids and folders, by which brokers find each other, cannot be
            set.
        read_ahead: the most messages of each partition that librdkafka fetches before a subscriber takes them
            (``queued.min.messages``); unset: 100,000, and fewer if these would not fit into the memory of this machine.
        exact_group: whether the setting ``group`` is the whole id of the consumer group on the cluster, for ACLs;
            otherwise the name of the run's topic stands before it.
        properties: client properties by the names of librdkafka or the Java client, TLS and SASL included. The
            properties travel encrypted, and Hydra never stores them. A name with dots needs no quotes:
            ``[kafka.properties]``, ``security.protocol = "SSL"``.
    """

    bootstrap: str = setting(
        "",
        "Addresses of your brokers (default: brokers started by Hydra).",
        flag=("--servers", "--bootstrap"),
        metavar="HOST:PORT,…",
    )
    partitions: int = setting(
        1,
        "Partitions of the run's topic.",
        least=1,
        most=MOST_PARTITIONS,
        needs=(Need("settings.partitions", (None,)),),
    )
    replication_factor: int = setting(
        1,
        "Replicas of the run's topic.",
        least=1,
        most=MOST_REPLICAS,
        needs=(Need("settings.replication_factor", (None,)),),
    )
    properties: Mapping[str, str] = field(default_factory=dict)
    read_ahead: int | None = setting(None, least=1, most=10_000_000, needs=(_LIBRDKAFKA,))
    exact_group: bool = setting(False, needs=(Need(_GROUP),))
    topic: Mapping[str, str] = field(default_factory=dict)
    broker: Mapping[str, str] = field(default_factory=dict, metadata=Setting(needs=(_STARTED,)).metadata)
    metrics: tuple[str, ...] = setting((), needs=(_OWN_CLUSTER,))


def spec_of(scenario: Scenario) -> KafkaSpec:
    """The table [kafka] of a scenario."""
    spec: KafkaSpec = scenario.tables.get(TABLE, KafkaSpec())
    return spec


def groups_of(scenario: Scenario) -> frozenset[str]:
    """The names of all consumer groups of its steps."""
    names = (KafkaSettings.of(scenario.settings).group, *scenario.values_of("group"))
    return frozenset(str(name) for name in names if name)


def ends_a_broker(scenario: Scenario) -> bool:
    """Whether a step of this scenario ends a broker for good."""
    kills = any(moment is not None for moment in scenario.values_of(KILL_SETTING))
    return kills or any(event.kind == KILL for event in scenario.events)
