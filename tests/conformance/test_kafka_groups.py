"""A Kafka client's group ends as any other: the libraries' own threads must not keep it."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from hydra.wire.messages import Ready
from tests.conformance.bench import Bench, step_settings
from tests.conformance.kafka_ends import Log


def working(bench: Bench, kafka_client: str, log: Log) -> None:
    """A publisher and two subscribers in the middle of a step."""
    bench.launch(kafka_client, "kafka-pub", first_id=1, group="p")
    bench.launch(kafka_client, "kafka-sub", first_id=2, count=2, group="s")
    topic, settings = log.from_here(), step_settings(rate=1000.0)
    bench.configure_publisher(1, 1, settings, system=topic)
    bench.configure_subscribers([2, 3], 1, settings, publishers={1: ""}, system=topic)
    bench.peer.heard(Ready, [2, 3], epoch=1)
    bench.await_moment(bench.start([1, 2, 3], 1, 60), 0.2)


LATER = [pytest.param(end, marks=pytest.mark.tier("all")) for end in ("lifeline", "SIGTERM", "SIGKILL")]


@pytest.mark.parametrize("end", ["quit", *LATER])
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
        assert bench.await_exit(program) == (-9 if end == "SIGKILL" else 0)
