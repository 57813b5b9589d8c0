"""The specification of Kafka, by which generic code uses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hydra.errors import UsageError
from hydra.kafkatest.event_refusals import why_no_kill, why_no_move, why_no_return
from hydra.kafkatest.footprints import BROKER, IMPLEMENTATIONS
from hydra.kafkatest.presets import PRESETS
from hydra.kafkatest.properties import confluent_config, is_secret, secret_values
from hydra.kafkatest.read_ahead import read_ahead_of
from hydra.kafkatest.settings import (
    KILL,
    KILL_SETTING,
    LIBRDKAFKA,
    MOVE,
    MOVE_SETTING,
    TABLE,
    KafkaSettings,
    KafkaSpec,
    spec_of,
)
from hydra.measure.column import MESSAGES, Column, ReportColumn, SystemColumns
from hydra.model import RESTART, Demand, Figure, Scenario, Settings, SetupPart
from hydra.system import (
    DeliveryRules,
    Greeting,
    Identity,
    MessageLog,
    OwnSettings,
    Published,
    ReadAhead,
    Reference,
    Refusal,
    ScenarioResources,
    ServerKind,
    System,
    SystemEvent,
    SystemSpec,
    setup_part,
)

_BATCH: Final = Reference("hydra_kafka_batch.csv", "kafka-batch", ("clients", "msg_batch"))
_FIXED: Final = Reference("hydra_kafka_fixed_rate.csv", "kafka-fixed")
_ALWAYS_BUILT: Final = ("", "PLAIN")
"""Mechanisms of a login that librdkafka has without other libraries."""
_BUILT_WITH_TLS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SOCKET_BUFFERS: Final = {"rmem_max": "receive", "wmem_max": "send"}


_SHOWN: Final = {"acks": "acks {}", "linger_ms": "linger {} ms", "msg_batch": "batches of {}"}
_SHOWN_IF_UNUSUAL: Final[Mapping[str, tuple[str, Mapping[Figure, str]]]] = {
    "batch_bytes": ("batches of {} B", {None: "the default number of"}),
    "compression": ("compression {}", {}),
    "idempotence": ("{}", {True: "idempotent", False: "not idempotent"}),
    "group": ("consumer group {}", {"": "none"}),
    "read": ("read {}", {}),
}
"""The settings that are named unless they have their usual value in all rows, with their texts."""


_BATCH_COLUMN: Final = Column(
    "msg_batch",
    MESSAGES,
    "messages per batch in the producer's configuration",
    "Batch",
    repeats="common",
    axis="messages per batch",
    reached="records_per_batch",
)
_COLUMNS: Final = (
    ReportColumn(
        "batch_bytes",
        "bytes",
        "batch size in the producer's configuration, see [kafka.md](kafka.md#batch-sizes)",
        repeats="common",
        role="publisher",
        key="batch_bytes",
        fold="common",
    ),
    ReportColumn(
        "records_per_batch",
        MESSAGES,
        "mean number of messages in a batch that a publisher sent, averaged over the publishers",
        role="publisher",
        key="records_per_batch",
        fold="mean",
    ),
    ReportColumn(
        "records_per_request",
        MESSAGES,
        "mean number of messages in a produce request that a publisher sent, averaged over the publishers",
        role="publisher",
        key="records_per_request",
        fold="mean",
    ),
    ReportColumn(
        "wire_bytes",
        "bytes",
        "bytes that the publishers sent to brokers, compressed and with Kafka's overhead",
        role="publisher",
        key="wire_bytes",
    ),
    ReportColumn(
        "compression_ratio",
        "",
        "bytes of the messages / `wire_bytes`, mean over the publishers. The ratio is below 1 without compression, "
        "and empty if a publisher did not send all its messages",
        role="publisher",
        key="compression_ratio",
        fold="mean",
        axis="compression ratio",
    ),
    ReportColumn(
        "rebalances",
        "",
        "how often the consumer group gave partitions to a member, also when it joined; the figure of the member "
        "with the highest number",
        role="subscriber",
        key="rebalances",
        fold="max",
    ),
    ReportColumn(
        "rebalance_ms",
        "ms",
        "how long a member of the consumer group had no partitions while it was connected; the figure of the "
        "member with the longest time, see [kafka.md](kafka.md#consumer-groups)",
        role="subscriber",
        key="rebalance_ms",
        fold="max",
    ),
)


def _make(scenario: Scenario, deploy: bool, is_local: bool) -> System:
    """See :class:`hydra.kafkatest.system.KafkaSystem`."""
    from hydra.kafkatest.system import KafkaSystem

    return KafkaSystem(scenario, deploy=deploy, is_local=is_local)


def _check(scenario: Scenario) -> Iterator[Refusal]:
    """Checks addresses, ports and acknowledgements, and the settings of brokers and tools."""
    from hydra.kafkatest.refusals import refusals

    servers = scenario.server
    if servers.demand.ports not in (0, 2, 3):
        ports = servers.demand.ports
        what = (
            "the number of ports must be 2 (for clients and controllers), 3 (for metrics "
            f"as well) or 0 (any free ports), not {ports}"
        )
        yield ("server", "demand", "ports"), what, ""
    if scenario.publishers > 1 and KafkaSettings.of(scenario.settings).acks == "0":
        yield (
            ("settings", "acks"),
            "with acks 0 and several publishers it is not known whose messages the broker took",
            "use one publisher, or acks 1",
        )
    yield from refusals(scenario)


def _native_lacks(scenario: Scenario) -> str:
    """Properties that librdkafka does not know, logins and codecs that it may have been built without."""
    try:
        config = confluent_config(spec_of(scenario).properties, None)
    except UsageError as e:
        return e.what
    mechanism = config.get("sasl.mechanism", "").upper()
    has_tls = "SSL" in config.get("security.protocol", "").upper()  # then the program is asked for TLS
    known = (*_ALWAYS_BUILT, *(_BUILT_WITH_TLS if has_tls else ()))
    lacking = [] if mechanism in known else [f"sasl.mechanism {mechanism}"]
    lacking += [f"compression {codec}" for codec in scenario.values_of("compression") if codec == "zstd"]
    return f"the native program may have been built without {lacking[0]}" if lacking else ""


def _copies(scenario: Scenario) -> int:
    """The largest number of replicas of all steps."""
    factors = [value for value in scenario.values_of("replication_factor") if isinstance(value, int)]
    return max(factors, default=spec_of(scenario).replication_factor)


def _read_ahead(scenario: Scenario) -> ReadAhead | None:
    """That of librdkafka; other libraries keep one fetch, which is part of their footprint."""
    return read_ahead_of(scenario) if scenario.client in LIBRDKAFKA else None


def _socket_buffers(scenario: Scenario) -> Mapping[str, int]:
    """Those of the user's properties; Hydra sets none."""
    config = confluent_config(spec_of(scenario).properties, None)
    sizes = {limit: config.get(f"socket.{way}.buffer.bytes", "") for limit, way in _SOCKET_BUFFERS.items()}
    return {limit: int(size) for limit, size in sizes.items() if size.isdecimal()}


