"""When messages were lost and what each burst cost, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from hydra.measure import loss_pattern
from hydra.measure.column import LossBursts
from hydra.measure.observation import Observation
from hydra.model import DrainEnd, LedgerCounts, SequenceRange, SubscriberReport
from hydra.wire.subscriber_table import EMPTY, SubscriberTable, table_of
from tests.measure.reports import published, received
from tests.measure.shortfalls import RATE, account, observed, slices
from tests.suite.figures import figures


def subscriber(
    *ledgers: list[SequenceRange], more: int = 0, undrained: int = 0, drain: DrainEnd = "complete"
) -> SubscriberReport:
    """One that misses these ranges, of one publisher each, and ``more`` that its list has no room for."""
    counts = [
        LedgerCounts(p, 1000, 1000, sum(b - a + 1 for a, b in ranges) + more, ranges, truncated=more > 0)
        for p, ranges in enumerate(ledgers)
    ]
    return received(ledgers=counts, undrained=undrained, drain=drain)


def losses(reports: list[SubscriberReport], rate: float = RATE, window_s: float = 1.0) -> dict[int, float]:
    """The slices with losses, and which share of what was due was lost in each."""
    found = loss_pattern.loss_profile(table_of(dict(enumerate(reports))), rate, window_s)
    return {int(i): float(found[i]) for i in np.flatnonzero(found)}


def listing(ranges: list[SequenceRange], times: int = 1) -> SubscriberTable:
    """Subscribers that miss these, however many: a group lists more of them than a report may."""
    blank = table_of(dict.fromkeys(range(times), subscriber([])))
    pairs = np.tile(np.array(ranges, np.int64).ravel(), times)
    missing = np.full(times, sum(b - a + 1 for a, b in ranges))
    return blank.changed(missing=missing, range_counts=np.full(times, len(ranges)), ranges=pairs)


@pytest.mark.parametrize(
    ("reports", "shares"),
    [
        ([subscriber([])], {}),
        ([subscriber([(45, 45)])], {2: 1 / 20}),
        ([subscriber([(40, 59)])], {2: 1.0}),
        # 5 of one slice, 10 of the next.
        ([subscriber([(35, 49)])], {1: 5 / 20, 2: 10 / 20}),
        ([subscriber([(0, 0), (999, 999)])], {0: 1 / 20, 49: 1 / 20}),
        # A mean over subscribers, also over those that lost nothing.
        ([subscriber([(40, 59)]), subscriber([(50, 59)]), subscriber([]), subscriber([])], {2: 30 / 80}),
        # Two publishers: sequence 40 of each is due at the same time.
        ([subscriber([(40, 49)], [(40, 44)])], {2: 15 / 40}),
        # 110 are missing, 20 of them are in the list: 90 are spread over the 900 that follow.
        ([subscriber([(80, 99)], more=90)], {4: 1.0, **dict.fromkeys(range(5, 50), 1 / 10)}),
        # If the drain had to end, what is lost is unknown.
        ([subscriber([(20, 39)], drain="deadline"), subscriber([(20, 39)])], {1: 10 / 20}),
        ([subscriber([(20, 39)], drain="marked")], {1: 1.0}),
    ],
)  # fmt: skip
def test_the_course_is_the_share_that_was_lost_by_the_time_at_which_it_was_due(
    reports: list[SubscriberReport], shares: dict[int, float]
) -> None:
    assert losses(reports) == pytest.approx(shares)
    # At 10/s a message is due every 0.1 s: it is lost in all five slices.
    assert losses([subscriber([(3, 3)])], rate=10.0) == pytest.approx(dict.fromkeys(range(15, 20), 1.0))


def test_the_course_of_many_is_added_up_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [subscriber([(40, 59), (61 + 7 * n, 63 + 7 * n)], more=n) for n in range(1, 20)]
    whole = losses(reports)
    monkeypatch.setattr(loss_pattern, "_AT_ONCE", 3)
    assert losses(reports) == pytest.approx(whole)


@pytest.mark.parametrize("rate", [1000.0, 33_333.3, pytest.param(777_777.7, marks=pytest.mark.tier("test"))])
def test_where_nothing_was_lost_the_course_is_nothing_at_all(rate: float) -> None:
    """Rounding of the large sums must not fill the gap between two bursts."""
    first = [(k, k) for k in range(0, int(rate / 5), 2)]
    last = [(k, k) for k in range(ceil(0.8 * rate), int(rate) - 1, 3)]
    found = loss_pattern.loss_profile(listing(first + last, 7), rate, 1.0)
    assert set(np.flatnonzero(found)) == {*range(10), *range(40, 50)}
    assert len(loss_pattern.bursts(found, 1.0, 0.0)) == 2
    assert found.sum() * 0.02 * rate == pytest.approx(len(first) + len(last))


@pytest.mark.parametrize(
    ("lost", "seconds", "unsustained", "sizes"),
    [
        (slices(1), 1, 0.0, []),
        (slices(1, s7=0.5), 1, 0.0, [0.01]),
        (slices(1, s10_19=0.5), 1, 0.0, [0.1]),
        # Four slices without a loss do not end a burst, five do.
        (slices(1, s10=1.0, s15=0.5), 1, 0.0, [0.03]),
        (slices(1, s10=1.0, s16=0.5), 1, 0.0, [0.02, 0.01]),
        # A burst of 2.5 s is one of 1 s, another, and one of 0.5 s.
        (slices(5, s20_144=0.1), 5, 0.0, [0.1, 0.1, 0.05]),
        (slices(5, s0_249=0.1), 5, 0.0, [0.1] * 5),
        # A backlog grows all the time.
        (slices(1), 1, 0.02, [0.02]),
        (slices(5), 5, 0.02, [0.02] * 5),
        (slices(0.3), 0.3, 0.02, [0.006]),
        (slices(1, s7=0.5), 1, 0.02, [0.01, 0.02]),
    ],
)
def test_bursts_are_stretches_with_losses_of_a_second_at_most(
    lost: loss_pattern.LossProfile, seconds: float, unsustained: float, sizes: list[float]
) -> None:
    assert loss_pattern.bursts(lost, seconds, unsustained) == pytest.approx(sizes)


def test_a_step_of_five_seconds_says_what_five_of_one_second_say() -> None:
    at = [(100, 250), (1400, 1402), (1600, 1899), (3333, 3334), (4100, 4899)]
    of_five: list[float] = []
    for second in range(5):
        own = [(a - 1000 * second, b - 1000 * second) for a, b in at if 1000 * second <= a < 1000 * (second + 1)]
        of_five += loss_pattern.bursts(loss_pattern.loss_profile(listing(own), RATE, 1.0), 1.0, 0.03)
    together = loss_pattern.bursts(loss_pattern.loss_profile(listing(at), RATE, 5.0), 5.0, 0.03)
    assert sorted(together) == pytest.approx(sorted(of_five))
    assert sum(together) == pytest.approx(sum(b - a + 1 for a, b in at) / RATE + 5 * 0.03)


@pytest.mark.parametrize(
    ("o", "bursts", "pct"),
    [
        (observed(account([])), [], 0.0),
        # 300 messages of 1,000/s are 0.3 s of traffic.
        (observed(account([(100, 399)])), [0.3], 15.0),
        # A backlog that grows by a tenth of the rate.
        (observed(account([], slope=0.1)), [0.1, 0.1], 10.0),
        # What waits when the drain ended counts once, as backlog, though it is missing.
        (observed(account([(1800, 1999)], undrained=200, drain="deadline")), [0.1, 0.1], 10.0),
        # So does what is unknown.
        (observed(account([(1600, 1999)], drain="deadline")), [0.2, 0.2], 20.0),
        # No lag is known: what came later than the 0.1 s that are allowed of 2 s is backlog.
        (observed(account([], late=300, lag_s=None)), [0.1, 0.1], 10.0),
        (observed(account([], late=100, lag_s=None)), [], 0.0),
        # With a lag that does not grow, what is late at the end is no backlog.
        (observed(account([], late=300)), [], 0.0),
        # A publisher that gave up after a tenth of the step owes the rest of it.
        (observed(replace(account([]), ledgers=[LedgerCounts(0, 200, 200, 0)]), seconds=0.2,
                  publisher_reports={0: published(200, stopped_early="memory")}), [0.9, 0.9], 90.0),
    ],
)  # fmt: skip
def test_the_figures_hold_the_bursts_and_the_share_that_falls_short(
    o: Observation, bursts: list[float], pct: float
) -> None:
    found = figures(o)
    of_step = found["bursts_s"]
    assert isinstance(of_step, LossBursts)
    assert of_step.sizes_s == pytest.approx(bursts, rel=2e-3)
    assert found["shortfall_pct"] == pytest.approx(pct, rel=2e-3)


@pytest.mark.parametrize(
    "o",
    [
        observed(account([]), rate="max"),
        observed(account([]), publishers={0, 9}),
        observed(account([]), publisher_reports={0: published(0)}),
        observed(account([]), subscriber_reports=EMPTY, dead={1}),
    ],
)
def test_where_nobody_knows_what_was_due_nothing_is_said_of_a_shortfall(o: Observation) -> None:
    found = figures(o)
    assert (found["bursts_s"], found["shortfall_pct"]) == (None, None)
