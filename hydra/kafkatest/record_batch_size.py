"""The size in bytes of a batch of messages in Kafka's record batch format, version 2. See docs/kafka.md.

Pure. Source of the format: Kafka's documentation, "Message Format"; https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

from typing import Final

from hydra.kafkatest.property_table import PROPERTIES

BATCH_HEADER_BYTES: Final = 61
"""baseOffset 8, batchLength 4, partitionLeaderEpoch 4, magic 1, crc 4, attributes 2, lastOffsetDelta 4,
baseTimestamp 8, maxTimestamp 8, producerId 8, producerEpoch 2, baseSequence 4, record count 4."""
FIXED_RECORD_BYTES: Final = 3
"""attributes 1, timestamp delta 1 (batches filled within 63 ms), number of headers 0 as 1."""
NO_KEY: Final = -1
LARGEST_BATCH_BYTES: Final = 2**31 - 1
LIBRDKAFKA_SLACK_BYTES: Final = 512
"""librdkafka counts the request's header and an upper bound for the next record into ``batch.size``; with this slack
``batch.num.messages`` ends a batch first."""
LIBRDKAFKA_MOST_MESSAGES: Final = 1_000_000
LIBRDKAFKA_MOST_BYTES: Final = 1_000_000_000
LIBRDKAFKA_MOST_QUEUED: Final = 10_000_000


def varint_bytes(value: int) -> int:
    """Length in bytes of a signed number as a zigzag varint: 7 bits a byte."""
    zigzag = (value << 1) ^ (value >> 63)
    return max(1, (zigzag.bit_length() + 6) // 7)


def longest_key(keys: int) -> int:
    """Length in bytes of the longest of ``keys`` keys, which are decimal numbers from 0; -1 without keys."""
    return len(str(keys - 1)) if keys else NO_KEY


def record_bytes(message_size: int, offset_delta: int, key_bytes: int = NO_KEY) -> int:
    """Length in bytes of one record without headers, its length field included; ``key_bytes`` is -1 without a key."""
    key = varint_bytes(key_bytes) + max(key_bytes, 0)
    body = FIXED_RECORD_BYTES + varint_bytes(offset_delta) + key + varint_bytes(message_size) + message_size
    return varint_bytes(body) + body


def batch_bytes(msg_batch: int, message_size: int, key_bytes: int = NO_KEY) -> int:
    """Length in bytes of an uncompressed batch of ``msg_batch`` messages of ``message_size`` bytes, header included.

    A producer with this ``batch.size`` puts at most ``msg_batch`` messages with keys of ``key_bytes`` into a batch.
    """
    # Offset deltas run from 0 to msg_batch − 1; deltas with equally long varints make equally long records.
    total, first = BATCH_HEADER_BYTES, 0
    while first < msg_batch:
        limit = 1 << (7 * varint_bytes(first) - 1)
        last = min(limit, msg_batch)
        total += (last - first) * record_bytes(message_size, first, key_bytes)
        first = last
    return min(total, LARGEST_BATCH_BYTES)


def overhead_pct(records: float | None, message_size: int) -> float | None:
    """The overhead of a batch of ``records`` records over their payload, in percent; None without records."""
    if not records:
        return None
    # A record's own overhead hardly depends on its position; all records share the header.
    one = record_bytes(message_size, round(records) // 2) + BATCH_HEADER_BYTES / records
    return 100 * (one / message_size - 1)


def queue_messages(msg_batch: int) -> int:
    """The most messages that wait in a producer: four batches, or the default of ``queue.buffering.max.messages``."""
    return min(max(int(PROPERTIES["queue.buffering.max.messages"].value), 4 * msg_batch), LIBRDKAFKA_MOST_QUEUED)


def queue_bytes(buffer_memory: int, message_size: int) -> int:
    """The most bytes of messages that wait in a producer: a whole number of KiB, at least one message."""
    return max(buffer_memory // 1024, -(-message_size // 1024)) * 1024


def request_bytes(largest_batch: int, message_size: int) -> int:
    """The largest produce request in bytes that a step may need: one batch, or one message, with its frame."""
    largest = max(largest_batch, batch_bytes(1, message_size))
    return max(1_000_000, largest + 2 * LIBRDKAFKA_SLACK_BYTES)
