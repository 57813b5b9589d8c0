"""The settings of NATS, and the table [nats] of a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hydra.model import Scenario, Settings

TABLE: Final = "nats"
Mode = Literal["core", "jetstream"]
Storage = Literal["memory", "file"]
Consumer = Literal["push", "pull"]
AckPolicy = Literal["none", "explicit"]

LARGEST: Final = 2**31 - 1
"""Of every limit: libnats counts them in 32 bits."""
LIMITS: Final = (
    "pending_messages",
    "pending_bytes",
    "max_ack_pending",
    "fetch_batch",
    "publish_window",
)


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """What can change between two steps.

    Attributes:
        mode: ``core`` delivers to whoever listens now and keeps nothing; ``jetstream`` keeps messages in a stream.
        pending_messages, pending_bytes: what a subscriber's library keeps for it before it throws messages away and
            calls it a slow consumer.
        storage: where the stream is kept.
        consumer: whether the stream's messages are pushed to a subscriber or asked for by it.
        publish_acks: whether a publisher has the stream acknowledge every message.
        publish_window: messages that may wait for that before the publisher waits.
        ack_policy: whether a subscriber acknowledges every message to the stream, which sends it again otherwise.
        max_ack_pending: messages that may wait for that before the stream waits.
        fetch_batch: messages that a pulling subscriber asks for at a time.
    """

    mode: Mode = "core"
    pending_messages: int = 65_536
    pending_bytes: int = 64 * 1024 * 1024
    storage: Storage = "memory"
    consumer: Consumer = "push"
    publish_acks: bool = True
    publish_window: int = 4000
    ack_policy: AckPolicy = "explicit"
    max_ack_pending: int = 1000
    fetch_batch: int = 100

    def __post_init__(self) -> None:
        for name in LIMITS:
            value = getattr(self, name)
            if not 1 <= value <= LARGEST:
                raise ValueError(f"{name} must be 1 to {LARGEST}, not {value}")

    @classmethod
    def of(cls, settings: Settings) -> NatsSettings:
        """Those among the settings of a step."""
        return cls(**settings.system)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class NatsSpec:
    """The NATS side of a scenario. ``servers`` "" brings servers along; ``replicas`` are those of a stream."""

    servers: str = ""
    replicas: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= 5:
            raise ValueError(f"replicas must be 1 to 5, not {self.replicas}")


def spec_of(scenario: Scenario) -> NatsSpec:
    """The table [nats] of a scenario."""
    spec: NatsSpec = scenario.tables.get(TABLE, NatsSpec())
    return spec
