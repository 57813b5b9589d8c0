"""The load, events and objectives of a scenario, and what is refused before a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError

KILL = {"at_s": 1.0, "kind": "kill_server"}
RESTART = {"at_s": 1.0, "kind": "restart_server", "for_s": 1.0}


def refused(name: str, **replaced: Any) -> str:
    with pytest.raises(ConfigError) as error:
        load_scenario(name, {key.replace("__", "."): value for key, value in replaced.items()})
    return str(error.value)


def recorded(path: Path, text: str, **more: Any) -> Any:
    path.write_text(text)
    replaced = {"load.shape": "recorded", "load.file": str(path), "sweep.duration_s": 10.0, **more}
    return load_scenario("zmqfixed", replaced).load.points


def test_recorded_rates_are_the_points(tmp_path: Path) -> None:
    points = recorded(tmp_path / "l.csv", "time,rate\n100,5\n110,10.5\n\n120,0\n")
    assert points == ((0.0, 5.0), (10.0, 10.5), (20.0, 0.0))


def test_recorded_times_become_rates_of_a_second(tmp_path: Path) -> None:
    points = recorded(tmp_path / "l.csv", "12.5\n10.0\n10.2\n10.9\n12.0\n")
    assert points == ((0.0, 3.0), (1.0, 3.0), (1.0, 0.0), (2.0, 0.0), (2.0, 2.0), (3.0, 2.0))


def test_many_recorded_times_become_longer_bins(tmp_path: Path) -> None:
    points = recorded(tmp_path / "l.csv", "\n".join(map(str, range(20_000))), **{"sweep.duration_s": 20_000.0})
    assert len(points) <= 8192
    assert points[0] == (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", "has no line with numbers"),
        ("a\nb\n", "must have as many numbers as the first line: one or two"),
        ("1,2\n3\n", "line 2"),
        ("1,2,3\n", "must have as many numbers as the first line: one or two"),
        ("1,2\n0,2\n", "the times do not rise"),
        ("1,0\n2,0\n", "none above 0"),
        ("1,-5\n", "below 0"),
        ("1,2\n" * 8193, "above the limit of 8192"),
    ],
)
def test_what_is_no_record_is_refused(text: str, output: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=output):
        recorded(tmp_path / "l.csv", text)


@pytest.mark.parametrize(
    ("name", "replaced", "text"),
    [
        ("zmqfixed", {"load__shape": "recorded", "load__file": "/nowhere.csv"}, "No such file"),
        ("zmqfixed", {"load__shape": "ramp", "settings__rate": "max"}, "a load cannot have parts of the rate"),
        ("zmqfixed", {"load__shape": "wave"}, "must be 'constant', 'ramp', 'steps', 'daily' or 'recorded'"),
        ("zmqfixed", {"load__shape": "steps", "load__parts": [0.5, 2.0]}, "load.parts: must be 0 to 1, not 2"),
        ("zmqfixed", {"load__shape": "ramp", "native__pacing": "bursty", "client": "native"}, "does not change"),
        ("zmqfixed", {"events": [{"at_s": 1e5, "kind": "burst"}]}, "events.0.at_s: must be 0 to 86400 s"),
        ("zmqfixed", {"events": [{"at_s": 1.0, "kind": "quake"}]}, "use burst, slow, gone"),
        ("zmqfixed", {"events": [KILL]}, "is no event of system zmq"),
        ("zmqfixed", {"events": [{"at_s": 1.0, "kind": "slow"}], "client": "zmtp"}, "cannot be a slow reader"),
        ("zmqfixed", {"events": [{"at_s": 1.0, "kind": "gone"}], "sweep__clients": [1]}, "use 2 clients or more"),
        (
            "zmqfixed",
            {"events": [{"at_s": 1.0, "kind": k, "fraction": f} for k, f in (("slow", 0.1), ("gone", 0.2))]},
            "give all events the same fraction",
        ),
        ("zmqrate", {"slo__p99_ms": 5.0}, "this scenario searches"),
        ("zmqfixed", {"slo__p99_ms": 0.0}, "slo.p99_ms: must be 0.001 to"),
        ("zmqfixed", {"slo__loss_pct": 100.0}, "slo.loss_pct: must be 0 or more and below 100"),
        ("zmqfixed", {"slo__p99_ms": 5.0, "settings__messages": 10}, "before the load does"),
        ("kafka-fixed", {"events": [KILL]}, "needs at least 2 brokers"),
        ("kafka-fixed", {"events": [KILL], "kafka__bootstrap": "h:1"}, "Hydra never kills your own brokers"),
        ("kafka-fixed", {"events": [KILL, KILL], "server__count": 2}, "one such event at most"),
        ("kafka-fixed", {"slo__loss_pct": 0.0, "client": "kafka-tool"}, "does not report each second"),
        ("kafka-fixed", {"slo__loss_pct": 0.0, "settings__read": "stored"}, "messages in flight"),
        ("nats-fixed", {"events": [KILL]}, "is no event of system nats"),
        ("mqtt-fixed", {"events": [KILL]}, "is no event of system mqtt"),
        ("zmqfixed", {"events": [RESTART]}, "is no event of system zmq"),
        ("mqtt-fixed", {"events": [RESTART], "mqtt__broker": "h:1"}, "Hydra never ends your own servers"),
        ("mqtt-fixed", {"events": [{**RESTART, "for_s": 4.0}]}, "the server would return 5 s after the start"),
        ("mqtt-fixed", {"events": [RESTART, {**RESTART, "at_s": 1.5}]}, "two of them overlap"),
        ("nats-fixed", {"events": [RESTART], "settings__mode": "jetstream"}, "use storage file"),
        ("kafka-fixed", {"events": [RESTART], "kafka__bootstrap": "h:1"}, "Hydra never ends your own servers"),
        ("kafka-fixed", {"events": [RESTART, {**KILL, "at_s": 3.0}], "server__count": 3}, "end a broker for good"),
        ("kafka-fixed", {"events": [RESTART], "settings__kill_broker_at": 0.5, "server__count": 3}, "for good"),
        ("mqtt-fixed", {"events": [RESTART, {"at_s": 1.0, "kind": "gone"}]}, "run the events one at a time"),
        ("mqtt-fixed", {"events": [RESTART, {"at_s": 1.0, "kind": "slow"}]}, "run the events one at a time"),
        ("mqtt-fixed", {"events": [RESTART], "settings__reconnect_rate": 1.0}, "reconnect_rate"),
        ("nats-fixed", {"events": [RESTART], "sweep__vary": {"reconnect_rate": [0.5, 1.0]}}, "reconnect_rate"),
        ("nats-connections", {"sweep__vary": {"connect_rate": [10, 0]}}, "connect_rate"),
        ("nats-connections", {"sweep__vary": {"connect_rate": ["fast"]}}, "connect_rate"),
        ("nats-fixed", {"settings__connect_within_s": 5.0, "table": "connections"}, "give --connect-rate"),
        ("kafka-fixed", {"settings__connect_rate": 5.0, "settings__read": "stored"}, "before the step"),
        ("kafka-fixed", {"settings__connect_rate": 5.0, "client": "kafka-tool"}, "does not report how it connects"),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(name: str, replaced: dict[str, Any], text: str) -> None:
    assert text in refused(name, **replaced)
