"""What a ZMQ publisher must do: name its endpoint, prove it, keep its schedule, account for it."""

from __future__ import annotations

import time
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import zmq

from hydra.client.payload import PayloadBlock
from hydra.model import Histogram
from hydra.wire.clock import time_namespace
from hydra.wire.messages import Ack, Error, Progress, Ready, Report, Stop
from tests.conformance.bench import LEAD_NS, Bench, StepSettings, Window, same_answer, step_settings, with_values
from tests.conformance.group import no_more_files
from tests.conformance.libraries import libzmq_version
from tests.conformance.zmq_ends import Listener

CLIENT = 7
DEEP = step_settings(sndhwm=0, message_size=64)
"""Nothing is dropped at an unbounded high-water mark, so every figure is exact."""


@pytest.fixture
def publisher(bench: Bench, zmq_client: str) -> Bench:
    bench.launch(zmq_client, "zmq-pub", first_id=CLIENT)
    return bench


def prepared(bench: Bench, epoch: int, settings: StepSettings, **more: Any) -> Listener:
    """A publisher configured for this epoch, with a listener that is proven to hear it."""
    listener = Listener(bench.peer, bench.configure_publisher(CLIENT, epoch, settings, **more))
    listener.await_probe(epoch)
    return listener


def total(histogram: Histogram) -> int:
    return sum(histogram.counts[1::2])


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
def test_it_names_the_libzmq_that_it_has_loaded(bench: Bench, zmq_client: str, kind: str) -> None:
    bench.launch(zmq_client, kind, first_id=CLIENT)
    assert bench.peer.relay().versions["libzmq"] == libzmq_version(bench.peer.process(CLIENT).pid)


def test_configure_sent_twice_changes_nothing(publisher: Bench) -> None:
    endpoint = publisher.configure_publisher(CLIENT, 1, DEEP)
    publisher.tell_configure([CLIENT], 1, DEEP)
    again = publisher.peer.heard(Ready, [CLIENT], epoch=1, times=2)
    assert again.endpoint == endpoint
    publisher.peer.stays(lambda: len(publisher.peer.said(Ready)) == 2, "a third answer", 0.1)
    assert len(publisher.peer.said(Ack, CLIENT, epoch=1, command="configure")) == 2
    Listener(publisher.peer, endpoint).await_probe(1)


def test_an_older_epoch_is_ignored(publisher: Bench) -> None:
    endpoint = publisher.configure_publisher(CLIENT, 5, DEEP)
    publisher.tell_configure([CLIENT], 4, with_values(DEEP, sndhwm=5))
    publisher.tell_start([CLIENT], 4, Window(time.time_ns(), time.time_ns() + 10**9, 0))
    publisher.peer.tell([CLIENT], Stop(epoch=4, stop_at_ns=1))
    publisher.peer.sync([CLIENT])
    assert not [m for m in publisher.peer.log if getattr(m, "epoch", None) == 4]
    Listener(publisher.peer, endpoint).await_probe(5)


def test_commands_before_their_configure_are_ignored(publisher: Bench) -> None:
    publisher.tell_start([CLIENT], 1, Window(time.time_ns(), time.time_ns() + 10**9, 0))
    publisher.peer.tell([CLIENT], Stop(epoch=1, stop_at_ns=1))
    publisher.peer.sync([CLIENT])
    assert not publisher.peer.said(Report)
    assert not publisher.peer.said(Error)
    publisher.configure_publisher(CLIENT, 1, DEEP)
    publisher.peer.tell([CLIENT], Stop(epoch=1, stop_at_ns=1))
    publisher.peer.sync([CLIENT])
    assert not publisher.peer.said(Report)


def test_probes_name_the_epoch_until_the_start(publisher: Bench) -> None:
    listener = prepared(publisher, 3, DEEP)
    publisher.peer.wait(lambda: len(listener.probes(3)) >= 3, "probes repeat")
    publisher.configure_publisher(CLIENT, 4, DEEP)
    probe = listener.await_probe(4)
    assert (probe.publisher, probe.size, probe.time_ns) == (CLIENT, 24, 0)
    window = publisher.start([CLIENT], 4, 0.2)
    publisher.await_end(window, 0.1)
    assert all(p.arrived_ns < window.start_ns for p in listener.probes())


