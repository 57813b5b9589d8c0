"""The ``system`` objects of commands for Kafka's clients and brokers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final

import msgspec

from hydra.client.tls import ServerTls
from hydra.kafkatest import record_batch_size
from hydra.kafkatest.settings import MOST_RETRIES, KafkaSettings
from hydra.wire.messages import Count, Traffic
from hydra.wire.traffic import client_topics

PLACES: Final = 2**16
"""Partitions of different topics have different places: topic · ``PLACES`` + partition; of one topic, the partition."""


def by_place(offsets: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """Offsets of partitions, by topic and partition, as offsets by place."""
    return {topic * PLACES + partition: at for topic, those in offsets.items() for partition, at in those.items()}


def topic_names(topic: str, topics: int) -> list[str]:
    """The names of a step's topics, by their numbers."""
    return [topic] if topics == 1 else [f"{topic}-{number}" for number in range(topics)]


Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfigure(KafkaSettings):
    """The object of ``configure``: the producer's settings, and the topic.

    ``offsets`` contains the start offset of every partition, by its number. ``properties`` are passed to the library.
    With several topics, their names are ``topic``-NUMBER, and ``topic_offsets`` has the start offsets of each.
    """

    bootstrap: str
    topic: str
    offsets: dict[Partition, Count]
    properties: dict[str, str] = field(default_factory=dict)
    topic_offsets: list[dict[Partition, Count]] = field(default_factory=list)

    def starts(self, traffic: Traffic, client: int) -> dict[int, int]:
        """The start offsets of a subscriber's partitions, by their places."""
        if not traffic.several:
            return dict(self.offsets)
        return by_place({n: self.topic_offsets[n] for n in client_topics(traffic, client)})

    def batch_size(self, message_size: int, keys: int = 0) -> int:
        """The largest size of a batch in bytes: ``batch_bytes``, or the size of ``msg_batch`` messages."""
        return self.batch_bytes or record_batch_size.batch_bytes(
            self.msg_batch, message_size, record_batch_size.longest_key(keys)
        )

    @property
    def most_retries(self) -> int:
        """How often a batch is resent at most."""
        return MOST_RETRIES if self.retries is None else self.retries


class KafkaFinish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The object of ``finish``: the offset after the last message of every partition, by its number.

    With several topics, ``topic_end_offsets`` has those of each.
    """

    end_offsets: dict[Partition, Count] = {}
    topic_end_offsets: list[dict[Partition, Count]] = []

    @property
    def ends(self) -> dict[int, int]:
        """The offsets by the places of the partitions."""
        return by_place(dict(enumerate(self.topic_end_offsets))) if self.topic_end_offsets else self.end_offsets


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
