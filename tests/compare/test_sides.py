"""The runs of ``--compare``, and what a comparison of two systems states of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import pytest

from hydra.cli.compared_sides import ComparedSide, sides_of_setting
from hydra.cli.interleaved_runs import as_begun
from hydra.cli.main import cli
from hydra.config.scenario import resolve
from hydra.errors import ConfigError
from hydra.store.interleaved_record import InterleavedRecord


@pytest.mark.parametrize(
    ("command", "text", "key", "expected"),
    [
        ("zmqfixed", "burst=1,100", "settings.burst", {"burst-1": 1, "burst-100": 100}),
        ("zmqfixed", "rate=max,5", "settings.rate", {"rate-max": "max", "rate-5": 5}),
        ("zmqfixed", "pyzmq,pyzmq", "client", {"pyzmq": "pyzmq", "pyzmq-2": "pyzmq"}),
        ("zmqfixed", "implementation=pyzmq,native", "client", {"pyzmq": "pyzmq", "native": "native"}),
        ("zmqfixed", "io-threads=1,2", "native.io_threads", {"io_threads-1": 1, "io_threads-2": 2}),
        ("zmqfixed", "payload_file=/a,b", "settings.payload_file", {"payload_file--a": "/a", "payload_file-b": "b"}),
        ("kafka-batch", "msg_batch=10,20", "settings.msg_batch", {"msg_batch-10": 10, "msg_batch-20": 20}),
        ("kafka-batch", "msg-batch=1e1,2e1", "settings.msg_batch", {"msg_batch-1e1": 10, "msg_batch-2e1": 20}),
        ("kafka-fixed", "acks=1,all", "settings.acks", {"acks-1": "1", "acks-all": "all"}),
        ("kafka-fixed", "linger=5ms,1s", "settings.linger_ms", {"linger_ms-5ms": 5, "linger_ms-1s": 1000}),
        (
            "zmqfixed",
            "message-size=1e3,2000",
            "settings.message_size",
            {"message_size-1e3": 1e3, "message_size-2000": 2e3},
        ),
        ("zmqfixed", "nodrop=yes,no", "settings.nodrop", {"nodrop-yes": True, "nodrop-no": False}),
        (
            "kafka-fixed",
            "kafka-prop=check.crcs=true,check.crcs=false",
            "kafka.properties",
            {f"properties-check.crcs={on}": {"check.crcs": on} for on in ("true", "false")},
        ),
        ("zmqfixed", "publisher-pin=0-1,apart", "publisher.pin", {"pin-0-1": "0-1", "pin-apart": "apart"}),
        ("kafka-batch", "kafka.partitions=1,2", "kafka.partitions", {"partitions-1": 1, "partitions-2": 2}),
    ],
)
def test_each_value_is_a_run_that_replaces_one_key(
    command: str, text: str, key: str, expected: Mapping[str, object]
) -> None:
    root = click.Context(cli, info_name="hydra")
    _, found, _ = cli.resolve_command(root, [command])
    assert found is not None
    sides = sides_of_setting(text, command, {}, click.Context(found, parent=root))
    assert {name: side.replaced[key] for name, side in sides.items()} == expected
    resolved = resolve(command, next(iter(sides.values())).replaced, alone=False)
    assert key.removeprefix("settings.") not in resolved.scenario.sweep.varied, "it makes no rows"


HOST, SECRET = {"mqtt.servers": "h:1"}, {"mqtt.password": "***"}
TABLE = {"kafka.properties": {"sasl.username": "me", "sasl.password": "***"}}


@pytest.mark.parametrize(
    ("stored", "overrides", "again", "sets", "expected", "common"),
    [
        (SECRET, HOST, {}, {"mqtt.password": "x"}, {"mqtt.password": "x"}, HOST),
        (
            SECRET,
            {},
            {"mqtt.password": "x", "settings.qos": 1},
            {"settings.rate": 5},
            {"mqtt.password": "x"},
            {"settings.rate": 5},
        ),
        (SECRET, SECRET, {}, {"mqtt.password": "x"}, {"mqtt.password": "x"}, {"mqtt.password": "x"}),
        (
            TABLE,
            {},
            {},
            {"kafka.properties.sasl.password": "x"},
            {"kafka.properties": {"sasl.username": "me", "sasl.password": "x"}},
            {},
        ),
        (SECRET, HOST, {"settings.qos": 1}, {}, None, {}),
    ],
    ids=["--set", "--run", "of all runs", "in a table", "not given"],
)
def test_secrets_of_a_resumed_comparison_are_those_that_the_user_gives_again(
    stored: dict[str, Any],
    overrides: dict[str, Any],
    again: dict[str, Any],
    sets: dict[str, Any],
    expected: dict[str, Any] | None,
    common: dict[str, Any],
) -> None:
    scenarios = dict.fromkeys(("a", "b"), "mqtt-fixed")
    record = InterleavedRecord("mqtt-fixed", {"a": {}, "b": stored}, True, 1, overrides, "", "", scenarios=scenarios)
    sides = {name: ComparedSide("mqtt-fixed", own) for name, own in {"a": {}, "b": again}.items()} if again else {}
    if expected is None:
        with pytest.raises(ConfigError, match=r"secrets are not stored with a run: mqtt\.password"):
            as_begun(record, sides, sets)
        return
    found, runs = as_begun(record, sides, sets)
    assert found == common
    assert {name: side.replaced for name, side in runs.items()} == {"a": {}, "b": expected}


@pytest.mark.parametrize(
    ("scenario", "given", "expected"),
    [
        ("zmqfixed", {"settings.nodrop": True}, "beyond the high-water mark the publisher waits"),
        ("nats-fixed", {}, "nothing and keeps nothing"),
        ("nats-fixed", {"settings.mode": "jetstream", "settings.publish_acks": False}, "nothing to publishers"),
        ("mqtt-fixed", {}, "nothing and keeps nothing (QoS 0)"),
        (
            "mqtt-fixed",
            {"settings.qos": 1, "settings.retain": True},
            "each message and keeps the last message of each p",
        ),
        ("kafka-fixed", {}, "each message when its leader has it and keeps one copy in a log on disk"),
        (
            "kafka-fixed",
            {"settings.acks": "all", "kafka.replication_factor": 3, "server.count": 3},
            "have it and keeps 3 cop",
        ),
    ],
)
def test_a_system_states_what_it_acknowledges_and_keeps(
    scenario: str, given: Mapping[str, object], expected: str
) -> None:
    resolved = resolve(scenario, given)
    assert expected in resolved.system.delivery(resolved.scenario, resolved.scenario.settings).guarantees
