"""The specification of Kafka, by which generic code uses it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from hydra.errors import UsageError
from hydra.kafkatest.event_refusals import why_no_kill, why_no_move, why_no_return
from hydra.kafkatest.footprints import BROKER, IMPLEMENTATIONS
from hydra.kafkatest.presets import PRESETS
from hydra.kafkatest.properties import confluent_config, is_secret, secret_values
from hydra.kafkatest.read_ahead import read_ahead_of
from hydra.kafkatest.settings import (
    KILL,
    LIBRDKAFKA,
    MOVE,
    TABLE,
    TOOL,
    KafkaSettings,
    KafkaSpec,
    settings_with_event,
    spec_of,
)
from hydra.measure.column import MESSAGES, Column, ReportColumn
from hydra.model import RESTART, Demand, EventSpec, Figure, Scenario, ServerSpec, Settings, SetupPart, with_values
from hydra.options.setting_flags import setting_flag
from hydra.system import Greeting, ReadAhead, Reference, Refusal, System, SystemSpec

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


class KafkaSystemSpec(SystemSpec):
    """Kafka: brokers started by Hydra or the user's cluster, and Kafka's own tools."""

    name = "kafka"
    title = "Kafka"
    queue = "server"
    settings = KafkaSettings
    has_topics = True
    has_keys = True
    has_patterns = False
    tables = {TABLE: KafkaSpec}
    address_key = f"{TABLE}.bootstrap"
    greeting = Greeting(
        "Kafka",
        "a Kafka broker",
        rb"\x00\x00..hyd!",
        b"\x00\x00\x00\x0a\x00\x12\x00\x00hyd!\xff\xff",  # ApiVersions; the answer repeats the correlation id
    )
    own_ports = 16  # counted in a network namespace of its own
    implementations = IMPLEMENTATIONS
    tools = (TOOL,)
    servers = BROKER
    has_log = True
    shows_disconnections = ("native",)
    connects_to_all = True
    server_spec = ServerSpec(demand=Demand(base_cpus=1.0, base_mem=1536.0, ports=2))
    batch = Column(
        "msg_batch",
        MESSAGES,
        "messages per batch in the producer's configuration",
        "Batch",
        repeats="common",
        axis="messages per batch",
        reached="records_per_batch",
    )
    columns = [
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
    ]
    elsewhere = (setting_flag(f"{TABLE}.bootstrap", of=KafkaSpec),)
    presets = PRESETS
    cannot = {"--topic": "Hydra measures with a topic of its own, and cannot use an existing one"}
    events = {
        KILL: why_no_kill,
        MOVE: why_no_move,
        RESTART: why_no_return,
    }

    def make(self, scenario: Scenario, deploy: bool, is_local: bool) -> System:
        """See :class:`hydra.kafkatest.system.KafkaSystem`."""
        from hydra.kafkatest.system import KafkaSystem

        return KafkaSystem(scenario, deploy=deploy, is_local=is_local)

    def check(self, scenario: Scenario) -> Iterator[Refusal]:
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

    def native_lacks(self, scenario: Scenario) -> str:
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

    def copies_of(self, scenario: Scenario) -> int:
        """The largest number of replicas of all steps."""
        factors = [value for value in scenario.values_of("replication_factor") if isinstance(value, int)]
        return max(factors, default=spec_of(scenario).replication_factor)

    def held_back_s(self, settings: Settings) -> float:
        """The producer's wait for a full batch, and the broker's for the least bytes of a fetch."""
        kafka = KafkaSettings.of(settings)
        return (kafka.linger_ms + (kafka.fetch_wait_max_ms if kafka.fetch_min_bytes != 1 else 0)) / 1000

    def read_ahead(self, scenario: Scenario) -> ReadAhead | None:
        """That of librdkafka; other libraries keep one fetch, which is part of their footprint."""
        return read_ahead_of(scenario) if scenario.client in LIBRDKAFKA else None

    def socket_buffers(self, scenario: Scenario) -> Mapping[str, int]:
        """Those of the user's properties; Hydra sets none."""
        config = confluent_config(spec_of(scenario).properties, None)
        sizes = {limit: config.get(f"socket.{way}.buffer.bytes", "") for limit, way in _SOCKET_BUFFERS.items()}
        return {limit: int(size) for limit, size in sizes.items() if size.isdecimal()}

    def setup_parts(self, scenario: Scenario) -> Sequence[SetupPart]:
        """Acknowledgements, batches and the topic, and what differs from the usual settings."""
        topic = spec_of(scenario)
        parts = [self.setup_part(scenario, name, form) for name, form in _SHOWN.items()]
        for name, form in (("partitions", "partitions {}"), ("replication_factor", "replicas {}")):
            usual = getattr(topic, name)
            values = dict.fromkeys(usual if value is None else value for value in scenario.values_of(name))
            parts.append(SetupPart(name, tuple(values), form))
        for name, (form, words) in _SHOWN_IF_UNUSUAL.items():
            part = self.setup_part(scenario, name, form, words)
            parts += [] if part.values == (getattr(KafkaSettings(), name),) else [part]
        return parts

    def reference(self, scenario: Scenario) -> Reference | None:
        """The reference table for a batch or a fixed-rate table."""
        return {"batch": _BATCH, "fixed": _FIXED}.get(scenario.table)

    def secrets(self, scenario: Scenario) -> Iterable[str]:
        """The secret values of the user's properties."""
        return secret_values(spec_of(scenario).properties)

    def users(self, scenario: Scenario) -> Iterator[str]:
        """The user names and client ids in the user's properties."""
        for key, value in spec_of(scenario).properties.items():
            if key.endswith(("username", "client.id")):
                yield value

    def is_secret(self, key: str) -> bool:
        """Whether the property of this key is secret."""
        return is_secret(key)

    def burst(self, settings: Settings) -> int:
        """The messages per batch in the producer's configuration."""
        return KafkaSettings.of(settings).msg_batch

    def group(self, settings: Settings) -> str:
        """The setting ``group``."""
        return KafkaSettings.of(settings).group

    def guarantees(self, scenario: Scenario, settings: Settings) -> str:
        """By ``acks`` and the replicas of the topic."""
        kafka = KafkaSettings.of(settings)
        replicas = kafka.replication_factor or spec_of(scenario).replication_factor
        who = {"0": "nothing", "1": "each message when its leader has it"}
        answers = who.get(kafka.acks, "each message when all replicas in sync have it")
        copies = "one copy" if replicas == 1 else f"{replicas} copies"
        return f"acknowledges {answers} and keeps {copies} in a log on disk"

    def stored(self, settings: Settings) -> bool:
        """Whether the setting ``read`` is ``"stored"``."""
        return KafkaSettings.of(settings).read == "stored"

    def log_acknowledges(self, settings: Settings) -> bool:
        """Whether the log stands for acknowledgements, as brokers send none with acks 0."""
        return KafkaSettings.of(settings).acks == "0"

    def keeps(self, settings: Settings) -> bool:
        """The setting ``keep``."""
        return KafkaSettings.of(settings).keep

    def disturbed(self, settings: Settings, event: EventSpec, duration_s: float) -> Settings:
        """The settings of a step in which a broker is killed or a partition moved."""
        return settings_with_event(settings, event, duration_s)

    def undisturbed(self, settings: Settings) -> Settings:
        """The settings without a kill and a move."""
        return with_values(settings, {"kill_broker_at": None, "move_partition_at": None})


SPEC: Final = KafkaSystemSpec()
