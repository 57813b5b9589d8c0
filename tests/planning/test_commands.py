"""`hydra fit` and `hydra plan`, on run directories and on what is known without one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hydra.analysis.capacity_plan import CapacityPlan, ResourceUse
from hydra.analysis.declared_costs import Cost
from hydra.cli import step_usage
from hydra.cli.main import cli
from hydra.cli.plan_command import evidence
from hydra.config.scenario import load_scenario
from hydra.errors import HydraError, UsageError
from hydra.model import Rate, Scenario
from hydra.sweep import SearchSpec
from tests.jupyter import runs

COUNTS = (1, 2, 4, 8, 16, 32, 64)
AGENT = ("--cores", "4", "--memory", "8GB", "--network", "10Gbit")


def at_rate(rate: Rate) -> Scenario:
    return replace(runs.FIXED, settings=replace(runs.FIXED.settings, rate=rate))


def run_of(directory: Path, scenario: Scenario, counts: tuple[int, ...]) -> Path:
    return runs.make(directory, replace(scenario, sweep=replace(scenario.sweep, clients=counts)))


def hydra(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def refused(*words: str | Path) -> str:
    error = hydra(*words).exception
    assert isinstance(error, UsageError)
    return str(error)


def told(*words: str | Path) -> Any:
    result = hydra(*words, "--json")
    assert not isinstance(result.exception, HydraError), result.exception
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def capacity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """2.5 million messages/s over all clients, at rate max."""
    return run_of(tmp_path_factory.mktemp("fit") / "run", at_rate("max"), COUNTS)


@pytest.mark.tier("test")
def test_a_capacity_is_predicted_and_drawn_and_the_json_has_what_the_text_says(capacity: Path, tmp_path: Path) -> None:
    page = tmp_path / "fit.html"
    result = hydra("fit", capacity, "--clients", "128,6400", "--plot", page)
    assert result.exit_code == 0, result.exception
    near, far = (line for line in result.stdout.splitlines() if line.startswith(("128 ", "6,400 ")))
    assert "2 times the largest measured count" in near
    assert "EXTRAPOLATED to 100 times the largest measured count" in far
    for said in ("7 steps of 1 to 64 clients", "check: without the steps of 64 clients"):
        assert said in result.stdout
    assert "plotly" in page.read_text(encoding="utf-8")
    assert "law, knee and power of N do not agree" in far
    (fit,) = told("fit", capacity, "--clients", "128,6400")
    predictions = fit["law"]["predictions"]
    assert predictions[0]["throughput"]["low"] < 2_500_000 < predictions[0]["throughput"]["high"]
    assert [each["extrapolated"] for each in predictions] == [False, True]
    assert fit["evidence_ends_at"] == 64
    assert "bandwidth" in [budget["name"] for budget in fit["budgets"]]


@pytest.mark.tier("test")
def test_each_setting_that_varies_has_a_law_of_its_own(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", runs.BATCH, COUNTS[:6])
    assert [fit["settings"] for fit in told("fit", run)] == ["msg_batch 100", "msg_batch 1000"]


@pytest.mark.tier("test")
def test_a_search_has_its_fastest_step_of_each_count(tmp_path: Path) -> None:
    sweep = replace(runs.SEARCHES, search=SearchSpec(start_rate=40_000.0, series=("max_rate",)))
    (fit,) = told("fit", run_of(tmp_path / "run", replace(runs.SEARCH, sweep=sweep), COUNTS[:6]))
    assert fit["law"]["counts"] == list(COUNTS[:6])


@pytest.mark.tier("test")
def test_held_rates_are_called_the_demand(tmp_path: Path) -> None:
    text = hydra("fit", run_of(tmp_path / "run", at_rate(10.0), COUNTS[:6])).stdout
    assert "its throughput is that rate, and no limit of the system" in text


def test_three_points_and_a_run_without_a_measured_step_are_refused(tmp_path: Path) -> None:
    said = refused("fit", run_of(tmp_path / "few", runs.FIXED, COUNTS[:3]))
    assert "3 client counts that could be measured: a fit needs 6" in said
    run = runs.make(tmp_path / "run", runs.FIXED, lambda _: ("failed", "no"), steps=2)
    for command in (("fit", run), ("plan", "--clients", "9", "--rate", "1", "--from", run)):
        assert "has no step that was measured" in refused(*command)


@pytest.mark.parametrize(
    ("scenario", "traffic", "account_bytes", "said"),
    [
        ("zmqfixed", {"topics": 50}, 0, ""),
        ("zmqfixed", {"topics": 50, "topics_per_client": 5}, 8 * 10 * 20, "10 % of the topics, so all publishers"),
        ("zmqfixed", {"topics": 50, "topics_per_client": 50}, 0, ""),
        ("kafka-fixed", {"topics": 50}, 8 * 20, ""),
        ("kafka-fixed", {"topics": 50, "topics_per_client": 1}, 8 * 50 * 20, "together send 400 messages/s"),
    ],
)
def test_a_plan_counts_what_is_sent_to_the_topics_of_others(
    scenario: str, traffic: dict[str, int], account_bytes: int, said: str
) -> None:
    words = ["plan", scenario, "--clients", "1000", "--rate", "8", *AGENT, "--set", "sweep.duration_s=20"]
    topics = [word for name, value in traffic.items() for word in ("--set", f"settings.{name}={value}")]
    one_topic, several = (
        next(use["a_client"] for use in plan["uses"] if (use["of"], use["name"]) == ("agents", "memory"))
        for plan in (told(*words), told(*words, *topics))
    )
    assert several - one_topic == pytest.approx(account_bytes, abs=1)
    text = hydra(*words, *topics).stdout
    assert said in text
    assert ("of the topics" in text) == bool(said)


def test_a_million_at_one_message_a_second_is_what_the_page_says() -> None:
    plan = told("plan", "--clients", "1000000", "--rate", "1", *AGENT)
    assert (plan["implementation"], plan["needed"]["agents"], plan["evidence_ends_at"]) == ("zmtp", 10, 100_000)
    (cores,) = (use["total"] for use in plan["uses"] if use["of"] == "agents" and use["name"] == "CPU")
    assert cores == pytest.approx(25)


def test_what_goes_beyond_twice_the_evidence_is_said_in_the_same_line() -> None:
    lines = hydra("plan", "--clients", "2000000", "--rate", "1", *AGENT).stdout.splitlines()
    (agents,) = (line for line in lines if line.startswith("agents:"))
    (first,) = (line for line in lines if line.startswith("what breaks first"))
    for line in (agents, first, *(line for line in lines if "docs/limits.md; up to 100,000 clients" in line)):
        assert "EXTRAPOLATED to 20 times the largest measured count" in line


def test_what_one_controller_cannot_hold_exits_with_3_and_what_nobody_has_measured_is_not_known() -> None:
    result = hydra("plan", "--clients", "100000000", "--rate", "1", *AGENT)
    assert (result.exit_code, "controller: at most 1 is possible" in result.stdout) == (3, True)
    result = hydra("plan", "kafka-fixed", "--clients", "20000", "--rate", "10", *AGENT)
    assert result.exit_code == 0
    for said in ("not known: CPU", "name a run with --from"):
        assert said in result.stdout


def test_a_run_with_servers_tells_the_cost_of_its_subscribers(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", load_scenario("kafka-fixed", {"settings.rate": 10.0}), COUNTS)
    result = hydra("plan", "--clients", "2000", "--rate", "10", "--from", run, *AGENT)
    assert result.exit_code == 0, result.exception
    for said in ("not measured, neither in the runs that you named nor by Hydra's authors", "servers: at least 1"):
        assert said in result.stdout


def test_runs_that_set_no_limit_give_no_figure_and_exit_with_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of(tmp_path / "run", load_scenario("kafka-fixed", {"settings.rate": 10.0}), COUNTS)
    monkeypatch.setattr("hydra.cli.plan_command.measured_cost", lambda *_: Cost(1e-3, "the run", 64, 5e-4, None))
    words = ("plan", "--clients", "2000", "--rate", "10", "--from", run, *AGENT)
    result = hydra(*words)
    assert (result.exit_code, "agents: the number is unknown: CPU" in result.stdout) == (3, True)
    assert not any(line.startswith("agents: at least") for line in result.stdout.splitlines())
    plan = told(*words)
    assert (plan["needed"]["agents"], plan["fits"]) == (None, None)


def test_a_plan_of_a_run_is_for_what_the_run_measured_and_takes_runs_of_one_implementation(
    capacity: Path, tmp_path: Path
) -> None:
    of_run = ("plan", "--clients", "1000", "--rate", "1", "--from", capacity)
    plan = told(*of_run, *AGENT)
    assert (plan["system"], plan["implementation"]) == ("zmq", "pyzmq")
    other = run_of(tmp_path / "run", runs.BATCH, (10, 20))
    assert "was measured with" in refused(*of_run, "--from", other)
    assert "--implementation native" in refused(*of_run, "--implementation", "native")


@pytest.mark.parametrize(
    ("points", "swing"),
    [
        *(((), 1.0), (((0.0, 5.0),), 1.0), (((0.0, 0.0),), 1.0)),
        (((0.0, 0.0), (10.0, 8.0)), 2.0),  # a ramp
        (((0.0, 1.0), (5.0, 1.0), (5.0, 3.0)), 1.5),  # a jump, which lasts
        (((0.0, 2.0), (10.0, 2.0), (20.0, 100.0)), 1.0),  # what comes behind the end does not count
    ],
)
def test_how_far_a_loads_highest_rate_is_above_its_mean(points: tuple[tuple[float, float], ...], swing: float) -> None:
    assert step_usage.swing(points, 10.0) == pytest.approx(swing)


@pytest.mark.parametrize(
    ("cost", "size", "said"),
    [
        ({}, 24, "; up to 9 clients at 1 to 2/s each"),
        ({"sizes": (24.0, 24.0)}, 24, "; up to 9 clients at 1 to 2/s each"),
        ({"sizes": (24.0, 24.0)}, 1000, ", with messages of 24 bytes (not 1000)"),
        ({"sizes": (24.0, 80.0)}, 1000, ", with messages of 24 to 80 bytes (not 1000)"),
        ({"swing": 2.0}, 24, ", means of a load that changed and was 2 times as high at its highest"),
    ],
)
def test_how_a_cost_was_measured_is_said_in_its_line(cost: dict[str, Any], size: int, said: str) -> None:
    use = ResourceUse("CPU", "cores", 1.0, 2.0, Cost(1.0, "runs/a", 9, rates=(1.0, 2.0), **cost))
    assert evidence(use, CapacityPlan(12, 1.5, ()), size).endswith(said)
