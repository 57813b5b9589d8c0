"""The line above every table about what was measured, and the same as JSON and as columns."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import resolve
from hydra.model import ClientSetup, HostSetup, RunSetup, ServerFacts, ServerSetup, SetupPart, merged
from hydra.report.json_schema import schema_of
from hydra.report.run_setup import ReportedFacts, setup_columns, setup_line, setup_object, setup_of
from hydra.report.table import PartedLine, fitted, markdown
from hydra.report.tables import RunTables
from tests.jupyter.runs import BATCH, FIXED, NATIVE

HERE = HostSetup(True, ("here",), 2)


def setup_parts(name: str, facts: ReportedFacts | None = None, **replaced: Any) -> list[str]:
    """The parts of the line about a scenario, with some of its keys replaced."""
    keys = {key.replace("__", "."): value for key, value in replaced.items()}
    resolved = resolve(name, {"sweep.duration_s": 5.0, "sweep.clients": [30], **keys})
    return list(setup_line(setup_of(resolved, facts)).parts)


@pytest.mark.parametrize(
    ("name", "replaced", "parts"),
    [
        ("nats-fixed", {}, ["core NATS"]),
        (
            "nats-fixed",
            {"settings__mode": "jetstream", "settings__storage": "file", "settings__ack_policy": "none"},
            ["JetStream", "file storage", "replicas 1", "publishes acknowledged", "push consumers", "ack policy none"],
        ),
        ("mqtt-fixed", {}, ["QoS 0", "MQTT 3.1.1"]),
        (
            "mqtt-fixed",
            {"settings__qos": 1, "settings__protocol": "5", "settings__shared": True, "mqtt__broker": "ws://there:80"},
            ["QoS 1", "MQTT 5", "max_inflight 20", "WebSocket", "shared subscription"],
        ),
        ("kafka-fixed", {}, ["acks 1", "linger 10 ms", "batches of 1,000", "partitions 1", "replicas 1"]),
        (
            "kafka-fixed",
            {"settings__acks": "all", "settings__linger_ms": 5.0, "settings__compression": "lz4",
             "settings__partitions": 6, "settings__group": "g"},
            ["acks all", "linger 5 ms", "batches of 1,000", "partitions 6", "replicas 1", "compression lz4",
             "consumer group g"],
        ),
        ("zmq-fixed", {}, []),
        (
            "zmq-fixed",
            {"client": "native", "native__transport": "ipc", "native__secure": True, "settings__sndhwm": 10,
             "settings__nodrop": True},
            ["sndhwm 10", "XPUB_NODROP", "ipc", "CURVE"],
        ),
        ("zmq-fixed", {"settings__payload": "json", "settings__message_size": 64, "settings__topics": 10},
         ["payload json", "10 topics"]),
    ],
)  # fmt: skip
def test_each_system_names_its_own_settings(name: str, replaced: dict[str, Any], parts: list[str]) -> None:
    found = setup_parts(name, **replaced)
    system = [part for part in found[3:-1] if not part.endswith("server")]
    assert (found[0], found[-1], system) == ("1 publisher → 30 subscribers", "steps of 5 s", parts)


def test_clients_servers_and_hosts_are_named_as_they_reported() -> None:
    clients = tuple(ClientSetup(role, "native", {"libnats": "3.4.1"}) for role in ("publisher", "subscriber"))
    facts = ReportedFacts(clients, (ServerFacts({"nats-server": "2.9.10"}),), (HERE,))
    line = (
        "1 publisher → 30 subscribers · 128 B · native (libnats 3.4.1) · core NATS · "
        "nats-server 2.9.10 on this machine, 2 shared cores · steps of 5 s"
    )
    replaced: dict[str, Any] = {"settings__message_size": 128, "client": "native"}
    assert " · ".join(setup_parts("nats-fixed", facts, **replaced)) == line
    secure = replace(facts, servers=(ServerFacts({"nats-server": "2.9.10"}, tls=True),))
    assert setup_parts("nats-fixed", secure, **replaced)[4:6] == [
        "TLS",
        "nats-server 2.9.10 on this machine, 2 shared cores",
    ]


@pytest.mark.parametrize(
    ("server", "host", "places"),
    [
        (ServerSetup("X", 1), None, ["X server"]),
        (ServerSetup("X", 3, {"x": "2", "Java": "17"}), HERE, ["3 × x 2 (Java 17) on this machine, 2 shared cores"]),
        (ServerSetup("X", None), HERE, ["your own X server", "clients on this machine, 2 shared cores"]),
        (ServerSetup("X", None, {"x": "2"}), None, ["your own x 2"]),
        (ServerSetup("X", 1, {"x": "2"}), HostSetup(False, ("a", "b", "c"), 24), ["x 2 on 3 hosts, 24 cores"]),
        (ServerSetup("X", 1, {"x": "2"}), HostSetup(False, ("a",)), ["x 2 on 1 host"]),
        (None, HERE, ["on this machine, 2 shared cores"]),
        (
            None,
            replace(HERE, pins={"publisher": "0", "subscriber": "apart"}),
            ["on this machine, 2 cores, publisher on CPUs 0, subscriber on cores apart"],
        ),
    ],
)
def test_a_place_is_named_as_far_as_it_is_known(
    server: ServerSetup | None, host: HostSetup | None, places: list[str]
) -> None:
    setup = RunSetup(servers=(server,) if server else (), hosts=(host,) if host else ())
    assert list(setup_line(setup).parts) == places


@pytest.mark.parametrize(
    ("replaced", "parts"),
    [
        ({"publishers": (1, 2), "subscribers": (10, 30, 100)}, ["1, 2 publishers → 10, 30, 100 subscribers"]),
        ({"publishers": (1,), "subscribers": tuple(range(10, 1010, 10))}, ["1 publisher → 10–1,000 subscribers"]),
        ({"publishers": (2,), "subscribers": (0,)}, ["2 publishers → no subscribers"]),
        ({"clients_per_process": (10,)}, ["10 subscribers to a process"]),
        ({"clients_per_process": (1,)}, []),
        ({"step_s": (0.5, 600.0)}, ["steps of 0.5 s, 10 min"]),
        ({"step_s": (60.0,), "step_messages": (50_000,)}, ["steps of 50,000 messages, at most 60 s"]),
        (
            {"clients": (ClientSetup("publisher", "native"), ClientSetup("subscriber", "p", {"a": "1", "b": "2"}))},
            ["publishers native and subscribers p (a 1, b 2)"],
        ),
    ],
)
def test_several_values_are_listed(replaced: dict[str, Any], parts: list[str]) -> None:
    assert list(setup_line(RunSetup(**replaced)).parts) == parts


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"message_size": 3000, "message_size_min": 100}, "100–3,000 B"),
        ({"message_sizes": "24-256:70,256-4096:30"}, "24–4,096 B"),
    ],
)
def test_sizes_that_vary_are_a_range(sizes: dict[str, Any], text: str) -> None:
    assert setup_parts("zmq-fixed", **{f"settings__{name}": value for name, value in sizes.items()})[1] == text


def test_what_varies_between_rows_is_a_list() -> None:
    parts = setup_line(setup_of(ResolvedScenario.of(BATCH))).parts
    assert (parts[0], parts[5]) == ("1 publisher → 30, 60, 120 subscribers", "batches of 100, 1,000")


def test_several_runs_together_have_the_values_of_all() -> None:
    both = merged(setup_of(ResolvedScenario.of(scenario)) for scenario in (FIXED, NATIVE))
    assert setup_line(both).parts[2] == "pyzmq and native"
    acks = merged(RunSetup(settings=(SetupPart("acks", (value,), "acks {}"),)) for value in ("1", "all", "1"))
    assert list(setup_line(acks).parts) == ["acks 1, all"]
    apart = merged(RunSetup(hosts=(HostSetup(True, (name,), 2),)) for name in ("a", "b"))
    assert list(setup_line(apart).parts) == ["on a, 2 shared cores and on b, 2 shared cores"]
    assert merged([]) == RunSetup()


def test_a_terminal_breaks_the_line_between_parts_only() -> None:
    line = PartedLine(("one publisher", "of many", "words"))
    assert fitted([line], 24) == "one publisher · of many\n  · words\n"
    assert markdown([line]) == "one publisher · of many · words\n"
    assert fitted([PartedLine(("a wide part of words", "b"), "- r: ")], 12).splitlines() == [
        *("- r: a wide", "  part of", "  words", "  · b")
    ]


def test_json_and_columns_have_every_part_as_values() -> None:
    host = HostSetup(False, ("a", "b"), 8)
    clients = (ClientSetup("publisher", "native", {"librdkafka": "2.3"}),)
    facts = ReportedFacts(clients, (ServerFacts({"Kafka": "4"}, sources={"Kafka": "PATH"}),), (host,))
    setup = setup_of(resolve("kafka-fixed", {"sweep.clients": [10, 30]}), facts)
    found = setup_object(setup)
    assert found["text"] == str(setup_line(setup))
    assert (found["subscribers"], found["settings"]["acks"], found["hosts"][0]["cores"]) == ((10, 30), ["1"], 8)
    columns = setup_columns(setup)
    assert columns["setup_server_sources"] == "Kafka PATH"
    assert {name: columns[f"setup_{name}"] for name in ("subscribers", "libraries", "acks", "hosts", "cores")} == {
        "subscribers": "10 / 30", "libraries": "librdkafka 2.3", "acks": "1", "hosts": "a / b", "cores": "8",
    }  # fmt: skip
    rows = json.loads(RunTables(FIXED, [{"clients": 30, "status": "ok"}], setup=setup).json)
    jsonschema.validate(rows, json.loads(schema_of(None)))
    server = {"title": "Kafka", "count": 1, "versions": {"Kafka": "4"}, "tls": False, "sources": {"Kafka": "PATH"}}
    assert rows["setup"]["servers"] == [server]
