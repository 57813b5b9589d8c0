"""What a publisher of any system must do: introduce itself, prove its path, keep its schedule, account for it.

Some cases are of tier("all"): tests/conformance/systems.py.
"""

from __future__ import annotations

from typing import Any

from hydra.wire.data_message import SEQUENCE_LIMIT
from hydra.wire.messages import Ack, Ready, Report
from hydra.wire.traffic import topic_choice
from tests.conformance.bench import CLIENT, Window
from tests.conformance.system_stage import SystemStep
from tests.conformance.systems import each

STEADY: dict[str, Any] = {"rate": 500.0, "message_size": 100, "burst": 50}


@each(lambda subject: True)
def test_it_introduces_itself_and_probes_until_the_start(publishing: SystemStep) -> None:
    hello = publishing.bench.peer.relay()
    assert (hello.ids, hello.role, hello.implementation) == ([CLIENT], "publisher", publishing.subject.client)
    assert hello.versions
    peer = publishing.bench.peer
    publishing.publisher(3, probe=True, **STEADY)
    peer.wait(lambda: len(publishing.signals(3)) >= 2, "probes repeat")
    publishing.bench.start([CLIENT], 3, 30)
    peer.sync([CLIENT])
    probes = publishing.signals(3)
    assert {(probe.publisher, probe.time_ns) for probe in probes} == {(CLIENT, 0)}
    peer.stays(lambda: len(publishing.signals(3)) == len(probes), "a probe after the start", 0.3)


@each(lambda subject: not subject.group)
def test_a_second_configure_only_ends_the_probes(publishing: SystemStep) -> None:
    peer = publishing.bench.peer
    endpoint = publishing.publisher(2, probe=True, **STEADY)
    settings, more = publishing.prepared(**STEADY)
    publishing.bench.send_configure([CLIENT], 2, settings, probe=False, **more)
    assert peer.heard(Ready, [CLIENT], epoch=2, times=2).endpoint == endpoint
    peer.heard(Ack, [CLIENT], epoch=2, command="configure", times=2)
    before = len(publishing.signals(2))
    peer.stays(lambda: len(publishing.signals(2)) == before, "a probe that nobody asked for", 0.3)


@each(lambda subject: True)
def test_the_schedule_is_kept_and_accounted_for(publishing: SystemStep) -> None:
    publishing.publisher(2, **STEADY)
    bench = publishing.bench
    window = bench.start([CLIENT], 2, 0.2)
    bench.await_end(window, 0.1)
    # It stops by itself, and reports nothing unasked.
    assert not bench.peer.messages_of(Report, epoch=2)
    report = bench.publisher_report(CLIENT, 2, window)
    # All that was due, or less on a machine that others load.
    count = report.sent
    assert 0 < count <= 100
    assert (report.acknowledged, report.failed, report.unacknowledged) == (count, 0, [])
    assert (report.bytes, report.stopped_early) == (count * 100, "")
    assert window.start_ns <= report.first_ns <= report.last_ns
    assert sum(report.lag.counts[1::2]) == count
    bench.peer.wait(lambda: len(publishing.data(2)) >= count, "all messages")
    data = publishing.data(2)
    assert [message.sequence for message in data] == list(range(count))
    assert {(message.publisher, message.size) for message in data} == {(CLIENT, 100)}
    assert [message.time_ns for message in data] == [window.start_ns + n * 2_000_000 for n in range(count)]


@each(lambda subject: True)
def test_the_end_is_marked_behind_the_data_if_only_publishers_know_it(publishing: SystemStep) -> None:
    publishing.publisher(3, **STEADY)
    bench, marker = publishing.bench, SEQUENCE_LIMIT | 3
    window = bench.start([CLIENT], 3, 0.1)
    bench.await_end(window, 0.1)
    assert not publishing.signals(marker)
    report = bench.publisher_report(CLIENT, 3, window)
    if publishing.end_of_data() is not None:
        bench.peer.stays(lambda: not publishing.signals(marker), "an end marker", 0.1)
        return
    bench.peer.wait(lambda: len(publishing.signals(marker)) >= 2, "end markers")
    arrivals = publishing.arrivals()
    assert arrivals.index(publishing.data(3)[report.sent - 1]) < arrivals.index(publishing.signals(marker)[0])


@each(lambda subject: not subject.group)
def test_rate_max_and_an_early_stop_and_the_same_report_again(publishing: SystemStep) -> None:
    bench, system = publishing.bench, publishing.system
    publishing.publisher(4, rate="max")
    before = system.servers.log_end(publishing.settings)
    window = bench.start([CLIENT], 4, 30)
    bench.await_moment(window, 0.05)
    early = Window(window.start_ns, window.now_ns(), window.offset_ns)
    report = bench.publisher_report(CLIENT, 4, early)
    assert report.sent == report.acknowledged > 0
    assert sum(report.lag.counts[1::2]) == 0
    bench.stop([CLIENT], 4, early)
    bench.reports_again(CLIENT, 4)
    if before is not None:
        assert (system.servers.log_end(publishing.settings) or 0) - before == report.sent


@each(lambda subject: "topics" in subject.delivery.traffic and not subject.group)
def test_messages_are_spread_over_topics(publishing: SystemStep) -> None:
    bench = publishing.bench
    publishing.publisher(2, probe=True, topics=20, topics_per_client=6, **STEADY)
    probed = set(publishing.traffic.probed)
    bench.peer.wait(
        lambda: {probe.topic for probe in publishing.signals(2)} == probed, "probes of each of these topics"
    )
    _, report = bench.publish(CLIENT, 2, 0.1, after_s=0.1)
    bench.peer.wait(lambda: len(publishing.data(2)) >= report.sent, "all messages")
    topic = topic_choice(publishing.traffic, CLIENT)
    found = sorted((message.sequence, message.topic) for message in publishing.data(2))
    assert found == [(n, topic.at(n)) for n in range(report.sent)]


@each(lambda subject: not subject.group)
def test_a_setting_that_the_system_does_not_have_is_refused_by_name(publishing: SystemStep) -> None:
    bench = publishing.bench
    publishing.publisher(1, **STEADY)
    settings, more = publishing.prepared(**STEADY)
    bench.send_configure([CLIENT], 2, settings, system={"no_such_setting": 1}, **more)
    bench.hears_why_not(CLIENT, 2, "no_such_setting")
    publishing.publisher(3, **STEADY)
