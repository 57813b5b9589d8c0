"""The seconds of a step in a run's database."""

from __future__ import annotations

from pathlib import Path

from hydra.model import Histogram, Settings, StepPlan, TimeSeriesFacts, TimeSeriesInterval
from hydra.store.database import RunStore

PLAN = StepPlan(3, Settings(rate=10.0), 60.0, load=((0.0, 5.0), (60.0, 15.0)), course=True)
FACTS = TimeSeriesFacts(10**18, 60.0, 1, copies=3.0)


def interval(begin_s: int, received: int) -> TimeSeriesInterval:
    return TimeSeriesInterval(begin_s, 10, 10, received, latency=Histogram([-3, 1, 7, received - 1], -2, 7))


def test_what_is_told_later_is_added_to_what_is_stored(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, {}) as store:
        store.begin_time_series(4, PLAN, FACTS)
        store.add_seconds(4, [interval(0, 5), interval(1, 6)])
        store.add_seconds(4, [interval(1, 7)])
        store.add_lost(4, {0: 15, 1: 0})
    with RunStore.open(tmp_path) as store:
        found = store.course(4)
        assert found is not None
        plan, facts, series = found
        assert (plan, facts) == (PLAN, FACTS)
        seconds = [(i.begin_s, i.due, i.sent, i.received, i.lost) for i in series]
        assert seconds == [(0, 10, 10, 5, 15), (1, 10, 20, 13, 0)]
        assert series[1].latency == Histogram([-3, 2, 7, 11], -2, 7)
        assert store.time_series_epochs() == [4]


def test_the_step_of_a_killed_run_keeps_its_number(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, {}) as store:
        store.begin_time_series(7, PLAN, FACTS)
        assert store.last_epoch() == 7
        assert store.course(8) is None


def test_three_minutes_of_seconds_are_small(tmp_path: Path) -> None:
    wide = Histogram([number for n in range(0, 2000, 5) for number in (n, n + 1)], 0, 2000)
    with RunStore.create(tmp_path, {}) as store:
        store.begin_time_series(1, PLAN, FACTS)
        store.add_seconds(1, [TimeSeriesInterval(n, 50_000, 50_000, 10**7, latency=wide) for n in range(180)])
    assert (tmp_path / "run.db").stat().st_size < 1_500_000
