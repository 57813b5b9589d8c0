"""The presets for design goals: what they set, what goes before them, and names that no preset has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydra.config.scenario import load_scenario, resolved_from
from hydra.errors import ConfigError
from hydra.model import Scenario, value_of, with_values


def settings_with(preset: str, **more: object) -> Scenario:
    return load_scenario("kafka-fixed", {"preset": preset, **more})


@pytest.mark.parametrize(
    ("more", "acks", "replicas"),
    [({}, "all", 3), ({"settings.acks": "1"}, "1", 3), ({"kafka.replication_factor": 2}, "all", 2)],
)
def test_a_preset_goes_before_the_file_and_behind_other_flags(
    more: dict[str, object], acks: str, replicas: int
) -> None:
    scenario = settings_with("durability", **more)
    assert (value_of(scenario.settings, "acks"), scenario.tables["kafka"].replication_factor) == (acks, replicas)
    assert scenario.tables["kafka"].topic["min.insync.replicas"] == "2"
    assert (scenario.preset, scenario.server.count) == ("durability", 3)


def written(**keys: Any) -> Scenario:
    file: dict[str, Any] = {"system": "kafka", "client": "native", "table": "fixed"}
    file |= {"sweep": {"clients": [1], "duration_s": 1.0}, **keys}
    given = file.pop("given", {})
    return resolved_from("mine", "mine", file, given).scenario


def test_a_file_goes_before_the_preset_that_it_names() -> None:
    own = {"kafka": {"topic": {"min.insync.replicas": "3"}}, "settings": {"retries": 7}}
    scenario = written(preset="durability", **own)
    assert scenario.tables["kafka"].topic["min.insync.replicas"] == "3"
    assert [value_of(scenario.settings, name) for name in ("retries", "acks")] == [7, "all"]
    # A preset that is given takes its place, and goes before what the file sets itself.
    scenario = written(preset="durability", settings={"linger_ms": 5.0}, given={"preset": "throughput"})
    assert [value_of(scenario.settings, name) for name in ("linger_ms", "acks")] == [10.0, "1"]
    assert scenario.preset == "throughput"


@pytest.mark.parametrize("preset", ["throughput", "latency", "durability", "availability"])
@pytest.mark.parametrize("bootstrap", ["", "mine:9092"])
def test_every_preset_is_usable_with_any_cluster(preset: str, bootstrap: str) -> None:
    assert settings_with(preset, **{"kafka.bootstrap": bootstrap}).preset == preset


def test_what_a_preset_adds_to_an_empty_table_is_not_the_users(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    tables = "[sweep]\nclients = [1]\nduration_s = 1.0\n[server]\n[kafka]\nbootstrap = 'mine:9092'\n"
    file.write_text(f"system = 'kafka'\nclient = 'native'\npreset = 'availability'\ntable = 'fixed'\n{tables}")
    assert load_scenario(str(file)).preset == "availability"


def test_a_whole_number_that_a_sweep_varies_is_like_the_one_that_was_stored() -> None:
    settings = load_scenario("kafka-batch").settings
    changed = with_values(settings, {"rate": 100, "linger_ms": 5, "msg_batch": 10})
    values = [value_of(changed, name) for name in ("rate", "linger_ms", "msg_batch")]
    assert list(map(repr, values)) == ["100.0", "5.0", "10"]


def test_settings_of_the_users_brokers_are_theirs() -> None:
    more = {"kafka.bootstrap": "mine:9092", "kafka.broker.num.io.threads": 4}
    with pytest.raises(ConfigError, match="Hydra changes no settings of your brokers"):
        settings_with("durability", **more)


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        ("durabilty", "has no preset 'durabilty'; did you mean durability"),
        (3, "has no preset 3"),
        ("x", "presets of this system: "),
    ],
)
def test_an_unknown_preset_is_one_line(preset: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        written(preset=preset)


def test_a_system_without_presets_says_so() -> None:
    with pytest.raises(ConfigError, match="system zmq has no preset 'latency'; this system has no presets"):
        load_scenario("zmqfixed", {"preset": "latency"})
