"""The sources of a run's sums, while it continues and when its steps end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Figure, Histogram, Settings
from hydra.monitor.run_snapshot import BOUNDS_US, KEPT_STEPS, Distribution, SnapshotUpdater, distribution, received
from tests.metrics.samples import FIGURES, PLAN, latencies, progress


def keeper(*, began: bool = False) -> SnapshotUpdater:
    updater = SnapshotUpdater("r", "zmq")
    if began:
        updater.step_begins(1, PLAN)
    return updater


def sums(it: SnapshotUpdater) -> tuple[int, int, int | None]:
    totals = it.snapshot.totals
    return totals.sent, totals.received, totals.lost


def test_a_run_begins_with_nothing() -> None:
    assert sums(keeper()) == (0, 0, None)
    assert keeper().snapshot.running is None


def test_a_running_step_counts_with_what_it_told_and_then_with_its_figures() -> None:
    it = keeper(began=True)
    it.tick(progress(), 50, 120)
    assert sums(it) == (50, 120, None)
    it.tick(progress(), 100, 290)
    assert sums(it) == (100, 290, None)
    it.step_ended(StepResult(1, PLAN, "ok", StepFigures.of(FIGURES)), latencies(120))
    assert sums(it) == (200, 594, 6)
    it.step_begins(2, PLAN)
    it.tick(progress(), 10, 20)
    assert sums(it) == (210, 614, 6)


def test_a_step_that_failed_or_never_ended_counts_with_what_it_told() -> None:
    failed, cut = keeper(began=True), keeper(began=True)
    for it in (failed, cut):
        it.tick(progress(), 50, 120)
    failed.step_ended(StepResult(1, PLAN, "failed", reason="its publisher died"))
    cut.run_ended()
    assert sums(failed) == sums(cut) == (50, 120, None)
    assert failed.snapshot.totals.steps == {"failed": 1}
    assert cut.snapshot.running is None


def test_sums_never_fall() -> None:
    it = keeper(began=True)
    it.tick(progress(), 300, 900)
    it.tick(progress(), 0, 890)  # while stored messages are read, publishers report nothing
    assert sums(it) == (300, 900, None)
    it.arrived(latencies(5, 120, 250))
    it.tick(progress(), 300, 900)
    it.step_ended(StepResult(1, PLAN, "ok", StepFigures.of(FIGURES)), latencies(120))
    assert sums(it) == (300, 900, 6)
    assert it.snapshot.totals.latency["latency"].count == 3


def test_latencies_of_a_running_step_are_replaced_by_those_of_its_end() -> None:
    it = keeper(began=True)
    assert it.snapshot.totals.latency == {"latency": Distribution()}
    it.arrived(latencies(120))
    it.tick(progress(), 1, 1)
    assert it.snapshot.totals.latency["latency"].count == 1
    it.step_ended(StepResult(1, PLAN, "ok", StepFigures.of(FIGURES)), latencies(120, 250))
    assert it.snapshot.totals.latency["latency"].count == 2
    sent = replace(PLAN, settings=Settings(rate="max"))
    it.step_begins(2, sent)
    it.step_ended(StepResult(2, sent, "ok", StepFigures.of(FIGURES)), latencies(7))
    found = it.snapshot.totals.latency
    assert {since: its.count for since, its in found.items()} == {"latency": 2, "latency_from_send": 1}


def test_only_the_last_steps_are_kept() -> None:
    it = keeper()
    for number in range(1, KEPT_STEPS + 3):
        it.step_begins(number, PLAN)
        it.step_ended(StepResult(number, PLAN, "ok", StepFigures.of(FIGURES)), Histogram())
    numbers = [step.number for step in it.snapshot.ended]
    assert (numbers[0], numbers[-1], len(numbers)) == (3, KEPT_STEPS + 2, KEPT_STEPS)


def test_a_snapshot_does_not_change_any_more() -> None:
    it = keeper(began=True)
    before, seen = it.snapshot, sums(it)
    it.tick(progress(), 50, 120)
    it.step_ended(StepResult(1, PLAN, "ok", StepFigures.of(FIGURES)), latencies(1))
    assert (before.totals.sent, before.totals.received, before.totals.lost) == seen
    assert before.totals.steps == {}
    assert before.ended == ()


@pytest.mark.parametrize(
    ("figures", "reported", "expected"),
    [
        ({"in_window": 10, "late": 2}, 5, 12),
        # In a stored step no client reports what arrived in the window.
        ({"in_window": None, "late": None, "clients": 3, "total_rx": 20.0}, 5, 60),
        ({"clients": 3, "total_rx": 20.0, "cohort": "slow"}, 5, 5),
        ({"clients": 3, "total_rx": None}, 5, 5),
        ({"clients": 0, "total_rx": None}, 0, 0),
        ({}, 7, 7),
    ],
)
def test_what_was_received_is_what_the_figures_say(figures: Mapping[str, Figure], reported: int, expected: int) -> None:
    assert received(StepFigures.of(figures), reported) == expected


@pytest.mark.parametrize(
    ("value_us", "bucket"),
    [(-50, 0), (0, 0), (10, 0), (11, 1), (20, 1), (21, 2), (1_000_000, 15), (1_010_000, 16), (60_000_000, 19)],
)
def test_a_latency_is_in_the_bucket_of_the_next_bound(value_us: int, bucket: int) -> None:
    found = distribution(latencies(value_us))
    assert [at for at, count in enumerate(found.counts) if count] == [bucket]
    assert found.sum_s == pytest.approx(value_us / 1e6, rel=1e-3)


def test_the_bounds_are_three_to_a_decade() -> None:
    assert BOUNDS_US[:4] == (10, 20, 50, 100)
    assert BOUNDS_US[-1] == 10_000_000
    assert list(BOUNDS_US) == sorted(BOUNDS_US)
    assert distribution(Histogram()) == Distribution()
