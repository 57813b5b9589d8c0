"""A Kafka client's group ends as any other: the libraries' own threads must not keep it."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from hydra.wire.messages import ChildExit, Ready
from tests.conformance.bench import Bench, step_settings
from tests.conformance.kafka_ends import Log
from tests.conformance.peer import Arrival


def working(bench: Bench, kafka_client: str, log: Log) -> None:
    """A publisher and two subscribers in the middle of a step."""
    bench.launch(kafka_client, "kafka-pub", first_id=1, group="p")
    bench.launch(kafka_client, "kafka-sub", first_id=2, count=2, group="s")
    topic, settings = log.from_here(), step_settings(rate=1000.0)
    bench.configure_publisher(1, 1, settings, system=topic, timeout_s=20)
    bench.configure_subscribers([2, 3], 1, settings, publishers={1: ""}, system=topic, timeout_s=20)
    bench.peer.heard(Ready, [2, 3], epoch=1, timeout_s=20)
    window = bench.start([1, 2, 3], 1, 60)
    bench.await_end(window, -59.8)


@pytest.mark.parametrize("end", ["quit", "lifeline", "SIGTERM", "SIGKILL"])
def test_nothing_is_left(bench: Bench, kafka_client: str, log: Log, end: str) -> None:
    working(bench, kafka_client, log)
    for program in bench.groups:
        assert psutil.Process(program.pid).num_threads() == 1
        if end == "lifeline":
            program.cut_lifeline()
        elif end != "quit":
            os.kill(program.pid, signal.Signals[end])
    if end == "quit":
        bench.quit()
    for program in bench.groups:
        code = bench.await_gone(program, 8 if end == "quit" else 2)
        assert code == (-9 if end == "SIGKILL" else 0)


def test_a_client_that_was_killed_is_replaced(bench: Bench, kafka_client: str) -> None:
    bench.launch(kafka_client, "kafka-sub", first_id=1, count=2)
    before = bench.peer.process(2)
    assert bench.peer.relay().implementation
    assert bench.peer.relay().versions
    os.kill(before.pid, signal.SIGKILL)
    assert bench.peer.heard(ChildExit, [2]).pid == before.pid
    assert bench.peer.heard(Arrival, [2], incarnation=1).pid != before.pid
