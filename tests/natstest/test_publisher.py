"""What a NATS publisher must do: the same as any publisher, and account for what the stream acknowledged."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import psutil
import pytest
from nats.js.api import DiscardPolicy

from hydra.model import Histogram, PublisherReport
from hydra.system.local_server import LocalServer
from hydra.wire.messages import PROBE_EPOCH, Error, Progress, Report
from tests.conformance.bench import Bench, StepSettings, Window, step_settings, with_values
from tests.forwarder import CuttingForwarder
from tests.natstest.conftest import NATS_CLIENTS
from tests.natstest.ends import Core, Ends, Stream, stopped
from tests.servers.running import kill
from tests.suite.waiting import LONG_S

CLIENT = 7
STEADY = step_settings(rate=500.0, message_size=100, burst=50)


@pytest.fixture(scope="module")
def publisher(shared_bench: Bench, nats_client: str) -> Bench:
    shared_bench.launch(nats_client, "nats-pub", first_id=CLIENT)
    return shared_bench


def configured(
    bench: Bench, epoch: int, system: Mapping[str, Any], settings: StepSettings = STEADY, **more: Any
) -> None:
    assert bench.configure_publisher(CLIENT, epoch, settings, system=system, **more) == ""


def stopped_behind(bench: Bench, epoch: int, stream: Stream, messages: int) -> tuple[Window, PublisherReport]:
    """Its step is stopped as soon as this many messages are in the stream."""
    window = bench.start([CLIENT], epoch, 30)
    bench.peer.wait(lambda: stream.last() > messages, f"more than {messages} messages")
    stop = Window(window.start_ns, window.now_ns(), window.offset_ns)
    return stop, bench.publisher_report(CLIENT, epoch, stop)


def test_a_full_stream_that_discards_new_messages_gives_the_reason(
    publisher: Bench, epoch: int, stream: Stream
) -> None:
    client, took = stream.connection.client.jetstream(), 20

    async def limit() -> None:
        config = (await client.stream_info(stream.name)).config
        await client.update_stream(replace(config, max_msgs=took, discard=DiscardPolicy.NEW))

    configured(publisher, epoch, stream.system(), probe=False)
    stream.connection.do(limit(), LONG_S)
    _, report = publisher.publish(CLIENT, epoch, 0.2)
    assert (report.acknowledged, report.failed) == (took, report.sent - took) == (stream.last(), report.sent - took)
    assert report.system is not None
    reported = report.system["acceptance"]
    assert reported == {"reason": "stream_full", "text": "maximum messages exceeded", "messages": report.failed}


def test_a_publisher_whose_connection_is_cut_at_max_goes_on(bench: Bench, nats_client: str, core: Core) -> None:
    fast = step_settings(rate="max", message_size=100, burst=50)
    with CuttingForwarder(core.address, 300_000) as forwarder:
        bench.launch(nats_client, "nats-pub", first_id=CLIENT)
        system = core.system() | {"servers": [forwarder.address]}
        assert bench.configure_publisher(CLIENT, 1, fast, probe=False, system=system) == ""
        _, report = bench.publish(CLIENT, 1, 1.0)
    assert report.system is not None
    assert report.system["disconnects"] > 0


def all_launched(bench: Bench, ends: Ends, settings: StepSettings) -> range:
    """The ids of one publisher of each program, configured for epoch 1."""
    clients = range(CLIENT, CLIENT + len(NATS_CLIENTS))
    for client, command in zip(clients, NATS_CLIENTS, strict=True):
        bench.launch(command, "nats-pub", first_id=client, group=f"g{client}")
        assert bench.configure_publisher(client, 1, settings, system=ends.system(), probe=False) == ""
    return clients


def probes_in(ends: Ends) -> int:
    return sum(r.epoch == PROBE_EPOCH for r in ends.read())


def test_it_names_its_library(publisher: Bench) -> None:
    hello = publisher.peer.relay()
    if hello.implementation == "nats-py":
        assert hello.versions["nats-py"] == version("nats-py")
    else:
        assert hello.versions["libnats"].startswith("3.")


@pytest.mark.parametrize("data", ["core", "stream", "unacknowledged"], indirect=True)
def test_the_schedule_is_kept_and_accounted_for(publisher: Bench, epoch: int, data: Ends) -> None:
    configured(publisher, epoch, data.system(), probe=False)
    window, report = publisher.publish(CLIENT, epoch, 0.2, after_s=0.1)
    # All that was due, or less on a machine that others load: who is late at the end leaves messages out.
    count = report.sent
    assert 0 < count <= 100
    assert (report.acknowledged, report.failed, report.unacknowledged) == (count, 0, [])
    assert report.bytes == count * 100
    system = dict(report.system or {})
    taken = system.pop("wire_bytes", None)
    assert system == {"slow_consumers": 0, "dropped": 0, "disconnects": 0}
    if not data.acknowledged:
        # `PUB SUBJECT SIZE`; nats-py writes a second space where a reply subject would stand.
        line = len(f"PUB {data.subject} 100\r\n\r\n")
        assert taken in (count * (line + 100), count * (line + 101))
    else:
        assert taken is None
    assert window.start_ns <= report.first_ns <= report.last_ns
    assert sum(report.lag.counts[1::2]) > 0
    records = [r for r in data.read() if r.epoch == epoch]
    assert [r.sequence for r in records] == list(range(count))
    assert {(r.publisher, r.size) for r in records} == {(CLIENT, 100)}
    assert all(r.time_ns == window.start_ns + r.sequence * 2_000_000 for r in records)


def test_the_last_answer_is_taken_when_it_arrives(publisher: Bench, epoch: int, stream: Stream) -> None:
    """Nothing wakes the publisher between its only message and the end of the window."""
    configured(publisher, epoch, stream.system(), with_values(STEADY, rate=0.5), probe=False)
    _, report = publisher.publish(CLIENT, epoch, 2.0)
    assert (report.sent, report.acknowledged) == (1, 1)
    assert report.last_ns - report.first_ns < 1_000_000_000


@pytest.mark.parametrize("data", ["core", "unacknowledged"], indirect=True)
def test_rate_max(publisher: Bench, epoch: int, data: Ends) -> None:
    configured(publisher, epoch, data.system(), with_values(STEADY, rate="max"), probe=False, progress_s=0.05)
    data.leave()
    _, report = publisher.publish(CLIENT, epoch, 0.2)
    assert report.sent == report.acknowledged > 0
    assert report.lag == Histogram()
    assert publisher.peer.messages_of(Progress, CLIENT, epoch=epoch)


def test_no_more_are_under_way_than_the_window_allows(publisher: Bench, epoch: int, stream: Stream) -> None:
    system = {**stream.system(), "publish_window": 3}
    configured(publisher, epoch, system, with_values(STEADY, rate="max"), probe=False)
    _, report = stopped_behind(publisher, epoch, stream, 6)
    assert report.sent == report.acknowledged == stream.last()
    assert report.blocked_ns > 0


@pytest.mark.tier("all")
def test_mode_and_settings_change_between_steps(publisher: Bench, epoch: int, core: Core, stream: Stream) -> None:
    sent = []
    for step, ends in enumerate((core, stream, core, stream), start=epoch):
        configured(publisher, step, ends.system(), probe=False)
        _, report = publisher.publish(CLIENT, step, 0.5)
        assert 0 < report.sent == report.acknowledged <= 250
        sent.append(report.sent)
    for first, ends in enumerate((core, stream)):
        got = [r.epoch for r in ends.read() if r.epoch != PROBE_EPOCH]
        assert got == [epoch + first] * sent[first] + [epoch + first + 2] * sent[first + 2]


def test_what_no_stream_takes_has_failed(publisher: Bench, epoch: int, stream: Stream) -> None:
    system = {**stream.system(), "subject": f"{stream.subject}.not"}
    configured(publisher, epoch, system, probe=False)
    _, report = publisher.publish(CLIENT, epoch, 0.1)
    assert (report.acknowledged, report.failed) == (0, report.sent)
    assert report.unacknowledged == [(0, report.sent - 1)]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"no_such_thing": 1}, "no_such_thing|unknown field"),
        ({"publish_window": 0}, "publish_window"),
        ({"consumer": "x"}, "consumer"),
        ({"servers": ["127.0.0.1:1"]}, "127.0.0.1:1"),
    ],
)
def test_what_cannot_be_is_an_error_that_names_it_and_not_the_end(
    publisher: Bench, epoch: int, core: Core, changes: dict[str, Any], named: str
) -> None:
    configured(publisher, epoch, core.system())
    publisher.send_configure([CLIENT], epoch + 1, STEADY, system={**core.system(), **changes})
    error = publisher.peer.heard(Error, [CLIENT], epoch=epoch + 1)
    assert re.search(named, error.message)
    assert not error.fatal
    publisher.ignores_commands(CLIENT, (epoch, epoch + 1), Window(time.time_ns(), time.time_ns() + 10**9, 0))
    configured(publisher, epoch + 1, core.system())


def test_a_message_that_the_server_does_not_take_is_an_error(publisher: Bench, epoch: int, core: Core) -> None:
    large = with_values(STEADY, message_size=64 * 1024 * 1024)
    configured(publisher, epoch, core.system(), large, probe=False)
    publisher.send_configure([CLIENT], epoch + 1, STEADY)
    assert publisher.peer.heard(Error, [CLIENT], epoch=epoch + 1).message


@pytest.mark.tier("all")
def test_a_server_that_dies_leaves_an_honest_report(bench: Bench, own_server: LocalServer) -> None:
    with Stream(own_server.address) as stream:
        clients = all_launched(bench, stream, STEADY)
        window = bench.start(clients, 1, 1.0)
        bench.await_end(window, -0.5)
        kill(own_server)
        bench.await_end(window, -0.1)
        bench.peer.sync(clients)  # the death of the server prevents no answer
        bench.await_end(window)
        bench.stop(clients, 1, window)
        bench.peer.heard(Report, clients, epoch=1, timeout_s=LONG_S)
    for client in clients:
        (report,) = (text.publisher for text in bench.peer.messages_of(Report, client, epoch=1))
        assert report is not None
        open_ended = sum(last - first + 1 for first, last in report.unacknowledged)
        assert report.acknowledged + open_ended == report.sent
        assert report.acknowledged > 0
        assert (report.system or {})["disconnects"] >= 1
    bench.peer.sync(clients)


@pytest.mark.tier("all")
def test_a_server_that_reads_nothing_for_seconds_is_waited_for(bench: Bench, own_server: LocalServer) -> None:
    """As one with a thousand slow consumers."""
    assert own_server.pids is not None
    with Core(own_server.address) as core:
        core.leave()
        clients = all_launched(bench, core, with_values(STEADY, rate="max"))
        window = bench.start(clients, 1, 9.5)
        bench.await_end(window, -9.0)
        with stopped([psutil.Process(own_server.pids[1])]):
            bench.await_end(window, -2.0)
        bench.await_end(window)
        reports = [bench.publisher_report(client, 1, window, LONG_S) for client in clients]
    for report in reports:
        assert report.sent == report.acknowledged > 0
        assert report.last_ns > window.stop_ns - 2_000_000_000
