"""What Kafka's clients and brokers read out of the ``system`` objects of commands."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hydra.kafkatest.settings import Acks, Compression
from hydra.wire.messages import Count

Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class KafkaConfigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of ``configure``: the producer's settings, and where the data goes.

    ``offsets`` holds the start offset of every partition, by its number. ``batch_bytes`` None is derived from
    ``msg_batch`` and the size of a message. ``properties`` are passed to the library.
    """

    bootstrap: str
    topic: str
    offsets: dict[Partition, Count]
    properties: dict[str, str] = {}
    msg_batch: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] = 100
    linger_ms: Annotated[float, msgspec.Meta(ge=0, le=900_000)] = 0.0
    batch_bytes: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    compression: Compression = "none"
    acks: Acks = "1"


class KafkaFinish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of ``finish``: the offset behind the last message of every partition, by its number."""

    end_offsets: dict[Partition, Count] = {}


class KafkaJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of ``join``: the cluster that a broker is to be a node of, by Kafka's id for it.

    ``endpoints`` are what the brokers said in ``ready``, its own the one at ``node``, counted from 1.
    """

    cluster: str
    node: Annotated[int, msgspec.Meta(ge=1)]
    endpoints: list[str]
