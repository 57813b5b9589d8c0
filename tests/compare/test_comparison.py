"""One figure of one row: ratios, zeros, what is missing, and what a difference is called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from hydra.analysis.compared_figures import primary, words
from hydra.analysis.compared_runs import ComparedRun, RowRepeat
from hydra.analysis.comparison import DIFFERS, NO_DIFFERENCE, NO_SPREAD, NO_VERDICT, FigureComparison, compare
from hydra.errors import UsageError
from hydra.model import Scenario, Settings
from hydra.report.comparison_report import what_would_show
from hydra.sweep import rows_of
from hydra.sweep.grid import GridSweep
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec
from tests.compare.simulated import COLUMNS, side

RX, LOSS, P99 = "avg_rx_rate_pps", "client_loss_pct", "latency_p99_us"


def of(name: str, figure: str, values: Sequence[float | None]) -> ComparedRun:
    return side(name, [[{figure: value} for value in values]])


def first(
    a: Sequence[float | None], b: Sequence[float | None], figure: str = RX, *, paired: bool = True
) -> FigureComparison:
    (found,) = compare([of("a", figure, a), of("b", figure, b)], paired=paired, figure=figure).first
    return found


def with_first(its: ComparedRun, repeat: RowRepeat) -> ComparedRun:
    """The same, with another first repeat."""
    (row,) = its.rows
    return replace(its, rows=[replace(row, repeats=[repeat, *row.repeats[1:]])])


def test_a_ratio_and_its_interval() -> None:
    found = first([100, 200, 300, 400], [110, 221, 329, 441])
    assert (found.kind, found.repeats, found.verdict, found.is_better) == ("ratio", (4, 4), "faster", True)
    assert found.change == pytest.approx(0.1, abs=0.003)
    assert (found.low or 1) < 0.1 < (found.high or 0) < 0.12


def test_pairs_see_what_samples_of_their_own_do_not() -> None:
    a, b = [100, 200, 300, 400], [105, 212, 314, 421]
    assert first(a, b).verdict == "faster"
    assert first(a, b, paired=False).verdict == NO_DIFFERENCE


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ([100, 110, 90, 105], [102, 101, 97, 99], "a difference of 5 % needs about 20 repeats (--repeat 20)"),
        ([100, 101, 99, 100], [100, 100, 99.5, 100.5], "so a difference of 5 % is improbable"),
        ([100, 900, 10, 400], [300, 20, 800, 100], "a difference of 5 % needs more than 1,000 repeats"),
        # Its spread is 0, or a difference is shown.
        ([100.0] * 4, [100.0] * 4, ""),
        ([100, 103, 98, 101], [200, 199, 204, 201], ""),
    ],
)
def test_where_no_difference_is_shown_the_spread_says_what_would_be(a: list[float], b: list[float], text: str) -> None:
    lines = list(what_would_show(compare([of("a", RX, a), of("b", RX, b)], paired=True, figure=RX)))
    assert len(lines) == bool(text)
    assert all(
        line.startswith(f"10 subscribers, b: by the measured spread, {len(a)} pairs show") and line.endswith(text)
        for line in lines
    )


def test_the_base_doubled_is_the_other_halved() -> None:
    a, b = [100, 103, 98, 101], [200, 199, 204, 201]
    present, back = first(a, b), first(b, a)
    assert (1 + (present.change or 0)) * (1 + (back.change or 0)) == pytest.approx(1)
    assert (present.verdict, back.verdict, back.is_better) == ("faster", "slower", False)


def test_where_a_figure_was_0_differences_are_compared() -> None:
    found = first([0, 0, 0.1, 0, 0], [1.0, 1.2, 0.9, 1.1, 1.0], LOSS)
    assert (found.kind, found.verdict, found.is_better) == ("difference", "more loss", False)
    assert (found.change, found.level) == pytest.approx((1.02, 0.02))


@pytest.mark.parametrize("paired", [True, False])
def test_no_loss_is_no_difference_and_one_repeat_has_no_verdict(paired: bool) -> None:
    found = first([0.0] * 5, [0.0] * 5, LOSS, paired=paired)
    assert (found.verdict, found.change, found.p, found.low) == (NO_DIFFERENCE, 0, None, None)
    found = first([100], [150], paired=paired)
    assert (found.verdict, found.p, found.low) == (NO_VERDICT, None, None)
    assert found.change == pytest.approx(0.5)
    assert found.reason == f"1 {'pair' if paired else 'repeat'} does not show the spread, 3 are needed"


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("repeats", "has_interval"), [(1, False), (2, False), (3, True)])
def test_fewer_than_three_repeats_have_no_interval(repeats: int, has_interval: bool, paired: bool) -> None:
    # As after Ctrl-C; the interval of two pairs reached more than 1000 times the base.
    found = first([100.0, 180.0, 90.0][:repeats], [150.0, 90.0, 160.0][:repeats], paired=paired)
    assert (found.low is not None, found.high is not None, found.p is not None) == (has_interval,) * 3
    assert found.change is not None
    assert (found.verdict == NO_VERDICT) is not has_interval


SLOW, FAST = [100.0 + n for n in range(10)], [130.0 + n % 3 for n in range(10)]


@pytest.mark.parametrize(
    ("figure", "others", "failed", "verdict"),
    [
        # One of ten that failed is worse than all of the base: nine are better all the same. Two are too many.
        (RX, FAST, {1}, "faster"),
        (RX, FAST, {1, 2}, NO_DIFFERENCE),
        (RX, SLOW, set(range(9)), "slower"),
        (P99, [50.0 + n for n in range(10)], {1}, "lower latency"),
        # Neither direction is better: any difference counts.
        ("reordered", FAST, {1}, "higher"),
        ("reordered", FAST, {1, 2}, NO_DIFFERENCE),
    ],
)
def test_a_repeat_that_failed_counts_as_the_worst(
    figure: str, others: list[float], failed: set[int], verdict: str
) -> None:
    a, b = of("a", figure, SLOW), of("b", figure, others)
    (row,) = b.rows
    its = [RowRepeat({}, problem="a host died") if n in failed else repeat for n, repeat in enumerate(row.repeats)]
    b = replace(b, rows=[replace(row, repeats=its)])
    (found,) = compare([a, b], paired=True, figure=figure).first
    assert (found.verdict, found.repeats) == (verdict, (10, 10))
    assert found.left_out == f"{len(failed)} of other failed, and count as worst"
    (found,) = compare([a, b], paired=False, figure=figure).first
    assert found.verdict == NO_VERDICT


def test_without_a_figure_in_some_repeats_there_is_no_verdict_and_what_nobody_measured_is_left_out() -> None:
    found = first([100, 101, None, 99, 102], [90, 91, 92, 89, 90])
    assert (found.repeats, found.verdict, found.reason) == ((4, 4), NO_VERDICT, "1 of 10 repeats have no such figure")
    assert found.left_out == "1 of base have no such figure"
    assert (found.change or 0) < 0
    found = first([100, 101, 99, 100], [90, 91, 89])
    assert (found.repeats, found.left_out) == ((3, 3), "1 without a partner")
    assert first([100, 101, math.inf], [90, 91, 92]).repeats == (2, 2)
    b = with_first(of("b", RX, [1, 90, 92, 89]), RowRepeat({}, problem="the run ended", passed_over=True))
    (found,) = compare([of("a", RX, [100, 101, 99, 100]), b], paired=True).first
    assert (found.repeats, found.verdict, found.left_out) == ((3, 3), "slower", "1 of other not measured")


@pytest.mark.parametrize("paired", [True, False])
def test_what_is_the_same_in_all_repeats_of_each_has_no_spread(paired: bool) -> None:
    found = first([100] * 5, [150] * 5, paired=paired)
    assert (found.verdict, found.p, found.low) == (NO_SPREAD, None, None)
    assert found.change == pytest.approx(0.5)


def test_what_did_not_take_turns_may_differ_and_nobody_knows_by_what() -> None:
    found = first([100, 103, 98, 101], [200, 199, 204, 201], paired=False)
    assert (found.verdict, found.is_better, found.differs) == (DIFFERS, None, True)


def test_intervals_are_adjusted_as_the_verdicts_are() -> None:
    rows = [[{RX: base + n} for n in (0, 3, 1, 2, 4)] for base in (100, 200)]
    faster = [[{RX: base + n} for n in (9, 4, 9, 4, 9)] for base in (100, 200)]
    alone = compare([side("a", rows[:1]), side("b", faster[:1])], paired=True).first[0]
    found = compare([side("a", rows), side("b", faster)], paired=True).first
    assert (found[0].confidence, alone.confidence) == (0.975, 0.95)
    assert (found[0].low or 0) < (alone.low or 0) < (alone.high or 0) < (found[0].high or 0)
    assert [each.differs for each in found] == [(each.low or 0) > 0 for each in found]


def test_what_the_clocks_cannot_tell_has_no_verdict() -> None:
    a, b = of("a", P99, [100, 101, 99]), of("b", P99, [50, 51, 49])
    b = with_first(b, replace(b.rows[0].repeats[0], below=frozenset({P99})))
    (found,) = compare([a, b], paired=True, figure=P99).first
    assert (found.verdict, found.change) == (NO_VERDICT, None)
    assert found.reason == "1 of 6 repeats are below the bound of the clocks"


def test_other_figures_are_a_family_of_their_own() -> None:
    figures = [{RX: 100.0 + n, P99: 50.0 + n, "aggregate_pps": 7.0 + n} for n in range(4)]
    compared = compare([side(name, [figures]) for name in "ab"], paired=True)
    names = [[each.column.name for each in family] for family in (compared.first, compared.others)]
    assert names == [[RX], ["aggregate_pps", P99]]


@pytest.mark.parametrize(
    ("names", "higher", "lower"),
    [
        ([RX], "faster", "slower"),
        ([P99, "ack_p99_us"], "higher latency", "lower latency"),
        (["ready_p50_ms"], "slower", "faster"),
        ([LOSS], "more loss", "less loss"),
        (["publisher_cores", "subscriber_cpu_s"], "more CPU", "less CPU"),
        (["subscriber_rss_max_bytes"], "more memory", "less memory"),
        (["reordered"], "higher", "lower"),
    ],
)
def test_a_difference_is_called_what_it_means(names: list[str], higher: str, lower: str) -> None:
    assert {name: words(COLUMNS[name]) for name in names} == dict.fromkeys(names, (higher, lower))


def scenario(**more: object) -> Scenario:
    kind = SearchSweep if "search" in more else GridSweep
    sweep = kind(clients=(30,), duration_s=1.0, **more)  # type: ignore[arg-type]  # of its fields
    return Scenario("x", "zmq", "pyzmq", "fixed", sweep, Settings(rate=1000.0))


@pytest.mark.parametrize(
    ("requests", "first_of"),
    [
        (scenario(), P99),
        (scenario(vary={"rate": (100.0, "max")}), RX),
        (replace(scenario(), settings=Settings(rate="max")), RX),
        (replace(scenario(), table="connections"), "ready_p50_ms"),
        (scenario(search=SearchSpec()), "max_rate_below_0_5pct_drop_pps"),
        (scenario(search=SearchSpec(series=("max_rate",))), "max_rate_with_drop_pps"),
    ],
)
def test_the_usual_figure_is_a_result_and_not_what_was_asked_for(requests: Scenario, first_of: str) -> None:
    assert rows_of(requests).primary[0] == first_of


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        ("avg_rx_rate", "did you mean avg_rx_rate_pps"),
        ("latency_p99_us", "not known in all of these runs"),
        ("zzzzzz", "some known figures: avg_rx_rate_pps"),
        ("clients", "is no figure of these runs"),
    ],
)
def test_a_figure_that_is_none_is_refused(requests: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        primary([of("a", RX, [1]), of("b", RX, [2])], requests)
    with pytest.raises(UsageError, match="no figure is known in all"):
        compare([of("a", RX, [1]), of("b", RX, [None])], paired=True)


def test_every_column_that_has_a_better_side_is_a_number() -> None:
    assert {column.unit for column in COLUMNS.values() if column.better}.isdisjoint({"text", "yes/no"})


def test_latency_at_full_rate_is_a_queue_and_no_latency() -> None:
    """At rate ``max`` a publisher fills the queue, so a slower system may have the lower figure."""
    sent = "latency_from_send_p99_us"
    both: Sequence[Mapping[str, float | None]] = [
        {RX: 100.0 + n, sent: 5.0 + n, "ack_p99_us": 7.0 + n} for n in range(5)
    ]
    sides = [side("a", [both]), side("b", [both])]
    assert [each.column.name for each in compare(sides, paired=True).others] == ["ack_p99_us"]
    found = first([5.0, 6.0, 5.5, 5.2], [50.0, 61.0, 54.0, 52.0], sent)
    assert (found.verdict, found.is_better) == ("longer queue", None)
