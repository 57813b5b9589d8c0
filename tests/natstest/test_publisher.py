"""What a NATS publisher must do: the same as any publisher, and account for what the stream acknowledged."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pytest

from hydra.model import Histogram
from hydra.servers.embedded import EmbeddedServer
from hydra.wire.messages import PROBE_EPOCH, Ack, Error, Progress, Ready, Report
from tests.conformance.bench import Bench, StepSettings, Window, same_answer, step_settings, with_values
from tests.natstest.ends import Core, Ends, Stream, kill

CLIENT = 7
STEADY = step_settings(rate=500.0, message_size=100, burst=50)


@pytest.fixture
def publisher(bench: Bench, nats_client: str) -> Bench:
    bench.launch(nats_client, "nats-pub", first_id=CLIENT)
    return bench


def configured(
    bench: Bench, epoch: int, system: Mapping[str, Any], settings: StepSettings = STEADY, **more: Any
) -> None:
    assert bench.configure_publisher(CLIENT, epoch, settings, system=system, **more) == ""


def probes_in(ends: Ends) -> int:
    return sum(r.epoch == PROBE_EPOCH for r in ends.read())


@pytest.mark.parametrize("kind", ["nats-pub", "nats-sub"])
def test_it_names_its_library(bench: Bench, nats_client: str, kind: str) -> None:
    bench.launch(nats_client, kind, first_id=CLIENT)
    hello = bench.peer.hello(CLIENT)
    if hello.implementation == "nats-py":
        assert hello.versions["nats-py"] == version("nats-py")
    else:
        assert hello.versions["libnats"].startswith("3.")


def test_configure_sent_twice_changes_nothing(publisher: Bench, data: Ends) -> None:
    system = data.system()
    configured(publisher, 1, system)
    publisher.peer.sync([CLIENT])
    publisher.tell_configure([CLIENT], 1, STEADY, system=system)
    publisher.peer.heard(Ready, [CLIENT], epoch=1, times=2)
    publisher.peer.heard(Ack, [CLIENT], epoch=1, command="configure", times=2)


def test_probes_come_until_the_start(publisher: Bench, data: Ends) -> None:
    configured(publisher, 5, data.system())
    publisher.peer.wait(
        lambda: any((r.epoch, r.publisher, r.sequence) == (PROBE_EPOCH, CLIENT, 5) for r in data.read()), "a probe"
    )
    publisher.start([CLIENT], 5, 30)
    publisher.peer.sync([CLIENT])
    before = probes_in(data)
    publisher.peer.stays(lambda: True, "", 0.3)
    assert probes_in(data) == before


def test_a_configure_without_probe_ends_the_probes(publisher: Bench, data: Ends) -> None:
    system = data.system()
    configured(publisher, 5, system)
    publisher.peer.wait(lambda: probes_in(data) > 0, "a probe")
    publisher.tell_configure([CLIENT], 5, STEADY, system=system, probe=False)
    publisher.peer.heard(Ready, [CLIENT], epoch=5, times=2)
    before = len(data.read())
    window = publisher.start([CLIENT], 5, 0.3)
    publisher.await_end(window, 0.1)
    report = publisher.publisher_report(CLIENT, 5, window)
    assert report.sent > 0
    sent = [r for r in data.read()[before:] if r.epoch != PROBE_EPOCH]
    # Only core marks the end.
    assert len(sent) == report.sent
    assert isinstance(data, Core) or probes_in(data) == before


def test_the_schedule_is_kept_and_accounted_for(publisher: Bench, data: Ends) -> None:
    configured(publisher, 2, data.system(), probe=False)
    window = publisher.start([CLIENT], 2, 0.6)
    publisher.await_end(window, 0.1)
    report = publisher.publisher_report(CLIENT, 2, window)
    # All that was due, or less on a machine that others load: who is late at the end leaves messages out.
    count = report.sent
    assert 0 < count <= 300
    assert (report.acknowledged, report.failed, report.unacknowledged) == (count, 0, [])
    assert report.bytes == count * 100
    assert report.system == {"slow_consumers": 0, "dropped": 0, "disconnects": 0}
    assert window.start_ns <= report.first_ns <= report.last_ns
    assert sum(report.lag.counts[1::2]) > 0
    records = [r for r in data.read() if r.epoch == 2]
    assert [r.sequence for r in records] == list(range(count))
    assert {(r.publisher, r.size) for r in records} == {(CLIENT, 100)}
    assert all(r.time_ns == window.start_ns + r.sequence * 2_000_000 for r in records)


def test_rate_max(publisher: Bench, data: Ends) -> None:
    configured(publisher, 1, data.system(), with_values(STEADY, rate="max"), probe=False, progress_s=0.1)
    data.leave()
    window = publisher.start([CLIENT], 1, 0.3)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    assert report.sent == report.acknowledged > 100
    assert report.lag == Histogram()
    assert publisher.peer.said(Progress, CLIENT, epoch=1)


def test_no_more_are_under_way_than_the_window_allows(publisher: Bench, stream: Stream) -> None:
    system = {**stream.system(), "publish_window": 3}
    configured(publisher, 1, system, with_values(STEADY, rate="max"), probe=False)
    window = publisher.start([CLIENT], 1, 0.3)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    assert report.sent == report.acknowledged == stream.last() > 3
    assert report.blocked_ns > 0


def test_an_early_stop_and_the_same_report_again(publisher: Bench, stream: Stream) -> None:
    configured(publisher, 1, stream.system(), probe=False)
    window = publisher.start([CLIENT], 1, 30)
    publisher.peer.wait(lambda: stream.last() > 50, "50 messages")
    stop = Window(window.start_ns, window.now_ns(), window.offset_ns)
    report = publisher.publisher_report(CLIENT, 1, stop)
    assert 50 < report.sent < 3000
    assert report.acknowledged == report.sent == stream.last()
    publisher.stop([CLIENT], 1, stop)
    publisher.peer.heard(Report, [CLIENT], epoch=1, times=2)
    assert same_answer(*publisher.peer.said(Report, CLIENT, epoch=1))


def test_mode_and_settings_change_between_steps(publisher: Bench, core: Core, stream: Stream) -> None:
    sent = []
    for epoch, ends in enumerate((core, stream, core, stream), start=1):
        configured(publisher, epoch, ends.system(), probe=False)
        window = publisher.start([CLIENT], epoch, 0.1)
        publisher.await_end(window)
        report = publisher.publisher_report(CLIENT, epoch, window)
        assert 0 < report.sent == report.acknowledged <= 50
        sent.append(report.sent)
    for ends, first in ((core, 0), (stream, 1)):
        got = [r.epoch for r in ends.read() if r.epoch != PROBE_EPOCH]
        assert got == [first + 1] * sent[first] + [first + 3] * sent[first + 2]


def test_what_no_stream_takes_has_failed(publisher: Bench, stream: Stream) -> None:
    system = {**stream.system(), "subject": f"{stream.subject}.not"}
    configured(publisher, 1, system, probe=False)
    window = publisher.start([CLIENT], 1, 0.1)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    assert (report.acknowledged, report.failed) == (0, report.sent)
    assert report.unacknowledged == [(0, report.sent - 1)]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"no_such_thing": 1}, "no_such_thing"),
        ({"publish_window": 0}, "publish_window"),
        ({"consumer": "x"}, "consumer"),
    ],
)
def test_a_system_object_that_cannot_be_is_an_error_that_names_it(
    publisher: Bench, core: Core, changes: dict[str, Any], named: str
) -> None:
    publisher.tell_configure([CLIENT], 1, STEADY, system={**core.system(), **changes})
    error = publisher.peer.heard(Error, [CLIENT], epoch=1)
    assert (named in error.message or "unknown field" in error.message, error.fatal) == (True, False)
    configured(publisher, 2, core.system())


def test_no_server_at_all_is_an_error_and_not_the_end(publisher: Bench, core: Core) -> None:
    configured(publisher, 1, core.system())
    publisher.tell_configure([CLIENT], 2, STEADY, system={**core.system(), "servers": ["127.0.0.1:1"]})
    error = publisher.peer.heard(Error, [CLIENT], epoch=2, timeout_s=20)
    assert ("127.0.0.1:1" in error.message, error.fatal) == (True, False)
    publisher.ignores_commands(CLIENT, (1, 2), Window(time.time_ns(), time.time_ns() + 10**9, 0))
    configured(publisher, 2, core.system())


def test_a_message_that_the_server_does_not_take_is_an_error(publisher: Bench, core: Core) -> None:
    large = with_values(STEADY, message_size=64 * 1024 * 1024)
    configured(publisher, 1, core.system(), large, probe=False)
    publisher.tell_configure([CLIENT], 2, STEADY)
    assert publisher.peer.heard(Error, [CLIENT], epoch=2).message


def test_the_step_ends_at_the_memory_limit(bench: Bench, nats_client: str, core: Core) -> None:
    # Every process is beyond this one from the start.
    bench.launch(nats_client, "nats-pub", first_id=CLIENT, env={"HYDRA_MEMORY_LIMIT_BYTES": "1000000"})
    configured(bench, 1, core.system(), probe=False)
    window = bench.start([CLIENT], 1, 30)
    assert bench.peer.heard(Error, [CLIENT], epoch=1).message
    assert bench.publisher_report(CLIENT, 1, window).stopped_early


def test_a_server_that_dies_leaves_an_honest_report(publisher: Bench, own_server: EmbeddedServer) -> None:
    with Stream(own_server.address) as stream:
        configured(publisher, 1, stream.system(), probe=False)
        window = publisher.start([CLIENT], 1, 2.0)
        publisher.await_end(window, -1.0)
        kill(own_server)
        publisher.await_end(window, -0.1)
        assert publisher.peer.sync([CLIENT]) < 2.0
        publisher.await_end(window)
        report = publisher.publisher_report(CLIENT, 1, window, 25)
    open_ended = sum(last - first + 1 for first, last in report.unacknowledged)
    assert report.acknowledged + open_ended == report.sent
    assert report.acknowledged > 0
    assert report.system is not None
    assert report.system["disconnects"] >= 1
    assert publisher.peer.sync([CLIENT]) < 2.0
