"""One figure of one row: ratios, zeros, what is missing, and what a difference is called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from hydra.columns.column import Column
from hydra.compare.comparison import NO_DIFFERENCE, NO_VERDICT, Compared, compare
from hydra.compare.figures import primary, usual, words
from hydra.compare.sides import Repeat, Side
from hydra.errors import UsageError
from hydra.model import Scenario, SearchSpec, Settings, SweepSpec
from tests.compare.simulated import COLUMNS, side

RX, LOSS, P99 = "avg_rx_rate_pps", "client_loss_pct", "latency_p99_us"


def of(name: str, figure: str, values: Sequence[float | None]) -> Side:
    return side(name, [[{figure: value} for value in values]])


def first(a: Sequence[float | None], b: Sequence[float | None], figure: str = RX, *, paired: bool = True) -> Compared:
    (found,) = compare([of("a", figure, a), of("b", figure, b)], paired=paired, figure=figure).first
    return found


def test_a_ratio_and_its_interval() -> None:
    found = first([100, 200, 300, 400], [110, 221, 329, 441])
    assert (found.kind, found.repeats, found.verdict, found.is_better) == ("ratio", (4, 4), "faster", True)
    assert found.change == pytest.approx(0.1, abs=0.003)
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.1 < found.high < 0.12


def test_pairs_see_what_samples_of_their_own_do_not() -> None:
    a, b = [100, 200, 300, 400], [105, 212, 314, 421]
    assert first(a, b).verdict == "faster"
    assert first(a, b, paired=False).verdict == NO_DIFFERENCE


def test_the_base_doubled_is_the_other_halved() -> None:
    a, b = [100, 103, 98, 101], [200, 199, 204, 201]
    there, back = first(a, b), first(b, a)
    assert there.change is not None
    assert back.change is not None
    assert (1 + there.change) * (1 + back.change) == pytest.approx(1)
    assert (there.verdict, back.verdict, back.is_better) == ("faster", "slower", False)


def test_where_a_figure_was_0_differences_are_compared() -> None:
    found = first([0, 0, 0.1, 0, 0], [1.0, 1.2, 0.9, 1.1, 1.0], LOSS)
    assert (found.kind, found.verdict, found.is_better) == ("difference", "more loss", False)
    assert found.change == pytest.approx(1.02)
    assert found.level == pytest.approx(0.02)


@pytest.mark.parametrize("paired", [True, False])
def test_no_loss_in_any_repeat_is_no_difference(paired: bool) -> None:
    found = first([0.0] * 5, [0.0] * 5, LOSS, paired=paired)
    assert (found.verdict, found.change, found.low, found.high) == (NO_DIFFERENCE, 0, 0, 0)


@pytest.mark.parametrize("paired", [True, False])
def test_one_repeat_has_a_difference_and_no_verdict(paired: bool) -> None:
    found = first([100], [150], paired=paired)
    assert (found.verdict, found.p, found.low) == (NO_VERDICT, None, None)
    assert found.change == pytest.approx(0.5)
    assert found.reason == "one repeat tells nothing of the spread"


def test_a_repeat_that_is_missing_takes_its_partner_along() -> None:
    a, b = of("a", RX, [100, 101, None, 99, 102]), of("b", RX, [90, 91, 92, 89, 90])
    row = b.rows[0]
    failed = [Repeat({}, problem="a host died"), *row.repeats[1:]]
    b = replace(b, rows=[replace(row, repeats=failed)])
    (found,) = compare([a, b], paired=True).first
    assert found.repeats == (3, 3)
    assert found.left_out == "1 of base have no such figure, 1 of other failed"
    assert found.verdict == "slower"
    (found,) = compare([a, b], paired=False).first
    assert found.repeats == (4, 4)


def test_repeats_of_a_run_that_ended_early_have_no_partner() -> None:
    found = first([100, 101, 99, 100], [90, 91, 89])
    assert (found.repeats, found.left_out) == ((3, 3), "1 without a partner")


def test_what_the_clocks_cannot_tell_has_no_verdict() -> None:
    a, b = of("a", P99, [100, 101, 99]), of("b", P99, [50, 51, 49])
    row = b.rows[0]
    below = [replace(row.repeats[0], below=frozenset({P99})), *row.repeats[1:]]
    (found,) = compare([a, replace(b, rows=[replace(row, repeats=below)])], paired=True, figure=P99).first
    assert (found.verdict, found.change) == (NO_VERDICT, None)
    assert found.reason == "1 of 6 repeats are below what the clocks can tell"


def test_what_is_infinite_is_not_known() -> None:
    assert first([100, 101, math.inf], [90, 91, 92]).repeats == (2, 2)


def test_other_figures_are_a_family_of_their_own() -> None:
    figures: Sequence[Mapping[str, float]] = [{RX: 100.0 + n, P99: 50 + n, "aggregate_pps": 7.0 + n} for n in range(4)]
    compared = compare([side("a", [figures]), side("b", [figures])], paired=True)
    assert [each.column.name for each in compared.first] == [RX]
    assert [each.column.name for each in compared.others] == ["aggregate_pps", P99]


@pytest.mark.parametrize(
    ("name", "higher", "lower"),
    [
        (RX, "faster", "slower"),
        (P99, "higher latency", "lower latency"),
        ("ack_p99_us", "higher latency", "lower latency"),
        (LOSS, "more loss", "less loss"),
        ("publisher_cores", "more CPU", "less CPU"),
        ("subscriber_cpu_s", "more CPU", "less CPU"),
        ("subscriber_rss_max_bytes", "more memory", "less memory"),
        ("reordered", "higher", "lower"),
    ],
)
def test_a_difference_is_called_what_it_means(name: str, higher: str, lower: str) -> None:
    assert words(COLUMNS[name]) == (higher, lower)


def scenario(**more: object) -> Scenario:
    sweep = SweepSpec(clients=(30,), duration_s=1.0, **more)  # type: ignore[arg-type]  # of its fields
    return Scenario("x", "zmq", "pyzmq", "fixed", sweep, Settings(rate=1000.0))


@pytest.mark.parametrize(
    ("asked", "first_of"),
    [
        (scenario(), P99),
        (scenario(vary={"rate": (100.0, "max")}), RX),
        (replace(scenario(), settings=Settings(rate="max")), RX),
        (scenario(search=SearchSpec()), "max_rate_below_0_5pct_drop_pps"),
        (scenario(search=SearchSpec(series=("max_rate",))), "max_rate_with_drop_pps"),
    ],
)
def test_the_usual_figure_is_a_result_and_not_what_was_asked_for(asked: Scenario, first_of: str) -> None:
    assert usual(asked)[0] == first_of


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("avg_rx_rate", "did you mean avg_rx_rate_pps"),
        ("latency_p99_us", "not known in all of these runs"),
        ("zzzzzz", "some that there are: avg_rx_rate_pps"),
        ("clients", "is no figure of these runs"),
    ],
)
def test_a_figure_that_is_none_is_refused(asked: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        primary([of("a", RX, [1]), of("b", RX, [2])], asked)


def test_runs_without_any_figure_are_refused() -> None:
    with pytest.raises(UsageError, match="no figure is known in all"):
        compare([of("a", RX, [1]), of("b", RX, [None])], paired=True)


def test_every_column_that_has_a_better_side_is_a_number() -> None:
    assert all(column.unit not in ("text", "yes/no") for column in COLUMNS.values() if column.better)
    assert isinstance(COLUMNS[RX], Column)
