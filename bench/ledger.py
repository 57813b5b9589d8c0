"""What the ledger and the histogram cost a message, against a bare loop that only counts.

The bare loop does what every subscriber must: join the headers of a drained batch and look at how many there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hydra.client.ledger import Ledger
from hydra.wire.data_message import pack_batch, unpack_batch
from hydra.wire.histogram import LatencyRecorder

MESSAGES = 400_000


def nanoseconds(work: Callable[[list[list[bytes]]], None], batches: list[list[bytes]]) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter_ns()
        work(batches)
        best = min(best, time.perf_counter_ns() - start)
    return best / MESSAGES


def count(batches: list[list[bytes]]) -> None:
    n = 0
    for batch in batches:
        for _ in batch:
            n += 1


def unpack(batches: list[list[bytes]]) -> None:
    for batch in batches:
        unpack_batch(batch)


def account(batches: list[list[bytes]]) -> None:
    ledger, latency = Ledger(), LatencyRecorder()
    ledger.begin(1, [0])
    now = 10**12
    for batch in batches:
        ours = ledger.record(unpack_batch(batch), now, now)
        latency.record(ours["time_ns"], now)


def main() -> None:
    print(f"{'batch':>6} {'bare':>8} {'unpack':>8} {'account':>8}  ns/message; messages/s of the account")
    for size in (1, 2, 4, 8, 12, 16, 24, 32, 100, 1000):
        batches = [
            pack_batch(1, 0, first, np.full(size, 10**12 - 5_000_000, np.uint64), [bytes(76)] * size)
            for first in range(0, MESSAGES, size)
        ]
        bare, unpacked, full = (nanoseconds(work, batches) for work in (count, unpack, account))
        print(f"{size:>6} {bare:8.0f} {unpacked:8.0f} {full:8.0f}  {1e9 / full:12,.0f}")


if __name__ == "__main__":
    main()
