"""Whole runs of MQTT, local and on the user's server; a server that dies is in ``tests/integration``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from hydra.mqtttest.system import access_to, forget
from hydra.wire.data_message import HEADER
from tests.integration.command import assert_all_arrived, hydra, table
from tests.suite.native_client import needs_native
from tests.suite.waiting import wait_until
from tests.truth.topic_rows import TOPICS, assert_counted_alike, assert_every_topic

pytestmark = pytest.mark.tier("test")

FIXED = ("mqtt-fixed", "--rate", 200, "--set", "warmup_s=0")


def assert_carried(rows: list[dict[str, str]]) -> None:
    """Nothing was lost: each of two subscribers got all of it, then the two members of a group got it together."""
    assert [(row["shared"], row["group"]) for row in rows] == [("False", ""), ("True", "all")]
    for row, shares in zip(rows, (1, 2), strict=True):
        assert (row["failed_clients"], row["duplicates"], row["lost_connections"]) == ("0", "0", "0")
        assert_all_arrived({**row, "total_rx": shares * float(row["total_rx"])}, 60)


SHARED = ("--clients", 2, "--duration", 0.3, "--set", "sweep.vary={shared=[false,true]}")


def test_every_subscriber_gets_all_and_every_group_gets_all(tmp_path: Path) -> None:
    run = tmp_path / "run"
    hydra(*FIXED, *SHARED, "--client", "paho-mqtt", "--qos", 2, "--out", run)
    assert_carried(table(run))
    assert not list(run.glob("server-*"))


@pytest.mark.tier("all")
@pytest.mark.usefixtures("native")
def test_nothing_is_left_on_the_users_server(tmp_path: Path, server: str) -> None:
    run = tmp_path / "run"
    native = ("--client", "native", "--protocol", "5", "--qos", 1, "--retain")
    hydra(*FIXED, *SHARED, *native, "--servers", server, "--out", run)
    assert_carried(table(run))
    assert forget(access_to(server), "hydra") == 0


@pytest.mark.parametrize("client", ["paho-mqtt", pytest.param("native", marks=[needs_native, pytest.mark.tier("all")])])
def test_the_hottest_topic_has_as_many_messages_as_its_subscribers_got(
    tmp_path: Path, server: str, client: str
) -> None:
    """Counted by a plain client of the library."""
    run, counts, subscribed = tmp_path / "run", Counter[int](), list[int]()
    host, _, port = server.rpartition(":")
    witness = mqtt.Client(CallbackAPIVersion.VERSION2, "witness")
    witness.on_message = lambda _client, _data, message: counts.update([HEADER.unpack_from(message.payload)[0]])
    witness.on_subscribe = lambda _client, _data, mid, _codes, _properties: subscribed.append(mid)
    witness.connect(host, int(port))
    witness.subscribe("hydra/+/0")
    witness.loop_start()
    try:
        wait_until(lambda: subscribed, "the subscription")
        words = ("mqtt-fixed", "--client", client, *TOPICS, "--set", "warmup_s=0")
        hydra(*words, "--servers", server, "--out", run)
        assert_counted_alike(run, counts)
    finally:
        witness.disconnect()
        witness.loop_stop()


@pytest.mark.tier("all")
@pytest.mark.parametrize("client", ["paho-mqtt", pytest.param("native", marks=needs_native)])
def test_a_pattern_has_all_topics(tmp_path: Path, server: str, client: str) -> None:
    flags = ("--client", client, "--clients", 2, "--duration", 0.3, "--topics", 5, "--wildcard", "--qos", 1)
    hydra(*FIXED, *flags, "--servers", server, "--out", tmp_path / "run")
    assert_every_topic(table(tmp_path / "run"), 5)
