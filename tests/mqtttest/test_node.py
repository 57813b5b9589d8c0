"""mosquitto as a server's group: it comes up, and nothing of it is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.mqtttest.system import SingleServer
from hydra.system.run_certificates import RunAuthority
from tests.integration.command import all_ended
from tests.mqtttest.conftest import LIMITS
from tests.servers.running import SERVER, expecting_one, join, node, started
from tests.suite.waiting import SOON_S, wait_until


@pytest.mark.tier("test")
def test_a_remote_server_with_tls_is_up_once_it_has_joined_and_leaves_nothing(tmp_path: Path) -> None:
    command = node("hydra.mqtttest.server_main", "mqtt-server")
    with expecting_one() as controller, started(controller, tmp_path, command) as (process, endpoint):
        assert set(controller.roster.hello(SERVER).versions) == {"mosquitto"}
        join(controller, SingleServer(LIMITS, RunAuthority()), endpoint)
        family = process.children(recursive=True)
        assert any(p.name() == "mosquitto" for p in family)
        controller.quit([SERVER])
        assert process.wait(SOON_S) == 0
        wait_until(lambda: all_ended(family), "the end of supervisor and mosquitto")
        assert not (tmp_path / "server").exists()