def test_probes_for_a_group_become_no_rarer(publisher: Bench) -> None:
    listener = prepared(publisher, 3, DEEP)
    publisher.configure_publisher(CLIENT, 4, DEEP, group="readers")
    # Each of them reaches one member only. For others, the tenth would come after 5.5 s.
    publisher.peer.wait(lambda: len(listener.probes(4)) >= 10, "ten probes", 4)


def test_without_probe_there_are_none(publisher: Bench) -> None:
    listener = prepared(publisher, 1, DEEP)
    assert publisher.configure_publisher(CLIENT, 2, DEEP, probe=False)
    publisher.peer.sync([CLIENT])
    publisher.peer.stays(lambda: not listener.probes(2), "a probe that nobody asked for")


@pytest.mark.parametrize(("rate", "seconds", "size"), [(1000.0, 0.8, 100), (300.0, 0.51, 24)])
def test_the_schedule_is_kept_exactly(publisher: Bench, rate: float, seconds: float, size: int) -> None:
    settings = with_values(DEEP, rate=rate, message_size=size, burst=10)
    listener = prepared(publisher, 2, settings)
    count = round(rate * seconds)
    for epoch in (2, 3, 4):
        if epoch > 2:
            assert publisher.configure_publisher(CLIENT, epoch, settings, probe=False)
        window = publisher.start([CLIENT], epoch, seconds)
        listener.clock = window.now_ns
        publisher.await_end(window, 0.2)
        report = publisher.publisher_report(CLIENT, epoch, window)
        # A machine that others load may keep a publisher waiting at the end of its window, but not every time.
        if report.sent == count:
            break
    publisher.peer.wait(lambda: len(listener.data(epoch)) == count, f"{count} messages")
    data = listener.data(epoch)
    assert [a.sequence for a in data] == list(range(count))
    assert {(a.publisher, a.size, a.padding) for a in data} == {(CLIENT, size, bytes(size - 24))}
    assert [a.time_ns for a in data] == [window.start_ns + n * 10**9 // round(rate) for n in range(count)]
    assert all(a.arrived_ns >= a.time_ns for a in data)
    assert (report.sent, report.acknowledged, report.failed, report.unacknowledged) == (count, count, 0, [])
    assert (report.bytes, report.stopped_early) == (count * size, "")
    assert report.system == {"wire_bytes": count * (size + (2 if size < 256 else 9))}
    assert window.start_ns <= report.first_ns < report.last_ns <= window.stop_ns + 50_000_000
    assert 0 < total(report.lag) <= count
    assert report.lag.max_us < 1_000_000


@pytest.mark.parametrize("size", [24, 25, 1000, 70_000])
def test_random_payloads_cannot_be_compressed(publisher: Bench, size: int) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=200.0, message_size=size, payload="random"))
    window = publisher.start([CLIENT], 1, 0.2)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent > 0, "all that was sent")
    paddings = [a.padding for a in listener.data(1)]
    assert {len(padding) for padding in paddings} == {size - 24}
    if size > 100:
        assert len(zlib.compress(b"".join(paddings))) > 0.99 * len(paddings) * (size - 24)
    # What comes next is zeros again.
    prepared(publisher, 2, with_values(DEEP, rate=200.0, message_size=size), probe=True)
    window = publisher.start([CLIENT], 2, 0.1)
    publisher.peer.wait(lambda: len(listener.data(2)) > 0, "a message")
    assert {a.padding for a in listener.data(2)} == {bytes(size - 24)}


@pytest.mark.parametrize("kind", ["zeros", "random", "json", "lines"])
def test_messages_of_several_sizes_are_what_their_seed_says(publisher: Bench, tmp_path: Path, kind: str) -> None:
    lines = tmp_path / "lines.txt"
    lines.write_text("a first line\n\nand a third\n" + 300 * "x")
    sizes: dict[str, Any] = {"message_size": 400, "message_size_min": 200, "payload_seed": 5}
    settings = with_values(DEEP, rate=300.0, payload=kind, payload_file=str(lines), **sizes)
    listener = prepared(publisher, 1, settings)
    window = publisher.start([CLIENT], 1, 0.3)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent > 5, "all that was sent")
    data = listener.data(1)
    assert [a.padding for a in data] == PayloadBlock(settings.shared).of(0, report.sent)
    assert report.bytes == sum(a.size for a in data)
    assert report.system == {"wire_bytes": sum(a.size + (2 if a.size < 256 else 9) for a in data)}


