"""MQTT on a Mesos cluster: its server is a group there, as clients are."""

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


@pytest.mark.usefixtures("cache_home")
def test_the_server_is_a_task(cluster: Cluster, tmp_path: Path) -> None:
    run = tmp_path / "run"
    names = ("--clients", 3, "--duration", 1, "--rate", 200, "--qos", 1, "--set", "warmup_s=0")
    hydra("mqtt-fixed", *names, "--master", cluster.address, "--out", run)
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 200)
    launched = events(run, Launched)
    assert ["servers-1" in text for text in launched] == [True, *[False] * (len(launched) - 1)]
