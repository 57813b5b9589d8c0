"""Searches against simulated systems: what they answer, what they do with steps that fail, and that they always end."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.measure.column import LossBursts, SystemColumns
from hydra.measure.step_result import StepFigures, StepResult
from hydra.measure.verdict import Causes
from hydra.model import Figure, Scenario, Settings, StepPlan, value_of
from hydra.sweep import for_scenario
from hydra.sweep.interface import Row, SearchProgress, step_bound_s
from hydra.sweep.kind import columns_of
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec
from hydra.sweep.search_warnings import of_figure
from hydra.sweep.step_retry import FAILURES_IN_A_ROW, MOST_FAILURES
from hydra.zmqtest.settings import ZmqSettings

Outcome = Mapping[str, Figure] | str
System = Callable[[StepPlan], Outcome]

STEP_S = 2.0
BELOW = "max_rate_below_0_5pct_drop_pps"
RECONNECTING = "max_rate_10pct_clients_reconnecting_pps"


def scenario(search: SearchSpec | None = None, clients: tuple[int, ...] = (30,)) -> Scenario:
    sweep = SearchSweep(clients=clients, duration_s=STEP_S, search=search or SearchSpec())
    settings = Settings(system=ZmqSettings())
    return Scenario(name="z", system="zmq", client="pyzmq", table="rates", sweep=sweep, settings=settings)


def loss_only(**keys: object) -> Scenario:
    return scenario(SearchSpec(series=("loss",), **keys))  # type: ignore[arg-type]


def rate(plan: StepPlan) -> float:
    assert plan.settings.rate != "max"
    return plan.settings.rate


def short_by(share: float) -> Figure:
    """The bursts of a step that falls short by this share all the time."""
    return LossBursts((share,) * int(STEP_S) if share > 0 else ())


def capacity(most: float, lossless: float) -> System:
    """Receives up to ``most``, loses whatever is above ``lossless``."""

    def system(plan: StepPlan) -> Outcome:
        received = min(rate(plan), most)
        return {
            "avg_rx_rate_pps": received,
            "aggregate_pps": received * plan.clients,
            "bursts_s": short_by(1 - lossless / rate(plan)),
            "verdict": Causes(("requested rate" if rate(plan) <= lossless else "high-water mark",)),
        }

    return system


def play(spec: Scenario, system: System) -> list[StepResult]:
    sweep, results = for_scenario(spec), list[StepResult]()
    while (plan := sweep.next(results)) is not None:
        outcome = system(plan)
        status, _, reason = outcome.partition(":") if isinstance(outcome, str) else ("ok", "", "")
        shown = {} if isinstance(outcome, str) else outcome
        results.append(StepResult(len(results) + 1, plan, status, StepFigures.of(shown), reason))  # type: ignore[arg-type]
        assert len(results) * step_bound_s(spec) <= sweep.bound_s()
    return results


def row_of(spec: Scenario, system: System) -> tuple[Row, list[StepResult]]:
    results = play(spec, system)
    (row,) = for_scenario(spec).rows(results)
    return row, results


def number(value: Figure) -> float:
    assert isinstance(value, int | float)
    return float(value)


def failing(system: System, *steps: int, how: Outcome = "failed:a client hung") -> System:
    """The same, but these steps (counted from 1) come to something else."""
    count = itertools.count(1)
    return lambda plan: how if next(count) in steps else system(plan)


def test_the_highest_rate_is_found_by_doubling_until_nothing_is_gained() -> None:
    spec = scenario(SearchSpec(series=("max_rate",)))
    results = play(spec, capacity(most=87_286, lossless=77_377))
    assert [rate(r.plan) for r in results] == [*(1000.0 * 2**k for k in range(10)), *[128_000.0] * 4]
    (row,) = for_scenario(spec).rows(results)
    assert (row["max_rate_with_drop_pps"], row["aggregate_max_pps"]) == (87_286, 87_286 * 30)
    assert row["status"] == "ok"


@pytest.mark.parametrize("lossless", [3.5, 800.0, 1000.0, 3251.0, 77_377.0, 86_000.0])
def test_a_plain_capacity_is_found_within_a_few_percent_in_few_steps(lossless: float) -> None:
    row, results = row_of(loss_only(), capacity(87_286, lossless))
    # 0.5 % of what is above the capacity may be lost.
    low, figure, high = (number(row[c]) for c in ("loss_low_pps", BELOW, "loss_high_pps"))
    assert lossless / 1.05 <= figure <= lossless * 1.05
    assert low <= lossless <= high <= 1.4 * low
    # The bracket's, and some more.
    assert len(results) == number(row["loss_steps"]) <= 25
    assert str(row["loss_verdict"]) == "high-water mark"
    assert (row["status"], row["failed_steps"], row["step_s"], row["loss_note"]) == ("ok", 0, STEP_S, None)


@pytest.mark.parametrize(("steps", "low"), [(1, 1000.0), (3, 4000.0)])
def test_an_interrupted_search_shows_what_is_known(steps: int, low: float) -> None:
    """In CSV and JSON, and as a warning of its row."""
    spec = loss_only()
    (row,) = for_scenario(spec).rows(play(spec, capacity(87_286, 6000.0))[:steps])
    assert (row["status"], row["loss_answer"], row["loss_why"]) == ("partial", "unknown", "interrupted")
    assert (row.get(BELOW), row["loss_low_pps"], row["loss_high_pps"], row["loss_steps"]) == (None, low, None, steps)
    (warning,) = of_figure(row, "loss")
    assert warning.sentence == str(row["loss_note"])
    assert set(row) - set(columns_of(spec, SystemColumns())) == set()


@pytest.mark.tier("test")
def test_all_four_series_give_the_published_columns_in_their_order() -> None:
    spec = scenario(clients=(60, 30))
    rows = for_scenario(spec).rows(play(spec, capacity(10_000, 9000)))
    half_rate = "max_rate_10pct_clients_half_rate_pps"
    published = ["clients", "max_rate_with_drop_pps", "aggregate_max_pps", BELOW, half_rate, RECONNECTING]
    assert list(rows[0])[:6] == published
    assert [r["clients"] for r in rows] == [30, 60]
    assert {name for row in rows for name in row} - set(columns_of(spec, SystemColumns())) == set()


def test_cohorts_read_a_share_of_the_first_figure_and_reconnect_at_the_given_rate() -> None:
    results = play(scenario(SearchSpec(steps=4)), capacity(10_000, 9000))
    cohorts = {r.plan.series: r.plan.cohort for r in results}
    assert (cohorts["slow"].kind, cohorts["slow"].fraction, cohorts["slow"].rate) == ("slow", 0.1, 5000)
    assert (cohorts["reconnecting"].kind, cohorts["reconnecting"].rate) == ("reconnecting", 2.0)
    assert cohorts["loss"].kind == "none"


@pytest.mark.parametrize(
    ("rules", "lossless", "tried", "note"),
    [
        ({"floor_rate": 100.0}, 0, [1000, 500, 250, 125, 100], "no rate down to 100/s is within the loss target"),
        # A search begins at the given rate, and tries every doubling.
        (
            {"max_doublings": 3}, 1e9, [1000, 2000, 4000, 8000],
            "every rate tried up to 8,000/s, the highest one, is within the loss target",
        ),
    ],
)  # fmt: skip
def test_a_search_that_finds_no_limit_ends_at_the_floor_or_the_top_without_a_figure(
    rules: dict[str, object], lossless: float, tried: list[float], note: str
) -> None:
    row, results = row_of(loss_only(**rules), capacity(1e9, lossless))
    assert [rate(r.plan) for r in results] == pytest.approx(tried, rel=0.013)
    assert (row[BELOW], row["loss_note"], row["loss_steps"]) == (None, note, len(tried))


@pytest.mark.tier("test")
def test_a_step_that_could_not_be_measured_is_asked_for_again_and_moves_nothing() -> None:
    """With a limit of 50,000/s and its second step failed, kafka-rate published 1,915/s."""
    spec = loss_only()
    undisturbed, steps = row_of(spec, capacity(1e9, 50_000))
    row, with_failure = row_of(spec, failing(capacity(1e9, 50_000), 2))
    assert number(row[BELOW]) == pytest.approx(50_000, rel=0.05)
    assert [r.status for r in with_failure[:3]] == ["ok", "failed", "ok"]
    assert [r.plan for r in with_failure] == [r.plan for r in (*steps[:2], *steps[1:])]
    assert row == {**undisturbed, "failed_steps": 1}


DEAD: dict[str, Figure] = {"avg_rx_rate_pps": 1.0, "bursts_s": short_by(0.5)}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("failed:no publisher", "no publisher"),
        ("failed:", "no reason was given"),
        ({"avg_rx_rate_pps": 1.0, "bursts_s": None}, "the number of expected messages is unknown"),
    ],
)
def test_steps_that_say_nothing_of_their_rate_end_a_client_count_soon(how: Outcome, reason: str) -> None:
    spec = scenario(clients=(30, 60))
    results = play(spec, lambda _: how)
    assert len(results) == 2 * FAILURES_IN_A_ROW
    for row in for_scenario(spec).rows(results):
        assert (row["status"], row["failed_steps"]) == ("failed", FAILURES_IN_A_ROW)
        assert row["reason"] == f"{FAILURES_IN_A_ROW} steps in a row failed, the last: {reason}"
    again = failing(capacity(1e9, 50_000), 3, 4, how=how)
    row, _ = row_of(loss_only(), again)
    assert (row["status"], row["failed_steps"]) == ("ok", 2)
    assert number(row[BELOW]) == pytest.approx(50_000, rel=0.05)


@pytest.mark.tier("test")
@pytest.mark.parametrize("ended", ["failed_dead", "failed_silent"])
def test_subscribers_that_are_gone_once_or_twice_say_nothing_of_the_rate(ended: str) -> None:
    undisturbed, steps = row_of(loss_only(), capacity(1e9, 50_000))
    row, results = row_of(loss_only(), failing(capacity(1e9, 50_000), 3, 4, how={**DEAD, ended: 1}))
    assert row == {**undisturbed, "failed_steps": 2}
    assert [r.plan for r in results] == [r.plan for r in (*steps[:2], *[steps[2]] * 2, *steps[2:])]


@pytest.mark.tier("test")
def test_a_rate_that_silences_subscribers_again_and_again_is_too_high() -> None:
    """The rates below it are still searched."""
    carried = capacity(87_286, 77_377)

    def system(plan: StepPlan) -> Outcome:
        ended = {"failed_silent": 1, "client_loss_pct": 100 / 30} if rate(plan) > 15_000 else {}
        return {**dict(carried(plan)), **ended}  # type: ignore[arg-type]  # figures, no text

    row, results = row_of(scenario(SearchSpec(series=("max_rate", "loss"))), system)
    assert row["status"] == "ok"
    assert number(row["loss_low_pps"]) <= 15_000 <= number(row["loss_high_pps"])
    assert [rate(r.plan) for r in results].count(16_000) >= FAILURES_IN_A_ROW
    assert number(row["failed_steps"]) % (FAILURES_IN_A_ROW - 1) == 0


@pytest.mark.parametrize(("fresh", "held"), [(4, range(180, 200)), (0, None)])
def test_the_highest_rate_is_not_the_luckiest_of_noisy_steps(fresh: int, held: range | None) -> None:
    """Steps vary by 10 %; the highest of those that saturate the system is 10,000/s on average."""
    dice, inside, figures = random.Random(3), 0, list[float]()

    def system(plan: StepPlan) -> Outcome:
        pps = min(rate(plan), 10_000) * dice.gauss(1, 0.1)
        return {"avg_rx_rate_pps": pps, "aggregate_pps": 30 * pps, "bursts_s": LossBursts()}

    for _ in range(200):
        row, _ = row_of(scenario(SearchSpec(series=("max_rate",), fresh_steps=fresh)), system)
        figures.append(number(row["max_rate_with_drop_pps"]))
        if held:
            inside += number(row["max_rate_low_pps"]) <= 10_000 <= number(row["max_rate_high_pps"])
    if held:
        assert fmean(figures) == pytest.approx(10_000, rel=0.01)
        assert inside in held
    else:
        assert fmean(figures) > 10_500


def test_a_client_count_that_fails_ever_again_is_given_up_with_what_is_known() -> None:
    """Every second step fails."""
    spec = scenario(SearchSpec(fresh_steps=0))
    row, results = row_of(spec, failing(capacity(10_000, 9000), *range(2, 1000, 2)))
    assert sum(r.status == "failed" for r in results) == row["failed_steps"] == MOST_FAILURES
    assert (row["status"], row["reason"]) == ("failed", f"{MOST_FAILURES} steps failed, the last: a client hung")
    # It had these steps.
    assert (row["max_rate_with_drop_pps"], row["aggregate_max_pps"]) == (10_000, 300_000)
    assert number(row["loss_steps"]) > 0


def test_a_client_count_given_up_in_its_first_search_keeps_the_aggregate() -> None:
    row, _ = row_of(scenario(), failing(capacity(10_000, 9000), 3, 4, 5))
    assert (row["status"], row["aggregate_max_pps"]) == ("failed", 60_000)
    assert "max_rate_aggregate_pps" not in row


@pytest.mark.tier("test")
def test_a_disturbed_series_above_the_undisturbed_one_is_measured_again_and_then_marked() -> None:
    """Clients that reconnect cannot make a system faster."""

    def system(plan: StepPlan) -> Outcome:
        return capacity(10_000, 9000 if plan.cohort.kind == "reconnecting" else 4000)(plan)

    search = SearchSpec(series=("loss", "reconnecting"), steps=30)
    row, results = row_of(scenario(search), system)
    assert number(row["reconnecting_low_pps"]) > number(row["loss_high_pps"])
    assert "the rate with slow or reconnecting subscribers is above the rate without them" in str(
        row["reconnecting_note"]
    )
    order = [r.plan.series for r in results]
    again = results[order.index("reconnecting") :]
    assert sum(r.plan.duration_s for r in again if r.plan.series == "loss") == search.steps / 2 * STEP_S
    assert [order.count(name) for name in search.series] == [row[f"{name}_steps"] for name in search.series]
    assert order[-1] == "reconnecting"


@pytest.mark.tier("test")
def test_a_contradiction_that_goes_away_when_it_is_measured_again_is_not_marked() -> None:
    """The undisturbed search had a bad time."""
    before = True

    def system(plan: StepPlan) -> Outcome:
        nonlocal before
        before = before and plan.cohort.kind == "none"
        return capacity(10_000, 1450 if before else 2000)(plan)

    search = SearchSpec(series=("loss", "reconnecting"), steps=120)
    row, results = row_of(scenario(search), system)
    order = [r.plan.series for r in results]
    assert "loss" in order[order.index("reconnecting") :]
    assert row["loss_answer"] == "unknown"
    assert row["reconnecting_note"] is None


def by_chance(most: float, again: int = 7) -> System:
    """Loses half a second's traffic in one step of seven above ``most``: whether a step falls short shows little."""
    count = itertools.count(1)

    def system(plan: StepPlan) -> Outcome:
        short = next(count) % again == 0 and rate(plan) > most
        return {"avg_rx_rate_pps": rate(plan), "bursts_s": LossBursts((0.5,) if short else ())}

    return system


