"""The samples of a step come back as they were added."""

from __future__ import annotations

import pytest

from hydra.control.watch_assignment import SampleLog
from hydra.wire.messages import Sample
from tests.control.golden_messages import COUNTERS


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_all_samples_from_any_number_on_come_back(count: int) -> None:
    samples = [Sample(time_ns, COUNTERS) for time_ns in range(count)]
    log = SampleLog(Sample)
    for sample in samples:
        log.add(sample)
    assert len(log.since()) == count
    for first in range(0, count + 1, 9):
        assert log.since(first) == samples[first:]
    assert log.since(count) == []
