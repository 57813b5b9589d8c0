"""A folder for a server of the test, and the wait for servers of the user's."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from hydra.config.scenario import resolve
from hydra.errors import ServerError, UsageError
from hydra.system import server_system as module
from hydra.system.local_server import LocalServer
from hydra.system.server_system import ServerSystem, await_return, unused_folder


def test_a_folder_that_was_left_behind_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "server-1").mkdir()
    assert unused_folder(tmp_path) == tmp_path / "server-2"
    assert not (tmp_path / "server-2").exists()


@pytest.mark.parametrize(
    ("fails", "ready_timeout_s", "comes_back"),
    [(0, 5.0, True), (9, 5.0, True), (12, 5.0, False), (59, 99.0, True), (62, 99.0, False)],
)
def test_servers_have_the_time_that_clients_have_and_half_a_minute_at_most(
    fails: int, ready_timeout_s: float, comes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, requests = 0.0, 0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now_s))

    def wait(condition: Callable[[], bool], timeout_s: float) -> bool:
        nonlocal now_s
        now_s += timeout_s
        return condition()

    def ask() -> str:
        nonlocal requests
        requests += 1
        if requests <= fails:
            raise ServerError(f"silent for the {requests}th time")
        return "here"

    if comes_back:
        assert await_return(ask, wait, ready_timeout_s) == "here"
    else:
        with pytest.raises(ServerError, match=f"silent for the {requests or fails}"):
            await_return(ask, wait, ready_timeout_s)


def test_a_check_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.CHECK_WITHIN_S <= 5
    monkeypatch.setattr(module, "CHECK_WITHIN_S", 0.01)
    over = Event()
    with pytest.raises(UsageError, match=r"the server at a:1,b:2 does not answer: network: no answer in 0\.01 s"):
        ServerSystem(Mock(), "a:1,b:2")._in_time(over.wait)
    over.set()


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("scenario", "key", "scheme"),
    [
        ("nats-fixed", "nats.servers", "tls://"),
        ("mqtt-fixed", "mqtt.broker", "mqtts://"),
        ("kafka-fixed", "kafka.bootstrap", ""),
    ],
)
def test_the_check_of_a_silent_server_ends(
    scenario: str, key: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_WITHIN_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        resolved = resolve(scenario, {key: f"{scheme}{address}"})
        with pytest.raises(UsageError, match=rf"the server at {address} does not answer: network: no answer in 0\.1 s"):
            resolved.system.identity.make(resolved.scenario, False, False).check()


def test_a_server_that_was_killed_on_purpose_fails_only_if_its_step_does(tmp_path: Path) -> None:
    system = ServerSystem(Mock(), "")
    system._own = LocalServer(Mock(), Mock(), tmp_path)
    system.servers.kill()
    assert system.servers.failure() == ""
    system.after_step()
    assert system.servers.failure() == "the step ended before the server that it had killed was back"
