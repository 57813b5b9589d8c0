from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from hydra.errors import ServerError
from hydra.kafkatest import daemon
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import conf_folder
from hydra.kafkatest.topics import Topics
from hydra.servers.ports import free_ports

from .conftest import wait_until

pytestmark = pytest.mark.usefixtures("needs_kafka")


def gone(*pids: int) -> bool:
    return not any(psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE for p in pids)


def test_start_and_stop_leave_nothing_in_whatever_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A locale in which Java cannot name it, and all that means something in a properties file or a list of paths.
    monkeypatch.setenv("LC_ALL", "C")
    folder = tmp_path / "größe 1,2:3 = #!\\u0041 ${x}"
    broker = EmbeddedBroker(folder, warm=False)
    broker.stop()
    bootstrap = broker.start()
    assert broker.alive()
    pids = broker.pids
    assert pids is not None
    assert Topics(bootstrap, {}, "x").describe().brokers == 1
    with pytest.raises(ServerError, match="started already"):
        broker.start()
    broker.stop()
    broker.stop()
    assert gone(*pids)
    assert not broker.alive()
    assert not folder.exists()


def test_java_dies_with_a_killed_owner(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\nfrom hydra.kafkatest.broker import EmbeddedBroker\n"
        "b = EmbeddedBroker(pathlib.Path(sys.argv[1]), warm=False)\nb.start()\n"
        "print(*b.pids, flush=True)\nsys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "b")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 2
        assert not gone(*pids)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        wait_until(lambda: gone(*pids), 2.0, "supervisor and Java were gone")
        wait_until(lambda: not (tmp_path / "b").exists(), 1.0, "the folder was gone")


def test_a_killed_java_is_noticed_and_cleaned_up(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    assert own_broker.pids is not None
    os.kill(own_broker.pids[1], signal.SIGKILL)
    wait_until(lambda: not own_broker.alive(), 2.0, "the death was noticed")
    own_broker.stop()
    assert not (tmp_path / "own").exists()


def test_a_taken_port_is_answered_with_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        tried: list[int] = []

        def ports(host: str, count: int) -> list[int]:
            tried.append(count)
            return [port, *free_ports(host, count - 1)] if len(tried) == 1 else free_ports(host, count)

        broker = EmbeddedBroker(tmp_path / "b", ports=ports, warm=False)
        try:
            assert broker.start() != f"127.0.0.1:{port}"
            assert len(tried) == 2
        finally:
            broker.stop()


def test_a_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    for file in conf_folder().iterdir():
        (conf / file.name).write_bytes(file.read_bytes())
    (conf / "server.properties").write_text("process.roles=broker,controller\n")
    with pytest.raises(ServerError) as e:
        EmbeddedBroker(tmp_path / "b", conf=conf).start()
    assert "node.id" in str(e.value) or "StorageTool" in str(e.value)
    assert not (tmp_path / "b").exists()


def test_a_folder_with_somebodys_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ServerError, match="not empty"):
        EmbeddedBroker(tmp_path).start()
    assert (tmp_path / "mine").exists()


def test_up_status_down(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert daemon.status(state) is None
    assert not daemon.down(state)
    running = daemon.up(state)
    try:
        assert daemon.status(state) == running
        assert Topics(running.bootstrap, {}, "x").describe().brokers == 1
        with pytest.raises(ServerError, match="runs already"):
            daemon.up(state)
    finally:
        assert daemon.down(state)
    wait_until(lambda: gone(running.pid), 2.0, "the supervisor was gone")
    assert daemon.status(state) is None
    assert not Path(running.folder).exists()


def test_a_stale_state_file_is_not_a_broker(tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text(
        f'{{"bootstrap": "x:1", "version": "4", "pid": {os.getpid()}, "created": 1.0, "folder": "/nowhere"}}'
    )
    assert daemon.status(tmp_path) is None
    assert not daemon.down(tmp_path)
    assert not (tmp_path / "broker.json").exists()