def test_a_file_without_lines_is_said(publisher: Bench, tmp_path: Path) -> None:
    missing = tmp_path / "lines.txt"
    settings = with_values(DEEP, message_size=90, payload="lines", payload_file=str(missing))
    publisher.tell_configure([CLIENT], 1, settings)
    error = publisher.peer.heard(Error, [CLIENT], epoch=1)
    assert not error.fatal
    assert error.message == f"cannot read payload_file {missing}: No such file or directory"


@pytest.mark.parametrize("rate_ppb", [-10_000_000, 10_000_000])
def test_the_steps_clock_is_the_one_that_it_was_told(publisher: Bench, rate_ppb: int) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=200.0))
    window = publisher.start([CLIENT], 1, 0.5, rate_ppb=rate_ppb)
    listener.clock = window.now_ns
    publisher.await_end(window, 0.2)
    report = publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent > 50, "all that was sent")
    assert window.start_ns <= report.first_ns < report.last_ns <= window.stop_ns + 50_000_000
    late_ns = [a.arrived_ns - a.time_ns for a in listener.data(1)]
    assert 0 <= min(late_ns) <= 50_000_000


@pytest.mark.parametrize(
    ("system", "named"), [({"sndhmw": 5}, "sndhmw"), ({"sndhwm": -1}, "sndhwm"), ({"nodrop": "yes"}, "nodrop")]
)
def test_what_the_system_does_not_know_is_refused_by_name(
    publisher: Bench, system: dict[str, object], named: str
) -> None:
    publisher.tell_configure([CLIENT], 1, DEEP, system=system)
    error = publisher.peer.heard(Error, [CLIENT], epoch=1)
    assert named in error.message
    assert not error.fatal
    prepared(publisher, 1, DEEP)


def test_it_stops_by_itself_at_the_end_of_the_window(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=500.0))
    window = publisher.start([CLIENT], 1, 0.3)
    publisher.await_end(window, 1.0)
    count = len(listener.data(1))
    publisher.peer.stays(lambda: len(listener.data(1)) == count, "a message after the end of the window")
    # On a machine that others load it may have been kept waiting at the end; past it, it sends nothing.
    assert 0 < count <= 150
    assert not publisher.peer.said(Report)


def test_why_it_stopped_early_is_told_until_the_stop(bench: Bench, zmq_client: str) -> None:
    """Nobody else knows that the window is over, and any message may be lost."""
    # Every process is beyond this limit from the start.
    bench.launch(zmq_client, "zmq-pub", first_id=CLIENT, env={"HYDRA_MEMORY_LIMIT_BYTES": "1000000"})
    bench.configure_publisher(CLIENT, 1, DEEP, probe=False)
    window = bench.start([CLIENT], 1, 30)
    bench.peer.heard(Error, [CLIENT], epoch=1, times=3)
    report = bench.publisher_report(CLIENT, 1, window)
    told = bench.peer.said(Error, CLIENT, epoch=1)
    assert {(m.message, m.fatal) for m in told} == {(report.stopped_early, False)}
    bench.peer.stays(lambda: len(bench.peer.said(Error)) == len(told), "an error after the report", 0.5)


def test_stop_is_answered_with_one_report_again_and_again(publisher: Bench) -> None:
    prepared(publisher, 1, with_values(DEEP, rate=500.0))
    window = publisher.start([CLIENT], 1, 0.2)
    publisher.await_end(window)
    publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.sync([CLIENT])
    publisher.stop([CLIENT], 1, window)
    publisher.peer.heard(Report, [CLIENT], epoch=1, times=2)
    first, second = publisher.peer.said(Report, CLIENT, epoch=1)
    assert same_answer(first, second)


