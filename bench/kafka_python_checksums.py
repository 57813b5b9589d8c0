"""What a record costs kafka-python with CRC-32C in C, as Hydra runs it, and in pure Python.

A consumer checks a batch's checksum and reads its records; a producer builds the batch. In turn, the best of several
rounds.

Run: python bench/kafka_python_checksums.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from unittest.mock import patch

import crc32c
from kafka.record import _crc32c as in_python
from kafka.record import default_records

RECORDS = 100
"""In a batch."""
BATCHES = 20
ROUNDS = 5


def build(size: int) -> bytes:
    """A batch of records of ``size`` bytes, as a producer sends it."""
    builder = default_records.DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 24)
    for offset in range(RECORDS):
        builder.append(offset, timestamp=1, key=None, value=bytes(size), headers=[])
    return bytes(builder.build())


def consume(batch: bytes) -> None:
    """What a consumer does with a batch."""
    records = default_records.DefaultRecordBatch(batch)
    if not records.validate_crc():
        raise RuntimeError("the checksum does not fit")
    for _ in records:
        pass


def microseconds(work: Callable[[], object]) -> float:
    """What ``work`` takes a record."""
    began = time.perf_counter_ns()
    for _ in range(BATCHES):
        work()
    return (time.perf_counter_ns() - began) / (1000 * BATCHES * RECORDS)


def main() -> None:
    """Prints a line for each size and side."""
    print(f"crc32c {version('crc32c')}, in hardware: {crc32c.hardware_based}")
    print(f"{'bytes':>6} {'side':<9} {'in C':>7} {'Python':>7}  µs/record; Python : C")
    for size in (100, 1000):
        batch = build(size)
        sides: dict[str, Callable[[], object]] = {
            "consumer": partial(consume, batch),
            "producer": partial(build, size),
        }
        for side, work in sides.items():
            best = [float("inf"), float("inf")]
            for _ in range(ROUNDS):
                for n, checksum in enumerate((crc32c.crc32c, in_python.crc)):
                    with patch.object(default_records, "calc_crc32c", checksum):
                        best[n] = min(best[n], microseconds(work))
            in_c, slow = best
            print(f"{size:>6} {side:<9} {in_c:7.2f} {slow:7.2f}  {slow / in_c:.1f} : 1")


if __name__ == "__main__":
    main()
