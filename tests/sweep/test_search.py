"""Searches against simulated systems: what they answer, and that they always end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.model import Figure, Scenario, SearchSpec, StepPlan, StepResult, SweepSpec
from hydra.sweep import for_scenario
from hydra.sweep.sweep import step_bound_s

Outcome = Mapping[str, Figure] | str
System = Callable[[StepPlan], Outcome]


def scenario(search: SearchSpec | None = None, clients: tuple[int, ...] = (30,)) -> Scenario:
    sweep = SweepSpec(clients=clients, duration_s=2, search=search or SearchSpec())
    return Scenario(name="z", system="zmq", client="pyzmq", table="zmqrate", sweep=sweep)


def rate(plan: StepPlan) -> float:
    assert plan.settings.rate != "max"
    return plan.settings.rate


def capacity(most: float, lossless: float, held: float = float("inf")) -> System:
    """Receives up to ``most``, loses above ``lossless``, sends no more than ``held``."""

    def system(plan: StepPlan) -> Outcome:
        offered = min(rate(plan), held)
        received = min(offered, most)
        return {
            "avg_rx_rate_pps": received,
            "aggregate_pps": received * plan.clients,
            "passed": offered <= lossless,
            "rate_held": rate(plan) <= held,
        }

    return system


def play(spec: Scenario, system: System) -> list[StepResult]:
    sweep = for_scenario(spec)
    results: list[StepResult] = []
    while (plan := sweep.next(results)) is not None:
        outcome = system(plan)
        epoch = len(results) + 1
        if isinstance(outcome, str):
            status, _, reason = outcome.partition(":")
            assert status in ("failed", "skipped")
            results.append(StepResult(epoch, plan, "failed" if status == "failed" else "skipped", {}, reason))
        else:
            results.append(StepResult(epoch, plan, "ok", outcome))
        assert len(results) * step_bound_s(spec) <= sweep.bound_s()
    return results


def test_the_highest_rate_is_found_by_doubling_until_nothing_is_gained() -> None:
    spec = scenario(SearchSpec(series=("max_rate",)))
    results = play(spec, capacity(most=87_286, lossless=77_377))
    assert [rate(r.plan) for r in results] == [1000.0 * 2**k for k in range(10)]
    (row,) = for_scenario(spec).rows(results)
    assert (row["max_rate_with_drop_pps"], row["aggregate_max_pps"]) == (87_286, 87_286 * 30)
    assert row["status"] == "ok"


@pytest.mark.parametrize("lossless", [3.5, 800.0, 1000.0, 3251.0, 77_377.0, 86_000.0])
def test_the_rate_without_loss_is_bracketed_bisected_and_confirmed(lossless: float) -> None:
    spec = scenario(SearchSpec(series=("max_rate", "loss")))
    results = play(spec, capacity(most=87_286, lossless=lossless))
    (row,) = for_scenario(spec).rows(results)
    figure = row["max_rate_below_0_5pct_drop_pps"]
    assert isinstance(figure, float)
    assert lossless / 1.06 <= figure <= lossless
    low, high = row["loss_highest_passed_pps"], row["loss_lowest_failed_pps"]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low <= lossless < high <= low * 1.0501
    confirmed = [r for r in results if r.plan.confirm]
    assert [rate(r.plan) for r in confirmed] == [low] * 3


def test_all_four_series_give_the_published_columns_in_their_order() -> None:
    spec = scenario(clients=(60, 30))
    rows = for_scenario(spec).rows(play(spec, capacity(10_000, 9000)))
    assert list(rows[0])[:6] == [
        "clients",
        "max_rate_with_drop_pps",
        "aggregate_max_pps",
        "max_rate_below_0_5pct_drop_pps",
        "max_rate_10pct_clients_half_rate_pps",
        "max_rate_10pct_clients_reconnecting_pps",
    ]
    assert [r["clients"] for r in rows] == [30, 60]


def test_cohorts_read_a_share_of_the_first_figure_and_reconnect_at_the_given_rate() -> None:
    results = play(scenario(), capacity(10_000, 9000))
    cohorts = {r.plan.series: r.plan.cohort for r in results}
    assert (cohorts["slow"].kind, cohorts["slow"].fraction, cohorts["slow"].rate) == ("slow", 0.1, 5000)
    assert (cohorts["reconnecting"].kind, cohorts["reconnecting"].rate) == ("reconnecting", 2.0)
    assert cohorts["loss"].kind == "none"


def test_a_rate_that_never_passes_ends_at_the_floor_without_a_figure() -> None:
    spec = scenario(SearchSpec(series=("loss",), floor_rate=100.0))
    results = play(spec, capacity(10_000, lossless=0))
    assert [rate(r.plan) for r in results] == [1000, 500, 250, 125, 100]
    (row,) = for_scenario(spec).rows(results)
    assert row["max_rate_below_0_5pct_drop_pps"] is None
    assert row["loss_note"] == "no rate down to 100/s passes"


def test_a_rate_that_always_passes_ends_at_the_top_and_says_so() -> None:
    spec = scenario(SearchSpec(series=("loss",), max_doublings=3))
    results = play(spec, capacity(1e9, 1e9))
    assert [rate(r.plan) for r in results] == [1000, 2000, 4000, 8000, 8000, 8000, 8000]
    (row,) = for_scenario(spec).rows(results)
    assert row["max_rate_below_0_5pct_drop_pps"] == 8000
    assert row["loss_lowest_failed_pps"] is None
    assert "highest rate that is tried" in str(row["loss_note"])


def test_a_publisher_that_holds_no_higher_rate_ends_the_doubling() -> None:
    spec = scenario(SearchSpec(series=("loss",)))
    results = play(spec, capacity(1e9, 1e9, held=5000))
    assert [rate(r.plan) for r in results] == [1000, 2000, 4000, 8000, 8000, 8000, 8000]
    (row,) = for_scenario(spec).rows(results)
    assert row["max_rate_below_0_5pct_drop_pps"] == 5000
    assert row["loss_note"] == "the publisher held no higher rate"


def test_a_failed_confirmation_moves_to_the_next_lower_rate() -> None:
    inner = capacity(10_000, 4000)

    def system(plan: StepPlan) -> Outcome:
        flaky = plan.confirm and rate(plan) > 3500
        return {**dict(inner(plan)), "passed": False} if flaky else inner(plan)  # type: ignore[arg-type]

    spec = scenario(SearchSpec(series=("loss",)))
    results = play(spec, system)
    (row,) = for_scenario(spec).rows(results)
    figure = row["max_rate_below_0_5pct_drop_pps"]
    assert isinstance(figure, float)
    assert 3000 < figure <= 3500
    assert row["loss_highest_passed_pps"] == pytest.approx(figure)
    assert Counter(rate(r.plan) for r in results if r.plan.confirm)[round(figure, 1)] == 3


def test_an_answer_that_is_never_confirmed_is_no_figure() -> None:
    spec = scenario(SearchSpec(series=("loss",)))
    results = play(spec, lambda p: {"avg_rx_rate_pps": 1.0, "passed": not p.confirm and rate(p) < 5000})
    (row,) = for_scenario(spec).rows(results)
    assert row["max_rate_below_0_5pct_drop_pps"] is None
    assert "confirmed" in str(row["loss_note"])


def test_without_confirmations_the_figure_is_the_searchs_own() -> None:
    spec = scenario(SearchSpec(series=("loss",), confirmations=0))
    (row,) = for_scenario(spec).rows(play(spec, capacity(1e9, 4000)))
    assert row["max_rate_below_0_5pct_drop_pps"] == row["loss_highest_passed_pps"]


def test_a_skipped_client_count_keeps_its_reason_and_the_others_go_on() -> None:
    spec = scenario(SearchSpec(series=("max_rate",)), clients=(30, 60, 120))
    inner = capacity(5000, 1)
    rows = for_scenario(spec).rows(play(spec, lambda p: "skipped:too many" if p.clients == 60 else inner(p)))
    assert [(r["status"], r["reason"]) for r in rows] == [("ok", ""), ("skipped", "too many"), ("ok", "")]


def test_a_client_count_whose_steps_all_fail_is_given_up_soon() -> None:
    spec = scenario(clients=(30, 60))
    results = play(spec, lambda _: "failed:no publisher")
    assert 2 <= len(results) <= 6
    rows = for_scenario(spec).rows(results)
    assert {r["status"] for r in rows} == {"failed"}
    assert "no publisher" in str(rows[0]["reason"])


def test_one_client_has_no_cohort() -> None:
    spec = scenario(clients=(1,))
    results = play(spec, capacity(5000, 4000))
    assert {r.plan.series for r in results} == {"max_rate", "loss"}
    assert "at least 2 clients" in str(for_scenario(spec).rows(results)[0]["slow_note"])


def test_a_row_that_is_not_finished_is_partial() -> None:
    spec = scenario()
    results = play(spec, capacity(5000, 4000))
    assert for_scenario(spec).rows(results[:12])[0]["status"] == "partial"


@pytest.mark.parametrize(
    ("search", "column"),
    [
        (SearchSpec(series=("loss",), loss_target=0.01), "max_rate_below_1pct_drop_pps"),
        (SearchSpec(series=("loss",), loss_target=0), "max_rate_without_drop_pps"),
    ],
)
def test_a_column_never_claims_another_loss_target(search: SearchSpec, column: str) -> None:
    spec = scenario(search)
    assert column in for_scenario(spec).rows(play(spec, capacity(5000, 4000)))[0]


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    search=st.builds(
        SearchSpec,
        start_rate=st.floats(1, 1e5),
        floor_rate=st.just(1.0),
        ratio=st.floats(1.001, 3),
        confirmations=st.integers(0, 4),
        max_doublings=st.integers(1, 12),
        stall_doublings=st.integers(1, 3),
    ),
)
def test_a_search_ends_within_its_bound_whatever_it_is_told(data: st.DataObject, search: SearchSpec) -> None:
    outcome = st.one_of(
        st.sampled_from(["failed:x"]),
        st.fixed_dictionaries(
            {
                "passed": st.booleans(),
                "rate_held": st.sampled_from([True, True, False, None]),
                "avg_rx_rate_pps": st.one_of(st.none(), st.floats(0, 1e7)),
            }
        ),
    )
    spec = scenario(search, clients=(2, 3))
    results = play(spec, lambda _: data.draw(outcome))
    sweep = for_scenario(spec)
    assert all(r["status"] != "partial" for r in sweep.rows(results))
    assert sweep.next(results) is None


def test_every_prefix_of_a_run_leads_to_the_step_that_followed_it() -> None:
    spec = replace(scenario(), warmup_s=0)
    results = play(spec, capacity(5000, 4000))
    sweep = for_scenario(spec)
    assert [sweep.next(results[:k]) for k in range(len(results))] == [r.plan for r in results]
