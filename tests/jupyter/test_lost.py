"""The plot of losses: what is drawn against what, and how well each point is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hydra.jupyter import run_data
from hydra.jupyter.loss_plot import LossPlot, loss
from hydra.measure.column import LossEvidence
from hydra.measure.step_result import StepResult
from hydra.model import Figure
from tests.jupyter.conftest import Loaded
from tests.jupyter.runs import FEW, FIXED, found_one

RATES = replace(FIXED, sweep=replace(FEW, clients=(30, 60), vary={"rate": (1000.0, 50_000.0, 80_000.0)}))


def drawn(run: run_data.RunData) -> LossPlot:
    return found_one(loss(run))


def with_figures(run: run_data.RunData, *figures: Mapping[str, Figure]) -> run_data.RunData:
    """The run with other figures in its first rows."""
    return replace(run, rows=[{**row, **more} for row, more in zip(run.rows, [*figures, *[{}] * 9], strict=False)])


def test_a_row_has_the_interval_of_its_loss(loaded: Loaded) -> None:
    lossy: dict[str, Figure] = {"client_loss_pct": 2.0, "client_loss_ci_low_pct": 0.5, "client_loss_ci_high_pct": 7.0}
    found = drawn(with_figures(loaded("fixed"), lossy, {"client_loss_pct": 0.0, "loss_evidence": LossEvidence(10.0)}))
    (trace,) = found.figure.data
    assert (trace.error_y.array[0], trace.error_y.arrayminus[0]) == (pytest.approx(5.0), pytest.approx(1.5))
    assert "[0.5 – 7]" in trace.customdata[0][0]
    # Rows of 60 and 120 subscribers saw no burst, and no row with as many clients did.
    assert list(trace.error_y.array[1:]) == [0, 0]
    assert "95 % interval" in found.note


def test_a_row_without_a_burst_is_known_from_what_one_would_have_cost(loaded: Loaded) -> None:
    clean: dict[str, Figure] = {"client_loss_pct": 0.0, "loss_evidence": LossEvidence(10.0)}
    lossy: dict[str, Figure] = {"client_loss_pct": 1.0, "loss_evidence": LossEvidence(10.0, 2, 0.1, 0.005, 0.05)}
    first = drawn(with_figures(loaded(RATES), clean, lossy)).figure.data[0]
    assert first.y[0] + first.error_y.array[0] == pytest.approx(100 * 3.689 * 0.05 / 10, rel=0.001)


def test_rates_that_vary_are_drawn_across(loaded: Loaded) -> None:
    figure = drawn(loaded(RATES)).figure
    assert [(trace.name, trace.x) for trace in figure.data] == [
        (f"{clients} subscribers", (1000.0, 50_000.0, 80_000.0)) for clients in (30, 60)
    ]


@pytest.mark.parametrize(
    "figures",
    [
        {
            "failed_dead": 1,
            "client_loss_pct": 0.0,
            "loss_evidence": LossEvidence(10.0),
        },  # who died, did not do so by chance
        {"client_loss_pct": 2.0, "loss_evidence": None},
        {"client_loss_pct": None},
    ],
)
def test_where_nothing_tells_there_is_no_bar(loaded: Loaded, figures: Mapping[str, Figure]) -> None:
    found = drawn(with_figures(loaded("fixed"), figures, *[{"loss_evidence": None}] * 2))
    assert found.figure.data[0].error_y.array is None
    assert found.note == ""


def test_repeats_whose_bursts_are_not_known_have_students_interval(loaded: Loaded) -> None:
    found = drawn(with_figures(loaded("repeated"), {"client_loss_pct": 2.0, "client_loss_pct_ci95": 1.5}))
    bars = found.figure.data[0].error_y
    assert (bars.array[0], bars.arrayminus[0]) == (pytest.approx(1.5), pytest.approx(1.5))


def test_each_step_of_a_search_has_its_interval_and_the_answer_a_diamond(loaded: Loaded) -> None:
    run = loaded("rate")
    found = drawn(run)
    diamonds = [trace for trace in found.figure.data if trace.marker.symbol == "diamond"]
    assert [d.x[0] for d in diamonds] == [row["max_rate_without_drop_pps"] for row in run.rows]
    low, high = (float(str(run.rows[0][f"loss_{limit}_pps"] or 0)) for limit in ("low", "high"))
    assert diamonds[0].x[0] - diamonds[0].error_x.arrayminus[0] == pytest.approx(low)
    assert diamonds[0].x[0] + diamonds[0].error_x.array[0] == pytest.approx(high)
    steps = [trace for trace in found.figure.data if trace not in diamonds]
    assert all(any(trace.error_y.array) for trace in steps)
    assert "diamond" in found.note


def test_a_diamond_stands_on_the_line_of_its_mark(loaded: Loaded) -> None:
    names = [trace.name for trace in drawn(loaded("native")).figure.data if trace.marker.symbol == "diamond"]
    assert names == [f"{n} subscribers, sndhwm {mark}" for n in (30, 60) for mark in ("1,000", "100,000")]


def test_a_step_that_was_measured_again_counts_once(loaded: Loaded) -> None:
    run = loaded("fixed")
    both: list[StepResult] = [*run.results, replace(run.results[0], epoch=99)]
    assert drawn(replace(run, results=both)).figure.data[0].x == (30, 60, 120)
