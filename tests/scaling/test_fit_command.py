"""`hydra fit` on run directories."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hydra.cli.main import cli
from hydra.cli.step_resources import read_run
from hydra.errors import HydraError, UsageError
from hydra.measure.latency import merge_histograms
from hydra.measure.step_result import StepResult
from hydra.model import (
    CoreTimes,
    HostCounters,
    HostSample,
    InterfaceCounts,
    MachineRecord,
    Rate,
    Scenario,
    StepPlan,
    TcpCounts,
)
from hydra.store.database import MACHINES_KEY, RunStore
from hydra.sweep.search_spec import SearchSpec
from tests.jupyter import runs
from tests.measure.reports import SECOND, START
from tests.suite.figures import figures

COUNTS = (1, 2, 4, 8, 16, 32, 64)


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


def fit_object(*words: str | Path) -> Any:
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
    for text in ("7 steps of 1 to 64 subscribers", "check: without the steps of 64 subscribers"):
        assert text in result.stdout
    assert "plotly" in page.read_text(encoding="utf-8")
    assert "law, knee and power of N do not agree" in far
    (fit,) = fit_object("fit", capacity, "--clients", "128,6400")
    predictions = fit["law"]["predictions"]
    assert predictions[0]["throughput"]["low"] < 2_500_000 < predictions[0]["throughput"]["high"]
    assert [each["extrapolated"] for each in predictions] == [False, True]
    assert fit["evidence_ends_at"] == 64
    assert "bandwidth" in [budget["name"] for budget in fit["budgets"]]


@pytest.mark.tier("test")
def test_each_setting_that_varies_has_a_law_of_its_own(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", runs.BATCH, COUNTS[:6])
    assert [fit["settings"] for fit in fit_object("fit", run)] == ["msg_batch 100", "msg_batch 1000"]


@pytest.mark.tier("test")
def test_a_search_has_its_fastest_step_of_each_count(tmp_path: Path) -> None:
    sweep = replace(runs.SEARCHES, search=SearchSpec(start_rate=40_000.0, series=("max_rate",)))
    (fit,) = fit_object("fit", run_of(tmp_path / "run", replace(runs.SEARCH, sweep=sweep), COUNTS[:6]))
    assert fit["law"]["counts"] == list(COUNTS[:6])


@pytest.mark.tier("test")
def test_held_rates_are_called_the_demand(tmp_path: Path) -> None:
    text = hydra("fit", run_of(tmp_path / "run", at_rate(10.0), COUNTS[:6])).stdout
    assert "its throughput is that rate, and no limit of the system" in text


def test_three_points_and_a_run_without_a_measured_step_are_refused(tmp_path: Path) -> None:
    text = refused("fit", run_of(tmp_path / "few", runs.FIXED, COUNTS[:3]))
    assert "3 subscriber counts that could be measured: a fit needs 6" in text
    run = runs.make(tmp_path / "run", runs.FIXED, lambda _: ("failed", "no"), steps=2)
    assert "has no step that was measured" in refused("fit", run)


def sampled(cpu: float, memory: float, mbit_s: float, speed_mbit: int | None) -> list[HostSample]:
    """A host with two cores and 1 GB that uses these shares of them, and sends so much."""

    def counters(k: int) -> HostCounters:
        cores = [CoreTimes(k * cpu, 0.0, float(k))] * 2
        sent = {"eth0": InterfaceCounts(0, round(k * mbit_s * 125_000), 0, 0, speed_mbit)}
        return HostCounters(cores, {}, 10**9, round((1 - memory) * 10**9), sent, TcpCounts(0, 0), 0)

    return [HostSample(START + k * SECOND, counters(k)) for k in (0, 5, 10)]


def planted(directory: Path, *, hosts: int = 2, speed_mbit: int | None = 1000, quota_cpus: float = 0.0) -> Path:
    """At 10/s to each client, each takes 0.4 % of two cores, 0.2 % of the memory and 0.1 % of a link of 1 Gbit/s."""
    scenario = at_rate(10.0)
    names = ["a", "b"][:hosts]
    with RunStore.create(directory, {**runs.FACTS, "name": "run", "scenario": scenario}) as store:
        for epoch, clients in enumerate(COUNTS, 1):
            plan = StepPlan(clients, scenario.settings, 10.0)
            busy = sampled(0.02 + 0.004 * clients, 0.3 + 0.002 * clients, clients, speed_mbit)
            idle = sampled(0.01, 0.1, 0.1, speed_mbit)
            samples = dict(zip(names, (busy, idle), strict=False))
            o = replace(runs.observe(scenario, plan), hosts=samples, host_of={f"on-{name}": name for name in names})
            histograms = merge_histograms(o)
            store.add_step(StepResult(epoch, plan, "ok", figures(o, histograms)), o, histograms)
        store.set_meta(MACHINES_KEY, {name: MachineRecord(quota_cpus=quota_cpus) for name in names})
        store.set_meta("ended", "finished")
    return directory


@pytest.mark.tier("test")
def test_the_host_resource_that_ends_first_is_named_with_its_bounds(tmp_path: Path) -> None:
    """The CPU ends at (0.92 - 0.02) / 0.004 = 225 subscribers, the memory at 350, and the link at 900."""
    run = planted(tmp_path / "run")
    (fit,) = fit_object("fit", run, "--clients", "100,2000")
    found = fit["host_resources"]
    assert (found["first"], found["perhaps_first"]) == ("CPU", [])
    assert [(each["name"], each["host"], each["has"]) for each in found["known"]] == [
        ("CPU", "a", 2.0), ("memory", "a", 1e9), ("network", "a", pytest.approx(1.25e8)),
    ]  # fmt: skip
    for each, truth in zip(found["known"], (225, 350, 900), strict=True):
        ends = each["ends_at_clients"]
        assert ends["low"] < truth < ends["high"], each
        assert ends["estimate"] == pytest.approx(truth, rel=0.1)
    assert [each["extrapolated"] for each in found["known"]] == [True, True, True]
    assert list(found["unknown"]) == ["open files, local ports and process ids"]
    share = found["known"][0]["predictions"][0]
    assert share["low"] < 0.42 < share["high"]
    lines = hydra("fit", run, "--clients", "100,2000").stdout.splitlines()
    near, far = (line for line in lines if "CPU of a, at" in line)
    assert near.startswith("  100 subscribers: none yet; CPU of a, at ")
    assert far.startswith("  2,000 subscribers: CPU of a, at ")
    assert "EXTRAPOLATED to 3." in far
    assert any("not known: open files, local ports and process ids (a run does not record" in line for line in lines)


@pytest.mark.parametrize(
    ("run", "unknown"),
    [
        ({}, {}),
        ({"hosts": 1}, {"network": "all clients were on one host"}),
        ({"speed_mbit": None}, {"network": "the speed of no link is known"}),
        (
            {"quota_cpus": 1.5},
            {"CPU": "a quota of 1.5 CPUs limits its processes, which a host does not show"},
        ),
    ],
)
def test_a_host_resource_that_a_run_does_not_show_is_unknown_with_the_reason(
    tmp_path: Path, run: dict[str, Any], unknown: dict[str, str]
) -> None:
    assert read_run(planted(tmp_path / "run", **run)).unknown == unknown


def test_a_run_without_samples_of_its_hosts_knows_no_end(capacity: Path) -> None:
    text = hydra("fit", capacity, "--clients", "128").stdout
    assert "  128 subscribers: not known" in text
    assert "CPU (the run has no samples of it)" in text
