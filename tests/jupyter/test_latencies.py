"""Latency as percentile curves and over the window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydra.jupyter import run_data
from hydra.jupyter.line_plots import over_time, percentiles
from hydra.measure.latency import curve
from hydra.measure.latency_columns import ClockErrors
from hydra.model import LAG_BINS, Histogram, StepPlan
from hydra.wire.buckets import index_of
from hydra.wire.subscriber_table import table_of
from tests.jupyter.conftest import Loaded
from tests.jupyter.runs import FIXED, KINDS, found_one, load_steps, observe
from tests.measure.reports import received


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_row_with_a_latency_has_a_curve(loaded: Loaded, kind: str) -> None:
    run = loaded(kind)
    figure = found_one(percentiles(run))
    assert len(figure.data) == len(run.rows)
    for trace in figure.data:
        assert list(trace.x) == sorted(trace.x)
        assert list(trace.y) == sorted(trace.y)
    assert figure.layout.xaxis.ticktext[:4] == ("0 %", "50 %", "90 %", "99 %")


def test_a_curve_reads_what_the_table_says(loaded: Loaded) -> None:
    run = loaded("fixed")
    curve = found_one(percentiles(run)).data[0]
    ms = dict(zip(curve.x, curve.y, strict=True))
    assert ms[100] == pytest.approx(float(str(run.rows[0]["latency_p99_us"] or 0)) / 1000)


@pytest.mark.parametrize(
    ("histograms", "expected"),
    [
        ([], []),
        ([Histogram()], []),
        ([Histogram([7, 1], 7, 7)], [(1.0, 7), (1.0, 7)]),
        ([Histogram([5, 90], 5, 5), Histogram([index_of(5000), 10], 5000, 5000)], [(1.0, 5), (100.0, 5000)]),
    ],
)
def test_a_curve_begins_with_the_lowest_and_ends_with_the_highest(
    histograms: list[Histogram], expected: list[tuple[float, int]]
) -> None:
    found = curve(histograms)
    assert [found[0], found[-1]] == expected if expected else found == []


def test_latencies_below_the_clocks_bound_stand_at_it(loaded: Loaded) -> None:
    run = loaded("fixed")
    results = [replace(r, figures=replace(r.figures, clocks=ClockErrors(latency_bound_us=200.0))) for r in run.results]
    assert min(found_one(percentiles(replace(run, results=results))).data[0].y) == 0.2


def lagging(directory: Path, bins: list[list[int | None]]) -> run_data.RunData:
    """A run with one step, whose subscribers have these lags."""
    scenario = replace(FIXED, sweep=replace(FIXED.sweep, clients=(len(bins),)))
    table = table_of({n: received(1000, lag_bins_us=lags) for n, lags in enumerate(bins, 1)})
    plan = StepPlan(len(bins), FIXED.settings, 10.0)
    return load_steps(directory, scenario, replace(observe(scenario, plan), subscriber_reports=table))


def test_the_median_and_the_slowest_subscriber_are_drawn_over_the_window(tmp_path: Path) -> None:
    steady: list[int | None] = [1000] * LAG_BINS
    slow: list[int | None] = [None, *range(2000, 2000 + 1000 * (LAG_BINS - 1), 1000)]
    median, slowest = found_one(over_time(lagging(tmp_path / "r", [steady, steady, slow]))).data
    assert list(median.x) == [0.25 + 0.5 * n for n in range(LAG_BINS)]
    assert set(median.y) == {1.0}
    assert slowest.y[0] == 1.0
    assert list(slowest.y[1:]) == [2.0 + n for n in range(LAG_BINS - 1)]


@pytest.mark.parametrize("bins", [[[]], [[None] * LAG_BINS], [[5, *[None] * (LAG_BINS - 1)]]])
def test_nothing_is_drawn_where_nothing_was_stored(tmp_path: Path, bins: list[list[int | None]]) -> None:
    assert over_time(lagging(tmp_path / "r", bins)) is None
