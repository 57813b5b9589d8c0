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
    for command in (["agents"], ["zmqfixed", "--clients", "1", "--out", str(tmp_path / "run")]):
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
