"""`hydra agents` and `hydra check` say what they look at."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli import cli
from hydra.config.cluster import load_cluster
from hydra.config.places import conf_dir
from hydra.config.scenario import load_scenario
from hydra.model import Agent, Resources
from hydra.run.agents import agent_rows, alike

CLUSTER = """
[[agents]]
id = "large"
resources = "cpus:640;mem:9000000"
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text('system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\n[sweep]\nclients = [2]\nduration_s = 0.5\n')
    return path


@pytest.fixture(autouse=True)
def _limits_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hydra.client.processes.raise_open_files", lambda: None)


def test_agents_are_declared_in_a_file_and_are_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(CLUSTER)
    text = CliRunner().invoke(cli, ["agents", "--config", str(file)]).output
    assert "cpus:640" in text
    assert f"declared in {file}" in text
    cores = len(os.sched_getaffinity(0))
    assert f"this machine, which has {cores} core" in text
    assert "GB of memory" in text


def test_programs_are_told_the_file_too() -> None:
    rows = json.loads(CliRunner().invoke(cli, ["agents", "--json"]).output)
    assert {row["declared_in"] for row in rows} == {str(conf_dir() / "hydra.toml")}


def test_check_says_what_it_checks(mine: Path) -> None:
    assert f"Scenario {mine} ({mine}); clients: pyzmq" in CliRunner().invoke(cli, ["check", str(mine)]).output
    usual = CliRunner().invoke(cli, ["check", "--clients", "2"]).output
    assert "Scenario zmqrate (" in usual
    assert "no scenario was named" in usual
    assert "no scenario was named" not in CliRunner().invoke(cli, ["check", "zmqrate", "--clients", "2"]).output


def test_check_takes_the_flags_of_the_system(mine: Path) -> None:
    done = CliRunner().invoke(cli, ["check", str(mine), "--publishers", "3", "--clients", "5"])
    assert ["5", "3"] in [line.split()[:2] for line in done.output.splitlines()]


def test_only_the_embedded_engine_needs_agents_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[kubernetes]\nnamespace = "lab"\n')
    assert load_cluster(file).agents == ()
    commands = ["agents"], ["check", "zmqfixed"], ["zmqfixed", "--clients", "1", "--out", str(tmp_path / "run")]
    for command in commands:
        refused = CliRunner().invoke(cli, [*command, "--config", str(file)])
        assert "declares no agents, on which --master local runs" in str(refused.exception)
    assert not (tmp_path / "run").exists()


def test_programs_are_told_what_a_row_needs_of_this_machine(mine: Path) -> None:
    done = CliRunner().invoke(cli, ["check", str(mine), "--clients", "2,900000", "--json"])
    assert done.exit_code == 3
    said = json.loads(done.output)
    assert (said["file"], said["agents"], said["notes"]) == (str(mine), None, [])
    two, many = said["rows"]
    assert (two["fits"], two["publishers"], many["fits"]) == (True, 1, False)
    assert two["processes"] > 2
    assert many["memory_bytes"] > two["memory_bytes"] > 0
    assert [set(each) for each in many["missing"]] == [{"text", "remedy", "grave"}] * len(many["missing"])
    assert any(each["grave"] and each["remedy"] for each in many["missing"])


def agent(name: str, **labels: str) -> Agent:
    """An agent with the attributes ``group`` and those of a domain."""
    own = {f"x.io/{key}": value for key, value in labels.items() if key != "group"}
    return Agent(name, f"{name}.lan", {**own, **{k: v for k, v in labels.items() if k == "group"}}, Resources())


@pytest.mark.parametrize(
    ("agents", "constraint", "found"),
    [
        ([agent("a", os="linux", host="a"), agent("b", os="linux", host="b.lan")], "", {"os": "linux", "host": None}),
        ([agent("a", os="linux", zone="1"), agent("b", os="linux", zone="2")], "", {"os": "linux"}),
        ([agent("a", os="linux"), agent("b")], "", {}),
        ([agent("a", worker=""), agent("b", worker="")], "", {"worker": ""}),
        ([agent("a", os="linux", zone="1"), agent("b", os="linux", zone="1")], "x.io/zone", {"os": "linux"}),
        ([agent("a", group="large", os="linux")], "", {"os": "linux"}),
        ([], "", {}),
    ],
)
def test_attributes_that_tell_no_agent_from_another(
    agents: list[Agent], constraint: str, found: dict[str, str | None]
) -> None:
    constraints = [[constraint, "UNIQUE"]] if constraint else []
    scenario = load_scenario("zmqfixed", {"subscriber.constraints": constraints, "publisher.constraints": []})
    left_out = {f"x.io/{name}": value for name, value in found.items()}
    assert alike(agents, scenario) == left_out
    rows = agent_rows(agents, scenario, left_out)
    assert not any(name in row["attributes"] for row in rows for name in left_out)
    assert [row["attributes"].count("large") for row in rows] == ["group" in a.attributes for a in agents]


def test_what_is_left_out_of_the_table_is_said_and_shown_on_demand(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    declared = 'id = "{0}"\nattributes = "group:{0};x.io/os:linux;x.io/host:{0}"\nresources = "cpus:4;mem:900"\n'
    file.write_text("".join(f"[[agents]]\n{declared.format(name)}" for name in ("one", "two")))
    text, whole = (
        CliRunner().invoke(cli, ["agents", "--config", str(file), *flags]).output for flags in ([], ["--all"])
    )
    assert "On all of them: x.io/os:linux. The name of each: x.io/host. hydra agents --all shows these" in text
    assert text.count("x.io/os:linux") == 1
    assert whole.count("x.io/os:linux") == 2
    assert "On all of them" not in whole
    rows = json.loads(CliRunner().invoke(cli, ["agents", "--config", str(file), "--json"]).output)
    assert all("x.io/os:linux" in row["attributes"] for row in rows)
