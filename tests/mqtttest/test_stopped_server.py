"""A server of MQTT that stands still for a part of the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.system.local_server import LocalServer
from tests.truth.stopped_server import assert_not_clean, row_of

pytestmark = pytest.mark.tier("all")


@pytest.mark.parametrize("qos", [0, 1])
def test_a_row_is_not_clean_in_which_the_server_stood_still(tmp_path: Path, own_server: LocalServer, qos: int) -> None:
    assert own_server.pids is not None
    step = ("--client", "paho-mqtt", "--qos", qos, "--clients", 2, "--rate", 50, "--duration", 8)
    broker = ("--servers", own_server.address)
    row = row_of(tmp_path / "run", own_server.pids[1], "mqtt-fixed", *step, *broker, stopped_s=3.0)
    assert_not_clean(row, 3.0)