def test_the_end_of_a_step_is_marked_at_doubling_distances_until_the_next_configure(publisher: Bench) -> None:
    listener = prepared(publisher, 3, with_values(DEEP, rate=500.0))
    window = publisher.start([CLIENT], 3, 0.2)
    publisher.await_end(window, 0.1)
    assert not listener.end_markers()
    report = publisher.publisher_report(CLIENT, 3, window)
    publisher.peer.wait(lambda: len(listener.end_markers(3)) == 6, "six end markers")
    markers = listener.end_markers()
    # Behind everything that was sent, and told by the clock.
    assert listener.arrivals.index(markers[0]) > listener.arrivals.index(listener.data(3)[report.sent - 1])
    assert {(m.publisher, m.size, m.sequence) for m in markers} == {(CLIENT, 24, 2**63 | 3)}
    assert all(abs(m.arrived_ns - m.time_ns) < 1_000_000_000 for m in markers)
    for (before, after), least_s in zip(pairwise(markers), (0.05, 0.1, 0.2, 0.4, 0.8), strict=True):
        assert least_s - 0.001 <= (after.time_ns - before.time_ns) / 1e9 < least_s + 0.3
    # A command in between is no reason for another one.
    publisher.stop([CLIENT], 3, window)
    publisher.peer.sync([CLIENT])
    assert len(listener.end_markers()) == 6
    assert publisher.configure_publisher(CLIENT, 4, with_values(DEEP, rate=500.0), probe=False)
    count = len(listener.end_markers())
    publisher.peer.stays(lambda: len(listener.end_markers()) == count, "an end marker after the configure", 1.7)


def test_no_end_is_marked_before_the_stop(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=500.0))
    window = publisher.start([CLIENT], 1, 0.1)
    publisher.await_end(window, 0.2)
    publisher.peer.sync([CLIENT])
    publisher.peer.stays(lambda: not listener.end_markers(), "an end marker before the stop")


def test_a_configure_without_probe_ends_the_probes(publisher: Bench) -> None:
    listener = prepared(publisher, 3, DEEP)
    endpoint = publisher.peer.said(Ready, CLIENT)[-1].endpoint
    publisher.tell_configure([CLIENT], 3, DEEP, probe=False)
    assert publisher.peer.heard(Ready, [CLIENT], epoch=3, times=2).endpoint == endpoint
    count = len(listener.probes())
    # One may have been on its way; another configure with probe, once they have ended, does not begin them anew.
    publisher.tell_configure([CLIENT], 3, DEEP, probe=True)
    publisher.peer.heard(Ack, [CLIENT], epoch=3, command="configure", times=3)
    publisher.peer.stays(lambda: len(listener.probes()) <= count + 1, "a probe after their end", 1.5)
    window = publisher.start([CLIENT], 3, 0.1)
    publisher.await_end(window, 0.1)
    assert publisher.publisher_report(CLIENT, 3, window).sent > 0


def test_start_sent_twice_does_not_start_twice(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=500.0))
    window = publisher.start([CLIENT], 1, 0.3)
    publisher.peer.sync([CLIENT])
    publisher.tell_start([CLIENT], 1, window)
    publisher.peer.heard(Ack, [CLIENT], epoch=1, command="start", times=2)
    publisher.await_end(window, 0.1)
    report = publisher.publisher_report(CLIENT, 1, window)
    # On a machine that others load it may leave out the last ones; it never sends one twice, or beyond them.
    assert 0 < report.sent <= 150
    publisher.peer.wait(lambda: len(listener.data(1)) >= report.sent, "all that was sent")
    assert [a.sequence for a in listener.data(1)] == list(range(report.sent))


def test_an_early_stop_ends_the_window(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=1000.0))
    window = publisher.start([CLIENT], 1, 30.0)
    publisher.peer.wait(lambda: len(listener.data(1)) >= 200, "200 messages")
    stop = Window(window.start_ns, window.now_ns(), window.offset_ns)
    report = publisher.publisher_report(CLIENT, 1, stop)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent, "all that was sent")
    assert 200 <= report.sent < 2000
    publisher.peer.stays(lambda: len(listener.data(1)) == report.sent, "a message after the stop")


def test_rate_max_has_send_times_and_no_lag(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate="max", message_size=24))
    window = publisher.start([CLIENT], 1, 0.1)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent, "all that was sent", 20)
    data = listener.data(1)
    assert report.sent > 1000
    assert [a.sequence for a in data] == list(range(report.sent))
    assert all(a.time_ns <= b.time_ns for a, b in pairwise(data))
    assert window.start_ns <= data[0].time_ns <= data[-1].time_ns < window.stop_ns
    assert report.lag == Histogram()


