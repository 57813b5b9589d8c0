from __future__ import annotations

import numpy as np
import pytest

from hydra.client.ack_ledger import AckLatency, AckLedger
from hydra.model import Histogram
from hydra.wire.histogram import LatencyRecorder

MS = 1_000_000


def counted(*values_us: int) -> Histogram:
    recorder = LatencyRecorder()
    for value in values_us:
        recorder.record_us(value)
    return recorder.histogram()


@pytest.mark.parametrize(
    ("chunks", "answers", "latencies_us"),
    [
        ([], [], []),
        # Within a call the times grow evenly: 0, 1, 2 and 3 ms after its beginning.
        ([(0, 4, 0, 4)], [([0, 1, 2, 3], 10)], [10_000, 9_000, 8_000, 7_000]),
        # Answers out of order, of several chunks at once, and one message a chunk.
        ([(0, 1, 0, 0), (1, 2, 5, 5), (3, 1, 7, 7)], [([3, 0], 8), ([2, 1], 9)], [1_000, 8_000, 4_000, 4_000]),
        # A chunk of which nothing was taken at first is handed over again.
        ([(0, 0, 0, 1), (0, 2, 3, 3)], [([0, 1], 4)], [1_000, 1_000]),
    ],
)
def test_the_time_from_the_hand_over_to_the_answer(
    chunks: list[tuple[int, int, int, int]], answers: list[tuple[list[int], int]], latencies_us: list[int]
) -> None:
    latency = AckLatency(AckLedger())
    for first, count, began_ms, ended_ms in chunks:
        latency.handed_over(first, count, began_ms * MS, ended_ms * MS)
    for sequences, now_ms in answers:
        latency.acknowledged(np.array(sequences, np.uint64), now_ms * MS)
    assert latency.histogram() == counted(*latencies_us)


@pytest.mark.parametrize("in_flight", [1, 300, 700])
def test_chunks_that_are_answered_are_forgotten_and_the_others_kept(in_flight: int) -> None:
    ledger = AckLedger()
    latency = AckLatency(ledger)
    total = 3_000
    for sequence in range(total):
        ledger.accept(1)
        latency.handed_over(sequence, 1, sequence * MS, sequence * MS)
        answered = sequence - in_flight
        if answered >= 0:
            latency.acknowledged(np.array([answered]), (answered + 3) * MS)
            ledger.acknowledge(np.array([answered]))
    assert latency.histogram() == counted(*[3_000] * (total - in_flight))
    assert latency._chunks.shape[1] <= max(4 * in_flight, 1024)