def test_what_contradicts_another_figure_still_says_why_it_has_none() -> None:
    """Too few steps for a figure, and yet their figures lie above the interval without the cohort."""

    def system(plan: StepPlan) -> Outcome:
        return (chance if plan.cohort.kind == "reconnecting" else steady)(plan)

    chance, steady = by_chance(100_000, again=6), capacity(10_000, 500)
    row, _ = row_of(scenario(SearchSpec(series=("loss", "reconnecting"), steps=9)), system)
    low, high = number(row["reconnecting_low_pps"]), number(row["reconnecting_high_pps"])
    assert number(row["loss_high_pps"]) < low < high / 4
    assert row[RECONNECTING] is None
    anywhere, above = str(row["reconnecting_note"]).split("; ")
    assert f"the rate may be anywhere from {low:,.0f} to {high:,.0f}/s" in anywhere
    assert above.startswith("the rate with slow or reconnecting subscribers is above the rate without them")


def test_each_step_narrows_what_is_known_of_the_answer() -> None:
    spec, found = loss_only(), list[tuple[float | None, float | None]]()
    results = play(spec, capacity(1e9, 10_000.0))
    sweep = for_scenario(spec)
    for number_of_steps in range(1, len(results) + 1):
        progress = sweep.progress(results[:number_of_steps])
        assert progress is not None
        found.append((progress.low, progress.high))
    # Doublings from 1,000/s, of which the last two are too fast.
    assert found[:5] == [(1e3, None), (2e3, None), (4e3, None), (8e3, None), (8e3, 16e3)]
    (row,) = sweep.rows(results)
    assert found[-1] == (row["loss_low_pps"], row["loss_high_pps"])


