"""A broker whose disk is full: a small file system of its own, which takes a right that not everybody has."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.topics import Topics
from tests.kafkatest.conftest import wait_until

pytestmark = pytest.mark.processes


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no right to mount: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_broker_that_finds_its_disk_full_ends_and_says_why(small_disk: Path, tmp_path: Path) -> None:
    with EmbeddedBroker(small_disk, log=tmp_path / "log", warm=False) as broker:
        topics = Topics(broker.bootstrap, {}, "full")
        topic = topics.create("data")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0, "queue.buffering.max.messages": 80})

        def ended() -> bool:
            # As much as it takes: what waits longer than it may on a busy machine fills no disk.
            with contextlib.suppress(BufferError):
                producer.produce(topic, bytes(900_000))
            producer.poll(0.05)
            return broker.failure() != ""

        wait_until(ended, 60, "the end of the broker")
        assert "No space left on device" in broker.failure()
        assert "\n" not in broker.failure()
        topics.close()
