"""`hydra check` of a cluster elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hydra.cli import cli
from tests.engines import toy_engine
from tests.engines.flags import for_a_test

CLUSTER = """
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
    spec = replace(toy_engine.SPEC, name="far", is_local=False, check=told, commands=())
    far = {"far": spec}
    for module in ("run.contributed", "run.engines", "config.engines"):
        monkeypatch.setattr(f"hydra.{module}.engines", lambda: far)
    monkeypatch.setattr("hydra.limits.machine.read", lambda *_: pytest.fail("this machine's limits are nobody's"))
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    with for_a_test(spec):
        yield path


def told(master: str, settings: Any) -> list[str]:
    return [f"{master}: no quota in the {settings.room}"]


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
    ("words", "says"),
    [
        (["--clients", "2,5000"], "5000 clients: 4998 subscriber clients do not fit: the 1 agents that match group"),
        (
            ["--clients", "2", "--set", 'publisher.constraints=[["group","CLUSTER","cpu1"]]'],
            "2 clients: no agent for 1 publisher clients: 0 of 2 agents match group CLUSTER cpu1; seen: cpu16-mem60 x1",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_told_with_what_is_missing(cluster: Path, words: list[str], says: str) -> None:
    done = checked(cluster, *words)
    assert done.exit_code == 3
    assert says in done.output
    assert done.output.splitlines()[-1] == "far://x: no quota in the nursery"


def test_programs_are_told_the_same(cluster: Path) -> None:
    done = checked(cluster, "--clients", "2,5000", "--json")
    assert done.exit_code == 3
    said = json.loads(done.output)
    assert list(said) == ["scenario", "file", "system", "client", "fits", "rows", "agents", "notes"]
    assert (said["scenario"], said["system"], said["fits"]) == ("zmqfixed", "zmq", False)
    assert [(agent["agent"], agent["could run"]) for agent in said["agents"]] == [
        ("one", "publisher"), ("two", "subscriber"),
    ]  # fmt: skip
    two, many = said["rows"]
    assert (two["clients"], two["fits"], two["groups"], two["on_agents"], two["missing"]) == (2, True, 2, 2, [])
    assert two["cpus"] > 0
    assert (many["fits"], many["groups"], many["cpus"]) == (False, None, None)
    (missing,) = many["missing"]
    assert missing["text"].startswith("4998 subscriber clients do not fit")
    assert missing["grave"]
    assert said["notes"] == ["far://x: no quota in the nursery"]


def test_of_many_rows_that_do_not_fit_the_smallest_and_the_largest_are_told(cluster: Path) -> None:
    done = checked(cluster, "--clients", "2,3000,4000,5000")
    assert [line.split(":")[0] for line in done.output.splitlines() if "do not fit" in line] == [
        "3000 clients",
        "5000 clients",
    ]


def test_what_is_left_out_of_the_table_is_said(cluster: Path) -> None:
    assert "hydra agents --all" not in checked(cluster).output
    labelled = CLUSTER.replace('cpu4-mem16"', 'cpu4-mem16;x.io/os:linux"').replace(
        'cpu16-mem60"', 'cpu16-mem60;x.io/os:linux"'
    )
    cluster.write_text(labelled)
    said = checked(cluster).output
    assert "On all of them: x.io/os:linux. hydra agents --all shows these in the table, too." in said
    assert said.count("x.io/os:linux") == 1
