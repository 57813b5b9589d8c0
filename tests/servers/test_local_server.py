"""A server on this machine, whatever it is: up, down, and its errors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hydra.client.server_interface import free_ports
from hydra.errors import ServerError
from hydra.system import wait_alone
from hydra.system.local_server import PORT_ATTEMPTS, LocalServer
from tests.suite.waiting import LONG_S, SOON_S, wait_until

from .running import TREE, kill
from .toy import Toy, ToyCluster, greeting

pytestmark = pytest.mark.tier("all")


def have_ended(pids: tuple[int, int]) -> bool:
    """Whether its supervisor and the server itself have ended."""
    return not any(psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE for p in pids)


@pytest.mark.tier("test")
def test_it_is_up_when_it_has_started_and_leaves_nothing(tmp_path: Path) -> None:
    cluster = ToyCluster("hello")
    server = LocalServer(Toy(), cluster, tmp_path / "toy")
    server.stop()
    with pytest.raises(ServerError, match="the local toy is not started"):
        _ = server.address
    address = server.start()
    pids = server.pids
    assert pids is not None
    assert (greeting(address), server.address, server.versions) == ("hello", address, {"toy": "1.0"})
    assert (cluster.warmed, server.failure()) == ([address], "")
    with pytest.raises(ServerError, match="started already"):
        server.start()
    server.stop()
    server.stop()
    assert have_ended(pids)
    assert not (tmp_path / "toy").exists()


def test_its_end_is_a_failure_and_it_can_be_started_again(tmp_path: Path) -> None:
    with LocalServer(Toy(), ToyCluster(), tmp_path / "toy", warm=False) as server:
        kill(server)
        wait_until(lambda: server.failure().startswith("the local toy ended: "), "its end")
        server.stop()
        assert not (tmp_path / "toy").exists()
        assert greeting(server.start())


def test_a_killed_server_returns_at_its_address_and_on_its_cpus(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with LocalServer(Toy(), ToyCluster(), tmp_path / "toy", warm=False, cpus=[cpu]) as server:
        before, address = server.pids, server.address
        server.halt()
        assert not server.is_back()
        server.start_again()
        wait_until(server.is_back, "its return")
        assert greeting(address)
        assert before is not None
        assert server.pids != before
        assert have_ended(before)
        assert os.sched_getaffinity(server.processes()[0]) == {cpu}


OWNER = """
import pathlib, sys
from hydra.system.local_server import LocalServer
from tests.servers.toy import Toy, ToyCluster
server = LocalServer(Toy(), ToyCluster(), pathlib.Path(sys.argv[1]), warm=False)
server.start()
print(*server.pids, flush=True)
sys.stdin.read()
"""


def test_it_dies_with_a_killed_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "toy")]
    reported = {**os.environ, "PYTHONPATH": str(TREE)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=reported) as owner:
        assert owner.stdout is not None
        supervisor, server = (int(word) for word in owner.stdout.readline().split())
        assert not have_ended((supervisor, server))
        owner.kill()
        wait_until(lambda: have_ended((supervisor, server)), "the end of both")
        wait_until(lambda: not (tmp_path / "toy").exists(), "the end of the folder")


class Slow(ToyCluster):
    """Answers and warms up only when its owner has waited for that."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = threading.Event()

    def wait(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        def asked() -> bool:
            self.waited.set()
            return condition()

        return wait_alone(asked, timeout_s)

    def up(self, address: str) -> bool:
        return self._waited_for() and super().up(address)

    def warm_up(self, address: str) -> None:
        assert self._waited_for()
        super().warm_up(address)

    def _waited_for(self) -> bool:
        self.waited.clear()
        return self.waited.wait(LONG_S)


def test_its_owner_serves_others_while_it_is_asked(tmp_path: Path) -> None:
    cluster = Slow()
    with LocalServer(Toy(), cluster, tmp_path / "toy", wait=cluster.wait) as server:
        assert cluster.warmed == [server.address]
        cluster.waited.clear()
    assert cluster.waited.is_set()


@pytest.mark.parametrize(
    ("word", "answers", "expected"),
    [
        pytest.param("die", True, "the toy ended while it came up: no such word", marks=pytest.mark.tier("test")),
        ("hello", False, "the toy did not answer in time"),
    ],
)
def test_one_that_does_not_come_up_is_told_with_its_last_words(
    tmp_path: Path, word: str, answers: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not answers:
        monkeypatch.setattr(ToyCluster, "up", lambda *_: False)
    server = LocalServer(Toy(), ToyCluster(word), tmp_path / "toy")
    with pytest.raises(ServerError, match=expected):
        server.start(timeout_s=SOON_S if answers else 0.2)
    assert not (tmp_path / "toy").exists()


@pytest.mark.parametrize("tries", [1, PORT_ATTEMPTS])
def test_a_port_that_another_was_quicker_to_bind_is_answered_with_another(tmp_path: Path, tries: int) -> None:
    tried: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:

        def ports(host: str, count: int) -> list[int]:
            tried.append(count)
            return [taken.getsockname()[1]] if len(tried) <= tries else free_ports(host, count)

        server = LocalServer(Toy(), ToyCluster(), tmp_path / "toy", ports=ports)
        try:
            if tries < PORT_ATTEMPTS:
                assert greeting(server.start())
            else:
                with pytest.raises(ServerError, match=f"found its ports taken {PORT_ATTEMPTS} times"):
                    server.start()
        finally:
            server.stop()
    assert tried == [1] * min(tries + 1, PORT_ATTEMPTS)
