"""Rates by their definitions in docs/measurements.md."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.measure import rates
from hydra.model import PublisherReport
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import published, received


@pytest.mark.parametrize(
    ("reports", "pps"),
    [
        ([published(1001, seconds=10), published(2001, seconds=10)], 150),
        ([published(1001, acknowledged=501, seconds=10)], 50),
        # It is not known without two sends.
        ([published(0)], None),
        ([published(1)], None),
        ([published(5, seconds=0)], None),
    ],
)
def test_tx_span_rate_is_the_mean_over_publishers_of_acknowledged_intervals_per_second(
    reports: list[PublisherReport], pps: float | None
) -> None:
    assert rates.tx_span_rate_pps(reports) == pps


def test_rx_span_rate_leaves_the_first_batch_out_and_is_only_of_subscribers_with_two_batches() -> None:
    assert rates.rx_span_rates_pps(table_of({1: received(1000, first_batch=100, seconds=9)})).tolist() == [100]
    few = {1: received(10, batches=1), 2: received(0, batches=0, seconds=0)}
    assert rates.rx_span_rates_pps(table_of(few)).tolist() == []


@pytest.mark.parametrize(
    ("values", "index"), [([5, 5, 5], 1.0), ([9, 0, 0], 1 / 3), ([1, 2, 3], 36 / 42), ([0, 0], None), ([], None)]
)
def test_jain(values: list[int], index: float | None) -> None:
    assert rates.jain(np.array(values, np.int64)) == pytest.approx(index)


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (1, 1), (50, 5), (51, 6), (99, 10), (100, 10)])
def test_nearest_rank(percent: float, value: int) -> None:
    assert rates.nearest_rank(np.arange(10, 0, -1), percent) == value
