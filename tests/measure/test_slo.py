"""Whether a step has kept what was asked of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from scipy.stats import beta

from hydra.measure.column import Differences, Unsteadiness
from hydra.measure.event_recovery import EventImpact, SpanLatency
from hydra.measure.share_interval import least_s
from hydra.measure.slo import ObjectiveResult, Recoveries, holds, impossible, needed, objective_results, shortest_s
from hydra.measure.step_result import StepFigures
from hydra.measure.verdict import Causes
from hydra.model import Figure, Histogram, SloSpec, TimeSeriesFacts, TimeSeriesInterval
from hydra.wire.buckets import highest_of, index_of
from hydra.wire.histogram import coarse_lowest, merge

HELD: dict[str, Figure] = {"total_tx": 1e9, "rate_held": True, "latency_bound_us": 0.0}
HELD |= dict.fromkeys(("client_loss_pct", "undrained_pct", "unknown_pct"), 0.0)


def objectives(
    slo: SloSpec, second: Histogram, seconds: int = 400, lost: Sequence[int] = (),
    recoveries: Recoveries | None = None, publishers: int = 1, figures: Mapping[str, Figure] = MappingProxyType({}),
) -> list[ObjectiveResult]:  # fmt: skip
    """The accounts of a rate and a target, in this many equal seconds; ``lost`` in the first of them."""
    received = sum(second.counts[1::2])
    names = [*lost, *[0] * (seconds - len(lost))]
    series = [TimeSeriesInterval(n, received + names[n], received, received, lost=names[n], latency=second)
              for n in range(seconds)]  # fmt: skip
    facts = TimeSeriesFacts(0, float(seconds), 1, copies=1.0, complete=True)
    share = 100 * sum(lost) / max(received * seconds + sum(lost), 1)
    figures = {**HELD, "client_loss_pct": share, **figures}
    return objective_results(
        slo, StepFigures.of(figures), merge([second] * seconds), facts, series, recoveries, publishers
    )


def spread(n: int, late: int = 0, us: int = 1000) -> Histogram:
    """Of n messages, all but ``late`` within 1 ms, and those took 1.9 times as long."""
    slow = us + abs(us) * 9 // 10
    return Histogram([index_of(us), n - late, *([index_of(slow), late] if late else [])], us, slow if late else us)


def consequence(recovered_s: float | None) -> EventImpact:
    nothing = SpanLatency()
    return EventImpact("burst", 1.0, 2.0, recovered_s, 0, 0, 0.0, 0, nothing, nothing, nothing)


@pytest.mark.parametrize(("name", "share", "n"), [("p50_ms", 0.5, 5), ("p99_ms", 0.01, 299), ("p999_ms", 0.001, 2995)])
def test_so_many_messages_show_a_percentile_and_so_many_seconds(name: str, share: float, n: int) -> None:
    assert needed(share) == n
    assert impossible(SloSpec(**{name: 1.0}), n) == ""
    assert f"{n} are needed" in impossible(SloSpec(**{name: 1.0}), n - 1)
    assert shortest_s(SloSpec(**{name: 1.0})) == math.ceil(least_s(share, 1.0)) == n
    assert shortest_s(SloSpec(**{name: 1.0}, stall_s=0.1)) <= n / 10 + 3
    found = [objectives(SloSpec(**{name: 5.0}), spread(1000), seconds)[1] for seconds in (n + n // 50, n // 2)]
    assert [o.holds for o in found] == [True, None]
    assert found[1].measure_s == pytest.approx(n, rel=0.02, abs=1)


def test_a_loss_that_no_step_could_show_is_told() -> None:
    assert impossible(SloSpec(loss_pct=0.0), 1) == ""  # none lost is a fact
    assert impossible(SloSpec(loss_pct=0.1), 2995) == ""
    assert "2995 are needed" in impossible(SloSpec(loss_pct=0.1), 2994)


@pytest.mark.parametrize(("late", "kept", "measured"), [(2, True, 1.0), (9, None, 1.0), (15, False, 1.9)])
def test_a_percentile_holds_only_where_its_limits_do(late: int, kept: bool | None, measured: float) -> None:
    found = objectives(SloSpec(p99_ms=1.5), spread(1000, late))[1]
    assert (found.holds, found.measured, found.margin) == (kept, measured, 1.5 - measured)
    assert (found.measure_s is None) == (kept is not None)


@pytest.mark.parametrize(
    ("us", "bound_us", "kept", "why"),
    [
        (1000, 0.0, True, ""),
        (1000, 400.0, True, ""),
        (1000, 600.0, None, "clocks may be wrong by 600 us"),
        (49, 5000.0, None, "clocks may be wrong by 5,000 us"),
        (1000, None, None, "the error of the clocks is unknown"),
        (-1000, 2000.0, True, ""),
        (-1000, 3000.0, None, "clocks may be wrong by 3,000 us"),
        (-1000, 0.0, None, "a message arrived 1,000 us before it was due"),
        (9000, 600.0, False, ""),
        (1900, 600.0, None, "clocks may be wrong"),
    ],
)
def test_both_ends_of_what_clocks_allow_are_judged(
    us: int, bound_us: float | None, kept: bool | None, why: str
) -> None:
    both = objectives(SloSpec(p99_ms=1.5, max_ms=1.5), spread(1000, us=us), figures={"latency_bound_us": bound_us})[1:]
    assert [o.holds for o in both] == [kept] * 2
    assert all(why in o.why for o in both)


@pytest.mark.parametrize(
    ("local", "late", "kept"), [(None, 15, False), ("host CPU", 15, None), ("subscriber hosts", 2, True)]
)
def test_what_the_hosts_of_the_run_delayed_is_no_answer_about_the_system(
    local: str | None, late: int, kept: bool | None
) -> None:
    """Neither a latency, nor a rate."""
    figures: dict[str, Figure] = {"local_limit": local, "rate_held": late < 10}
    found = objectives(SloSpec(p99_ms=1.5), spread(1000, late), figures=figures)
    assert [o.holds for o in found] == [kept, kept]
    assert {o.local for o in found} == {local if kept is None else ""}


CHANGE = Unsteadiness("change", 9, 0.1)


def stop(at_s: int, for_s: float) -> Unsteadiness:
    return Unsteadiness("stop", at_s, -1.0, for_s)


@pytest.mark.parametrize(
    ("figures", "kept", "why"),
    [
        ({"stopped_s": 0.0}, True, ""),
        ({"stopped_s": None}, True, ""),  # the messages of each second are unknown
        (
            {
                "stopped_s": 2.5,
                "unsteady": Differences((CHANGE, stop(3, 2.5))),
                "verdict": Causes(("server",)),
            },
            False,
            "nothing arrived for about 2.5 s from second 3 on, although messages were due; limited by: server",
        ),
        (
            {
                "stopped_s": 4.0,
                "unsteady": Differences((stop(3, 1.0), stop(8, 3.0))),
            },
            False,
            "nothing arrived for about 3 s from second 8 on, and in 1 other stop, although messages were due; "
            "limited by: unknown",
        ),
        (
            {
                "stopped_s": 2.5,
                "unsteady": Differences((stop(3, 2.5),)),
                "local_limit": "host CPU",
            },
            None,
            "",
        ),
    ],
)
def test_a_step_with_a_stop_does_not_hold_whatever_its_latencies_are(
    figures: Mapping[str, Figure], kept: bool | None, why: str
) -> None:
    """Although all its copies arrived in time for the objective."""
    found = objectives(SloSpec(p99_ms=5.0), spread(1000), figures=figures)
    stops = [each for each in found if each.name == "stopped_s"]
    assert holds(found) is kept
    assert [(o.holds, o.why, o.measured) for o in stops] == ([] if kept else [(kept, why, figures["stopped_s"])])
    assert {o.local for o in stops} <= {figures.get("local_limit") or ""}


def test_nothing_lost_is_a_yes_and_what_it_shows_is_told() -> None:
    loss = objectives(SloSpec(loss_pct=0.0), spread(3000))[1]
    assert loss.holds
    assert loss.limit == pytest.approx(100 * -math.expm1(math.log(0.05) / 400), rel=0.01)
    assert objectives(SloSpec(loss_pct=0.0), spread(3000), lost=[1])[1].holds is False


def test_seconds_that_are_lost_as_a_whole_have_clopper_and_pearsons_limits() -> None:
    second = spread(1000)
    series = [TimeSeriesInterval(n, 1000, 1000, 0, lost=1000) for n in range(3)]
    series += [TimeSeriesInterval(n, 1000, 1000, 1000, lost=0, latency=second) for n in range(3, 100)]
    facts = TimeSeriesFacts(0, 100.0, 1, copies=1.0, complete=True)
    loss = objective_results(
        SloSpec(loss_pct=5.0), StepFigures.of({**HELD, "client_loss_pct": 3.0}), merge([second] * 97), facts, series
    )[1]
    limits = 100 * beta.ppf(0.05, 3, 98), 100 * beta.ppf(0.95, 4, 97)
    assert (loss.low, loss.limit) == pytest.approx(limits, rel=0.02)


@pytest.mark.parametrize(
    ("lost", "figures", "kept"),
    [
        ([1] * 800, {}, True),
        ([800], {}, None),  # as many, but in one burst
        ([4] * 800, {}, None),
        ([7] * 800, {}, False),
        ([], {"unknown_pct": 1.0}, None),
        ([7] * 800, {"client_loss_pct": None}, None),
        ([7] * 800, {"client_loss_pct": None, "client_loss_low_pct": 0.6, "client_loss_high_pct": 1.0}, False),
        ([], {"client_loss_pct": None, "client_loss_low_pct": 0.0, "client_loss_high_pct": 1.0}, None),
    ],
)
def test_a_loss_is_judged_by_both_ends_too(lost: list[int], figures: dict[str, Figure], kept: bool | None) -> None:
    loss = objectives(SloSpec(loss_pct=0.5), spread(1000), 800, lost, figures=figures)[1]
    assert loss.holds is kept, loss


def test_what_never_arrived_is_not_judged_by_what_did() -> None:
    assert objectives(SloSpec(p99_ms=50.0), Histogram())[1].holds is None
    assert objectives(SloSpec(p99_ms=50.0), spread(1000), figures={"client_loss_pct": None})[1].holds is None


@pytest.mark.parametrize(
    ("lost", "kept"), [([], True), ([2] * 400, True), ([9] * 400, None), ([15] * 400, False), ([1000] * 400, False)]
)
def test_a_copy_that_did_not_arrive_is_later_than_all_others(lost: list[int], kept: bool | None) -> None:
    p99, worst = objectives(SloSpec(p99_ms=2.0, max_ms=2.0), spread(1000), lost=lost)[1:]
    assert p99.holds is kept
    assert kept is not False or "did not arrive" in p99.why
    assert worst.holds == (not lost)


def test_what_did_not_arrive_is_late_by_any_clock() -> None:
    unknown: dict[str, Figure] = {"latency_bound_us": None}
    (p99,) = objectives(SloSpec(p99_ms=10.0), spread(1000), lost=[100] * 400, figures=unknown)[1:]
    assert p99.holds is False


@pytest.mark.parametrize(
    ("best", "worst", "kept"),
    [([0.0, 3.0], [0.0, 3.0], True), ([3.0], [4.0], None), ([3.0], [None], None), ([0.0, None], [None], False)],
)
def test_the_slowest_recovery_counts(best: list[float | None], worst: list[float | None], kept: bool | None) -> None:
    both = Recoveries([consequence(s) for s in best], [consequence(s) for s in worst])
    assert objectives(SloSpec(recovery_s=3.0), spread(10), recoveries=both)[1].holds is kept
    assert objectives(SloSpec(recovery_s=3.0), spread(10), recoveries=replace(both, worst=None))[1].holds in (
        None,
        kept,
    )


@pytest.mark.parametrize(
    ("publishers", "sent", "held", "kept"),
    [(1, 500, False, False), (1, 989, True, True), (5, 985, True, True), (1, None, None, None)],
)  # fmt: skip
def test_a_rate_that_the_row_calls_held_is_held(
    publishers: int, sent: int | None, held: bool | None, kept: bool | None
) -> None:
    # Each publisher held it: what one of them lacks at the edge of the window, they may all lack.
    words: dict[str, Figure] = {"total_tx": sent, "rate_held": held, "verdict": Causes(("publisher",))}
    rate = objectives(SloSpec(p99_ms=2.0), spread(10), 100, publishers=publishers, figures=words)[0]
    per_second = None if sent is None else sent / 100
    assert (rate.measured, rate.target, rate.holds) == (per_second, (990 - publishers) / 100, kept)
    assert kept is not False or "publisher" in rate.why


@pytest.mark.parametrize(
    ("answers", "kept"), [([True, True], True), ([True, None], None), ([None, False], False), ([], True)]
)
def test_a_no_to_one_is_a_no_and_what_is_unknown_is_no_yes(answers: list[bool | None], kept: bool | None) -> None:
    assert holds([ObjectiveResult("p99_ms", 1.0, None, None, None, answer) for answer in answers]) is kept


@pytest.mark.parametrize("value", [0, 1, 255, 256, 1000, 20_000, 3_000_000])
def test_a_coarse_bucket_begins_where_the_one_before_it_ends(value: int) -> None:
    low = coarse_lowest(index_of(value))
    assert low <= value <= highest_of(index_of(value))
    assert highest_of(index_of(value)) - low <= max(value / 100, 1)
