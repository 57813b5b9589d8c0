"""What a group must do whatever its system is: start, fork, replace, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import zmq

from hydra.client.host_counters import HostSampler
from hydra.model import BusyThread, HostCounters
from hydra.wire.messages import (
    Ack,
    ChildExit,
    Error,
    Evict,
    Hello,
    HostReadings,
    KernelTexts,
    Look,
    Ping,
    Progress,
    Quit,
    Ready,
    Report,
    Watch,
)
from tests.conformance.bench import Bench, step_settings
from tests.conformance.conftest import Share
from tests.conformance.peer import Arrival, without_seq
from tests.conformance.zmq_ends import Listener, Speaker
from tests.conformance.zmq_subscribing import connected
from tests.suite.waiting import LONG_S, SOON_S

ARGUMENTS = ["zmq-sub", "--group", "g", "--first-id", "1", "--count", "1"]


@pytest.fixture
def three(share: Share, zmq_client: str) -> Bench:
    """A group of three subscribers."""
    return share(zmq_client, "zmq-sub", count=3, first_id=1)


def sockets_of(pid: int) -> list[str]:
    links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    return [link for link in links if link.startswith("socket:")]


# --- starting --------------------------------------------------------------------------------------------------------


def test_every_client_is_a_process_of_its_own_and_the_relay_tells_of_it(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", first_id=10, count=5)
    arrivals = [bench.peer.process(client) for client in range(10, 15)]
    relay = bench.peer.relay()
    assert (relay.ids, relay.role, relay.incarnation) == (list(range(10, 15)), "subscriber", 0)
    assert {a.incarnation for a in arrivals} == {0}
    pids = {a.pid for a in arrivals}
    assert len(pids) == 5
    assert {p.pid for p in program.children()} == pids | {relay.pid}
    assert all(p.ppid() == program.pid for p in program.children())


def test_the_parent_has_one_thread_and_no_socket(three: Bench) -> None:
    parent = psutil.Process(three.groups[0].pid)
    assert parent.num_threads() == 1
    assert sockets_of(parent.pid) == []
    before = three.peer.process(2)
    os.kill(before.pid, signal.SIGKILL)
    three.peer.heard(Arrival, [2], incarnation=before.incarnation + 1)
    assert parent.num_threads() == 1


def test_idle_clients_sleep(three: Bench) -> None:
    """A process that never sleeps is never seen asleep; one that wakes up all the time is switched to as often."""
    (program,) = three.groups
    members = {process.pid: process for process in program.members()}

    def switches() -> int:
        return sum(process.num_ctx_switches().voluntary for process in members.values())

    before, asleep = switches(), set[int]()

    def look() -> bool:
        asleep.update(pid for pid, process in members.items() if process.status() == psutil.STATUS_SLEEPING)
        return len(program.children()) == 4

    three.peer.stays(look, "an end", 0.5)
    assert asleep == members.keys()
    assert switches() - before < 20 * len(members)


@pytest.mark.tier("all")
def test_no_more_are_forked_than_the_window_allows(bench: Bench, zmq_client: str) -> None:
    bench.peer.welcoming = False
    two, patient = ["--fork-window", "2"], {"HYDRA_WELCOME_S": str(SOON_S)}
    program = bench.launch(zmq_client, "zmq-sub", count=6, arguments=two, env=patient, await_hello=False)
    bench.peer.wait(lambda: len(program.children()) == 3, "a relay and two clients")
    bench.peer.stays(lambda: len(program.children()) == 3, "a third one before a welcome", 0.3)
    bench.peer.welcoming = True
    bench.peer.heard(Arrival, [6])


def test_a_relay_that_is_not_welcomed_says_hello_again(bench: Bench, zmq_client: str) -> None:
    bench.peer.welcoming = False
    bench.launch(zmq_client, "zmq-sub", count=2, await_hello=False)
    bench.peer.heard(Hello, [1, 2])
    bench.peer.welcoming = True
    bench.peer.heard(Hello, [1, 2], times=2)
    first, second = bench.peer.messages_of(Hello)
    assert without_seq(first) == without_seq(second)
    bench.peer.present([1, 2])


def test_a_relay_answers_pings_with_its_clock(three: Bench) -> None:
    for echo in (5, 2**63 - 1):
        before_ns = time.monotonic_ns()
        three.peer.send_to_relay("g", Ping(time_ns=echo, reply=True))
        ack = three.peer.heard(Ack, [1, 2, 3], command="ping", echo=echo)
        assert before_ns <= ack.time_ns <= time.monotonic_ns()
        assert (ack.epoch, ack.ids) == (0, [1, 2, 3])
    three.peer.send_to_relay("g", Ping(time_ns=7))
    three.peer.relays_in_sync([1])
    assert not three.peer.messages_of(Ack, command="ping", echo=7)


@pytest.mark.parametrize("kind", [pytest.param("zmq-pub", marks=pytest.mark.tier("all")), "zmq-sub"])
def test_a_relay_that_is_told_to_watch_reads_its_host_its_threads_and_its_connections(
    share: Share, zmq_client: str, kind: str
) -> None:
    bench = share(zmq_client, kind, count=2, first_id=1)
    (program,) = bench.groups
    assert bench.peer.relay().network_namespace == str(Path("/proc/self/ns/net").readlink())
    earlier = HostSampler().read()
    begin_ns = time.monotonic_ns()
    bench.peer.send_to_relay("g", Watch(epoch=3, every_s=0.05, host=True))
    bench.peer.heard(HostReadings, [1, 2], epoch=3, times=2)
    bench.peer.send_to_relay("g", Watch(epoch=3, every_s=0.0, host=False))
    before = len(bench.peer.messages_of(HostReadings))
    bench.peer.wait(lambda: len(bench.peer.messages_of(HostReadings)) > before, "an answer to the end")
    messages = bench.peer.messages_of(HostReadings)
    assert all((m.epoch, m.ids) == (3, [1, 2]) for m in messages)
    samples = [sample for message in messages for sample in message.samples]
    times = [sample.time_ns for sample in samples]
    assert begin_ns <= times[0] < times[-1] <= time.monotonic_ns()
    assert times == sorted(set(times))
    # As often as was asked for, if the machine has time for it.
    assert 2 < len(times) <= (times[-1] - times[0]) / 50_000_000 + 2
    check_counters_of_this_host(earlier, [sample.host for sample in samples if sample.host is not None])
    assert all(sample.host is not None for sample in samples)
    pids = {process.pid for process in program.members()}
    assert {thread.pid for sample in samples for thread in sample.threads} <= pids
    # The figures are since the previous reading: the first one has none.
    assert [sample.connections is None for sample in samples] == [True] + [False] * (len(samples) - 1)
    assert not samples[0].threads


def test_a_relay_that_is_told_to_look_sends_the_beginnings_of_the_kernels_files_and_of_no_others(three: Bench) -> None:
    kernel, number = "/proc/sys/kernel/osrelease", 41
    patterns = [kernel, "/proc/self/com*", "/proc/no/such/file", "/etc/hostname", "/proc/../etc/hostname"]
    begin_ns = time.monotonic_ns()
    three.peer.send_to_relay("g", Look(number=number, patterns=patterns, most_bytes=4))
    texts = three.peer.heard(KernelTexts, [1, 2, 3], number=number)
    assert begin_ns <= texts.time_ns <= time.monotonic_ns()
    assert texts.complete
    assert texts.texts.keys() == {kernel, "/proc/self/comm"}
    assert texts.texts[kernel] == Path(kernel).read_text()[:4]


def check_counters_of_this_host(earlier: HostCounters, samples: list[HostCounters]) -> None:
    """They grow, and are what others read of this host before and after."""
    for before, after in pairwise(samples):
        assert all(b.total_s <= a.total_s + 0.02 for b, a in zip(before.cores, after.cores, strict=True))
        assert before.tcp.segments_out <= after.tcp.segments_out
        assert before.context_switches <= after.context_switches
    last = samples[-1]
    assert sum(core.total_s for core in last.cores) > sum(core.total_s for core in samples[0].cores)
    now = HostSampler().read()
    assert last.memory_total == now.memory_total
    assert last.pressure_us.keys() == now.pressure_us.keys()
    # Meanwhile interfaces of other containers appear and disappear.
    lasting = earlier.interfaces.keys() & now.interfaces.keys()
    assert last.interfaces.keys() >= lasting
    for old, its, new in ((of.interfaces[n] for of in (earlier, last, now)) for n in lasting):
        assert old.rx_bytes <= its.rx_bytes <= new.rx_bytes
        assert its.speed_mbit in (old.speed_mbit, new.speed_mbit)
    for core, by_now in zip(last.cores, now.cores, strict=True):
        # The kernel counts in ticks; idle time may step back by one or two.
        assert core.total_s <= by_now.total_s + 0.05
        assert core.busy_s <= by_now.busy_s + 0.05 < core.busy_s + LONG_S


def test_a_publisher_that_is_busy_is_named_with_its_cpu(share: Share, zmq_client: str) -> None:
    bench = share(zmq_client, "zmq-pub", first_id=1)
    pid = bench.peer.process(1).pid
    bench.peer.send_to_relay("g", Watch(epoch=1, every_s=0.25, host=False))
    bench.configure_publisher(1, 1, step_settings(rate="max"))
    bench.start([1], 1, LONG_S)

    def busiest() -> list[BusyThread]:
        samples = [sample for message in bench.peer.messages_of(HostReadings, epoch=1) for sample in message.samples]
        assert all(sample.host is None for sample in samples)
        return [sample.threads[0] for sample in samples if sample.threads]

    # What it does not run of the time it waits for a core: it never sleeps.
    loop = pid, pid
    bench.peer.wait(
        lambda: any((t.pid, t.tid) == loop and t.cpu_pct > 5 and t.cpu_pct + t.wait_pct > 80 for t in busiest()),
        "a busy publisher",
    )
    assert all(t.cpu_pct < 130 for t in busiest())


def test_a_watch_that_is_said_again_and_its_end_change_nothing(three: Bench) -> None:
    for epoch, every_s in ((5, 0.0), (4, 0.1), (5, 0.1), (5, 0.0)):
        three.peer.send_to_relay("g", Watch(epoch=epoch, every_s=every_s, host=True))
    # The end of a watch is always answered; what has ended, or is of a lower epoch, is not begun.
    three.peer.heard(HostReadings, [1, 2], epoch=5, times=2)
    three.peer.stays(lambda: len(three.peer.messages_of(HostReadings)) == 2, "a sample of a watch that has ended", 0.5)
    assert not any(message.samples for message in three.peer.messages_of(HostReadings))


# --- dismissal -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zmq-pub", "zmq-sub"])
def test_quit_ends_the_group_with_exit_code_0(bench: Bench, zmq_client: str, kind: str) -> None:
    program = bench.launch(zmq_client, kind, count=3)
    bench.quit()
    assert bench.await_exit(program) == 0
    bench.peer.heard(ChildExit, [1, 2, 3])
    pids = {client: bench.peer.process(client).pid for client in (1, 2, 3)}
    exits = bench.peer.messages_of(ChildExit)
    assert {(e.ids[0], e.pid) for e in exits} == set(pids.items())
    assert [(e.incarnation, e.status, e.replaced) for e in exits] == [(0, 0, False)] * 3


def test_quit_in_the_middle_of_a_step(bench: Bench, zmq_client: str) -> None:
    publisher = bench.launch(zmq_client, "zmq-pub", first_id=1, group="p")
    subscriber = bench.launch(zmq_client, "zmq-sub", first_id=2, group="s")
    endpoint = bench.configure_publisher(1, 1, step_settings(rate="max"))
    bench.configure_subscribers([2], 1, publishers={1: endpoint})
    bench.peer.heard(Ready, [2], epoch=1)
    bench.await_moment(bench.start([1, 2], 1, 30), 0.1)
    bench.quit()
    assert bench.await_exit(publisher) == 0
    assert bench.await_exit(subscriber) == 0


# --- the controller has ended, or is another one ----------------------------------------------------------------------


def test_a_cut_lifeline_ends_everything(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=5)
    program.cut_lifeline()
    bench.await_exit(program)


def test_a_cut_lifeline_ends_a_group_in_the_middle_of_a_step(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-pub")
    Listener(bench.peer, bench.configure_publisher(1, 1, step_settings(rate="max"))).await_probe(1)
    bench.start([1], 1, 30)
    program.cut_lifeline()
    bench.await_exit(program)


@pytest.fixture
def silent_bench() -> Iterator[Bench]:
    """Its clients give it up after two seconds without a word."""
    bench = Bench(silence_s=2.0)
    yield bench
    bench.close()


def test_without_a_lifeline_silence_ends_the_group(silent_bench: Bench, zmq_client: str) -> None:
    program = silent_bench.launch(zmq_client, "zmq-sub", count=2, lifeline=False)
    # Pings keep them alive for longer than the silence …
    for _ in range(10):
        silent_bench.peer.broadcast(Ping(time_ns=1))
        silent_bench.peer.stays(lambda: program.exit_code() is None, "nobody exits while there are pings")
    assert len(program.children()) == 3
    # … and then it sends nothing any more.
    assert silent_bench.await_exit(program) == 4
    assert "silent" in program.stderr()


@pytest.mark.tier("all")
def test_a_controller_that_vanished_holds_nobody_up(silent_bench: Bench, zmq_client: str) -> None:
    program = silent_bench.launch(zmq_client, "zmq-sub", lifeline=False)
    # Far more messages within the silence than a queue of libzmq's holds by default.
    silent_bench.send_configure([1], 1, step_settings(rate=1.0), probe=False, progress_s=0.0001)
    silent_bench.peer.heard(Ack, [1], command="configure")
    silent_bench.start([1], 1, 60)
    silent_bench.peer.heard(Progress, [1], times=5)
    silent_bench.peer.vanish()
    assert silent_bench.await_exit(program) == 4


@pytest.mark.tier("all")
def test_a_controller_that_refuses_to_be_dialled_again_has_ended(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2, lifeline=False)
    bench.peer.vanish()
    # It might have been silent for ever.
    assert bench.await_exit(program) == 4
    assert "ended" in program.stderr()


@pytest.mark.parametrize("what", ["nobody at the endpoint", "the wrong server key"])
def test_without_a_welcome_the_group_ends(bench: Bench, zmq_client: str, what: str) -> None:
    if what == "the wrong server key":
        wrong = {"HYDRA_CONTROL_SERVER_KEY": zmq.curve_keypair()[0].decode()}
    else:
        with bench.peer.context.socket(zmq.ROUTER) as free:
            wrong = {"HYDRA_CONTROL": f"tcp://127.0.0.1:{free.bind_to_random_port('tcp://127.0.0.1')}"}
    env = {**wrong, "HYDRA_WELCOME_S": "0.3"}
    program = bench.launch(zmq_client, "zmq-sub", count=2, env=env, lifeline=False, await_hello=False)
    assert bench.await_exit(program) == 4
    assert "welcome" in program.stderr()
    assert not bench.peer.log


def test_what_is_no_command_is_ignored(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub", first_id=1, group="p")
    bench.launch(zmq_client, "zmq-sub", first_id=2, group="s")
    quit_ = b'{"type":"quit"'
    for frame in (
        *(b"", b"\x00\xff", b"{}", b"[]", b"null", quit_, quit_ + b',"v":3}', quit_ + b"}" + b" " * 600_000),
        b'{"type":"QUIT"}',
        b'{"type":"explode"}',
        b'{"type":"stop","epoch":"1","number":1,"stop_at_ns":1}',
        b'{"type":"stop","epoch":1,"number":1,"stop_at_ns":-1}',
        b'{"type":"ping","time_ns":1,"reply":true,"more":1}',
        b'{"type":"ack","ids":[1],"seq":1,"epoch":1,"command":"start"}',
        b'{"type":"configure","epoch":1,"number":1,"settings":{"rate":-5,"burst":1},"publishers":[],"probe":true}',
    ):
        bench.peer.send_raw([1, 2], frame)
    bench.peer.relays_in_sync([1, 2])
    assert not bench.peer.messages_of(Error)
    assert not [a for a in bench.peer.messages_of(Ack) if a.command != "ping"]
    Listener(bench.peer, bench.configure_publisher(1, 1)).await_probe(1)


def test_a_command_that_names_somebody_else_is_ignored(three: Bench) -> None:
    three.peer.send_to_relay("g", Quit(ids=[77]))
    three.peer.relays_in_sync([2])
    three.peer.stays(lambda: len(three.groups[0].children()) == 4, "the end of somebody else")


# --- deaths ----------------------------------------------------------------------------------------------------------


def test_a_client_that_was_killed_is_reported_and_replaced(three: Bench) -> None:
    before = three.peer.process(2)
    os.kill(before.pid, signal.SIGKILL)
    exit_ = three.peer.heard(ChildExit, [2])
    assert (exit_.ids, exit_.pid, exit_.status, exit_.replaced) == ([2], before.pid, -9, True)
    after = three.peer.heard(Arrival, [2], incarnation=before.incarnation + 1)
    assert after.pid != before.pid
    connected(three, 1, Speaker(three.peer, 100), ids=[1, 2, 3])


def test_the_replacement_serves_the_next_step(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub", first_id=1)
    bench.configure_publisher(1, 1, step_settings(rate="max"))
    bench.start([1], 1, 30)
    os.kill(bench.peer.process(1).pid, signal.SIGKILL)
    bench.peer.heard(Arrival, [1], incarnation=1)
    Listener(bench.peer, bench.configure_publisher(1, 2)).await_probe(2)
    assert bench.publish(1, 2, 0.3)[1].sent > 0
    assert not bench.peer.messages_of(Report, epoch=1)


def test_the_relay_has_a_client_killed_that_hangs(three: Bench) -> None:
    before = {c: three.peer.process(c).pid for c in (1, 2, 3)}
    os.kill(before[2], signal.SIGSTOP)
    os.kill(before[3], signal.SIGSTOP)
    three.peer.send_to_relay("g", Evict(ids=[2, 3]))
    for client in (2, 3):
        exit_ = three.peer.heard(ChildExit, [client])
        assert (exit_.pid, exit_.status, exit_.replaced) == (before[client], -9, True)
        three.peer.heard(Arrival, [client], incarnation=exit_.incarnation + 1)
    assert three.peer.process(1).pid == before[1]
    assert not three.peer.messages_of(ChildExit, 1)


def test_an_evict_of_an_earlier_incarnation_is_not_its_successors(bench: Bench, zmq_client: str) -> None:
    """It is repeated until its end is known, and may arrive after the replacement's."""
    bench.launch(zmq_client, "zmq-sub", first_id=1, count=2)
    before = bench.peer.process(2).pid
    again = Evict(ids=[2], incarnation=0)
    bench.peer.send_to_relay("g", again)
    exit_ = bench.peer.heard(ChildExit, [2])
    assert (exit_.pid, exit_.incarnation, exit_.replaced) == (before, 0, True)
    after = bench.peer.heard(Arrival, [2], incarnation=1).pid
    bench.peer.send_to_relay("g", again)
    bench.peer.stays(lambda: len(bench.peer.messages_of(ChildExit)) == 1, "the end of the replacement")
    assert bench.peer.process(2).pid == after
    bench.peer.send_to_relay("g", Evict(ids=[2], incarnation=1))
    exit_ = bench.peer.heard(ChildExit, [2], times=2)
    assert (exit_.pid, exit_.incarnation) == (after, 1)
    bench.peer.heard(Arrival, [2], incarnation=2)


