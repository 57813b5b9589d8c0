"""What only the native client can: packed subscribers, bursts, options of the data plane, a memory limit."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from hydra.model import PublisherReport
from hydra.native import build
from hydra.wire.messages import ChildExit, Configure, Error, Ready
from tests.conformance.bench import Bench, StepSettings, step_settings, with_values
from tests.conformance.group import GroupProgram, no_more_files
from tests.conformance.peer import Account, Arrival
from tests.conformance.zmq_ends import Listener, Speaker
from tests.conformance.zmq_subscribing import connected, listening
from tests.suite.native_client import native_client
from tests.suite.waiting import LONG_S

pytestmark = pytest.mark.tier("test")
DEEP = step_settings(sndhwm=0, rcvhwm=0)
TWO = ["--group", "g", "--first-id", "1", "--count", "2"]
LATER = pytest.mark.tier("all")


@pytest.fixture
def program() -> str:
    found = native_client("zmq-sub")
    return found or pytest.skip(f"hydra-client is not built; packages: {' '.join(build.missing()) or 'all there'}")


# --- packed subscribers ------------------------------------------------------------------------------------------


def packed(bench: Bench, program: str, count: int, size: int, *more: str) -> GroupProgram:
    arguments = ["--clients-per-process", str(size), *more]
    return bench.launch(program, "zmq-sub", first_id=1, count=count, arguments=arguments)


def test_each_packed_subscriber_has_an_account_of_its_own(bench: Bench, program: str) -> None:
    group = packed(bench, program, 7, 3)
    assert len(group.children()) == 3 + 1
    ids = range(1, 8)
    pids = [bench.peer.process(c).pid for c in ids]
    assert [pids.index(pid) for pid in pids] == [0, 0, 0, 3, 3, 3, 6]
    speaker = listening(bench, ids=ids)
    bench.start(ids, 1, 30)
    speaker.send(1, range(500))
    for report in bench.subscriber_reports(ids, 1, {100: 500}).values():
        assert (report.ledgers[0].received, report.drain) == (500, "complete")
    assert [len(report.ids) for report in bench.peer.messages_of(Account)] == [1] * 7


def test_packed_subscribers_that_end_together_are_one_batch(bench: Bench, program: str) -> None:
    packed(bench, program, 50, 50)
    ids = range(1, 51)
    listening(bench, ids=ids)
    bench.start(ids, 1, 30)
    bench.subscriber_reports(ids, 1, {100: 20}, drain_max_s=0.0)
    assert [head.ids for head, _ in bench.peer.payloads] == [list(ids)]


def test_reports_that_are_too_long_together_come_apart(bench: Bench, program: str) -> None:
    packed(bench, program, 80, 80)
    ids = range(1, 81)
    speaker = listening(bench, ids=ids)
    bench.start(ids, 1, 30)
    # Every other one: as many missing ranges as a ledger lists, some 9 kB for each subscriber, on the way to its relay.
    speaker.send(1, range(10**15, 10**15 + 600, 2))
    speaker.mark_end(1)
    for report in bench.subscriber_reports(ids, 1, {100: 10**15 + 600}).values():
        (ledger,) = report.ledgers
        assert (len(ledger.missing_ranges), ledger.truncated, ledger.received) == (256, True, 300)


def test_a_command_for_some_of_a_packed_process_is_obeyed_by_these(bench: Bench, program: str) -> None:
    packed(bench, program, 4, 4)
    one, other = Speaker(bench.peer, 100), Speaker(bench.peer, 101)
    bench.configure_subscribers([2, 4], 1, with_values(DEEP, receive_rate=50.0), publishers={101: other.endpoint})
    other.await_subscriptions(2)
    connected(bench, 1, one, ids=[1, 3])
    assert not bench.peer.messages_of(Ready, 2)
    other.probe(1)
    bench.peer.heard(Ready, [2, 4], epoch=1)
    window = bench.start([1, 2, 3, 4], 1, 0.5)
    one.send(1, range(300))
    other.send(1, range(300))
    bench.await_end(window)
    assert bench.subscriber_report(3, 1, {100: 300}).ledgers[0].in_window == 300
    (slow,) = bench.subscriber_report(4, 1, {101: 300}).ledgers
    assert 10 <= slow.in_window <= 26
    assert slow.received == 300
    assert not bench.peer.messages_of(Account, 1)


def test_a_packed_process_that_dies_is_replaced_as_a_whole(bench: Bench, program: str) -> None:
    packed(bench, program, 6, 3)
    before = bench.peer.process(5).pid
    os.kill(before, signal.SIGKILL)
    exit_ = bench.peer.heard(ChildExit, [5])
    assert (exit_.ids, exit_.pid, exit_.replaced) == ([4, 5, 6], before, True)
    bench.peer.heard(Arrival, [4, 5, 6], incarnation=1)
    (after,) = {bench.peer.process(c).pid for c in (4, 5, 6)}
    assert after != before
    bench.configure_subscribers(range(1, 7), 1, DEEP, probe=False)


def test_publishers_are_not_packed(bench: Bench, program: str) -> None:
    assert bench.refused(program, ["zmq-pub", *TWO, "--clients-per-process", "2"])


# --- the data plane's options ------------------------------------------------------------------------------------


def test_a_bursty_publisher_sends_each_seconds_messages_at_its_start(bench: Bench, program: str) -> None:
    bench.launch(program, "zmq-pub", first_id=7, arguments=["--pacing", "bursty"])
    listener = Listener(bench.peer, bench.configure_publisher(7, 1, with_values(DEEP, rate=300.0)))
    listener.await_probe(1)
    window = bench.start([7], 1, 1.5)
    listener.clock = window.now_ns
    bench.await_end(window, 0.1)
    assert bench.publisher_report(7, 1, window).sent == 450
    assert [a.time_ns - window.start_ns for a in listener.data(1)] == [0] * 300 + [10**9] * 150
    assert all(a.arrived_ns >= a.time_ns for a in listener.data(1))


@pytest.mark.parametrize("option", ["--transport ipc", "--sndbuf 65536 --rcvbuf 65536 --io-threads 2"])
def test_a_step_over_another_data_plane(bench: Bench, program: str, option: str) -> None:
    arguments = option.split()
    bench.launch(program, "zmq-pub", first_id=1, group="p", arguments=arguments)
    bench.launch(program, "zmq-sub", first_id=2, count=2, group="s", arguments=arguments)
    endpoint = bench.configure_publisher(1, 1, with_values(DEEP, rate=1000.0))
    assert endpoint.startswith("ipc://" if "ipc" in option else "tcp://")
    bench.configure_subscribers([2, 3], 1, DEEP, publishers={1: endpoint})
    bench.peer.heard(Ready, [2, 3], epoch=1)
    window = bench.start([1, 2, 3], 1, 0.1)
    bench.await_end(window)
    sent = bench.publisher_report(1, 1, window).sent
    assert 0 < sent <= 100
    for report in bench.subscriber_reports([2, 3], 1, {1: sent}).values():
        assert report.ledgers[0].received == sent


def test_secure_without_a_key_is_one_line_and_exit_code_2(bench: Bench, program: str) -> None:
    assert "HYDRA_DATA_SERVER_KEY" in bench.refused(program, ["zmq-sub", *TWO, "--secure"])


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(step_settings(sndhwm=0, message_size=10_000), id="unbounded"),
        pytest.param(step_settings(sndhwm=100_000, message_size=10_000), id="deep", marks=LATER),
        pytest.param(step_settings(sndhwm=1000, message_size=1_000_000, burst=1000), id="large messages", marks=LATER),
        pytest.param(step_settings(sndhwm=1000, message_size=1_000_000, nodrop=True), id="nodrop", marks=LATER),
    ],
)
def test_a_queue_ends_the_step_at_the_memory_limit(bench: Bench, program: str, settings: StepSettings) -> None:
    report, _listener = at_the_memory_limit(bench, program, settings)
    assert "150000000" in report.stopped_early
    assert report.usage.max_rss_bytes < 250_000_000


def test_a_queue_that_was_full_does_not_end_the_next_step(bench: Bench, program: str) -> None:
    if b"__asan_init" in Path(program).read_bytes():
        pytest.skip("the address sanitizer keeps memory that was freed")
    settings = step_settings(sndhwm=100_000, message_size=10_000)
    _report, _listener = at_the_memory_limit(bench, program, settings)
    bench.configure_publisher(1, 2, with_values(settings, rate=100.0, message_size=24))
    _, report = bench.publish(1, 2, 0.2)
    assert (report.sent > 0, report.stopped_early) == (True, "")


def at_the_memory_limit(bench: Bench, program: str, settings: StepSettings) -> tuple[PublisherReport, Listener]:
    """The report of a step that a publisher of 150 MB ended, and the subscriber that is there and does not read."""
    bench.launch(program, "zmq-pub", first_id=1, env={"HYDRA_MEMORY_LIMIT_BYTES": "150000000"})
    listener = Listener(bench.peer, bench.configure_publisher(1, 1, settings), rcvhwm=10)
    listener.await_probe(1)
    listener.read_no_more()
    window = bench.start([1], 1, LONG_S)
    assert "150000000" in bench.peer.heard(Error, [1], epoch=1).message
    return bench.publisher_report(1, 1, window), listener


@pytest.mark.parametrize("kind", ["kafka-pub", "kafka-sub"])
@pytest.mark.parametrize(
    "option", ["--secure", "--transport ipc", "--transport tcp", "--io-threads 2", "--sndbuf 1", "--rcvbuf 1"]
)
def test_what_is_of_zmq_is_refused_with_kafka(bench: Bench, program: str, kind: str, option: str) -> None:
    line = bench.refused(program, [kind, *TWO, *option.split()])
    assert option.split()[0] in line
    assert kind in line


# --- the control channel -----------------------------------------------------------------------------------------


@LATER
def test_what_is_repeated_while_it_is_obeyed_is_obeyed_once(bench: Bench, program: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        bench.launch(program, "zmq-pub", first_id=1, env={"HYDRA_PORTS": str(taken.getsockname()[1])})
        # It waits for the port for 2 s.
        command = Configure(
            epoch=1, number=1, settings=DEEP.shared, publishers=[], probe=True, system=dict(DEEP.system)
        )
        for _ in range(3):
            bench.peer.send_to([1], command)
        bench.peer.heard(Error, [1], epoch=1)
    bench.peer.stays(lambda: len(bench.peer.messages_of(Error, 1)) == 1, "another try", 2.5)
    # If the next answer differs, it tries again.
    bench.configure_publisher(1, 1, DEEP)


# --- descriptors -------------------------------------------------------------------------------------------------


def test_a_storm_of_reconnections_runs_out_of_nothing(bench: Bench, program: str) -> None:
    count = 40
    # A closed socket keeps its descriptors a little longer: there is room for every client once, and some more.
    group = packed(bench, f"prlimit --nofile={2 * count + 30} {program}", count, count)
    ids = range(1, count + 1)
    listening(bench, ids=ids, settings=with_values(DEEP, reconnect_rate=100.0))
    window = bench.start(ids, 1, 0.5)
    bench.await_end(window)
    assert min(report.reconnects for report in bench.subscriber_reports(ids, 1, {100: 0}).values()) > 1
    assert not bench.peer.messages_of(Error)
    assert not bench.peer.messages_of(ChildExit)
    assert group.exit_code() is None


def test_a_packed_client_that_fails_leaves_the_others_alone(bench: Bench, program: str) -> None:
    packed(bench, program, 3, 3)
    speaker = Speaker(bench.peer, 100)
    bench.configure_subscribers([1, 3], 1, DEEP, publishers={100: speaker.endpoint})
    connected(bench, 1, speaker, ids=[2], settings=with_values(DEEP, reconnect_rate=4.0), subscriptions=3)
    bench.peer.heard(Ready, [1, 3], epoch=1)
    bench.start([1, 2, 3], 1, 30)
    speaker.send(1, range(10))
    with no_more_files(bench.peer.process(2).pid):
        bench.hears_why_not(2, 1, "open files")
    assert {client for error in bench.peer.messages_of(Error) for client in error.ids} == {2}
    speaker.send(1, range(10, 500))
    reported = bench.subscriber_reports([1, 2, 3], 1, {100: 500})
    assert [(reported[c].drain, reported[c].ledgers[0].received) for c in (1, 3)] == [("complete", 500)] * 2
    assert reported[2].drain == "deadline"
    assert reported[2].ledgers[0].received + reported[2].ledgers[0].missing == 500
    # It is there again for the next step, in the same process.
    bench.configure_subscribers([1, 2, 3], 2, DEEP, publishers={100: speaker.endpoint})

    def probing() -> bool:
        speaker.probe(2)
        return bool(bench.peer.messages_of(Ready, 2, epoch=2))

    bench.peer.wait(probing, "ready")
    assert not bench.peer.messages_of(ChildExit)
