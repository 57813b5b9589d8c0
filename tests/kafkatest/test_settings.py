from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from hydra.kafkatest import record_batch_size
from hydra.kafkatest.producer_statistics import ProducerCounts, Statistics
from hydra.kafkatest.settings import KafkaSettings


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"idempotence": True}, "idempotence needs acks all, not 1"),
        (
            {"idempotence": True, "acks": "all", "max_in_flight": 6},
            "idempotence needs max_in_flight of at most 5, not 6",
        ),
        ({"idempotence": True, "acks": "all", "retries": 0}, "idempotence needs retries above 0"),
        ({"delivery_timeout_ms": 5, "linger_ms": 5.0}, "delivery_timeout_ms must be above linger_ms (5), not 5"),
    ],
)
def test_what_cannot_go_together_is_refused_in_one_line(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match="^" + text.replace("(", r"\(").replace(")", r"\)") + "$"):
        KafkaSettings(**settings)


def test_what_was_achieved_is_the_difference_of_two_moments() -> None:
    before = ProducerCounts(records=10, batches=10, requests=10, payload_bytes=1_000, wire_bytes=2_000)
    after = ProducerCounts(records=1_010, batches=20, requests=15, payload_bytes=101_000, wire_bytes=52_000)
    assert after.since(before).figures() == {
        "records_per_batch": 100.0,
        "records_per_request": 200.0,
        "wire_bytes": 50_000,
        "compression_ratio": 2.0,
    }
    assert after.since(after).figures() == {}


def test_librdkafkas_statistics_are_read_for_what_is_asked() -> None:
    statistics = Statistics()
    assert statistics.so_far() == ProducerCounts()
    statistics(
        '{"txmsgs":7,"txmsg_bytes":700,"tx_bytes":900,"x":[],"brokers":{"a":{"req":{"Produce":2}},"b":{"req":{}}}}'
    )
    assert statistics.so_far() == ProducerCounts(7, 2, 2, 700, 900)
    assert statistics.fresh(lambda: None, 3) is None
    assert statistics.fresh(lambda: statistics('{"txmsgs":8}'), 1) == ProducerCounts(8)


@pytest.mark.parametrize(
    ("value", "size"),
    [(0, 1), (-1, 1), (63, 1), (64, 2), (-64, 1), (-65, 2), (8191, 2), (8192, 3), (1_048_575, 3), (1_048_576, 4)],
)
def test_a_varint_takes_seven_bits_a_byte(value: int, size: int) -> None:
    assert record_batch_size.varint_bytes(value) == size


@pytest.mark.parametrize("keys", [0, 1, 10_000])
@pytest.mark.parametrize(
    ("msg_batch", "message_size"),
    [*product([1, 64, 65, 100, 1000, 5000, 9000], [24, 57, 58, 100]), *product([66], [1000, 8191, 8192, 65536])],
)
def test_the_derived_size_is_what_an_encoder_writes(msg_batch: int, message_size: int, keys: int) -> None:
    size = record_batch_size.batch_bytes(msg_batch, message_size, record_batch_size.longest_key(keys))
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, size)
    key = str(keys - 1).encode() if keys else None
    taken = 0
    while builder.append(taken, 0, key, bytes(message_size), []) is not None:
        taken += 1
    assert taken == msg_batch
    assert len(builder.build()) == size


def test_a_large_message_may_be_sent() -> None:
    size = 64 * 1024 * 1024
    assert record_batch_size.request_bytes(record_batch_size.batch_bytes(1, size), size) > size
    assert record_batch_size.request_bytes(4096, size) > size
