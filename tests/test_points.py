"""``[[sweep.points]]`` of a scenario file: what is read, and every refusal with file, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario
from hydra.config.shortages import check_all, read_limits
from hydra.errors import ConfigError
from hydra.model import Agent, ClusterSpec, Resources, Scenario
from hydra.store.stored_scenario import as_stored, stored_scenario
from hydra.sweep.points import PointSweep, SweepPoint

HEAD = """
system = "{system}"
client = "native"
table = "fixed"
publishers = {publishers}
[settings]
rate = 1000
[sweep]
duration_s = 2.0
{sweep}
"""


def scenario(folder: Path, text: str, system: str = "kafka", sweep: str = "", publishers: int = 2) -> Scenario:
    path = folder / "mine.toml"
    path.write_text(HEAD.format(system=system, sweep=sweep, publishers=publishers) + text)
    return load_scenario(path)


THREE = """
[[sweep.points]]
name = "baseline"
[[sweep.points]]
name = "five"
publishers = 5
clients = 2
duration_s = 4.5
acks = "all"
[[sweep.points]]
name = "large"
message_size = 1000
"""


def test_points_are_read_with_their_settings_beside_their_names(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, THREE)
    points = (
        SweepPoint("baseline", publishers=2),
        SweepPoint("five", 2, 5, 4.5, {"acks": "all"}),
        SweepPoint("large", publishers=2, settings={"message_size": 1000}),
    )
    assert loaded.sweep == PointSweep(loaded.sweep.duration_s, points=points)
    # The ids of publishers are those of the point that has the most.
    assert loaded.publishers == 5
    assert (loaded.sweep.varied, loaded.sweep.counts) == (("acks", "message_size"), (0, 2))
    assert loaded.values_of("acks") == ("1", "all")
    assert loaded.sweep.longest_s == 4.5
    assert loaded.sizes == ((2, 0), (5, 2))


def test_they_are_stored_and_read_like_all_else(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, THREE)
    assert stored_scenario(as_stored(loaded)).scenario.sweep == loaded.sweep


NAMED = '[[sweep.points]]\nname = "a"\n'
ONE = "clients = [1]"
USERS = '[kafka]\nbootstrap = "h:1"\n'


@pytest.mark.parametrize(
    ("text", "system", "sweep", "output"),
    [
        (NAMED + "aks = 1", "kafka", "", ["sweep.points.0.aks: unknown key", "did you mean acks?"]),
        (NAMED + "publishrs = 1", "kafka", "", ["sweep.points.0.publishrs: unknown key", "did you mean publishers?"]),
        (NAMED + "sndhwm = 1", "kafka", "", ["sweep.points.0.sndhwm: unknown key", "this is a key of system zmq"]),
        ("[[sweep.points]]\nclients = 1", "kafka", "", ["sweep.points.0.name: is missing", "add it"]),
        (NAMED + NAMED, "kafka", "", ["sweep.points.1.name: 'a' is the name of sweep.points.0", "name of its own"]),
        ('[[sweep.points]]\nname = ""', "kafka", "", ["sweep.points.0.name: must be 1 to 100 characters"]),
        ("[[sweep.points]]\nname = 3", "kafka", "", ["sweep.points.0.name: must be a valid string, not 3"]),
        (NAMED + 'acks = "2"', "kafka", "", ["sweep.points.0.acks: must be '0', '1' or 'all'"]),
        (NAMED + "linger_ms = -1", "kafka", "", ["sweep.points.0.linger_ms: must be 0 to 900000 ms"]),
        (NAMED + "msg_batch = 2000000", "kafka", "", ["sweep.points.0.msg_batch: must be 1 to 1000000"]),
        (NAMED + "acks = [1]", "kafka", "", ["sweep.points.0.acks: must be a number, a text", "beside its name"]),
        (NAMED + "rate = nan", "kafka", "", ["sweep.points.0.rate: must be a number"]),
        (NAMED + "publishers = 0", "kafka", "", ["sweep.points.0.publishers: must be 1 to 10000, not 0"]),
        (NAMED + "clients = -1", "kafka", "", ["sweep.points.0.clients: must be 0 to 1000000, not -1"]),
        (NAMED + "clients = 1.5", "kafka", "", ["sweep.points.0.clients: must be a valid integer"]),
        (NAMED + "duration_s = 0", "kafka", "", ["sweep.points.0.duration_s: must be"]),
        (NAMED, "zmq", "", ["sweep.points.0.clients: no subscribers, and system zmq keeps no log", "use 1 or more"]),
        (NAMED, "kafka", "clients = [3]", ["sweep: points stand in place of", "remove clients"]),
        (NAMED, "kafka", "vary = {acks = ['1']}", ["sweep: points stand in place of", "remove vary"]),
        (NAMED, "kafka", "search = {}", ["sweep: points stand in place of", "remove search"]),
        ("", "kafka", "points = []", ["sweep.points: must be tables", "[[sweep.points]]"]),
        ("", "kafka", "points = [1]", ["sweep.points.0: must be a table"]),
        ("", "kafka", "", ["sweep: clients must name at least one subscriber count, or list points"]),
        # exporters of brokers
        (USERS + 'metrics = ["h:x"]', "kafka", ONE, ["kafka.metrics: 'h:x' is no address", "write host:port"]),
        (
            '[kafka]\nmetrics = ["h:1"]',
            "kafka",
            ONE,
            ["kafka.metrics: has no effect in this run: it needs kafka.bootstrap", "add --servers"],
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    tmp_path: Path, text: str, system: str, sweep: str, output: list[str]
) -> None:
    with pytest.raises(ConfigError) as refused:
        scenario(tmp_path, text, system, sweep, publishers=1)
    line = str(refused.value)
    assert "\n" not in line
    for part in (str(tmp_path / "mine.toml"), *output):
        assert part in line


def test_what_a_system_refuses_of_a_scenario_it_refuses_of_a_point(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sweep\.points\.1\.acks: with acks 0 and several publishers"):
        scenario(tmp_path, NAMED + '[[sweep.points]]\nname = "b"\nacks = "0"\n')
    assert scenario(tmp_path, NAMED + '[[sweep.points]]\nname = "b"\nacks = "0"\npublishers = 1\n').publishers == 2


def test_each_size_of_the_deployment_is_checked_against_the_machine(tmp_path: Path) -> None:
    cluster = ClusterSpec((Agent("a", "a", {}, Resources()),))
    checks = check_all(ResolvedScenario.of(scenario(tmp_path, THREE)), cluster, read_limits(tmp_path))
    assert [(check.publishers, check.clients) for check in checks] == [(2, 0), (5, 2)]
    alone, both = (check.needs for check in checks)
    assert 0 < alone.memory_bytes < both.memory_bytes
    assert alone.processes < both.processes
