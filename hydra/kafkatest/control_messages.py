"""What Kafka's clients and brokers read out of the ``system`` objects of commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from hydra.kafkatest import batching
from hydra.kafkatest.settings import MOST_RETRIES, KafkaSettings
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

    def batch_size(self, message_size: int) -> int:
        """Bytes of a batch at most: as asked for, or those of ``msg_batch`` messages."""
        return self.batch_bytes or batching.batch_bytes(self.msg_batch, message_size)

    @property
    def most_retries(self) -> int:
        """How often a batch is sent again at most."""
        return MOST_RETRIES if self.retries is None else self.retries


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
