"""What events in the middle of a step have done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from hydra.measure.event_recovery import EventImpact, backlog_by_interval, event_impacts, is_good
from hydra.model import EventSpec, Histogram, SloSpec, TimeSeriesFacts, TimeSeriesInterval
from hydra.store.sample_tables import added
from hydra.wire.buckets import index_of, percentiles_us
from hydra.wire.histogram import coarse

FACTS = TimeSeriesFacts(0, 30.0, 1, copies=10.0)
SLO = SloSpec(p99_ms=20.0, loss_pct=0.0)


def second(n: int, received: int = 1000, *, late_us: int = 5000, due: int = 100, lost: int = 0) -> TimeSeriesInterval:
    latency = Histogram([index_of(late_us), received], late_us, late_us) if received else Histogram()
    return TimeSeriesInterval(n, due, due, received, lost=lost, latency=latency)


def series(**others: TimeSeriesInterval) -> list[TimeSeriesInterval]:
    changed = {interval.begin_s: interval for interval in others.values()}
    return [changed.get(n, second(n)) for n in range(30)]


def test_outstanding_is_what_was_due_and_neither_came_nor_was_lost() -> None:
    some = [second(0, 900), second(1, 0), second(2, 2000), second(3, 950, lost=100)]
    assert backlog_by_interval(FACTS, some) == [100, 1100, 100, 50]


@pytest.mark.parametrize(
    ("interval", "good"),
    [
        (second(0), True),
        (second(0, late_us=21_000), False),
        (second(0, lost=1), False),
        (second(0, received=0), False),
        (second(0, received=0, due=0), True),
    ],
)
def test_an_interval_is_good_if_it_keeps_what_is_asked_for(interval: TimeSeriesInterval, good: bool) -> None:
    assert is_good(FACTS, interval, SLO) is good


def after(its: Sequence[TimeSeriesInterval], killed_s: float) -> EventImpact:
    """What came of a server that was killed."""
    (done,) = event_impacts(FACTS, its, [EventSpec(killed_s, "kill_server")], SLO, ["kill_server"])
    return done


def bad(*seconds: int) -> list[TimeSeriesInterval]:
    """A time series in which these are late."""
    return series(**{f"s{n}": second(n, late_us=50_000) for n in seconds})


def test_an_event_that_nobody_notices_is_recovered_from_at_once() -> None:
    done = after(series(), 10.5)
    assert (done.recovered_s, done.lost, done.catch_up_pps, done.bad_after) == (0.0, 0, 0.0, 0)


def test_what_a_killed_server_costs() -> None:
    done = after(series(a=second(10, 500, lost=7), b=second(11, 0), c=second(12, 2493, late_us=900_000)), 10.0)
    assert (done.recovered_s, done.highest_backlog, done.catch_up_pps, done.lost) == (3.0, 1493, 1493, 7)
    assert (done.before.max_us, done.during.max_us, done.after.max_us) == (5000, 900_000, 5000)


def test_the_time_to_recover_counts_from_the_end_of_a_burst() -> None:
    (done,) = event_impacts(FACTS, bad(*range(10, 17)), [EventSpec(10.0, "burst", for_s=5.0)], SLO, [])
    assert (done.ended_s, done.recovered_s) == (15.0, 2.0)


def test_one_good_second_is_no_recovery_and_a_bad_one_long_after_is_told() -> None:
    done = after(bad(10, 12, 20), 10.0)
    assert (done.recovered_s, done.bad_after) == (3.0, 1)
    assert after(bad(*range(12, 30)), 12.0).recovered_s is None, "it is bad to the end"


def test_each_event_has_its_own_part_of_the_step() -> None:
    events: Sequence[EventSpec] = [EventSpec(20.0, "b"), EventSpec(5.0, "a")]
    first, other = event_impacts(FACTS, bad(5, 20, 21), events, SLO, ["a", "b"])
    assert (first.kind, first.recovered_s, other.kind, other.recovered_s) == ("a", 1.0, "b", 2.0)
    assert other.before.max_us == 5000
    # Two of one moment are both recovered from.
    events = [EventSpec(10.0, "a"), EventSpec(10.0, "b")]
    assert [c.recovered_s for c in event_impacts(FACTS, series(), events, SLO, ["a", "b"])] == [0.0, 0.0]


def test_a_loss_that_nobody_knows_is_not_said() -> None:
    unknown = [TimeSeriesInterval(i.begin_s, i.due, i.sent, i.received, lost=None, latency=i.latency) for i in series()]
    assert after(unknown, 5.0).lost is None


def test_intervals_add_up() -> None:
    both = added(second(3, 10, late_us=5), second(3, 20, late_us=9))
    assert (both.received, both.sent, both.due) == (30, 200, 100)
    assert both.latency == Histogram([5, 10, 9, 20], 5, 9)


def test_a_coarse_histogram_is_never_too_low_and_hardly_too_high() -> None:
    values = [n * n // 7 + n for n in range(1, 6000)]
    counts = Counter(index_of(us) for us in values)
    counts[index_of(-900)] = 3
    fine = Histogram([n for pair in sorted(counts.items()) for n in pair], -900, max(values))
    few = coarse(fine)
    assert len(few.counts) < len(fine.counts) / 2
    assert sum(few.counts[1::2]) == sum(fine.counts[1::2])
    assert (few.min_us, few.max_us) == (fine.min_us, fine.max_us)
    percents = (1.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0)
    for rough, exact in zip(percentiles_us(few, percents), percentiles_us(fine, percents), strict=True):
        assert (exact or 0) <= (rough or -1) <= (exact or 0) * 1.008 + 1
    assert (coarse(Histogram()), coarse(few)) == (Histogram(), few)
