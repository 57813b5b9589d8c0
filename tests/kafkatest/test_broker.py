"""What is Kafka's own about a local server; the rest is tested with a server that starts sooner (tests/servers)."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from hydra.client.server_interface import free_ports
from hydra.errors import ServerError
from hydra.kafkatest import daemon
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.jars import conf_folder
from hydra.kafkatest.program import KafkaProgram
from hydra.kafkatest.topics import Topics
from tests.suite.waiting import LONG_S, wait_until


@pytest.mark.tier("all")
@pytest.mark.usefixtures("needs_kafka")
def test_it_comes_up_in_whatever_folder_when_its_port_was_taken_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A locale in which Java cannot name it, and all that means something in a properties file or a list of paths.
    monkeypatch.setenv("LC_ALL", "C")
    folder = tmp_path / "größe 1,2:3 = #!\\u0041 ${x}"
    tried: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:

        def ports(host: str, count: int) -> list[int]:
            first, *others = free_ports(host, count)
            first = first if tried else taken.getsockname()[1]
            tried.append(f"{host}:{first}")
            return [first, *others]

        with LocalBroker(folder, ports=ports, warm=False) as broker:
            assert [broker.bootstrap] == tried[1:]
            pids = broker.pids
            assert pids is not None
            with contextlib.closing(Topics(broker.bootstrap, {}, "x")) as topics:
                assert topics.describe().brokers == 1
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not folder.exists()


@pytest.mark.tier("test")
@pytest.mark.usefixtures("needs_kafka")
def test_a_broker_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    shutil.copytree(conf_folder(), conf)
    (conf / "server.properties").write_text("process.roles=broker,controller\n")
    with pytest.raises(ServerError, match=r"node\.id|StorageTool"):
        LocalBroker(tmp_path / "b", KafkaProgram(conf)).start()
    assert not (tmp_path / "b").exists()


def test_a_folder_with_somebodys_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ServerError, match="not empty"):
        LocalBroker(tmp_path).start()
    assert (tmp_path / "mine").exists()


def test_a_stale_state_file_is_not_a_broker(tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text(
        f'{{"bootstrap": "x:1", "version": "4", "pid": {os.getpid()}, "created": 1.0, "folder": "/nowhere"}}'
    )
    assert daemon.status(tmp_path) is None
    assert not daemon.down(tmp_path)
    assert not (tmp_path / "broker.json").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no right to mount: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.tier("all")
@pytest.mark.usefixtures("needs_kafka")
def test_a_broker_that_finds_its_disk_full_ends_and_says_why(small_disk: Path, tmp_path: Path) -> None:
    with LocalBroker(small_disk, log=tmp_path / "log", warm=False) as broker:
        topics = Topics(broker.bootstrap, {}, "full")
        topic = topics.create("data")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "queue.buffering.max.messages": 80})

        def ended() -> bool:
            # As much as it takes: what waits longer than it may on a busy machine fills no disk.
            with contextlib.suppress(BufferError):
                producer.produce(topic, bytes(900_000))
            producer.poll(0.05)
            return broker.failure() != ""

        wait_until(ended, "the end of the broker", LONG_S)
        assert "No space left on device" in broker.failure()
        assert "\n" not in broker.failure()
        topics.close()
