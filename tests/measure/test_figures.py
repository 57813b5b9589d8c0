"""The columns of a step, from reports."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from hydra.measure.figures import Observation, figures
from hydra.model import Cohort, Rate, Settings, StepPlan
from tests.measure.reports import START, STOP, published, received

REFERENCE = Path(__file__).parents[2] / "conf" / "reference"


def observed(rate: Rate = 100.0) -> Observation:
    return Observation(
        system="zmq",
        plan=StepPlan(clients=2, settings=Settings(rate=rate), duration_s=10),
        publishers={0},
        subscribers={1, 2},
        publisher_reports={0: published(1000)},
        subscriber_reports={1: received(1000), 2: received(1000)},
        window_ns=(START, STOP),
        loss_target=0.005,
    )


def test_the_published_columns_come_first() -> None:
    with (REFERENCE / "hydra_kafka_batch.csv").open() as f:
        header = next(csv.reader(f))
    assert list(figures(observed()))[: len(header)] == header


def test_a_good_step() -> None:
    f = figures(observed())
    expected = {
        "avg_tx_rate_pps": 99.9,
        "avg_rx_rate_pps": 100.0,
        "client_loss_pct": 0.0,
        "failed_clients": 0,
        "total_tx": 1000,
        "total_rx": 1000,
        "aggregate_pps": 200.0,
        "rx_clients": 2,
        "latency_p99_us": 50,
        "latency_max_us": 50,
        "fairness_jain": 1.0,
        "rate_held": True,
        "stale": 2,
        "passed": True,
        "verdict": "requested rate",
    }
    assert {k: f[k] for k in expected} == expected


def test_a_dead_and_a_silent_subscriber_are_in_the_loss_and_never_in_the_rate() -> None:
    o = replace(observed(), subscribers={1, 2, 3, 4}, dead={3})
    f = figures(o)
    assert (f["client_loss_pct"], f["total_rx"], f["rx_clients"], f["avg_rx_rate_pps"]) == (50.0, 500, 2, 100.0)
    assert (f["failed_clients"], f["failed_dead"], f["failed_silent"], f["failed_lossy"]) == (2, 1, 1, 0)
    assert (f["rx_p1"], f["rx_p99"], f["passed"]) == (0, 1000, False)


@pytest.mark.parametrize(
    "o",
    [
        replace(observed(), publisher_reports={0: published(0)}, subscriber_reports={}),
        replace(observed(), publisher_reports={}, subscriber_reports={}),
        replace(observed(), publishers={0, 9}),
    ],
)
def test_what_cannot_be_known_is_no_number(o: Observation) -> None:
    f = figures(o)
    names = ["avg_rx_rate_pps", "client_loss_pct", "total_rx", "aggregate_pps", "passed", "fairness_jain", "verdict"]
    assert [f[n] for n in names] == [None] * len(names)


def test_no_subscriber_entered() -> None:
    o = replace(observed(), subscriber_reports={1: received(5, batches=1), 2: received(0, batches=0, seconds=0)})
    f = figures(o)
    assert (f["avg_rx_rate_pps"], f["rx_clients"], f["client_loss_pct"]) == (None, 0, 99.75)


def test_at_rate_max_latency_counts_from_the_send_and_no_rate_is_held() -> None:
    f = figures(observed("max"))
    assert f["rate_held"] is None
    assert f["latency_from_send_p50_us"] == 50
    assert "latency_p50_us" not in f


@pytest.mark.parametrize(
    ("report", "held"),
    [
        (published(1000), True),
        (published(989), True),
        (published(980), False),
        (published(1000, stopped_early="x"), False),
    ],
)
def test_a_rate_is_held_when_99_percent_of_what_was_due_was_sent(report: object, held: bool) -> None:
    assert figures(replace(observed(), publisher_reports={0: report}))["rate_held"] is held  # type: ignore[dict-item]


def test_pass_and_figures_look_only_at_clients_outside_the_cohort() -> None:
    o = observed()
    o = replace(
        o,
        plan=replace(o.plan, cohort=Cohort("slow", 0.3, 50.0, 1)),
        subscribers={1, 2, 3},
        cohort={3},
        subscriber_reports={
            **o.subscriber_reports,
            3: received(400, lost=600, late=100, latency_us=999, felt=False, absent=[(0, 500_000_000)]),
        },
    )
    f = figures(o)
    assert (f["passed"], f["client_loss_pct"], f["failed_clients"], f["total_rx"]) == (True, 0.0, 0, 1000)
    assert (f["cohort_loss_pct"], f["cohort_felt"], f["absent_s"], f["cohort_clients"]) == (60.0, False, 0.5, 1)
    assert (f["latency_max_us"], f["aggregate_pps"], f["late"]) == (50, 230.0, 100)


@pytest.mark.parametrize(("slope", "error", "behind"), [(2.0, 0.1, 1), (2.0, 1.0, 0), (0.4, 0.01, 0), (None, None, 0)])
def test_a_steady_rate_asks_that_nobody_is_falling_behind(slope: float, error: float, behind: int) -> None:
    reports = {1: received(1000), 2: received(1000, lag_slope=slope, lag_slope_error=error)}
    o = replace(observed(), subscriber_reports=reports, steady=True)
    f = figures(o)
    assert (f["falling_behind"], f["passed"]) == (behind, behind == 0)
