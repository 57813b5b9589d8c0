"""Whether a step has kept what was asked of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from scipy.stats import beta, binom

from hydra.measure.course import Consequence, Stretch
from hydra.measure.slo import Judged, holds, impossible, judged, needed, upper_rank, upper_share
from hydra.model import Figure, Histogram, SloSpec

HELD: dict[str, Figure] = {"total_tx": 1000, "rate_held": True}
HELD |= dict.fromkeys(("client_loss_pct", "undrained_pct", "unknown_pct"), 0.0)


def objectives(
    slo: SloSpec, latencies: Histogram, events: Sequence[Consequence] = (), due: int = 1000, publishers: int = 1,
    **figures: Figure,
) -> list[Judged]:  # fmt: skip
    """Of the rate, and of what is asked for."""
    return judged(slo, {**HELD, **figures}, latencies, events, due, publishers)


def spread(n: int, late: int = 0) -> Histogram:
    """Of n messages, all but ``late`` within 1 ms, and those took 1.9 ms."""
    return Histogram([1000, n - late, *([1900, late] if late else [])], 1000, 1900 if late else 1000)


def consequence(recovered_s: float | None) -> Consequence:
    nothing = Stretch()
    return Consequence("burst", 1.0, 2.0, recovered_s, 0, 0, 0.0, 0, nothing, nothing, nothing)


@pytest.mark.parametrize(
    ("name", "percent", "n"), [("p50_ms", 0.5, 5), ("p90_ms", 0.9, 29), ("p99_ms", 0.99, 299), ("p999_ms", 0.999, 2995)]
)
def test_so_many_messages_show_a_percentile(name: str, percent: float, n: int) -> None:
    assert needed(name) == n
    assert upper_rank(n, percent) is not None
    assert upper_rank(n - 1, percent) is None
    assert impossible(SloSpec(**{name: 1.0}), n) == ""
    assert f"takes {n}" in impossible(SloSpec(**{name: 1.0}), n - 1)


@pytest.mark.parametrize("n", [299, 1000, 123_456])
def test_the_rank_is_the_smallest_that_has_the_confidence(n: int) -> None:
    rank = upper_rank(n, 0.99)
    assert rank is not None
    assert binom.cdf(rank - 1, n, 0.99) >= 0.95 > binom.cdf(rank - 2, n, 0.99)


def test_the_limit_of_a_share_is_clopper_and_pearsons() -> None:
    found = [upper_share(lost, of) for lost, of in ((0, 1000), (3, 1000), (5, 5))]
    assert found == pytest.approx([beta.ppf(0.95, 1, 1000), beta.ppf(0.95, 4, 997), 1.0])


def test_a_loss_that_no_step_could_show_is_told() -> None:
    assert impossible(SloSpec(loss_pct=0.0), 1) == ""  # none lost is a fact
    assert impossible(SloSpec(loss_pct=0.1), 2995) == ""
    assert "it takes 2995" in impossible(SloSpec(loss_pct=0.1), 2994)


def test_a_percentile_holds_only_where_its_limit_does() -> None:
    sure, unsure, late = (objectives(SloSpec(p99_ms=1.5), spread(10_000, count))[1] for count in (50, 95, 150))
    found = [(each.holds, each.measured) for each in (sure, unsure, late)]
    assert found == [(True, 1.0), (False, 1.0), (False, 1.9)]
    assert "not with 95 % confidence" in unsure.why
    assert (late.why, sure.margin) == ("", 0.5)


def test_nothing_lost_is_a_yes_and_what_it_shows_is_told() -> None:
    loss = objectives(SloSpec(loss_pct=0.0), spread(3000))[1]
    assert loss.holds
    assert loss.limit == pytest.approx(100 * -math.expm1(math.log(0.05) / 3000))


@pytest.mark.parametrize(("lost", "target", "kept"), [(0.0, 0.5, True), (0.45, 0.5, False), (0.6, 0.5, False)])
def test_a_loss_near_its_target_is_not_shown(lost: float, target: float, kept: bool) -> None:
    assert objectives(SloSpec(loss_pct=target), spread(10_000), client_loss_pct=lost)[1].holds is kept


def test_what_is_unknown_is_not_kept() -> None:
    assert not objectives(SloSpec(loss_pct=50.0), spread(10_000), client_loss_pct=None)[1].holds
    assert not objectives(SloSpec(p99_ms=50.0), Histogram())[1].holds
    assert not objectives(SloSpec(loss_pct=0.5), spread(10_000), unknown_pct=1.0)[1].holds


def test_a_workload_that_was_not_sent_does_not_hold() -> None:
    found = objectives(SloSpec(p99_ms=50.0), spread(10_000), due=2000, rate_held=False, verdict="publisher")
    assert not holds(found)
    assert "publisher" in found[0].why


def test_the_slowest_recovery_counts() -> None:
    good, bad = (
        objectives(SloSpec(recovery_s=3.0), spread(10), [consequence(0.0), consequence(last)])[1]
        for last in (3.0, None)
    )
    assert (good.measured, good.margin, good.holds, bad.holds) == (3.0, 0.0, True, False)


@pytest.mark.parametrize(("lost", "kept"), [(0.0, True), (0.2, True), (0.95, False), (1.5, False), (50.0, False)])
def test_a_copy_that_did_not_arrive_is_later_than_all_others(lost: float, kept: bool) -> None:
    p99 = objectives(SloSpec(p99_ms=2.0), spread(10_000), client_loss_pct=lost)[1]
    assert p99.holds == kept
    assert kept or "did not arrive" in p99.why
    assert objectives(SloSpec(max_ms=2.0), spread(10_000), client_loss_pct=lost)[1].holds == (lost == 0)


@pytest.mark.parametrize(
    ("publishers", "sent", "holds"), [(1, 500, False), (1, 988, False), (1, 989, True), (5, 984, False), (5, 985, True)]
)
def test_a_rate_that_the_row_calls_held_is_held(publishers: int, sent: int, holds: bool) -> None:
    # Each publisher held it: what one of them lacks at the edge of the window, they may all lack.
    rate = objectives(SloSpec(p99_ms=2.0), spread(10_000), publishers=publishers, total_tx=sent)[0]
    assert (rate.measured, rate.target, rate.holds) == (sent, 990 - publishers, holds)
