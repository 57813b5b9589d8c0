"""A stored run continues with its own scenario, and with no other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydra.cli.scenario_execution import begun
from hydra.config.read_ahead import ahead_limit, kept_limit
from hydra.config.scenario import resolve
from hydra.errors import RunDirectoryError
from hydra.kafkatest.settings import spec_of
from hydra.run.run_metadata import scenario_of
from hydra.store.database import RunStore
from tests.limits.machines import AMPLE, GB
from tests.run.begun_runs import CLUSTER, known_of, stored


def test_a_run_that_was_begun_with_a_setting_without_effect_goes_on(tmp_path: Path) -> None:
    first: dict[str, object] = {"settings.storage": "file"}
    begun_with = resolve("nats-fixed", first, alone=False).scenario
    RunStore.create(tmp_path, known_of(begun_with, first)).close()
    assert scenario_of(tmp_path, "nats-fixed", {}).scenario == begun_with


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("zmqfixed", {"settings.sndhwm": 5}, "settings.sndhwm was 1000 and is now 5"),
        ("zmqfixed", {"settings.burst": 7}, "settings.burst was 100 and is now 7"),
        ("kafka-fixed", {"kafka.partitions": 2}, "kafka.partitions was 1 and is now 2"),
        ("kafka-fixed", {"settings.linger_ms": 3.0}, "settings.linger_ms was 10.0 and is now 3.0"),
    ],
)
def test_what_differs_from_it_is_named_by_its_key_in_a_file(
    tmp_path: Path, name: str, given: dict[str, object], expected: str
) -> None:
    stored(tmp_path, {}, name)
    with pytest.raises(RunDirectoryError, match=expected):
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
    expected = rf"is a run of {name} \(system {system}\), and this command runs zmqrate \(system"
    with pytest.raises(RunDirectoryError, match=expected) as refused:
        scenario_of(tmp_path, "zmqrate", {})
    assert f"with --resume in place of --out: hydra {name} --clients 2" in refused.value.remedy


def test_the_usual_burst_may_be_named_or_not(tmp_path: Path) -> None:
    stored(tmp_path, {}, "zmqfixed")
    assert scenario_of(tmp_path, "zmqfixed", {"settings.burst": 100}) == scenario_of(tmp_path, "zmqfixed", {})


@pytest.mark.parametrize("available_gb", [12, 64])
def test_a_resumed_run_keeps_the_limit_of_its_read_ahead_whatever_memory_is_available(
    tmp_path: Path, available_gb: int
) -> None:
    """Loaded again for ``--resume``, or loaded once for all turns of a comparison."""
    begun_with = resolve("kafka-fixed", {"client": "native", "sweep.clients": [10, 1000], "settings.rate": "max"})
    limit = ahead_limit(begun_with, CLUSTER, replace(AMPLE, memory_available_bytes=24 * GB))
    assert limit is not None
    first = {"client": "native", "sweep.clients": [10, 1000], "settings.rate": "max", **limit.override}
    RunStore.create(tmp_path, known_of(kept_limit(begun_with, limit.override).scenario, first)).close()
    with RunStore.open(tmp_path) as store:
        overrides = store.meta("overrides")
    loaded = scenario_of(tmp_path, "kafka-fixed", {})
    for found in (loaded, kept_limit(loaded, overrides), kept_limit(begun_with, overrides)):
        assert spec_of(found.scenario).read_ahead == limit.messages == 40_967
        assert ahead_limit(found, CLUSTER, replace(AMPLE, memory_available_bytes=available_gb * GB)) is None
    assert kept_limit(begun_with, {}) == begun_with
    with pytest.raises(RunDirectoryError, match=r"kafka\.read_ahead was 40967 and is now 500"):
        scenario_of(tmp_path, "kafka-fixed", {"kafka.read_ahead": 500})