def test_who_was_dismissed_is_not_replaced(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", first_id=1, count=2)
    bench.peer.send_to_relay("g", Quit(ids=[2]))
    exit_ = bench.peer.heard(ChildExit, [2])
    assert (exit_.status, exit_.replaced) == (0, False)
    bench.peer.stays(lambda: len(program.children()) == 2, "a replacement of who was dismissed, or another end")


def test_replacements_run_out(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", arguments=["--respawns", "1"])
    os.kill(bench.peer.process(1).pid, signal.SIGKILL)
    os.kill(bench.peer.heard(Arrival, [1], incarnation=1).pid, signal.SIGTERM)
    bench.peer.heard(ChildExit, [1], times=2)
    first, second = bench.peer.messages_of(ChildExit, 1)
    assert (first.status, first.incarnation, first.replaced) == (-9, 0, True)
    assert (second.status, second.incarnation, second.replaced) == (-15, 1, False)
    bench.await_exit(program)


def test_the_others_live_on_when_one_is_not_replaced(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2, arguments=["--respawns", "0"])
    os.kill(bench.peer.process(1).pid, signal.SIGKILL)
    exit_ = bench.peer.heard(ChildExit, [1])
    assert not exit_.replaced
    # A controller that asks for its end has not heard of it.
    bench.peer.send_to_relay("g", Evict(ids=[1]))
    assert without_seq(bench.peer.heard(ChildExit, [1], times=2)) == without_seq(exit_)
    assert not bench.peer.messages_of(ChildExit, 2)
    bench.peer.send_to([2], Quit())
    assert bench.await_exit(program) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_parent_takes_everybody_along(bench: Bench, zmq_client: str, number: signal.Signals) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=4)
    os.kill(program.pid, number)
    assert bench.await_exit(program) == (0 if number == signal.SIGTERM else -9)


def test_no_group_without_its_relay(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2)
    os.kill(bench.peer.relay().pid, signal.SIGKILL)
    assert bench.await_exit(program) == 5


def test_ctrl_c_is_the_controllers_business(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub")
    os.kill(program.pid, signal.SIGINT)
    os.kill(bench.peer.process(1).pid, signal.SIGINT)
    os.kill(bench.peer.relay().pid, signal.SIGINT)
    bench.configure_subscribers([1], 1, probe=False)
    assert len(program.members()) == 3


# --- nonsense --------------------------------------------------------------------------------------------------------


LATER = pytest.mark.tier("all")
"""Of what is parsed in one place, a few are enough for every day."""


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["carrier-pigeon", *ARGUMENTS[1:]], [*ARGUMENTS, "--colour", "red"], [*ARGUMENTS[:-1], "0"]),
        *(
            pytest.param(arguments, marks=LATER)
            for arguments in (
                ARGUMENTS[:-2],
                *([*ARGUMENTS[:-1], count] for count in ("-1", "many", "99999999999999999999", "1.5")),
                *([*ARGUMENTS, *more] for more in (["--fork-window", "0"], ["--respawns", "-1"], ["surplus"])),
            )
        ),
    ],
    ids=" ".join,
)
def test_nonsense_arguments_are_one_line_and_exit_code_2(bench: Bench, zmq_client: str, arguments: list[str]) -> None:
    assert bench.refused(zmq_client, arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HYDRA_CONTROL", ""),
        ("HYDRA_CONTROL_CLIENT_SECRET", "tooshort"),
        ("HYDRA_LIFELINE", "rope"),
        pytest.param("HYDRA_CONTROL_SERVER_KEY", "", marks=LATER),
        pytest.param("HYDRA_CONTROL_CLIENT_KEY", "", marks=LATER),
        pytest.param("HYDRA_CONTROL_CLIENT_SECRET", "\x7f" * 40, marks=LATER),
        pytest.param("HYDRA_CONTROL", "nonsense", marks=LATER),
        pytest.param("HYDRA_WELCOME_S", "soon", marks=LATER),
    ],
)
def test_a_bad_environment_is_one_line_and_exit_code_2(bench: Bench, zmq_client: str, name: str, value: str) -> None:
    line = bench.refused(zmq_client, ARGUMENTS, {name: value})
    assert name in line
    assert bench.peer.keys.client_secret not in line


def test_no_key_is_on_any_command_line(three: Bench) -> None:
    members = three.groups[0].members()
    assert len(members) == 5
    assert not any(three.peer.keys.client_secret in " ".join(process.cmdline()) for process in members)
