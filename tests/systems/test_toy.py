"""A system in a package of its own, found by its entry point: nothing in Hydra names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli.main import cli
from hydra.config import plugins
from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError
from hydra.store.database import RunStore
from tests.integration.command import assert_all_arrived, background, hydra, table
from tests.suite.waiting import LONG_S, wait_until
from tests.systems.package import installed_toy

SCENARIO = """
system = "toy"
client = "file"
table = "fixed"

[sweep]
clients = [2]
duration_s = 1.0

[settings]
rate = 100.0

[toy]
password = "geheim"
"""
SHORT = ("--duration", 0.3, "--set", "warmup_s=0")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the package."""
    folder = installed_toy(tmp_path_factory.mktemp("site"), "system")
    (folder / "scenarios").mkdir()
    (folder / "scenarios" / "toy.toml").write_text(SCENARIO)
    return folder


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package can be imported in this process."""
    monkeypatch.syspath_prepend(package)
    registries = (plugins.systems, plugins.commands)
    for registry in registries:
        registry.cache_clear()
    yield
    for registry in registries:
        registry.cache_clear()


@pytest.mark.tier("test")
def test_its_command_runs_its_scenario_and_hides_its_secret(package: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    requests = ("toy-fixed", "--clients", 3, "--chunk", 1000, *SHORT, "--set", "toy.file=x.data", "--out", run)
    hydra(*requests, PYTHONPATH=str(package))
    (row,) = table(run)
    assert row["clients"] == "3"
    assert_all_arrived(row, 30)
    with RunStore.open(run) as store:
        scenario = store.meta("scenario", {})
    assert scenario["tables"] == {"toy": {"file": "x.data", "password": "***"}}
    assert scenario["settings"]["system"] == {"chunk": 1000, "shared": 0}
    assert "file (toy 1.0) · chunks of 1,000 B · on this machine, " in (run / "table.md").read_text()
    assert (run / "x.data").stat().st_size > int(row["total_tx"]) * 24
    # Without its package a run is listed, and its report refused.
    assert "toy" in hydra("runs", tmp_path).stdout
    refused = hydra("report", run, expect=2).stderr
    assert refused == f"hydra: no system 'toy' is installed; known systems: {', '.join(plugins.systems())}\n"


@pytest.mark.usefixtures("installed")
def test_its_scenarios_have_the_flags_of_its_commands() -> None:
    shown = CliRunner().invoke(cli, ["run", "toy", "--help"]).output
    assert "--chunk INTEGER" in shown
    assert "[default: 65536]" in shown


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"settings.chnk": 1}, "settings.chnk: unknown key; did you mean chunk?"),
        ({"settings.sndhwm": 1}, "settings.sndhwm: unknown key; this is a key of system zmq, not of toy"),
        ({"settings.chunk": 0}, "settings.chunk: must be 1 to 1000000, not 0"),
        ({"settings.chunk": 10**7}, "settings.chunk: must be 1 to 1000000, not 10000000"),
        ({"sweep.vary.chunk": [1, "x"]}, "sweep.vary.chunk.1: must be a valid integer, not 'x'"),
        ({"toy.pasword": "x"}, "toy.pasword: unknown key; did you mean password?"),
        ({"server.count": 2}, "server: system toy has no servers of its own; remove [server]"),
        ({"client": "native"}, "client: 'native' is no client of system toy; use file"),
        ({"system": "tor"}, "'toy' or 'zmq', not 'tor'"),
    ],
)
def test_what_its_scenario_cannot_be_is_refused(overrides: dict[str, object], expected: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load_scenario("toy", overrides)
    assert expected in str(refusal.value)


@pytest.mark.usefixtures("installed")
def test_its_settings_are_varied_beside_the_shared_ones() -> None:
    scenario = load_scenario("toy", {"sweep.vary": {"chunk": [10, 20], "message_size": [24, 100]}})
    assert scenario.sweep.crossed == ("chunk", "message_size")
    assert scenario.values_of("chunk") == (10, 20)
    assert scenario.settings.system.values() == {"chunk": 65536, "shared": 0}


@pytest.mark.tier("all")
@pytest.mark.parametrize(("shared", "nobodys"), [(3, 0), (4, 1)])
def test_members_of_a_group_have_one_account(package: Path, tmp_path: Path, shared: int, nobodys: int) -> None:
    run = tmp_path / "run"
    requests = (
        "toy-fixed",
        "--clients",
        3,
        "--shared",
        shared,
        "--rate",
        400,
        "--duration",
        0.5,
        "--set",
        "warmup_s=0",
    )
    hydra(*requests, "--out", run, PYTHONPATH=str(package))
    (row,) = table(run)
    with RunStore.open(run) as store:
        (step,) = store.results()
        members = [c for c in store.clients(step.epoch) if c["role"] == "subscriber"]
        sent = int(row["total_tx"])
        taken = {c["client"]: c["messages"] for c in members}
    absent = set(range(shared)) - {client % shared for client in taken}
    assert len(absent) == nobodys
    lost = sum(_share(sent, turn, shared) for turn in absent)
    assert sent > 50
    assert taken == {client: _share(sent, client % shared, shared) for client in taken}
    assert (row["group"], int(row["lost"]), int(row["unknown"])) == ("readers", lost, 0)
    assert int(row["in_window"]) + int(row["late"]) == sum(taken.values()) == sent - lost
    assert float(row["client_loss_pct"]) == pytest.approx(100 * lost / sent, abs=1e-4)
    assert (row["failed_clients"], row["duplicates"]) == ("0", "0")
    assert float(row["fairness_jain"]) > 0.999
    hydra("report", run, PYTHONPATH=str(package))


@pytest.mark.tier("all")
def test_what_a_killed_member_had_is_unknown_up_to_its_last_word(package: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    requests = ("toy-fixed", "--clients", 3, "--shared", 3, "--rate", 200, "--duration", 4, "--set", "warmup_s=0")
    arguments = (*requests, "--set", "toy.file=x.data", "--out", run)
    with background(*arguments, log=tmp_path / "log", env={"PYTHONPATH": str(package)}) as command:
        data = run / "x.data"
        # One and a half seconds of messages: every member has reported its count once.
        wait_until(lambda: data.is_file() and data.stat().st_size > 300 * 28, "the middle of the step", LONG_S)
        max(command.clients("toy-sub"), key=lambda p: (p.create_time(), p.pid)).kill()
        assert command.wait() == 3
    (row,) = table(run)
    with RunStore.open(run) as store:
        (step,) = store.results()
        members = {c["client"]: c for c in store.clients(step.epoch) if c["role"] == "subscriber"}
    ((victim, reported),) = [(client, c) for client, c in members.items() if c["state"] != "ok"]
    sent, word = int(row["total_tx"]), reported["more"]["last_word"]
    share = _share(sent, victim % 3, 3)
    assert 0 < word < share
    assert (int(row["unknown"]), int(row["lost"])) == (word, share - word)
    assert int(row["in_window"]) + int(row["late"]) == sent - share
    assert (row["failed_dead"], row["failed_lossy"]) == ("1", "0")


def _share(sent: int, turn: int, members: int) -> int:
    """How many of the sequences 0 … sent − 1 are a member's."""
    return len(range(turn, sent, members))
