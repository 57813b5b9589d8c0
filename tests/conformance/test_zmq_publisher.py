"""What a ZMQ publisher must do: name its endpoint, prove it, keep its schedule, account for it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zmq

from hydra.client.payload import PayloadBlock
from hydra.model import Histogram
from hydra.wire.clock import time_namespace
from hydra.wire.messages import Ack, Error, Progress, Ready, Report, Stop
from tests.conformance.bench import CLIENT, Bench, StepSettings, Window, step_settings, with_values
from tests.conformance.conftest import Share
from tests.conformance.group import no_more_files
from tests.conformance.libraries import libzmq_version
from tests.conformance.zmq_ends import Listener
from tests.suite.waiting import LONG_S, TIME_FACTOR

DEEP = step_settings(sndhwm=0, message_size=64)
"""Nothing is dropped at an unbounded high-water mark, so every figure is exact."""


STEADY = with_values(DEEP, rate=500.0)


def prepared(bench: Bench, epoch: int, settings: StepSettings, **more: Any) -> Listener:
    """A publisher configured for this epoch, with a listener that is proven to hear it."""
    listener = Listener(bench.peer, bench.configure_publisher(CLIENT, epoch, settings, **more))
    listener.await_probe(epoch)
    return listener


def test_it_introduces_itself(publisher: Bench) -> None:
    hello = publisher.peer.relay("g")
    (program,) = publisher.groups
    assert (hello.ids, hello.role, hello.group) == ([CLIENT], "publisher", "g")
    assert (hello.incarnation, hello.agent) == (0, "agent-1")
    assert {hello.pid, publisher.peer.process(CLIENT).pid} == {p.pid for p in program.children()}
    assert hello.implementation
    assert hello.versions
    assert hello.host
    assert len(hello.boot_id) == 36
    assert hello.time_namespace == time_namespace()


@pytest.mark.parametrize("kind", ["zmq-pub", "zmq-sub"])
def test_it_names_the_libzmq_that_it_has_loaded(share: Share, zmq_client: str, kind: str) -> None:
    peer = share(zmq_client, kind).peer
    assert peer.relay().versions["libzmq"] == libzmq_version(peer.process(CLIENT).pid)


def test_configure_sent_twice_changes_nothing(publisher: Bench) -> None:
    endpoint = publisher.configure_publisher(CLIENT, 1, DEEP)
    publisher.send_configure([CLIENT], 1, DEEP)
    again = publisher.peer.heard(Ready, [CLIENT], epoch=1, times=2)
    assert again.endpoint == endpoint
    publisher.peer.stays(lambda: len(publisher.peer.messages_of(Ready)) == 2, "a third answer", 0.1)
    assert len(publisher.peer.messages_of(Ack, CLIENT, epoch=1, command="configure")) == 2
    Listener(publisher.peer, endpoint).await_probe(1)


def test_an_older_epoch_is_ignored(publisher: Bench) -> None:
    endpoint = publisher.configure_publisher(CLIENT, 5, DEEP)
    publisher.send_configure([CLIENT], 4, with_values(DEEP, sndhwm=5))
    publisher.send_start([CLIENT], 4, Window(time.time_ns(), time.time_ns() + 10**9, 0))
    publisher.peer.send_to([CLIENT], Stop(epoch=4, number=3, stop_at_ns=1))
    publisher.peer.sync([CLIENT])
    assert not [m for m in publisher.peer.log if getattr(m, "epoch", None) == 4]
    Listener(publisher.peer, endpoint).await_probe(5)


def test_commands_before_their_configure_are_ignored(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub", first_id=CLIENT)
    bench.send_start([CLIENT], 1, Window(time.time_ns(), time.time_ns() + 10**9, 0))
    bench.peer.send_to([CLIENT], Stop(epoch=1, number=3, stop_at_ns=1))
    bench.peer.sync([CLIENT])
    assert not bench.peer.messages_of(Error)
    bench.configure_publisher(CLIENT, 1, DEEP)
    bench.peer.send_to([CLIENT], Stop(epoch=1, number=3, stop_at_ns=1))
    bench.peer.sync([CLIENT])
    assert not bench.peer.messages_of(Report)


def test_probes_name_the_epoch_until_the_start(publisher: Bench) -> None:
    listener = prepared(publisher, 3, DEEP)
    publisher.peer.wait(lambda: len(listener.probes(3)) >= 3, "probes repeat")
    publisher.configure_publisher(CLIENT, 4, DEEP)
    probe = listener.await_probe(4)
    assert (probe.publisher, probe.size, probe.time_ns) == (CLIENT, 24, 0)
    window = publisher.start([CLIENT], 4, 0.1)
    publisher.await_end(window, 0.1)
    assert all(p.arrived_ns < window.start_ns for p in listener.probes())


def test_probes_for_a_group_become_no_rarer(publisher: Bench) -> None:
    listener = prepared(publisher, 3, DEEP)
    publisher.configure_publisher(CLIENT, 4, DEEP, group="readers")

    # Each of them reaches one member only. For others, those from the seventh on are a second apart.
    def close_together() -> bool:
        arrived_ns = [probe.arrived_ns for probe in listener.probes(4)[6:]]
        return any(b - a < 900_000_000 for a, b in pairwise(arrived_ns))

    publisher.peer.wait(close_together, "two probes after the sixth")


def test_without_probe_there_are_none(publisher: Bench) -> None:
    listener = prepared(publisher, 1, DEEP)
    assert publisher.configure_publisher(CLIENT, 2, DEEP, probe=False)
    publisher.peer.sync([CLIENT])
    publisher.peer.stays(lambda: not listener.probes(2), "a probe that nobody asked for")


@pytest.mark.parametrize(("rate", "seconds", "size"), [(1000.0, 0.3, 100), (300.0, 0.31, 24)])
def test_the_schedule_is_kept_exactly(publisher: Bench, rate: float, seconds: float, size: int) -> None:
    settings = with_values(DEEP, rate=rate, message_size=size, burst=10)
    listener = prepared(publisher, 2, settings)
    window = publisher.start([CLIENT], 2, seconds)
    listener.clock = window.now_ns
    publisher.await_end(window, 0.1)
    # It stops by itself, and sends nothing unasked.
    assert not publisher.peer.messages_of(Report, epoch=2)
    assert not publisher.peer.messages_of(Progress)
    report = publisher.publisher_report(CLIENT, 2, window)
    count = report.sent
    publisher.peer.wait(lambda: len(listener.data(2)) == count, f"{count} messages")
    data = listener.data(2)
    # Of a window's messages, a machine that others load may keep the last ones back.
    assert round(rate * seconds) / 2 < count <= round(rate * seconds)
    assert [a.sequence for a in data] == list(range(count))
    assert {(a.publisher, a.size, a.padding) for a in data} == {(CLIENT, size, bytes(size - 24))}
    assert [a.time_ns for a in data] == [window.start_ns + n * 10**9 // round(rate) for n in range(count)]
    assert all(a.arrived_ns >= a.time_ns for a in data)
    assert (report.acknowledged, report.failed, report.unacknowledged) == (count, 0, [])
    assert (report.bytes, report.stopped_early) == (count * size, "")
    assert report.system == {"wire_bytes": count * (size + (2 if size < 256 else 9))}
    assert data[0].time_ns <= report.first_ns < report.last_ns <= window.now_ns()
    assert sum(report.lag.counts[1::2]) == count


def test_messages_of_each_kind_and_size_are_what_their_seed_says(publisher: Bench, tmp_path: Path) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("a first line\n\nand a third\n" + 300 * "x")
    listener: Listener | None = None
    endpoints = set[str]()
    of_one_size = [("random", 24, None), ("random", 25, None), ("random", 1000, None), ("zeros", 70_000, None)]
    of_several = [(kind, 400, 200) for kind in ("random", "json", "lines", "zeros")]
    for epoch, (kind, largest, least) in enumerate([*of_one_size, *of_several], start=1):
        sizes: dict[str, Any] = {"message_size": largest, "message_size_min": least, "payload_seed": 5}
        settings = with_values(DEEP, rate=200.0, payload=kind, payload_file=str(lines), **sizes)
        endpoints.add(publisher.configure_publisher(CLIENT, epoch, settings))
        listener = listener or Listener(publisher.peer, *endpoints)
        listener.await_probe(epoch)
        _, report = publisher.publish(CLIENT, epoch, 0.1)
        publisher.peer.wait(partial(all_here, listener, epoch, report.sent), "all that was sent")
        data = listener.data(epoch)
        assert [a.sequence for a in data] == list(range(report.sent))
        assert [a.padding for a in data] == PayloadBlock(settings.shared).of(0, report.sent)
        assert report.bytes == sum(a.size for a in data)
        assert report.system == {"wire_bytes": sum(a.size + (2 if a.size < 256 else 9) for a in data)}
    assert len(endpoints) == 1


def all_here(listener: Listener, epoch: int, sent: int) -> bool:
    return len(listener.data(epoch)) == sent > 0


def test_a_file_without_lines_is_said(publisher: Bench, tmp_path: Path) -> None:
    missing = tmp_path / "lines.txt"
    settings = with_values(DEEP, message_size=90, payload="lines", payload_file=str(missing))
    publisher.send_configure([CLIENT], 1, settings)
    publisher.hears_why_not(CLIENT, 1, f"cannot read payload_file {missing}: No such file or directory")


@pytest.mark.parametrize("rate_ppb", [-10_000_000, 10_000_000])
def test_the_steps_clock_is_the_one_that_it_was_told(publisher: Bench, rate_ppb: int) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=200.0))
    window = publisher.start([CLIENT], 1, 0.2, rate_ppb=rate_ppb)
    listener.clock = window.now_ns
    publisher.await_end(window, 0.1)
    report = publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent > 5, "all that was sent")
    # By this host's own clock it would be a whole second earlier or later.
    assert window.start_ns <= report.first_ns < report.last_ns <= window.stop_ns + 500_000_000
    assert 0 <= min(a.arrived_ns - a.time_ns for a in listener.data(1)) <= 500_000_000


@pytest.mark.parametrize(
    ("system", "named"), [({"sndhmw": 5}, "sndhmw"), ({"sndhwm": -1}, "sndhwm"), ({"nodrop": "yes"}, "nodrop")]
)
def test_what_the_system_does_not_know_is_refused_by_name(
    publisher: Bench, system: dict[str, object], named: str
) -> None:
    publisher.send_configure([CLIENT], 1, DEEP, system=system)
    publisher.hears_why_not(CLIENT, 1, named)
    prepared(publisher, 1, DEEP)


def test_why_it_stopped_early_is_told_until_the_stop(bench: Bench, zmq_client: str) -> None:
    """Only it knows that the window is over, and any message may be lost."""
    # Every process is beyond this limit from the start.
    bench.launch(zmq_client, "zmq-pub", first_id=CLIENT, env={"HYDRA_MEMORY_LIMIT_BYTES": "1000000"})
    bench.configure_publisher(CLIENT, 1, DEEP, probe=False)
    window = bench.start([CLIENT], 1, 30)
    bench.peer.heard(Error, [CLIENT], epoch=1, times=3)
    report = bench.publisher_report(CLIENT, 1, window)
    errors = bench.peer.messages_of(Error, CLIENT, epoch=1)
    assert {(m.message, m.fatal) for m in errors} == {(report.stopped_early, False)}
    bench.peer.stays(lambda: len(bench.peer.messages_of(Error)) == len(errors), "an error after the report", 0.5)


def test_stop_is_answered_with_one_report_again_and_again(publisher: Bench) -> None:
    prepared(publisher, 1, STEADY)
    window, _ = publisher.publish(CLIENT, 1, 0.1)
    publisher.peer.sync([CLIENT])
    publisher.stop([CLIENT], 1, window)
    publisher.reports_again(CLIENT, 1)
    first, second = (report.number for report in publisher.peer.messages_of(Report, CLIENT))
    assert first != second, "each answers its own stop"


def test_the_end_of_a_step_is_marked_at_doubling_distances_until_the_next_configure(publisher: Bench) -> None:
    listener = prepared(publisher, 3, STEADY)
    window = publisher.start([CLIENT], 3, 0.1)
    listener.clock = window.now_ns
    publisher.await_end(window, 0.1)
    publisher.peer.stays(lambda: not listener.end_markers(), "an end marker before the stop", 0.1)
    report = publisher.publisher_report(CLIENT, 3, window)
    publisher.peer.wait(lambda: len(listener.end_markers(3)) == 5, "five end markers")
    markers = listener.end_markers()
    # After everything that was sent, by the clock.
    assert listener.arrivals.index(markers[0]) > listener.arrivals.index(listener.data(3)[report.sent - 1])
    assert {(m.publisher, m.size, m.sequence) for m in markers} == {(CLIENT, 24, 2**63 | 3)}
    assert all(window.stop_ns < m.time_ns <= m.arrived_ns for m in markers)
    for (before, after), least_s in zip(pairwise(markers), (0.05, 0.1, 0.2, 0.4), strict=True):
        assert least_s - 0.001 <= (after.time_ns - before.time_ns) / 1e9
    # A command in between is no reason for another one.
    publisher.stop([CLIENT], 3, window)
    publisher.peer.sync([CLIENT])
    assert len(listener.end_markers()) == 5
    assert publisher.configure_publisher(CLIENT, 4, STEADY, probe=False)
    count = len(listener.end_markers())
    publisher.peer.stays(lambda: len(listener.end_markers()) == count, "an end marker after the configure", 0.9)


def test_a_configure_without_probe_ends_the_probes(publisher: Bench) -> None:
    listener = prepared(publisher, 3, DEEP)
    endpoint = publisher.peer.messages_of(Ready, CLIENT)[-1].endpoint
    publisher.send_configure([CLIENT], 3, DEEP, probe=False)
    assert publisher.peer.heard(Ready, [CLIENT], epoch=3, times=2).endpoint == endpoint
    count = len(listener.probes())
    # One may have been on its way; another configure with probe, once they have ended, does not begin them again.
    publisher.send_configure([CLIENT], 3, DEEP, probe=True)
    publisher.peer.heard(Ack, [CLIENT], epoch=3, command="configure", times=3)
    publisher.peer.stays(lambda: len(listener.probes()) <= count + 1, "a probe after their end", 0.7)
    assert publisher.publish(CLIENT, 3, 0.1)[1].sent > 0


def test_start_sent_twice_does_not_start_twice(publisher: Bench) -> None:
    listener = prepared(publisher, 1, STEADY)
    window = publisher.start([CLIENT], 1, 0.2)
    publisher.peer.sync([CLIENT])
    publisher.send_start([CLIENT], 1, window)
    publisher.peer.heard(Ack, [CLIENT], epoch=1, command="start", times=2)
    publisher.await_end(window, 0.1)
    report = publisher.publisher_report(CLIENT, 1, window)
    # On a machine that others load it may leave out the last ones; it never sends one twice, or beyond them.
    assert 0 < report.sent <= 100
    publisher.peer.wait(lambda: len(listener.data(1)) >= report.sent, "all that was sent")
    assert [a.sequence for a in listener.data(1)] == list(range(report.sent))


def test_an_early_stop_ends_the_window(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=1000.0))
    window = publisher.start([CLIENT], 1, 30.0)
    publisher.peer.wait(lambda: len(listener.data(1)) >= 200, "200 messages")
    report = publisher.publisher_report(CLIENT, 1, replace(window, stop_ns=window.now_ns()))
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent, "all that was sent")
    assert 200 <= report.sent < 2000
    publisher.peer.stays(lambda: len(listener.data(1)) == report.sent, "a message after the stop")


def test_rate_max_has_send_times_and_no_lag(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate="max", message_size=24))
    window, report = publisher.publish(CLIENT, 1, 0.05)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent > 100, "all that was sent", LONG_S)
    data = listener.data(1)
    assert [a.sequence for a in data] == list(range(report.sent))
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(data))
    assert window.start_ns <= data[0].time_ns <= data[-1].time_ns < window.stop_ns
    assert report.lag == Histogram()


@pytest.mark.parametrize("changes", [{"sndhwm": 77}, {"nodrop": True}])
def test_what_the_socket_is_made_of_makes_a_new_endpoint(publisher: Bench, changes: dict[str, object]) -> None:
    before = publisher.configure_publisher(CLIENT, 1, step_settings())
    after = publisher.configure_publisher(CLIENT, 2, with_values(step_settings(), **changes))
    assert before != after
    Listener(publisher.peer, after).await_probe(2)


def test_a_port_that_was_given_is_kept(bench: Bench, zmq_client: str) -> None:
    with bench.peer.context.socket(zmq.PUB) as free:
        port = free.bind_to_random_port("tcp://127.0.0.1")
    bench.launch(zmq_client, "zmq-pub", first_id=CLIENT, env={"HYDRA_PORTS": f"{port}"})
    for epoch, sndhwm in ((1, 1000), (2, 2000), (3, 0)):
        endpoint = bench.configure_publisher(CLIENT, epoch, step_settings(sndhwm=sndhwm))
        assert endpoint == f"tcp://127.0.0.1:{port}"
        Listener(bench.peer, endpoint).await_probe(epoch)


def test_an_address_that_cannot_be_bound_is_an_error_and_not_the_end(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub", first_id=CLIENT, env={"HYDRA_DATA_HOST": "203.0.113.9"})
    bench.send_configure([CLIENT], 1, step_settings())
    bench.hears_why_not(CLIENT, 1, "203.0.113.9")
    bench.peer.sync([CLIENT])
    assert not bench.peer.messages_of(Ack, CLIENT, command="configure")


@pytest.mark.parametrize("doing", ["probing", "sending"])
def test_a_configure_that_fails_in_the_middle_is_an_error_and_not_the_end(publisher: Bench, doing: str) -> None:
    """Nothing is left to send with: what belongs to the step before must not try."""
    listener = prepared(publisher, 1, STEADY)
    window = Window(time.time_ns(), time.time_ns() + 10**9, 0)
    if doing == "sending":
        window = publisher.start([CLIENT], 1, 30.0)
        publisher.peer.wait(lambda: len(listener.data(1)) > 0, "a message")
    with no_more_files(publisher.peer.process(CLIENT).pid):
        publisher.send_configure([CLIENT], 2, with_values(STEADY, sndhwm=77))
        publisher.hears_why_not(CLIENT, 2)
        publisher.send_configure([CLIENT], 1, STEADY)
        publisher.ignores_commands(CLIENT, (1, 2), window)
    # The same epoch, now that it can be.
    prepared(publisher, 2, with_values(STEADY, sndhwm=77))
    assert publisher.start([CLIENT], 2, 0.1)


def test_nodrop_waits_and_still_listens_to_the_controller(publisher: Bench) -> None:
    settings = step_settings(rate="max", nodrop=True, sndhwm=2, message_size=65536, burst=10)
    listener = Listener(publisher.peer, publisher.configure_publisher(CLIENT, 1, settings), rcvhwm=1)
    listener.await_probe(1)
    listener.read_no_more()
    window = publisher.start([CLIENT], 1, 60 * TIME_FACTOR)
    publisher.await_moment(window, 0.3)
    publisher.peer.sync([CLIENT])
    assert not window.expired()
    report = publisher.publisher_report(CLIENT, 1, replace(window, stop_ns=window.now_ns()))
    assert report.blocked_ns > 100_000_000
    assert report.sent * 65536 < 500_000_000


def test_nodrop_loses_nothing(publisher: Bench) -> None:
    listener = prepared(publisher, 1, step_settings(rate="max", nodrop=True, sndhwm=10, message_size=24))
    _, report = publisher.publish(CLIENT, 1, 0.05)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent, "all that was sent", LONG_S)
    assert [a.sequence for a in listener.data(1)] == list(range(report.sent))
    publisher.peer.wait(lambda: bool(listener.end_markers(1)), "an end marker")


def test_progress_is_told_as_often_as_asked(publisher: Bench) -> None:
    prepared(publisher, 1, STEADY, progress_s=0.1)
    window = publisher.start([CLIENT], 1, 0.4)
    publisher.await_end(window, 0.1)
    progress = publisher.peer.messages_of(Progress, CLIENT, epoch=1)
    assert 2 <= len(progress) <= 5
    counts = [p.messages for p in progress]
    assert counts == sorted(counts)
    assert 0 < counts[0] <= counts[-1] <= 200
    assert all(window.start_ns < p.time_ns <= window.now_ns() for p in progress)
