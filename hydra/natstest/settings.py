"""The settings of NATS, the table [nats] of a scenario, and the ``system`` objects that clients get."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, Literal

import msgspec

from hydra.model import Need, Scenario, Settings, setting, setting_of

TABLE: Final = "nats"
Mode = Literal["core", "jetstream"]
Storage = Literal["memory", "file"]
Consumer = Literal["push", "pull"]
AckPolicy = Literal["none", "explicit"]

LARGEST: Final = 2**31 - 1
"""The largest value of every limit, because libnats uses 32 bits."""


_JETSTREAM: Final = Need("settings.mode", ("jetstream",))


def _limit(default: int, *needs: Need) -> Any:
    return setting(default, least=1, most=LARGEST, needs=needs)


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """The settings that can change between two steps.

    Attributes:
        mode: ``"core"`` delivers messages to the subscribers that listen at that time and keeps nothing;
            ``"jetstream"`` keeps messages in a stream.
        pending_messages, pending_bytes: the most messages and bytes that a subscriber's library queues for it; beyond,
            the library drops messages and reports a slow consumer.
        storage: where the stream keeps messages.
        consumer: the stream pushes messages to a subscriber, or the subscriber pulls them, ``fetch_batch`` at a time.
        publish_acks: whether the stream acknowledges every message to the publisher.
        publish_window: the most unacknowledged messages of a publisher; beyond, the publisher waits.
        ack_policy: a subscriber acknowledges every message (``"explicit"``) or none (``"none"``).
        max_ack_pending: the most unacknowledged messages of a subscriber; beyond, the stream waits.
        fetch_batch: messages in one pull request.
    """

    mode: Mode = setting("core", "core: deliver to connected subscribers; jetstream: keep messages in a stream.")
    pending_messages: int = _limit(65_536)
    pending_bytes: int = _limit(64 * 1024 * 1024)
    storage: Storage = setting("memory", "Storage of the stream.", needs=(_JETSTREAM,))
    consumer: Consumer = setting(
        "push", "Whether the server pushes messages to subscribers, or subscribers pull them.", needs=(_JETSTREAM,)
    )
    publish_acks: bool = setting(True, "Whether the stream acknowledges messages to publishers.", needs=(_JETSTREAM,))
    publish_window: int = _limit(4000, _JETSTREAM, Need("settings.publish_acks", (True,)))
    ack_policy: AckPolicy = setting("explicit", "Whether subscribers acknowledge messages.", needs=(_JETSTREAM,))
    max_ack_pending: int = _limit(1000, _JETSTREAM, Need("settings.ack_policy", ("explicit",)))
    fetch_batch: int = _limit(100, _JETSTREAM, Need("settings.consumer", ("pull",)))

    def __post_init__(self) -> None:
        for each in fields(self):
            about, value = setting_of(each), getattr(self, each.name)
            if about.most == LARGEST and not about.least <= value <= about.most:
                raise ValueError(f"{each.name} must be 1 to {LARGEST}, not {value}")

    @classmethod
    def of(cls, settings: Settings) -> NatsSettings:
        """The system's own part of a step's settings."""
        return cls(**settings.system)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class NatsSpec:
    """The table [nats] of a scenario.

    Attributes:
        servers: your own servers, ``HOST:PORT``, separated by commas; ``""``: Hydra starts servers.
        replicas: replicas of a stream; they need as many servers.
    """

    servers: str = setting("", "Addresses of your servers (default: one started by Hydra).", metavar="HOST:PORT,…")
    replicas: int = setting(1, "Number of replicas of each stream.", least=1, most=5, needs=(_JETSTREAM,))

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= 5:
            raise ValueError(f"replicas must be 1 to 5, not {self.replicas}")


def spec_of(scenario: Scenario) -> NatsSpec:
    """The table [nats] of a scenario, or its defaults."""
    spec: NatsSpec = scenario.tables.get(TABLE, NatsSpec())
    return spec


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsStep(NatsSettings):
    """The object in ``configure``: settings except the stream's own (``NatsSystem.configure``), and the data's place.

    ``stream`` is "" in core mode; ``first`` is the stream sequence of the step's first message.
    """

    servers: list[str]
    subject: str
    stream: str = ""
    first: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 1


class NatsEnd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The object in ``finish``: the stream's last sequence after every publisher has reported."""

    last: Count


class NatsTrouble(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The object in reports: counts of a connection's errors in a step.

    ``slow_consumers`` is how often a subscription exceeded its pending limits, ``dropped`` the number of messages that
    the library dropped because of it, and ``disconnects`` how often the connection was lost.
    """

    slow_consumers: Count = 0
    dropped: Count = 0
    disconnects: Count = 0