@pytest.mark.parametrize(
    ("figures", "parts"),
    [
        ({"shortfall_pct": 41.0, "client_loss_pct": 3.0}, [(38.0, "backlog"), (3.0, "lost")]),
        ({"shortfall_pct": 3.0, "client_loss_pct": 3.1}, [(3.0, "lost")]),
        (
            {"shortfall_pct": 30.0, "client_loss_pct": 0.0, "rate_sent": False, "avg_tx_rate_pps": 700.0},
            [(30.0, "not sent")],
        ),
        (
            {"shortfall_pct": 30.0, "client_loss_pct": 0.0, "rate_sent": True, "unaccepted_pct": 30.0},
            [(30.0, "not accepted")],
        ),
        (
            {"shortfall_pct": 30.0, "client_loss_pct": 0.0, "rate_sent": False, "avg_tx_rate_pps": 950.0},
            [(30.0, "backlog")],
        ),
        ({"shortfall_pct": None}, []),
    ],
)
def test_the_parts_of_a_shortfall_are_named(figures: dict[str, Figure], parts: list[tuple[float, str]]) -> None:
    spec = loss_only()
    sweep = for_scenario(spec)
    plan = sweep.next([])
    assert plan is not None
    progress = sweep.progress([StepResult(1, plan, "ok", StepFigures.of({"bursts_s": LossBursts((0.1,)), **figures}))])
    assert isinstance(progress, SearchProgress)
    assert (progress.target_pct, progress.shortfall_pct) == (0.5, figures["shortfall_pct"])
    assert list(progress.parts) == parts


