"""Rates by their definitions in docs/measurements.md."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hydra.measure import rates
from hydra.model import PublisherReport
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import SECOND, START, STOP, published, received


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
    assert rates.known(rates.rx_span_rates_pps(table_of(few))).tolist() == []


@pytest.mark.parametrize(
    ("count", "seconds", "pps"),
    [
        (20, 4.0, 5.0),
        (20, 3.8, 5.0),  # 19 intervals
        (20, 8.0, 2.5),
        (20, 1.9, 10.0),
        # A message is due for one interval, however soon its answer came.
        (1, 0.01, 5.0),
        (1, 0.4, 2.5),
        # Without a time of its own it counts in the window.
        (1, 0.0, 0.1),
        (0, 0.0, 0.0),
    ],
)
def test_a_tool_at_a_rate_has_one_from_its_first_message_on(count: int, seconds: float, pps: float) -> None:
    found = rates.tool_tx_rate_pps(published(count, seconds=seconds), 5.0, (START, STOP))
    assert found == pytest.approx(pps)


@pytest.mark.parametrize(("count", "last_s", "pps"), [(20, 4.0, 5.0), (20, 3.85, 5.0), (20, 8.0, 2.5), (0, 0.0, None)])
def test_a_tool_that_reads_at_a_rate_has_that_of_the_time_since_the_first_message(
    count: int, last_s: float, pps: float | None
) -> None:
    # Its own time begins when its group has started: it read the messages of the first seconds at once.
    reports = table_of({1: replace(received(count, seconds=last_s), first_ns=START + 3 * SECOND)})
    found = rates.known(rates.tool_rx_rates_pps(reports, [published(20, seconds=4.0)], 5.0))
    assert found.tolist() == ([] if pps is None else [pps])


@pytest.mark.parametrize(
    ("members", "pps"),
    [
        # Messages, and the seconds from the first of all to the member's first and last: 99 intervals of 10 ms.
        ([(60, 0.0, 0.98), (40, 0.01, 0.99)], [59 / 0.99, 40 / 0.99]),
        ([(99, 0.0, 0.98), (1, 0.99, 0.99)], [98 / 0.99, 1 / 0.99]),
        ([(100, 0.0, 0.99), (0, 0.0, 0.0)], [100.0, 0.0]),
        ([(0, 0.0, 0.0), (0, 0.0, 0.0)], [0.0, 0.0]),
        ([(60, 0.0, 0.98), (39, 0.01, 0.99)], None),
    ],
)
def test_members_of_a_group_at_full_rate_have_shares_of_the_rate_of_all_its_messages(
    members: list[tuple[int, float, float]], pps: list[float] | None
) -> None:
    others = {
        n: replace(received(count, seconds=last, first_batch=min(count, 1)), first_ns=START + round(first * SECOND))
        for n, (count, first, last) in enumerate(members)
    }
    found = rates.own_rx_rates_pps(table_of(others), shared=True)
    assert (found if found is None else found.tolist()) == (pps if pps is None else pytest.approx(pps))


@pytest.mark.parametrize(
    ("values", "index"), [([5, 5, 5], 1.0), ([9, 0, 0], 1 / 3), ([1, 2, 3], 36 / 42), ([0, 0], None), ([], None)]
)
def test_jain(values: list[int], index: float | None) -> None:
    assert rates.jain(np.array(values, np.int64)) == pytest.approx(index)


@pytest.mark.parametrize(("percent", "value"), [(0, 1), (1, 1), (50, 5), (51, 6), (99, 10), (100, 10)])
def test_nearest_rank(percent: float, value: int) -> None:
    assert rates.nearest_rank(np.arange(10, 0, -1), percent) == value
