"""Runs that earlier versions stored go on as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hydra.cli.run_command import begun
from hydra.config.scenario import load_scenario, resolve
from hydra.errors import RunDirectoryError
from hydra.run.run_metadata import scenario_of
from hydra.store.database import RunStore
from tests.run.begun_runs import known_of, stored

FLAT: dict[str, object] = {"msg_batch": 100, "sndhwm": 1000, "rcvhwm": 1000, "nodrop": False}
FLAT |= {"linger_ms": 0.0, "batch_bytes": None, "compression": "none", "acks": "1"}
NATIVE = {"publisher": "native", "io_threads": 1, "transport": "tcp", "sndbuf": 0, "rcvbuf": 0, "secure": False}
"""What every stored step had, whatever its system."""


def stored_before(name: str, overrides: dict[str, object]) -> dict[str, Any]:
    """The metadata of a run as the version before systems had settings of their own stored it."""
    scenario = load_scenario(name, overrides)
    known = known_of(scenario, overrides)
    flat = msgspec.to_builtins(known["scenario"])
    own, options, tables = flat["settings"].pop("system"), flat["native"].pop("system"), flat.pop("tables")
    burst = flat["settings"].pop("burst")
    del flat["settings"]["payload"]
    flat["settings"] |= FLAT | ({"msg_batch": burst} if burst else {}) | own
    flat["native"] |= NATIVE | options
    no_cluster = {"bootstrap": "", "partitions": 1, "replication_factor": 1, "properties": {}}
    flat |= {"broker": flat.pop("server"), "kafka": no_cluster, **tables}
    flat["table"] = {"rates": "zmqrate"}.get(flat["table"], flat["table"])
    return {**known, "scenario": flat}


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("zmqrate", {}),
        ("zmqrate", {"settings.msg_batch": 7, "settings.sndhwm": 5}),
        ("zmqburst", {"native.sndbuf": 4096}),
        ("kafka-batch", {"broker.count": 3, "kafka.replication_factor": 2}),
        ("kafka-fixed", {"settings.acks": "all", "kafka.properties.socket.timeout.ms": 1}),
    ],
)
def test_a_run_of_an_earlier_version_goes_on(tmp_path: Path, name: str, overrides: dict[str, object]) -> None:
    RunStore.create(tmp_path, stored_before(name, overrides)).close()
    assert scenario_of(tmp_path, name, {}).scenario == load_scenario(name, overrides)


def test_a_run_that_was_begun_with_a_setting_without_effect_goes_on(tmp_path: Path) -> None:
    first: dict[str, object] = {"settings.storage": "file"}
    begun_with = resolve("nats-fixed", first, alone=False).scenario
    RunStore.create(tmp_path, known_of(begun_with, first)).close()
    assert scenario_of(tmp_path, "nats-fixed", {}).scenario == begun_with


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("zmqfixed", {"settings.sndhwm": 5}, "settings.sndhwm was 1000 and is now 5"),
        ("kafka-fixed", {"kafka.partitions": 2}, "kafka.partitions was 1 and is now 2"),
        ("kafka-fixed", {"settings.linger_ms": 3.0}, "settings.linger_ms was 10.0 and is now 3.0"),
    ],
)
def test_what_differs_from_it_is_named_by_its_key_in_a_file(
    tmp_path: Path, name: str, given: dict[str, object], says: str
) -> None:
    RunStore.create(tmp_path, stored_before(name, {})).close()
    with pytest.raises(RunDirectoryError, match=says):
        scenario_of(tmp_path, name, given)


def test_the_scenario_of_a_run_is_that_of_the_command_that_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stored(tmp_path / "named", {}, "zmqfixed", "--clients", "2")
    assert begun(tmp_path / "named") == "zmqfixed"
    stored(tmp_path / "file", {"name": "mine"}, "zmqfixed", "run", "./mine.toml")
    with pytest.raises(RunDirectoryError, match="is a run of mine, whose file is not found here"):
        begun(tmp_path / "file")
    (tmp_path / "mine.toml").touch()
    assert begun(tmp_path / "file") == "./mine.toml"


@pytest.mark.parametrize(
    ("name", "replaced", "system"), [("kafka-fixed", {"settings.linger_ms": 3.0}, "kafka"), ("zmqfixed", {}, "zmq")]
)
def test_another_commands_run_is_refused_with_the_command_that_began_it(
    tmp_path: Path, name: str, replaced: dict[str, object], system: str
) -> None:
    stored(tmp_path, replaced, name, "--clients", "2")
    says = rf"is a run of {name} \(system {system}\), and this command runs zmqrate \(system"
    with pytest.raises(RunDirectoryError, match=says) as refused:
        scenario_of(tmp_path, "zmqrate", {})
    assert f"with --resume in place of --out: hydra {name} --clients 2" in refused.value.remedy
