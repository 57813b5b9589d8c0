"""How mosquitto is found, configured, brought up and lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.client import server_interface
from hydra.client.tls import AccessError
from hydra.client.transport import read_system
from hydra.errors import MissingDependencyError
from hydra.mqtttest import program
from hydra.mqtttest.connection import MqttConnection
from hydra.mqtttest.program import MosquittoJoin, configuration, version_of
from hydra.mqtttest.settings import MqttStep
from hydra.mqtttest.system import access_to, forget, reach
from hydra.system.local_server import LocalServer
from tests.mqtttest.ends import Place
from tests.servers.running import kill
from tests.suite.waiting import SOON_S, wait_until


@pytest.mark.parametrize(("uid", "named"), [(0, ["user root"]), (10001, [])])
def test_its_configuration_has_the_limits_and_only_for_root_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, uid: int, named: list[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: uid)
    join = MosquittoJoin(max_queued_messages=7, max_inflight_messages=9)
    lines = configuration(tmp_path, "10.0.0.1:1999", join).splitlines()
    assert {"listener 1999 10.0.0.1", "max_queued_messages 7", "max_inflight_messages 9"} <= set(lines)
    assert [line for line in lines if line.startswith("user ")] == named


def test_one_that_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(server_interface, "SYSTEM_PROGRAMS", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="apt install mosquitto"):
        program.find()


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("expected", "named"),
    [("mosquitto version 1.6.12", "too old"), ("nothing of the kind", "does not report its version")],
)
def test_one_that_is_too_old_is_refused(tmp_path: Path, expected: str, named: str) -> None:
    script = tmp_path / "mosquitto"
    script.write_text(f"#!/bin/sh\necho '{expected}'\n")
    script.chmod(0o755)
    with pytest.raises(MissingDependencyError, match=named):
        version_of(str(script))


def test_it_tells_its_version_and_its_end(own_server: LocalServer) -> None:
    reach(access_to(own_server.address))
    assert own_server.versions["mosquitto"].startswith("2.")
    assert own_server.failure() == ""
    present = access_to(own_server.address)
    kill(own_server)
    wait_until(own_server.failure, "the end of the server")
    with pytest.raises(AccessError, match="does not answer: network: Connection refused"):
        reach(present)


def test_what_it_retains_is_forgotten_under_one_topic_only(server: str) -> None:
    answered: list[int] = []
    step = read_system(Place(server).step_system(qos=1), MqttStep)
    publisher = MqttConnection("conformance-retain", step, on_answer=lambda mid, _: answered.append(mid))
    for topic in ("forget/a", "forget/a/b", "keep/a"):
        publisher.publish(topic, b"something", 1, retain=True)
    publisher.await_(lambda: len(answered) == 3, SOON_S, "to a message")
    publisher.close()
    assert forget(access_to(server), "forget") == 2
    assert forget(access_to(server), "forget") == 0
    assert forget(access_to(server), "keep") == 1