def test_steps_without_a_loss_target_have_no_verdict_and_repeats_one_each() -> None:
    spec = scenario(SearchSpec(series=("max_rate",)))
    (first, *_) = play(spec, capacity(1e9, 10_000.0))
    assert for_scenario(spec).progress([first]) is None
    spec = loss_only()
    spec = replace(spec, sweep=replace(spec.sweep, repeat=2))
    results = play(spec, capacity(1e9, 10_000.0))
    sweep = for_scenario(spec)
    last = sweep.progress(results)
    assert last is not None
    assert last.low is not None
    assert last.high is not None
    assert 8e3 < last.low < 10_000.0 < last.high < 14e3


@pytest.mark.tier("test")
def test_a_search_takes_as_many_steps_as_it_is_told_and_no_more() -> None:
    row, results = row_of(loss_only(steps=20, width=1.0001), by_chance(4000))
    assert len(results) == row["loss_steps"] == 20


@pytest.mark.tier("test")
def test_a_wider_interval_takes_fewer_steps() -> None:
    """What can be carried differs by 15 % from second to second."""
    chance, taken = random.Random(1), []

    def varying(plan: StepPlan) -> Outcome:
        lost = (1 - 4000 * chance.lognormvariate(0, 0.15) / rate(plan) for _ in range(int(STEP_S)))
        return {"avg_rx_rate_pps": rate(plan), "bursts_s": LossBursts(tuple(share for share in lost if share > 0))}

    for width in (2.0, 1.3):
        row, results = row_of(loss_only(width=width, steps=500), varying)
        low, high = number(row["loss_low_pps"]), number(row["loss_high_pps"])
        assert high <= width * low
        assert low < 4000 * 1.1
        taken.append(len(results))
    assert taken[0] < taken[1] < 500


