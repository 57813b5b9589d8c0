"""A server on this machine, whatever it is: up, down, and how it says what went wrong."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from hydra.errors import ServerError
from hydra.servers.embedded import PORT_ATTEMPTS, EmbeddedServer
from hydra.servers.ports import free_ports
from hydra.system import wait_alone

from .toy import Toy, ToyCluster, greeting

pytestmark = pytest.mark.processes


def test_it_is_up_when_it_has_started_and_leaves_nothing(tmp_path: Path) -> None:
    cluster = ToyCluster("hello")
    server = EmbeddedServer(Toy(), cluster, tmp_path / "toy")
    with pytest.raises(ServerError, match="the embedded toy is not started"):
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
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not (tmp_path / "toy").exists()


def test_its_end_is_a_failure_and_it_can_be_started_again(tmp_path: Path) -> None:
    with EmbeddedServer(Toy(), ToyCluster(), tmp_path / "toy", warm=False) as server:
        assert server.pids is not None
        os.kill(server.pids[1], signal.SIGKILL)
        assert wait_alone(lambda: server.failure().startswith("the embedded toy ended: "), 5)
        server.stop()
        assert greeting(server.start())


def test_one_that_ends_while_it_comes_up_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = EmbeddedServer(Toy(), ToyCluster("die"), tmp_path / "toy")
    with pytest.raises(ServerError, match="the toy ended while it came up: no such word"):
        server.start()
    assert not (tmp_path / "toy").exists()


def test_one_that_never_answers_is_given_up(tmp_path: Path) -> None:
    class Deaf(ToyCluster):
        def up(self, address: str) -> bool:
            return False

    server = EmbeddedServer(Toy(), Deaf(), tmp_path / "toy")
    with pytest.raises(ServerError, match="the toy did not answer in time"):
        server.start(timeout_s=0.5)
    assert not (tmp_path / "toy").exists()


@pytest.mark.parametrize("tries", [1, PORT_ATTEMPTS])
def test_a_port_that_another_was_quicker_to_bind_is_answered_with_another(tmp_path: Path, tries: int) -> None:
    tried: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:

        def ports(host: str, count: int) -> list[int]:
            tried.append(count)
            return [taken.getsockname()[1]] if len(tried) <= tries else free_ports(host, count)

        server = EmbeddedServer(Toy(), ToyCluster(), tmp_path / "toy", ports=ports)
        try:
            if tries < PORT_ATTEMPTS:
                assert greeting(server.start())
            else:
                with pytest.raises(ServerError, match=f"found its ports taken {PORT_ATTEMPTS} times"):
                    server.start()
        finally:
            server.stop()
    assert tried == [1] * min(tries + 1, PORT_ATTEMPTS)
