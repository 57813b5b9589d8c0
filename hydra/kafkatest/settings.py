"""The settings of Kafka's producer, and the table [kafka] of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from hydra.model import Scenario, Settings

TABLE: Final = "kafka"
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["0", "1", "all"]


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What can change between two steps.

    ``msg_batch`` is the messages of a producer's batch. ``batch_bytes`` None derives the batch's size from it and the
    message's size (see ``batching.py``).
    """

    msg_batch: int = 100
    linger_ms: float = 0.0
    batch_bytes: int | None = None
    compression: Compression = "none"
    acks: Acks = "1"

    def __post_init__(self) -> None:
        if self.msg_batch < 1:
            raise ValueError(f"msg_batch must be at least 1 message, not {self.msg_batch}")
        if self.msg_batch >= 2**63:
            raise ValueError(f"msg_batch must be below {2**63} messages, not {self.msg_batch}")
        if not 0 <= self.linger_ms <= 900_000:
            raise ValueError(f"linger_ms must be 0 to 900000, not {self.linger_ms}")
        if self.batch_bytes is not None and not 1 <= self.batch_bytes <= 2**31 - 1:
            raise ValueError(f"batch_bytes must be 1 to 2147483647, not {self.batch_bytes}")

    @classmethod
    def of(cls, settings: Settings) -> KafkaSettings:
        """Those among the settings of a step."""
        return cls(**settings.system)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class KafkaSpec:
    """The Kafka side of a scenario. ``bootstrap`` "" brings brokers along (``Scenario.server``).

    ``properties`` are librdkafka/Java client property names and may hold secrets: they travel under CURVE only and
    are never stored.
    """

    bootstrap: str = ""
    partitions: int = 1
    replication_factor: int = 1
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise ValueError(f"partitions must be at least 1, not {self.partitions}")
        if self.replication_factor < 1:
            raise ValueError(f"replication_factor must be at least 1, not {self.replication_factor}")


def spec_of(scenario: Scenario) -> KafkaSpec:
    """The table [kafka] of a scenario."""
    spec: KafkaSpec = scenario.tables.get(TABLE, KafkaSpec())
    return spec