def _shown(scenario: Scenario) -> Sequence[SetupPart]:
    """Acknowledgements, batches and the topic, and what differs from the usual settings."""
    topic = spec_of(scenario)
    parts = [setup_part(KafkaSettings, scenario, name, form) for name, form in _SHOWN.items()]
    for name, form in (("partitions", "partitions {}"), ("replication_factor", "replicas {}")):
        usual = getattr(topic, name)
        values = dict.fromkeys(usual if value is None else value for value in scenario.values_of(name))
        parts.append(SetupPart(name, tuple(values), form))
    for name, (form, words) in _SHOWN_IF_UNUSUAL.items():
        part = setup_part(KafkaSettings, scenario, name, form, words)
        parts += [] if part.values == (getattr(KafkaSettings(), name),) else [part]
    return parts


def _logins(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The user names and client ids, and the secret values, in the user's properties."""
    properties = spec_of(scenario).properties
    yield from ((user, "") for key, user in properties.items() if key.endswith(("username", "client.id")))
    yield from (("", secret) for secret in secret_values(properties))


def _delivery(scenario: Scenario, settings: Settings) -> DeliveryRules:
    """By ``acks``, the replicas of the topic, and the settings of producers, groups and reading."""
    kafka = KafkaSettings.of(settings)
    replicas = kafka.replication_factor or spec_of(scenario).replication_factor
    who = {"0": "nothing", "1": "each message when its leader has it"}
    answers = who.get(kafka.acks, "each message when all replicas in sync have it")
    copies = "one copy" if replicas == 1 else f"{replicas} copies"
    # The wait of the producer for a full batch, and of the broker for the least bytes of a fetch.
    waits_ms = kafka.linger_ms + (kafka.fetch_wait_max_ms if kafka.fetch_min_bytes != 1 else 0)
    return DeliveryRules(
        queue="server",
        guarantees=f"acknowledges {answers} and keeps {copies} in a log on disk",
        traffic=("topics", "keys"),
        group=kafka.group,
        held_back_s=waits_ms / 1000,
        log_acknowledges=kafka.acks == "0",  # brokers send no acknowledgements then
        log=MessageLog(read_after=kafka.read == "stored", keeps_all=kafka.keep),
    )


SPEC: Final = SystemSpec(
    identity=Identity("kafka", "Kafka", IMPLEMENTATIONS, _make),
    settings=OwnSettings(
        step=KafkaSettings,
        tables={TABLE: KafkaSpec},
        presets=PRESETS,
        events={
            KILL: SystemEvent(why_no_kill, KILL_SETTING),
            MOVE: SystemEvent(why_no_move, MOVE_SETTING),
            RESTART: SystemEvent(why_no_return),
        },
        check=_check,
        native_lacks=_native_lacks,
        shown=_shown,
        logins=_logins,
        is_secret=is_secret,
    ),
    delivery=_delivery,
    servers=ServerKind(
        footprint=BROKER,
        demand=Demand(base_cpus=1.0, base_mem=1536.0, ports=2),
        address_key=f"{TABLE}.bootstrap",
        greeting=Greeting(
            "Kafka",
            "a Kafka broker",
            rb"\x00\x00..hyd!",
            b"\x00\x00\x00\x0a\x00\x12\x00\x00hyd!\xff\xff",  # ApiVersions; the answer repeats the correlation id
        ),
    ),
    resources=ScenarioResources(copies=_copies, read_ahead=_read_ahead, socket_buffers=_socket_buffers),
    published=Published(
        reference=lambda scenario: {"batch": _BATCH, "fixed": _FIXED}.get(scenario.table),
        columns=SystemColumns(_BATCH_COLUMN, _COLUMNS),
        cannot={"--topic": "Hydra measures with a topic of its own, and cannot use an existing one"},
    ),
)
