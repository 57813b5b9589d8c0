"""What generic code knows of Kafka."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from hydra.kafkatest.experiments import EXPERIMENTS
from hydra.kafkatest.footprints import BROKER, IMPLEMENTATIONS
from hydra.kafkatest.presets import PRESETS
from hydra.kafkatest.properties import is_secret, secret_values
from hydra.kafkatest.settings import (
    KILL,
    MOVE,
    TABLE,
    TOOL,
    KafkaSettings,
    KafkaSpec,
    settings_with_event,
    spec_of,
    why_no_kill,
    why_no_move,
)
from hydra.measure.column import MESSAGES, Column, ReportColumn
from hydra.model import Demand, EventSpec, Figure, Scenario, ServerSpec, Settings, value_of, with_values
from hydra.options import setting_flag
from hydra.system import Reference, Refusal, System, SystemSpec

_BATCH: Final = Reference("hydra_kafka_batch.csv", "kafka-batch", ("clients", "msg_batch"))
_FIXED: Final = Reference("hydra_kafka_fixed_rate.csv", "kafka-fixed")


class KafkaSystemSpec(SystemSpec):
    """Kafka: brokers of ours or the user's cluster, and the tools that come with it."""

    name = "kafka"
    title = "Kafka"
    queue = "server"
    settings = KafkaSettings
    tables = {TABLE: KafkaSpec}
    implementations = IMPLEMENTATIONS
    tools = (TOOL,)
    servers = BROKER
    has_log = True
    server_spec = ServerSpec(demand=Demand(base_cpus=1.0, base_mem=1536.0, ports=2))
    aliases = {"broker": "server"}
    batch = Column(
        "msg_batch",
        MESSAGES,
        "messages that the producer's batch is made for",
        "Batch",
        repeats="common",
        axis="messages per batch",
    )
    columns = [
        ReportColumn(
            "batch_bytes",
            "bytes",
            "batch size that the producer was given, see [kafka.md](kafka.md#batch-sizes)",
            repeats="common",
            role="publisher",
            key="batch_bytes",
            fold="common",
        ),
        ReportColumn(
            "records_per_batch",
            MESSAGES,
            "messages in a batch as achieved, the mean; of several publishers the mean of theirs",
            role="publisher",
            key="records_per_batch",
            fold="mean",
        ),
        ReportColumn(
            "records_per_request",
            MESSAGES,
            "messages in a produce request as achieved, likewise",
            role="publisher",
            key="records_per_request",
            fold="mean",
        ),
        ReportColumn(
            "wire_bytes",
            "bytes",
            "bytes that the publishers sent to brokers, compressed and with what Kafka adds",
            role="publisher",
            key="wire_bytes",
        ),
        ReportColumn(
            "compression_ratio",
            "",
            "bytes of the messages over `wire_bytes`; below 1 where nothing is compressed, empty where not everything "
            "was sent. Mean of the publishers",
            role="publisher",
            key="compression_ratio",
            fold="mean",
            axis="compression ratio",
        ),
        ReportColumn(
            "rebalances",
            "",
            "how often a member of the group got its partitions anew, joining included: the member with the most",
            role="subscriber",
            key="rebalances",
            fold="max",
        ),
        ReportColumn(
            "rebalance_ms",
            "ms",
            "how long it had none meanwhile: the member with the longest, see [kafka.md](kafka.md#consumer-groups)",
            role="subscriber",
            key="rebalance_ms",
            fold="max",
        ),
    ]
    elsewhere = (setting_flag(f"{TABLE}.bootstrap", of=KafkaSpec),)
    presets = PRESETS
    experiments = EXPERIMENTS
    differs = ("msg_batch", "linger_ms", "acks", "compression")
    events = {KILL: why_no_kill, MOVE: why_no_move}

    def make(self, scenario: Scenario, deploy: bool, is_local: bool) -> System:
        """See :class:`hydra.kafkatest.system.KafkaSystem`."""
        from hydra.kafkatest.system import KafkaSystem

        return KafkaSystem(scenario, deploy=deploy, is_local=is_local)

    def check(self, scenario: Scenario) -> Iterator[Refusal]:
        """Addresses, ports, acknowledgements; names and values of what brokers and tools are told."""
        from hydra.kafkatest.refusals import refusals

        spec, servers = spec_of(scenario), scenario.server
        if spec.bootstrap:
            yield from _addresses("bootstrap", spec.bootstrap.split(","))
            yield from _addresses("metrics", spec.metrics)
        elif spec.metrics:
            yield (TABLE, "metrics"), "brokers that Hydra brings along have exporters of their own", "remove it"
        if servers.demand.ports not in (0, 2, 3):
            ports = servers.demand.ports
            what = f"must be 2 (for clients and controllers), 3 (for metrics as well) or 0 (any free ones), not {ports}"
            yield ("server", "demand", "ports"), what, ""
        if scenario.publishers > 1 and value_of(scenario.settings, "acks") == "0":
            yield (
                ("settings", "acks"),
                "acks 0 with several publishers: nobody can tell whose messages the broker took",
                "use one publisher, or acks 1",
            )
        yield from refusals(scenario)

    def address(self, scenario: Scenario) -> str:
        """As ``kafka.bootstrap`` says."""
        return spec_of(scenario).bootstrap

    def copies_of(self, scenario: Scenario) -> int:
        """The most replicas of all steps."""
        asked = [value for value in scenario.values_of("replication_factor") if isinstance(value, int)]
        return max(asked, default=spec_of(scenario).replication_factor)

    def reference(self, scenario: Scenario) -> Reference | None:
        """By what changes from row to row."""
        return {"batch": _BATCH, "fixed": _FIXED}.get(scenario.table)

    def secrets(self, scenario: Scenario) -> Iterable[str]:
        """Values of the user's properties."""
        return secret_values(spec_of(scenario).properties)

    def users(self, scenario: Scenario) -> Iterator[str]:
        """Names in the user's properties."""
        for key, value in spec_of(scenario).properties.items():
            if key.endswith(("username", "client.id")):
                yield value

    def is_secret(self, key: str) -> bool:
        """By the names of properties."""
        return is_secret(key)

    def burst(self, system: Mapping[str, Figure]) -> int:
        """As many as the producer's batch is made for."""
        return KafkaSettings(**system).msg_batch  # type: ignore[arg-type]  # checked when they were read

    def group(self, settings: Settings) -> str:
        """As ``group`` says."""
        return KafkaSettings.of(settings).group

    def stored(self, settings: Settings) -> bool:
        """As ``read`` says."""
        return KafkaSettings.of(settings).read == "stored"

    def log_acknowledges(self, settings: Settings) -> bool:
        """Where brokers are not asked to."""
        return KafkaSettings.of(settings).acks == "0"

    def keeps(self, settings: Settings) -> bool:
        """As ``keep`` says."""
        return KafkaSettings.of(settings).keep

    def disturbed(self, settings: Settings, event: EventSpec, duration_s: float) -> Settings:
        """When a broker is killed, or a partition moved."""
        return settings_with_event(settings, event, duration_s)

    def undisturbed(self, settings: Settings) -> Settings:
        """Without either."""
        return with_values(settings, {"kill_broker_at": None, "move_partition_at": None})


def _addresses(key: str, addresses: Iterable[str]) -> Iterator[Refusal]:
    """Refuses what is not ``host`` or ``host:port``."""
    for address in addresses:
        try:
            parts = urlsplit(f"//{address.strip()}")
            fine = parts.netloc == address.strip() and bool(parts.hostname) and parts.port != 0
        except ValueError:  # the port is no number up to 65535
            fine = False
        if not fine or not address.isprintable() or " " in address.strip() or "@" in address:
            what = f"{reprlib.repr(address)} is no address"
            yield (TABLE, key), what, "write host:port, ports are 1 to 65535"


SPEC: Final = KafkaSystemSpec()
