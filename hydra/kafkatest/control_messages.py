"""What Kafka's clients and brokers read out of the ``system`` objects of commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from hydra.kafkatest.settings import KafkaSettings
from hydra.wire.messages import Count

Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfigure(KafkaSettings):
    """Of ``configure``: the producer's settings, and where the data goes.

    ``offsets`` holds the start offset of every partition, by its number. ``properties`` are passed to the library.
    """

    bootstrap: str
    topic: str
    offsets: dict[Partition, Count]
    properties: dict[str, str] = field(default_factory=dict)


class KafkaFinish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of ``finish``: the offset behind the last message of every partition, by its number."""

    end_offsets: dict[Partition, Count] = {}


class KafkaJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of ``join``: the cluster that a broker is to be a node of, by Kafka's id for it.

    ``endpoints`` are what the brokers said in ``ready``, its own the one at ``node``, counted from 1. ``settings`` go
    over those that it has of its own.
    """

    cluster: str
    node: Annotated[int, msgspec.Meta(ge=1)]
    endpoints: list[str]
    settings: dict[str, str] = {}