def test_a_skipped_client_count_keeps_its_reason_and_the_others_go_on() -> None:
    spec = scenario(SearchSpec(series=("max_rate",)), clients=(30, 60, 120))
    inner = capacity(5000, 1)
    rows = for_scenario(spec).rows(play(spec, lambda p: "skipped:too many" if p.clients == 60 else inner(p)))
    assert [(r["status"], r["reason"]) for r in rows] == [("ok", ""), ("skipped", "too many"), ("ok", "")]


def test_one_client_has_no_cohort_and_a_row_that_is_not_finished_is_partial() -> None:
    spec = scenario(clients=(1,))
    row, results = row_of(spec, capacity(5000, 4000))
    assert {r.plan.series for r in results} == {"max_rate", "loss"}
    assert "at least 2 clients" in str(row["slow_note"])
    assert for_scenario(spec).rows(results[:12])[0]["status"] == "partial"


@pytest.mark.parametrize(
    ("target", "column"), [(0.01, "max_rate_below_1pct_drop_pps"), (0, "max_rate_without_drop_pps")]
)
def test_a_column_never_claims_another_loss_target(target: float, column: str) -> None:
    assert column in row_of(loss_only(loss_target=target), capacity(5000, 4000))[0]


def test_each_high_water_mark_has_a_search_of_its_own() -> None:
    spec = scenario(SearchSpec(series=("max_rate", "loss"), sndhwms=(1000, 100_000)))
    row, results = row_of(spec, lambda p: capacity(20_000, 5000 if value_of(p.settings, "sndhwm") == 1000 else 9000)(p))
    assert number(row["max_rate_below_0_5pct_drop_sndhwm_1000_pps"]) == pytest.approx(5000, rel=0.05)
    assert number(row["max_rate_sndhwm_100000_pps"]) == pytest.approx(9000, rel=0.05)
    for mark in (1000, 100_000):
        steps = sum(r.plan.series == "loss" and value_of(r.plan.settings, "sndhwm") == mark for r in results)
        assert row[f"loss_sndhwm_{mark}_steps"] == steps > 0


