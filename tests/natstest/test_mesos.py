"""NATS on a Mesos cluster: its servers are groups there, as clients are."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pymesos", reason="pip install ./shims/http-parser '.[mesos]'")

from hydra.events.clients import Launched
from tests.integration.command import assert_all_arrived, events, hydra, table
from tests.mesos.cluster import Cluster
from tests.mesos.conftest import cache_home, cluster

__all__ = ["cache_home", "cluster"]

pytestmark = pytest.mark.processes


@pytest.mark.usefixtures("cache_home", "needs_nats")
def test_servers_are_tasks_that_carry_a_replicated_stream(cluster: Cluster, tmp_path: Path) -> None:
    run = tmp_path / "run"
    stream = ("--mode", "jetstream", "--replicas", 2, "--set", "server.count=2")
    step = ("--clients", 3, "--duration", 1, "--rate", 200, "--set", "warmup_s=0")
    hydra("nats-fixed", *stream, *step, "--master", cluster.address, "--out", run)
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 200)
    launched = events(run, Launched)
    assert ["servers-" in text for text in launched] == [True, True, *[False] * (len(launched) - 2)]
