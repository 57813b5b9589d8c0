"""Kafka's own performance tools as clients, on a real broker: their accounts, and that nothing of them stays."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.topics import Topics
from hydra.wire.messages import Ack, Error, Hello
from tests.conformance.bench import Bench, StepSettings, step_settings
from tests.conformance.group import GroupProgram
from tests.servers.running import progressed
from tests.suite.waiting import LONG_S, SOON_S

pytestmark = pytest.mark.tier("all")

PROGRAM = f"{sys.executable} -m hydra.kafkatest.perf_tool"
PUBLISHER, SUBSCRIBER = 1, 2
RECORDS, SIZE = 2_000, 100
SETTINGS = step_settings(messages=RECORDS, message_size=SIZE, linger_ms=1.0)


def launch(bench: Bench, kind: str, client: int, **more: Any) -> GroupProgram:
    return bench.launch(PROGRAM, kind, first_id=client, env={"OPENBLAS_NUM_THREADS": "1"}, **more)


def configured(broker: LocalBroker, topic: str, offsets: dict[int, int] | None = None) -> dict[str, Any]:
    begin = {str(p): n for p, n in (offsets or {0: 0}).items()}
    return {"bootstrap": broker.bootstrap, "topic": topic, "offsets": begin}


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the clients run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def send(bench: Bench, epoch: int, system: dict[str, Any], settings: StepSettings = SETTINGS) -> Any:
    """One step of the publisher, which has a group already; its report."""
    bench.configure_publisher(PUBLISHER, epoch, settings, system=system, progress_s=0.1)
    window = bench.start([PUBLISHER], epoch, 60.0)
    progressed(bench, PUBLISHER, epoch, RECORDS)
    return bench.publisher_report(PUBLISHER, epoch, window)


def test_what_was_sent_is_what_the_log_grew_by_and_what_was_read(
    bench: Bench, broker: LocalBroker, topics: Topics, sandbox: Path
) -> None:
    topic = topics.create("data", partitions=2)
    launch(bench, "kafka-pub", PUBLISHER, group="p")
    launch(bench, "kafka-sub", SUBSCRIBER, group="s")
    assert {m.implementation for m in bench.peer.log if isinstance(m, Hello)} == {"kafka-tool"}
    begin = {0: 0, 1: 0}
    for epoch in (1, 2):
        system = configured(broker, topic, begin)
        sent = send(bench, epoch, system)
        end = topics.end_offsets(topic)
        assert (sent.sent, sent.acknowledged, sent.failed) == (RECORDS, RECORDS, 0)
        assert sum(end.values()) - sum(begin.values()) == RECORDS
        assert sent.system is not None
        assert sent.system["figures"]["records"] == RECORDS
        assert RECORDS / sent.system["figures"]["records_per_sec"] == pytest.approx(
            (sent.last_ns - sent.first_ns) / 1e9
        )
        assert sent.system["wire_bytes"] > RECORDS * SIZE
        assert sent.usage.cpu_user_s > 0

        settings = step_settings(messages=RECORDS, message_size=SIZE, read="stored")
        bench.configure_subscribers([SUBSCRIBER], epoch, settings, publishers={PUBLISHER: ""}, system=system)
        bench.start([SUBSCRIBER], epoch, 1.0)
        read = bench.subscriber_report(
            SUBSCRIBER, epoch, {PUBLISHER: RECORDS}, system={"end_offsets": end}, drain_max_s=LONG_S, timeout_s=LONG_S
        )
        assert read.system is not None
        assert (read.system["figures"]["messages"], read.bytes, read.drain) == (RECORDS, RECORDS * SIZE, "complete")
        assert [(x.publisher, x.received, x.missing) for x in read.ledgers] == [(PUBLISHER, RECORDS, 0)]
        assert read.undrained == 0
        assert (read.last_ns - read.first_ns) // 1_000_000 == read.system["figures"]["fetch_ms"]
        begin = end
    # Its groups are deleted with their steps, its files with its runs.
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    # Kept until it has answered: one that is freed before takes the answer along, and nothing ends the wait.
    groups = admin.list_consumer_groups().result(SOON_S)
    assert [g.group_id for g in groups.valid if topic in g.group_id] == []
    assert list(sandbox.iterdir()) == []


def test_records_that_are_too_large_are_told_of(
    bench: Bench, broker: LocalBroker, topics: Topics, sandbox: Path
) -> None:
    topic = topics.create("data", config={"max.message.bytes": "2000"})
    launch(bench, "kafka-pub", PUBLISHER)
    settings = step_settings(messages=3, message_size=3_000)
    bench.configure_publisher(PUBLISHER, 1, settings, system=configured(broker, topic))
    window = bench.start([PUBLISHER], 1, 60.0)
    error = bench.peer.heard(Error, [PUBLISHER], epoch=1, timeout_s=LONG_S)
    assert "RecordTooLargeException" in error.message
    report = bench.publisher_report(PUBLISHER, 1, window)
    assert (report.sent, report.acknowledged, report.failed) == (3, 0, 3)
    assert report.stopped_early == error.message


@pytest.mark.parametrize("end", ["stop", "kill", "quit"])
def test_nothing_is_left_of_a_tool_that_is_ended_in_the_middle(
    end: str, bench: Bench, broker: LocalBroker, topics: Topics, sandbox: Path
) -> None:
    topic = topics.create("data")
    program = launch(bench, "kafka-pub", PUBLISHER, arguments=["--respawns", "0"])
    settings = step_settings(messages=10_000_000, message_size=SIZE, rate=1000.0)
    secret = {"properties": {"sasl.username": "me", "sasl.password": "not told", "security.protocol": "PLAINTEXT"}}
    bench.configure_publisher(PUBLISHER, 1, settings, system=configured(broker, topic) | secret, progress_s=0.2)
    assert list(sandbox.iterdir()) == []
    window = bench.start([PUBLISHER], 1, 60.0)
    progressed(bench, PUBLISHER, 1, 1)
    client = bench.peer.process(PUBLISHER).pid
    (java,) = (p for p in psutil.Process(client).children(recursive=True) if p.name() == "java")
    assert "not told" not in " ".join(java.cmdline())
    (folder,) = sandbox.iterdir()
    properties = folder / "client.properties"
    assert "not told" in properties.read_text()
    assert properties.stat().st_mode & 0o777 == 0o600
    if end == "stop":
        report = bench.publisher_report(PUBLISHER, 1, window)
        assert 0 < report.sent < 10_000_000
        assert "was ended when it had reported" in report.stopped_early
    elif end == "kill":
        os.kill(client, 9)
    else:
        bench.quit()
        assert bench.await_exit(program, SOON_S) == 0
    bench.peer.wait(lambda: not java.is_running(), "Java is gone", SOON_S)
    bench.peer.wait(lambda: list(sandbox.iterdir()) == [], "its folder is gone", SOON_S)


def test_a_subscriber_needs_a_cluster_that_commits(bench: Bench, sandbox: Path) -> None:
    launch(bench, "kafka-sub", SUBSCRIBER)
    system = {"bootstrap": "127.0.0.1:1", "topic": "t", "offsets": {"0": 0}}
    bench.send_configure([SUBSCRIBER], 1, SETTINGS, publishers={PUBLISHER: ""}, system=system)
    error = bench.peer.heard(Error, [SUBSCRIBER], epoch=1, timeout_s=LONG_S)
    assert error.message.startswith("Kafka does not commit where the group ")
    assert not bench.peer.messages_of(Ack, command="configure")
