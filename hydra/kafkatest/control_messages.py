"""The ``system`` objects of commands for Kafka's clients and brokers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from hydra.client.tls import ServerTls
from hydra.kafkatest import batching
from hydra.kafkatest.settings import MOST_RETRIES, KafkaSettings
from hydra.wire.messages import Count

Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfigure(KafkaSettings):
    """The object of ``configure``: the producer's settings, and the topic.

    ``offsets`` contains the start offset of every partition, by its number. ``properties`` are passed to the library.
    """

    bootstrap: str
    topic: str
    offsets: dict[Partition, Count]
    properties: dict[str, str] = field(default_factory=dict)

    def batch_size(self, message_size: int) -> int:
        """The largest size of a batch in bytes: ``batch_bytes``, or the size of ``msg_batch`` messages."""
        return self.batch_bytes or batching.batch_bytes(self.msg_batch, message_size)

    @property
    def most_retries(self) -> int:
        """How often a batch is resent at most."""
        return MOST_RETRIES if self.retries is None else self.retries


class KafkaFinish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The object of ``finish``: the offset after the last message of every partition, by its number."""

    end_offsets: dict[Partition, Count] = {}


class KafkaJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The object of ``join``: Kafka's id of the cluster that a broker joins.

    ``endpoints`` are those that the brokers sent in ``ready``; ``node`` is the broker's own, counted from 1.
    ``settings`` override those that the broker already has. ``tls`` is the broker's certificate and key, ``ca`` the CA
    that it trusts in other brokers; without them it uses no TLS.
    """

    cluster: str
    node: Annotated[int, msgspec.Meta(ge=1)]
    endpoints: list[str]
    settings: dict[str, str] = {}
    tls: ServerTls | None = None
    ca: str = ""
