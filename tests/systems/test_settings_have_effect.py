"""Each setting of each system in each mode changes what clients or servers are sent, or is rejected by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import pytest

from hydra.config.fields import own_tables
from hydra.config.plugins import system
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import refuse_unused, resolve
from hydra.errors import RefusedKeyError
from hydra.kafkatest.settings import KafkaSettings
from hydra.kafkatest.step_topic import topic_config_of
from hydra.kafkatest.system import KafkaSystem
from hydra.model import LoadSpec, NativeSpec, Settings, shared_of
from hydra.mqtttest.system import MqttSystem, access_to
from hydra.natstest.system import NatsSystem
from hydra.run.step_clocks import connect_command
from hydra.sweep.search_spec import SearchSpec
from hydra.wire.traffic import traffic_of

SCENARIOS: Final = {"zmq": "zmqfixed", "kafka": "kafka-fixed", "nats": "nats-fixed", "mqtt": "mqtt-fixed"}
SHARED: Final[Mapping[str, type]] = {"settings": Settings, "native": NativeSpec, "load": LoadSpec}
_NATIVE: Final = {"native.*"}
_TOPICS: Final = {"topic_skew", "topics_per_client", "wildcard"}
_PLAIN: Final = {"payload_ratio", "payload_file", "payload_seed", "keys", "key_skew"} | _TOPICS
_STEADY: Final = {"load.low", "load.high", "load.parts", "load.period_s", "load.file"}
_QUEUED: Final = {"nats.replicas", "storage", "consumer", "publish_acks", "publish_window", "ack_policy"}
_USUAL: Final = _PLAIN | _STEADY | _NATIVE
_OF_NATIVE_ZMQ: Final = {
    f"native.{name}"
    for name in ("clients_per_process", "pacing", "publisher", "io_threads", "transport", "sndbuf", "rcvbuf")
}
"""All options of native clients but ``secure``, which pyzmq has, too."""
_ZMQ: Final = _PLAIN | _STEADY | _OF_NATIVE_ZMQ | {"subscriptions"}
_LOADED: Final = _ZMQ | {"rate", "messages"}


class Mode(NamedTuple):
    """What a scenario is set to, and the settings that clients do not use then: those of the table by name."""

    system: str
    given: Mapping[str, object]
    unused: frozenset[str] | set[str]


def _nats(mode: Mapping[str, object], unused: set[str]) -> Mode:
    return Mode("nats", {f"settings.{name}": value for name, value in mode.items()}, unused | _LOGINS | _USUAL)


_WITH_OTHERS: Final = {"nats.key_file", "nats.password", "nats.password_file"}
"""What has an effect beside a certificate or a user only."""
_LOGINS: Final = {
    *_WITH_OTHERS,
    *("nats.username", "nats.token"),
    *(f"nats.{name}_file" for name in ("ca", "cert", "token", "nkey", "creds")),
}


_KAFKA: Final = {"session_timeout_ms", "kafka.exact_group", "kafka.metrics", "kafka.read_ahead"}
_NO_KEYS: Final = _USUAL - {"keys"}
_OF_USER: Final = {"kill_broker_at", "move_partition_at", "kafka.broker", "kafka.tls", "server.count"}
_MQTT_WITH_OTHERS: Final = {"mqtt.key_file", "mqtt.password", "mqtt.password_file"}
_MQTT: Final = _MQTT_WITH_OTHERS | {"mqtt.username", "mqtt.ca_file", "mqtt.cert_file", "max_inflight"}
_STREAM: Final = {"mode": "jetstream"}

MODES: Final = [
    Mode("zmq", {}, _ZMQ),
    Mode("zmq", {"publishers": 2}, _ZMQ - {"subscriptions"}),
    Mode("zmq", {"client": "native"}, _ZMQ - _OF_NATIVE_ZMQ),
    Mode("zmq", {"client": "zmtp"}, _ZMQ - _OF_NATIVE_ZMQ | {"rcvhwm", "receive_rate", "native.secure"}),
    Mode("zmq", {"settings.topics": 3}, _ZMQ - _TOPICS - {"payload_seed"}),
    Mode("zmq", {"settings.payload": "json"}, _ZMQ - {"payload_ratio", "payload_seed"} | {"message_sizes"}),
    Mode("zmq", {"settings.payload": "random"}, _ZMQ - {"payload_seed"}),
    Mode(
        "zmq", {"settings.payload": "lines", "settings.payload_file": "f"}, _ZMQ - {"payload_file"} | {"message_sizes"}
    ),
    Mode("zmq", {"settings.message_size_min": 24}, _ZMQ - {"payload_seed"} | {"message_sizes"}),
    Mode("zmq", {"load.shape": "ramp"}, _LOADED - {"load.low", "load.high"}),
    Mode("zmq", {"load.shape": "steps"}, _LOADED - {"load.parts"}),
    Mode("zmq", {"load.shape": "daily"}, _LOADED - {"load.low", "load.high", "load.period_s"}),
    _nats({}, {*_QUEUED, "max_ack_pending", "fetch_batch"}),
    _nats(_STREAM, {"fetch_batch"}),
    _nats({**_STREAM, "consumer": "pull"}, set()),
    _nats({**_STREAM, "publish_acks": False}, {"publish_window", "fetch_batch"}),
    _nats({**_STREAM, "ack_policy": "none"}, {"max_ack_pending", "fetch_batch"}),
    Mode(
        "nats",
        {"nats.servers": "h:1"},
        {*_QUEUED, "max_ack_pending", "fetch_batch", "server.count", "nats.tls"} | _WITH_OTHERS | _USUAL,
    ),
    Mode("mqtt", {}, _MQTT | _USUAL),
    Mode("mqtt", {"settings.qos": 1}, _MQTT - {"max_inflight"} | _USUAL),
    Mode(
        "mqtt",
        {"mqtt.broker": "h:1"},
        {*_USUAL, *_MQTT_WITH_OTHERS, "max_inflight", "mqtt.tls", "mqtt.max_queued_messages"},
    ),
    Mode(
        "mqtt",
        {"mqtt.broker": "h:1", "mqtt.username": "u", "settings.qos": 2},
        {*_USUAL, "mqtt.key_file", "mqtt.tls", "mqtt.max_queued_messages"},
    ),
    Mode("kafka", {}, _KAFKA | _NO_KEYS),
    Mode("kafka", {"client": "native"}, _KAFKA - {"kafka.read_ahead"} | _NO_KEYS - _NATIVE),
    Mode("kafka", {"settings.topics": 3}, _KAFKA | _NO_KEYS - {"topic_skew", "topics_per_client", "payload_seed"}),
    Mode("kafka", {"settings.keys": 3}, _KAFKA | _NO_KEYS - {"key_skew", "payload_seed"}),
    Mode("kafka", {"settings.group": "g"}, {"kafka.metrics", "kafka.read_ahead", "topics"} | _NO_KEYS),
    Mode("kafka", {"settings.partitions": 2}, {*_KAFKA, "kafka.partitions"} | _NO_KEYS),
    Mode("kafka", {"settings.replication_factor": 1}, {*_KAFKA, "kafka.replication_factor"} | _NO_KEYS),
    Mode("kafka", {"kafka.bootstrap": "h:1"}, _KAFKA - {"kafka.metrics"} | _OF_USER | _NO_KEYS),
    Mode(
        "kafka",
        {"client": "kafka-tool", "settings.messages": 9},
        {
            "check_crcs",
            "receive_rate",
            "reconnect_rate",
            "burst",
            "kafka.exact_group",
            "kafka.metrics",
            "kafka.read_ahead",
        }
        | {
            "kafka.read_ahead",
            "message_size_min",
            "message_sizes",
            "topics",
            "load.shape",
            "connect_rate",
            "connect_within_s",
            *_USUAL,
        },
    ),
]
"""The unused settings are those that no client reads in that mode, found by reading the clients, or cannot obey."""

TOGETHER: Final[Mapping[str, Mapping[str, object]]] = {
    "connect_within_s": {"settings.connect_rate": 5},
    "message_size_min": {"settings.message_size": 1000},
    "message_sizes": {"settings.message_size": 24},
    "group": {"settings.topics": 1},
    "read": {"settings.topics": 1},
    "idempotence": {"settings.acks": "all"},
    "kill_broker_at": {"server.count": 3},
    "move_partition_at": {"server.count": 3},
    "replication_factor": {"server.count": 3},
    "kafka.replication_factor": {"server.count": 3},
    "nats.replicas": {"server.count": 3},
}
"""What must be given beside a setting for its value to be possible."""
VALUES: Final[Mapping[str, object]] = {
    "payload": "random",
    "payload_file": __file__,
    "message_size_min": 30,
    "message_sizes": "24-100:1",
    "linger_ms": 4.0,
    "replication_factor": 3,
    "kafka.replication_factor": 3,
    "session_timeout_ms": 200,
    "kill_broker_at": 0.5,
    "move_partition_at": 0.5,
    "keepalive": 30,
    "load.shape": "ramp",
    "load.file": __file__,
    "load.parts": [0.5],
    "kafka.bootstrap": "h:2",
    "kafka.metrics": ["h:3"],
    "kafka.topic": {"retention.ms": "5"},
    "kafka.broker": {"num.io.threads": "4"},
    "kafka.properties": {"client.rack": "r"},
    "nats.servers": "h:2",
    "mqtt.broker": "h:2",
}
"""Values of settings whose possible values do not follow from their type."""


_ENOUGH: Final[Mapping[str, object]] = {"settings.message_size": 500, "settings.rate": 100.0}
"""Room for a payload, and a rate for a load."""


def _settings(name: str) -> Iterator[tuple[str, str, object]]:
    """(table, name, another value than the default) of every setting of a system."""
    own = {**own_tables(system(name)), **({"server": None} if name != "zmq" else {})}
    for table in dict.fromkeys((*SHARED, *own)):
        if table == "server":
            if name != "mqtt":
                yield table, "count", 3
            continue
        for noun in filter(None, (SHARED.get(table), own.get(table))):
            hints = get_type_hints(noun)
            for of in fields(noun):
                if of.name not in ("system", "points"):
                    yield table, of.name, _another(table, of.name, hints[of.name], of.default)


def _another(table: str, name: str, hint: Any, default: object) -> object:
    if (known := VALUES.get(_short(table, name))) is not None:
        return known
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if get_origin(hint) is not Literal else [hint]
    kind = kinds[0] if kinds else hint
    if get_origin(kind) is Literal:
        return next(word for word in get_args(kind) if word != default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return (
            default * 2 if 0 < default < 2**19 and table != "load" else default / 2 if table == "load" else default + 1
        )
    return "x" if kind is str else 7 if default is None or default is MISSING else default


def _short(table: str, name: str) -> str:
    return name if table == "settings" else f"{table}.{name}"


class _Nothing:
    """A log without messages."""

    def end_offsets(self) -> dict[int, int]:
        return {}

    def begin(self, offsets: object) -> None:
        """Takes what it is given."""

    def by_topic(self, offsets: dict[int, int]) -> list[dict[int, int]]:
        return [offsets]


def sent_settings(resolved: ResolvedScenario, monkeypatch: pytest.MonkeyPatch) -> object:
    """All that the clients and servers of the first step are sent, as JSON has it."""
    scenario, spec = resolved.scenario, resolved.system
    plan = resolved.sweep.next([])
    assert plan is not None
    tested = spec.identity.make(scenario, False, True)
    tested._address = "h:1"  # type: ignore[attr-defined]
    others: list[object] = [scenario.native] if scenario.client in ("pyzmq", "native", "zmtp") else []
    if isinstance(tested, NatsSystem):
        monkeypatch.setattr(tested, "_first", lambda *_: 1)
    elif isinstance(tested, KafkaSystem):
        tested._data = _Nothing()  # type: ignore[assignment]
        monkeypatch.setattr(tested, "_group", lambda settings: settings.system.values()["group"])
        monkeypatch.setattr(tested, "_use", lambda _, config: others.append(config))
        others.append(KafkaSettings.of(plan.settings).move_partition_at)
        others.append(topic_config_of(scenario, plan.settings).settings)
    elif isinstance(tested, MqttSystem):
        tested._given = access_to("h:1")  # its files do not exist
        others.append(scenario.tables)
    others += [scenario.server.count, dict(scenario.tables), spec.delivery(scenario, plan.settings).one_publisher]
    shared = [shared_of(plan.settings), plan.settings.largest_bytes, traffic_of(plan.settings)]
    shared.append(connect_command(plan.settings, plan.clients, keeps_up=False))
    return msgspec.to_builtins([shared, scenario.load, tested.configure(plan.settings), others])


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: f"{mode.system}-{'-'.join(map(str, mode.given.values()))}")
def test_each_setting_changes_what_is_told_or_is_rejected(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = []
    bases: dict[str, object] = {}
    for table, name, value in _settings(mode.system):
        key, short = f"{table}.{name}", _short(table, name)
        if key in mode.given and short != "payload_file":
            continue
        more = dict(TOGETHER.get(short, {}))
        if {"kafka.bootstrap", "nats.servers"} & mode.given.keys():
            more.pop("server.count", None)
        if mode.given.get("settings.payload") in ("json", "lines"):
            more.pop("settings.message_size", None)
        if mode.given.get("client") == "kafka-tool":
            more.pop("settings.connect_rate", None)
        given = {**mode.given, **_ENOUGH, **more}
        if str(more) not in bases:
            bases[str(more)] = sent_settings(resolve(SCENARIOS[mode.system], given, alone=False), monkeypatch)
        try:
            resolved = resolve(SCENARIOS[mode.system], {**given, key: value}, alone=False)
            refuse_unused([resolved], "")
            effect = "changes" if sent_settings(resolved, monkeypatch) != bases[str(more)] else "does nothing"
        except RefusedKeyError as e:
            named = e.key == key or key.startswith(f"{e.key}.")
            effect = "rejected" if named else f"rejected as {e.key}: {e}"
        expected = "rejected" if {short, f"{table}.*"} & mode.unused else "changes"
        if effect != expected:
            wrong.append(f"{key} = {value!r}: {effect}, not {expected}")
    assert not wrong, "\n".join(wrong)


_BELOW: Final = {"floor_rate", "loss_target", "width", "steps"}
_HIGHEST: Final = {"gain_target", "stall_doublings", "fresh_steps"}


@pytest.mark.parametrize(
    ("series", "unused"),
    [
        (["max_rate"], _BELOW | {"cohort_fraction", "slow_share", "reconnect_rate", "sndhwms"}),
        (["nodrop"], _BELOW | {"cohort_fraction", "slow_share", "reconnect_rate", "sndhwms"}),
        (["loss"], _HIGHEST | {"cohort_fraction", "slow_share", "reconnect_rate"}),
        (["max_rate", "slow"], {"reconnect_rate", "sndhwms"}),
        (["reconnecting"], _HIGHEST | {"slow_share", "sndhwms"}),
    ],
)
def test_a_search_uses_the_keys_of_its_series(series: list[str], unused: set[str]) -> None:
    search = {f"{of.name}": [5] if of.name == "sndhwms" else of.default for of in fields(SearchSpec)}
    found = resolve("zmqrate", {"sweep.held": None, "sweep.search": {**search, "series": series}}, alone=False).unused
    assert {str(each.key[-1]) for each in found} == unused


def test_a_default_and_a_value_that_came_with_hydra_are_never_rejected(tmp_path: Path) -> None:
    """The shipped scenario names a mode; the user's equal file gave it."""
    for name in SCENARIOS.values():
        assert not resolve(name).unused
    own = tmp_path / "mine.toml"
    own.write_text(
        'system = "nats"\nclient = "nats-py"\ntable = "fixed"\n[sweep]\nclients = [1]\nduration_s = 1.0\n'
        '[settings]\nstorage = "file"\n'
    )
    with pytest.raises(
        RefusedKeyError, match=r'mine.toml: settings.storage: .*it needs mode = "jetstream"; add --mode'
    ):
        resolve(own)
    assert not resolve(own, {"settings.mode": "jetstream"}).unused
    assert not resolve(own, {"sweep.vary.mode": ["core", "jetstream"]}).unused


def test_pacing_has_no_effect_if_every_row_has_the_rate_max() -> None:
    bursty: dict[str, object] = {"client": "native", "native.pacing": "bursty"}
    (unused,) = resolve("zmqfixed", {**bursty, "settings.rate": "max"}, alone=False).unused
    assert unused.key == ("native", "pacing")
    assert not resolve("zmqfixed", {**bursty, "sweep.vary.rate": ["max", 5.0]}).unused
    assert not resolve("zmqrate", bursty).unused
