"""`hydra agents` and `hydra check` name their agents, here and on a cluster elsewhere."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from click.testing import CliRunner, Result

from hydra.cli.agents_and_leftovers import agent_rows, alike
from hydra.cli.main import cli
from hydra.config import plugins
from hydra.config.cluster import load_cluster
from hydra.config.file_locations import conf_dir
from hydra.config.scenario import resolve
from hydra.engine.specification import ClusterChecks
from hydra.model import Agent, Resources
from tests.engines import toy_engine
from tests.engines.flags import for_a_test
from tests.integration.command import refusal


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text('system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\n[sweep]\nclients = [2]\nduration_s = 0.5\n')
    return path


@pytest.fixture(autouse=True)
def _limits_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hydra.client.linux_process.raise_open_files", lambda: None)


def output(*words: object) -> str:
    return CliRunner().invoke(cli, [*map(str, words)]).output


def test_agents_are_declared_in_a_file_and_are_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[[agents]]\nid = "large"\nresources = "cpus:640;mem:9000000"\n')
    text = output("agents", "--config", file)
    assert "cpus:640" in text
    assert f"declared in {file}" in text
    cores = len(os.sched_getaffinity(0))
    assert f"this machine, which has {cores} core" in text
    assert "GB of memory" in text


def test_programs_are_told_the_file_too() -> None:
    rows = json.loads(output("agents", "--json"))
    assert [row["agent"] for row in rows] == ["agent-pub", "agent-sub-1", "agent-sub-2", "agent-sub-3"]
    assert rows[0]["attributes"] == "group:cpu4-mem16"
    assert {row["declared_in"] for row in rows} == {str(conf_dir() / "hydra.toml")}


def test_check_says_what_it_checks(mine: Path) -> None:
    assert f"Scenario {mine} ({mine}); clients: pyzmq" in output("check", mine)
    usual = output("check", "--clients", 2)
    assert "Scenario zmqrate (" in usual
    assert "no scenario was named" in usual
    assert "no scenario was named" not in output("check", "zmqrate", "--clients", 2)


def test_check_takes_the_flags_of_the_system(mine: Path) -> None:
    lines = output("check", mine, "--publishers", 3, "--clients", 5).splitlines()
    assert ["5", "3"] in [line.split()[:2] for line in lines]


def test_only_the_local_engine_needs_agents_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text('[kubernetes]\nnamespace = "lab"\n')
    assert load_cluster(file).agents == ()
    for command in ["agents"], ["check", "zmqfixed"], ["zmqfixed", "--clients", 1, "--out", tmp_path / "run"]:
        assert "declares no agents, on which --master local runs" in refusal(*command, "--config", file)
    assert not (tmp_path / "run").exists()


def test_programs_are_told_what_a_row_needs_of_this_machine(mine: Path) -> None:
    done = CliRunner().invoke(cli, ["check", str(mine), "--clients", "2,900000", "--json"])
    assert done.exit_code == 3
    text = json.loads(done.output)
    assert (text["file"], text["agents"], text["notes"]) == (str(mine), None, [])
    two, many = text["rows"]
    assert (two["fits"], two["publishers"], many["fits"]) == (True, 1, False)
    assert two["processes"] > 2
    assert many["memory_bytes"] > two["memory_bytes"] > 0
    assert [set(each) for each in many["missing"]] == [{"text", "remedy", "grave"}] * len(many["missing"])
    assert any(each["grave"] and each["remedy"] for each in many["missing"])


@pytest.mark.parametrize(
    ("system", "short", "long"), [("kafka", 22, 24), ("nats", 4, 6), ("mqtt", 3, 5)], ids=lambda it: str(it)
)
def test_check_names_a_step_that_ends_before_the_clients_of_a_restarted_server_are_back(
    system: str, short: int, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hydra.run.launcher.system_for", Mock())  # it needs the system's programs
    event = ("--set", 'events=[{at_s=1.0,kind="restart_server",for_s=1.0}]')
    for seconds in short, long:
        named = ("--implementation", next(iter(plugins.system(system).identity.implementations)))
        notes = json.loads(output("check", f"{system}-fixed", *named, *event, "--duration", seconds, "--json"))["notes"]
        assert [note.partition(":")[0] for note in notes] == ["'restart_server'"] * (seconds == short)


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
    resolved = resolve("zmqfixed", {"subscriber.constraints": constraints, "publisher.constraints": []})
    left_out = {f"x.io/{name}": value for name, value in found.items()}
    assert alike(agents, resolved.scenario) == left_out
    rows = agent_rows(agents, resolved, left_out)
    assert not any(name in row["attributes"] for row in rows for name in left_out)
    assert [row["attributes"].count("large") for row in rows] == ["group" in a.attributes for a in agents]


def test_what_is_left_out_of_the_table_is_said_and_shown_on_demand(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    declared = 'id = "{0}"\nattributes = "group:{0};x.io/os:linux;x.io/host:{0}"\nresources = "cpus:4;mem:900"\n'
    file.write_text("".join(f"[[agents]]\n{declared.format(name)}" for name in ("one", "two")))
    text, whole = (output("agents", "--config", file, *flags) for flags in ([], ["--all"]))
    assert (
        "The same on all agents: x.io/os:linux. Equal to the name of each agent: x.io/host. "
        "hydra agents --all shows these attributes" in text
    )
    assert text.count("x.io/os:linux") == 1
    assert whole.count("x.io/os:linux") == 2
    assert "On all of them" not in whole
    rows = json.loads(output("agents", "--config", file, "--json"))
    assert all("x.io/os:linux" in row["attributes"] for row in rows)


# --- a cluster elsewhere -------------------------------------------------------------------------------------------

TWO = """
[[agents]]
id = "one"
attributes = "group:cpu4-mem16"
resources = "cpus:4;mem:15000"
[[agents]]
id = "two"
attributes = "group:cpu16-mem60"
resources = "cpus:1;mem:2000"
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster file with the agents of the only engine that there is, whose groups run elsewhere."""

    def told(master: str, settings: Any) -> list[str]:
        return [f"{master}: no quota in the {settings.room}"]

    spec = replace(toy_engine.SPEC, name="far", is_local=False, checks=ClusterChecks(told), commands=())
    far = {"far": spec}
    for module in ("options.plugin_commands", "options.engine_choice", "config.cluster"):
        monkeypatch.setattr(f"hydra.{module}.engines", lambda: far)
    monkeypatch.setattr(
        "hydra.config.shortages.read_limits", lambda *_: pytest.fail("this machine's limits are nobody's")
    )
    path = tmp_path / "cluster.toml"
    path.write_text(TWO)
    with for_a_test(spec):
        yield path


def checked(cluster: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["check", "zmqfixed", *words, "--engine", "far://x", "--config", str(cluster)])


def test_every_row_that_can_be_placed_fits(cluster: Path) -> None:
    done = checked(cluster, "--clients", "2,8", "--room", "attic")
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.output.splitlines()]
    assert [line[-1] for line in lines if line[:1] in (["one"], ["two"])] == ["publisher", "subscriber"]
    rows = [line for line in lines if line[:2] in (["2", "1"], ["8", "1"])]
    assert [(row[2], row[3], row[-1]) for row in rows] == [("2", "2", "yes"), ("3", "2", "yes")]
    assert done.output.splitlines()[-1] == "far://x: no quota in the attic"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["--clients", "2,5000"],
            "5,000 subscribers: 4,998 subscriber clients do not fit: the agent that matches group",
        ),
        (
            ["--clients", "2", "--set", 'publisher.constraints=[["group","CLUSTER","cpu1"]]'],
            "2 subscribers: no agent for 1 publisher client: 0 of 2 agents match group CLUSTER cpu1; "
            "seen: cpu16-mem60 x1",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_told_with_what_is_missing(cluster: Path, words: list[str], expected: str) -> None:
    done = checked(cluster, *words)
    assert done.exit_code == 3
    assert expected in done.output
    assert done.output.splitlines()[-1] == "far://x: no quota in the nursery"


def test_default_constraints_on_an_attribute_that_no_agent_has_do_not_apply(cluster: Path) -> None:
    cluster.write_text(re.sub("attributes = .*\n", "", TWO))
    done = checked(cluster, "--clients", "2", "--room", "attic")
    assert done.exit_code == 0, done.output
    left_out = "no agent has the attribute group: the scenario's default constraints on it do not apply"
    assert left_out in done.output
    assert left_out in output("agents", "--for", "zmqfixed", "--config", cluster, "--engine", "far://x")
    own = checked(cluster, "--clients", "2", "--set", 'publisher.constraints=[["group","CLUSTER","cpu1"]]')
    assert own.exit_code == 3
    assert "0 of 2 agents match group CLUSTER cpu1; seen: no such attribute x2" in own.output


def test_constraints_of_a_users_own_file_are_no_defaults(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text((conf_dir() / "scenarios" / "zmqfixed.toml").read_text())
    assert resolve(own).default_constraints == {"server"}
    assert resolve("zmqfixed").default_constraints == {"publisher", "subscriber", "server"}
    assert resolve("zmqfixed", {"subscriber.constraints": []}).default_constraints == {"publisher", "server"}


def test_programs_are_told_the_same(cluster: Path) -> None:
    done = checked(cluster, "--clients", "2,5000", "--json")
    assert done.exit_code == 3
    text = json.loads(done.output)
    assert list(text) == ["scenario", "file", "system", "client", "fits", "rows", "agents", "notes"]
    assert (text["scenario"], text["system"], text["fits"]) == ("zmqfixed", "zmq", False)
    agents = [(agent["agent"], agent["could run"]) for agent in text["agents"]]
    assert agents == [("one", "publisher"), ("two", "subscriber")]
    two, many = text["rows"]
    assert (two["clients"], two["fits"], two["groups"], two["on_agents"], two["missing"]) == (2, True, 2, 2, [])
    assert two["cpus"] > 0
    assert (many["fits"], many["groups"], many["cpus"]) == (False, None, None)
    (missing,) = many["missing"]
    assert missing["text"].startswith("4,998 subscriber clients do not fit")
    assert missing["grave"]
    of_clients, *notes = text["notes"]
    assert of_clients.startswith("pyzmq clients: ")
    assert notes == ["far://x: no quota in the nursery"]


def test_of_many_rows_that_do_not_fit_the_smallest_and_the_largest_are_told(cluster: Path) -> None:
    done = checked(cluster, "--clients", "2,3000,4000,5000")
    reported = [line.split(":")[0] for line in done.output.splitlines() if "do not fit" in line]
    assert reported == ["3,000 subscribers", "5,000 subscribers"]


def test_what_is_left_out_of_the_table_is_said(cluster: Path) -> None:
    assert "hydra agents --all" not in checked(cluster).output
    cluster.write_text(re.sub(r'mem(16|60)"', r'mem\1;x.io/os:linux"', TWO))
    text = checked(cluster).output
    assert "The same on all agents: x.io/os:linux. hydra agents --all shows these attributes in the table, too." in text
    assert text.count("x.io/os:linux") == 1