def test_epochs_follow_each_other_on_one_socket(publisher: Bench) -> None:
    listener = prepared(publisher, 1, with_values(DEEP, rate=500.0))
    endpoint = publisher.peer.said(Ready, CLIENT)[-1].endpoint
    sent = {}
    for epoch in (2, 3):
        assert publisher.configure_publisher(CLIENT, epoch, with_values(DEEP, rate=500.0), probe=False) == endpoint
        window = publisher.start([CLIENT], epoch, 0.1)
        publisher.await_end(window)
        sent[epoch] = publisher.publisher_report(CLIENT, epoch, window).sent
        assert 0 < sent[epoch] <= 50  # a busy machine may end the window before the last are sent
    publisher.peer.wait(lambda: len(listener.data(3)) == sent[3], "the second step's messages")
    assert [a.sequence for a in listener.data(2)] == list(range(sent[2]))


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
    bench.tell_configure([CLIENT], 1, step_settings())
    error = bench.peer.heard(Error, [CLIENT], epoch=1)
    assert "203.0.113.9" in error.message
    assert not error.fatal
    bench.peer.sync([CLIENT])
    assert not bench.peer.said(Ack, CLIENT, command="configure")


@pytest.mark.parametrize("doing", ["probing", "sending"])
def test_a_configure_that_fails_in_the_middle_is_an_error_and_not_the_end(publisher: Bench, doing: str) -> None:
    """Nothing is left to send with: what belongs to the step before must not try."""
    settings = with_values(DEEP, rate=500.0)
    listener = prepared(publisher, 1, settings)
    window = Window(time.time_ns(), time.time_ns() + 10**9, 0)
    if doing == "sending":
        window = publisher.start([CLIENT], 1, 30.0)
        publisher.peer.wait(lambda: len(listener.data(1)) > 0, "a message")
    with no_more_files(publisher.peer.process(CLIENT).pid):
        publisher.tell_configure([CLIENT], 2, with_values(settings, sndhwm=77))
        error = publisher.peer.heard(Error, [CLIENT], epoch=2)
        assert (error.fatal, bool(error.message)) == (False, True)
        publisher.tell_configure([CLIENT], 1, settings)
        publisher.ignores_commands(CLIENT, (1, 2), window)
    # The same epoch, now that it can be.
    prepared(publisher, 2, with_values(settings, sndhwm=77))
    assert publisher.start([CLIENT], 2, 0.1)


def test_nodrop_waits_and_still_listens_to_the_controller(publisher: Bench) -> None:
    settings = step_settings(rate="max", nodrop=True, sndhwm=2, message_size=65536, burst=10)
    listener = prepared(publisher, 1, settings)
    # From here on nobody reads: the listener's socket stays open and fills up.
    publisher.peer.unwatch(listener._socket)
    listener._socket.rcvhwm = 1
    window = publisher.start([CLIENT], 1, 1.0)
    publisher.await_end(window, -0.3)
    assert publisher.peer.sync([CLIENT]) < 1.0
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    assert report.blocked_ns > 100_000_000
    assert report.sent * 65536 < 500_000_000
    listener._socket.close()


def test_nodrop_loses_nothing(publisher: Bench) -> None:
    listener = prepared(publisher, 1, step_settings(rate="max", nodrop=True, sndhwm=10, message_size=24))
    window = publisher.start([CLIENT], 1, 0.2)
    publisher.await_end(window)
    report = publisher.publisher_report(CLIENT, 1, window)
    publisher.peer.wait(lambda: len(listener.data(1)) == report.sent, "all that was sent", 20)
    assert [a.sequence for a in listener.data(1)] == list(range(report.sent))
    publisher.peer.wait(lambda: bool(listener.end_markers(1)), "an end marker")


def test_progress_is_told_as_often_as_asked(publisher: Bench) -> None:
    prepared(publisher, 1, with_values(DEEP, rate=500.0), progress_s=0.1)
    window = publisher.start([CLIENT], 1, 0.6)
    publisher.await_end(window, 0.1)
    told = publisher.peer.said(Progress, CLIENT, epoch=1)
    assert 3 <= len(told) <= 7
    counts = [p.messages for p in told]
    assert counts == sorted(counts)
    assert 0 < counts[0] <= counts[-1] <= 300
    assert all(window.start_ns < p.time_ns <= window.stop_ns + LEAD_NS for p in told)


def test_progress_is_not_told_unasked(publisher: Bench) -> None:
    prepared(publisher, 1, with_values(DEEP, rate=500.0), progress_s=0.0)
    window = publisher.start([CLIENT], 1, 0.3)
    publisher.await_end(window, 0.1)
    assert not publisher.peer.said(Progress)
