"""NATS and MQTT on a Mesos cluster: their servers are groups there, as clients are."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pymesos", reason="pip install ./shims/http-parser '.[mesos]'")

from hydra.events.group_events import Launched
from tests.integration.command import assert_all_arrived, events, hydra, table
from tests.mesos.cluster import Cluster
from tests.mesos.conftest import cache_home, cluster

__all__ = ["cache_home", "cluster"]

pytestmark = pytest.mark.tier("all")


STREAM = ("--mode", "jetstream", "--replicas", 2, "--set", "server.count=2", "--tls")


@pytest.mark.usefixtures("cache_home", "needs_nats")
@pytest.mark.parametrize(
    ("scenario", "flags", "servers"), [("nats-fixed", STREAM, 2), ("mqtt-fixed", ("--qos", 1), 1)], ids=["nats", "mqtt"]
)
def test_servers_are_tasks_that_carry_the_data(
    cluster: Cluster, tmp_path: Path, scenario: str, flags: tuple[object, ...], servers: int
) -> None:
    run = tmp_path / "run"
    step = ("--clients", 3, "--duration", 0.5, "--rate", 200, "--set", "warmup_s=0")
    hydra(scenario, *flags, *step, "--master", cluster.address, "--out", run)
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 100)
    launched = events(run, Launched)
    assert ["servers-" in text for text in launched] == [True] * servers + [False] * (len(launched) - servers)