@pytest.mark.tier("test")
@settings(max_examples=25)
@given(
    data=st.data(),
    search=st.builds(
        SearchSpec,
        start_rate=st.floats(1, 1e5),
        floor_rate=st.just(1.0),
        width=st.floats(1.001, 3),
        steps=st.integers(2, 25),
        max_doublings=st.integers(1, 12),
        stall_doublings=st.integers(1, 3),
    ),
)
def test_a_search_ends_within_its_bound_whatever_it_is_told(data: st.DataObject, search: SearchSpec) -> None:
    outcome: st.SearchStrategy[Outcome] = st.one_of(
        st.sampled_from(["failed:x"]),
        st.fixed_dictionaries(
            {
                "bursts_s": st.lists(st.floats(0, 1), max_size=5).map(lambda sizes: LossBursts(tuple(sizes))),
                "failed_dead": st.sampled_from([0, 0, 0, 1]),
                "avg_rx_rate_pps": st.one_of(st.none(), st.floats(0, 1e7)),
            }
        ),
    )
    spec = scenario(search, clients=(2, 3))
    results = play(spec, lambda _: data.draw(outcome))
    sweep = for_scenario(spec)
    assert all(r["status"] != "partial" for r in sweep.rows(results))
    assert sweep.next(results) is None


@pytest.mark.tier("test")
def test_every_prefix_of_a_run_leads_to_the_step_that_followed_it() -> None:
    spec = replace(scenario(SearchSpec(steps=12)), warmup_s=0)
    results = play(spec, failing(capacity(5000, 4000), 5, 20))
    sweep = for_scenario(spec)
    # Forwards it continues, backwards it plays everything again: the same comes of both.
    for order in (range(len(results)), range(len(results) - 1, -1, -8)):
        assert [sweep.next(results[:k]) for k in order] == [results[k].plan for k in order]
    with pytest.raises(ValueError, match="more results"):
        sweep.next([*results, results[-1]])
    other = replace(results[3], plan=replace(results[3].plan, clients=7))
    with pytest.raises(ValueError, match="belong to another scenario"):
        sweep.next([*results[:3], other])
