from __future__ import annotations

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from hydra.kafkatest import batching


@pytest.mark.parametrize(
    ("value", "size"),
    [(0, 1), (-1, 1), (63, 1), (64, 2), (-64, 1), (-65, 2), (8191, 2), (8192, 3), (1_048_575, 3), (1_048_576, 4)],
)
def test_a_varint_takes_seven_bits_a_byte(value: int, size: int) -> None:
    assert batching.varint_bytes(value) == size


@pytest.mark.parametrize(
    ("msg_batch", "message_size", "size"),
    [
        (1, 24, 61 + 31),
        (64, 24, 61 + 64 * 31),
        (65, 24, 61 + 64 * 31 + 32),
        (100, 24, 61 + 64 * 31 + 36 * 32),
        (100, 100, 61 + 64 * 109 + 36 * 110),
    ],
)
def test_the_bytes_of_a_batch(msg_batch: int, message_size: int, size: int) -> None:
    assert batching.batch_bytes(msg_batch, message_size) == size


@pytest.mark.parametrize("msg_batch", [1, 64, 65, 100, 1000, 5000, 9000])
@pytest.mark.parametrize("message_size", [24, 57, 58, 100])
def test_the_derived_size_is_what_an_encoder_writes(msg_batch: int, message_size: int) -> None:
    encodes(msg_batch, message_size)


@pytest.mark.parametrize("message_size", [1000, 8191, 8192, 65536])
def test_large_messages_too(message_size: int) -> None:
    encodes(66, message_size)


def encodes(msg_batch: int, message_size: int) -> None:
    size = batching.batch_bytes(msg_batch, message_size)
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, size)
    taken = 0
    while builder.append(taken, 0, None, bytes(message_size), []) is not None:
        taken += 1
    assert taken == msg_batch
    assert len(builder.build()) == size


def test_a_large_message_may_be_sent() -> None:
    size = 64 * 1024 * 1024
    assert batching.request_bytes(batching.batch_bytes(1, size), size) > size
    assert batching.request_bytes(4096, size) > size
