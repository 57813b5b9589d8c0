"""The configuration of confluent-kafka clients. Pure."""

from __future__ import annotations

import os
from typing import Final

from hydra.kafkatest import record_batch_size
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import common_config
from hydra.kafkatest.producer_statistics import statistics_every_ms
from hydra.kafkatest.transport_base import fetch_config, session_config

SUBSCRIBERS_SLOWER: Final = 4
"""How much longer the pause between the library's statistics is for a subscriber, which needs only connections."""


def producer_config(
    client: int, kafka: KafkaConfigure, message_size: int, keys: int = 0
) -> dict[str, str | int | float]:
    """The library's configuration for these settings; ValueError if a property cannot be used."""
    size = kafka.batch_size(message_size, keys)
    slack = 0 if kafka.batch_bytes else record_batch_size.LIBRDKAFKA_SLACK_BYTES
    # If a size in bytes is set, it ends a batch, as in every other implementation.
    most = record_batch_size.LIBRDKAFKA_MOST_MESSAGES if kafka.batch_bytes else kafka.msg_batch
    defaults = {
        "message.max.bytes": min(
            record_batch_size.request_bytes(size, message_size), record_batch_size.LIBRDKAFKA_MOST_BYTES
        ),
        "queue.buffering.max.messages": record_batch_size.queue_messages(kafka.msg_batch),
    }
    return {
        **common_config(client, kafka, "publisher", defaults),
        "acks": kafka.acks,
        "linger.ms": kafka.linger_ms,
        "compression.type": kafka.compression,
        "batch.size": min(size + slack, record_batch_size.LARGEST_BATCH_BYTES),
        "batch.num.messages": min(most, record_batch_size.LIBRDKAFKA_MOST_MESSAGES),
        "enable.idempotence": "true" if kafka.idempotence else "false",
        "retries": kafka.most_retries,
        "max.in.flight": kafka.max_in_flight,
        "delivery.timeout.ms": kafka.delivery_timeout_ms,
        "queue.buffering.max.kbytes": record_batch_size.queue_bytes(kafka.buffer_memory, message_size) // 1024,
        "statistics.interval.ms": statistics_every_ms(_partitions(kafka)),
    }


def _partitions(kafka: KafkaConfigure) -> int:
    return len(kafka.offsets) * max(len(kafka.topic_offsets), 1)


def consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, str | int | float]:
    """The library's configuration for these settings; ValueError if a property cannot be used."""
    return {
        **fetch_config(kafka),
        **session_config(kafka),
        **common_config(client, kafka, "subscriber"),
        # The limit of producers' requests; for a consumer it is only a lower bound of fetch.max.bytes.
        "message.max.bytes": 1000,
        # The library demands a group; each consumer has one of its own, which it never joins.
        "group.id": kafka.group or f"hydra-{client}-{os.getpid()}",
        "partition.assignment.strategy": "range",
        "auto.offset.reset": "error",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "statistics.interval.ms": SUBSCRIBERS_SLOWER * statistics_every_ms(_partitions(kafka)),
    }
