"""What a group must do whatever its system is: start, fork, replace, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import zmq

from hydra.client.host import HostSampler
from hydra.model import BusyThread, HostCounters
from hydra.wire.messages import Ack, ChildExit, Error, Evict, Hello, Host, Ping, Progress, Quit, Ready, Report, Watch
from tests.conformance.bench import Bench, step_settings
from tests.conformance.group import GroupProgram
from tests.conformance.peer import Arrival, without_seq
from tests.conformance.zmq_ends import Listener, Speaker

ARGUMENTS = ["zmq-sub", "--group", "g", "--first-id", "1", "--count", "1"]


def sockets_of(pid: int) -> list[str]:
    links = [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    return [link for link in links if link.startswith("socket:")]


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    os.kill(pid, number)


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


def test_the_parent_has_one_thread_and_no_socket(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=3)
    parent = psutil.Process(program.pid)
    assert parent.num_threads() == 1
    assert sockets_of(program.pid) == []
    kill(bench.peer.process(2).pid)
    bench.peer.heard(Arrival, [2], incarnation=1)
    assert parent.num_threads() == 1


def test_idle_clients_sleep(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=5)

    def seconds() -> float:
        return sum(sum(p.cpu_times()[:2]) for p in program.members())

    before = seconds()
    bench.peer.stays(lambda: True, "", 1.0)
    assert seconds() - before < 0.1


def test_no_more_are_forked_than_the_window_allows(bench: Bench, zmq_client: str) -> None:
    bench.peer.welcoming = False
    program = bench.launch(
        zmq_client,
        "zmq-sub",
        count=6,
        arguments=["--fork-window", "2"],
        env={"HYDRA_WELCOME_S": "20"},
        await_hello=False,
    )
    bench.peer.wait(lambda: len(program.children()) == 3, "a relay and two clients")
    bench.peer.stays(lambda: len(program.children()) == 3, "a third one before a welcome", 0.5)
    bench.peer.welcoming = True
    bench.peer.heard(Arrival, [6])


def test_a_relay_that_is_not_welcomed_says_hello_again(bench: Bench, zmq_client: str) -> None:
    bench.peer.welcoming = False
    bench.launch(zmq_client, "zmq-sub", count=2, await_hello=False)
    bench.peer.heard(Hello, [1, 2], timeout_s=30)
    bench.peer.welcoming = True
    bench.peer.heard(Hello, [1, 2], times=2, timeout_s=4)
    first, second = bench.peer.said(Hello)
    assert without_seq(first) == without_seq(second)
    bench.peer.present([1, 2])


def test_a_relay_answers_pings_with_its_clock(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=3)
    for echo in (5, 2**63 - 1):
        before_ns = time.monotonic_ns()
        bench.peer.tell_relay("g", Ping(time_ns=echo, reply=True))
        ack = bench.peer.heard(Ack, [1, 2, 3], command="ping", echo=echo)
        assert before_ns <= ack.time_ns <= time.monotonic_ns()
        assert (ack.epoch, ack.ids) == (0, [1, 2, 3])
    bench.peer.tell_relay("g", Ping(time_ns=7))
    bench.peer.relays_in_sync([1])
    assert not bench.peer.said(Ack, command="ping", echo=7)


@pytest.mark.parametrize("kind", ["zmq-pub", "zmq-sub"])
def test_a_relay_that_is_told_to_watch_reads_its_host_its_threads_and_its_connections(
    bench: Bench, zmq_client: str, kind: str
) -> None:
    program = bench.launch(zmq_client, kind, count=2)
    assert bench.peer.relay().network_namespace == str(Path("/proc/self/ns/net").readlink())
    begin_ns = time.monotonic_ns()
    bench.peer.tell_relay("g", Watch(epoch=3, every_s=0.05, host=True))
    bench.peer.heard(Host, [1, 2], epoch=3, times=2)
    bench.peer.tell_relay("g", Watch(epoch=3, every_s=0.0, host=False))
    told_ns = time.monotonic_ns()
    before = len(bench.peer.said(Host))
    bench.peer.wait(lambda: len(bench.peer.said(Host)) > before, "an answer to the end")
    messages = bench.peer.said(Host)
    assert all((m.epoch, m.ids) == (3, [1, 2]) for m in messages)
    samples = [sample for message in messages for sample in message.samples]
    times = [sample.time_ns for sample in samples]
    assert begin_ns <= times[0] < times[-1] <= told_ns + 1_000_000_000
    assert times == sorted(set(times))
    # As often as was asked for, if the machine has time for it.
    assert 5 < len(times) <= (times[-1] - times[0]) / 50_000_000 + 2
    check_counters_of_this_host([sample.host for sample in samples if sample.host is not None])
    assert all(sample.host is not None for sample in samples)
    pids = {process.pid for process in program.members()}
    assert {thread.pid for sample in samples for thread in sample.threads} <= pids
    # What is said is since the reading before: not yet in the first one.
    assert [sample.connections is None for sample in samples] == [True] + [False] * (len(samples) - 1)
    assert not samples[0].threads


def check_counters_of_this_host(samples: list[HostCounters]) -> None:
    """They grow, and are what others read of this host."""
    for before, after in pairwise(samples):
        assert all(b.total_s <= a.total_s + 0.02 for b, a in zip(before.cores, after.cores, strict=True))
        assert before.tcp.segments_out <= after.tcp.segments_out
        assert before.context_switches <= after.context_switches
    last = samples[-1]
    assert sum(core.total_s for core in last.cores) > sum(core.total_s for core in samples[0].cores)
    sampler = HostSampler()
    now = sampler.read()
    assert last.memory_total == now.memory_total
    assert last.pressure_us.keys() == now.pressure_us.keys()
    assert last.interfaces.keys() == now.interfaces.keys()
    for name, counts in last.interfaces.items():
        assert counts.rx_bytes <= now.interfaces[name].rx_bytes
        assert counts.speed_mbit == now.interfaces[name].speed_mbit
    for core, by_now in zip(last.cores, now.cores, strict=True):
        # The kernel counts in ticks; idle time may step back by one or two.
        assert core.total_s <= by_now.total_s + 0.05
        assert core.busy_s <= by_now.busy_s + 0.05 < core.busy_s + 30


def test_a_publisher_that_is_busy_is_named_with_its_cpu(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub")
    pid = bench.peer.process(1).pid
    bench.peer.tell_relay("g", Watch(epoch=1, every_s=0.25, host=False))
    bench.configure_publisher(1, 1, step_settings(rate="max"))
    bench.start([1], 1, 4.0)

    def busiest() -> list[BusyThread]:
        samples = [sample for message in bench.peer.said(Host, epoch=1) for sample in message.samples]
        assert all(sample.host is None for sample in samples)
        return [sample.threads[0] for sample in samples if sample.threads]

    # What it does not run of the time it waits for a core: it never sleeps.
    loop = pid, pid
    bench.peer.wait(
        lambda: any((t.pid, t.tid) == loop and t.cpu_pct > 5 and t.cpu_pct + t.wait_pct > 80 for t in busiest()),
        "a busy publisher",
    )
    assert all(t.cpu_pct < 130 for t in busiest())


def test_a_watch_that_is_said_again_and_its_end_change_nothing(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=2)
    for epoch, every_s in ((5, 0.0), (4, 0.1), (5, 0.1), (5, 0.0)):
        bench.peer.tell_relay("g", Watch(epoch=epoch, every_s=every_s, host=True))
    # The end of a watch is always answered; what has ended, or is of a lower epoch, is not begun.
    bench.peer.heard(Host, [1, 2], epoch=5, times=2)
    bench.peer.stays(lambda: len(bench.peer.said(Host)) == 2, "a sample of a watch that has ended", 1.5)
    assert not any(message.samples for message in bench.peer.said(Host))


# --- dismissal -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zmq-pub", "zmq-sub"])
def test_quit_ends_the_group_with_exit_code_0(bench: Bench, zmq_client: str, kind: str) -> None:
    program = bench.launch(zmq_client, kind, count=3)
    bench.quit()
    assert bench.await_gone(program, 5) == 0
    bench.peer.heard(ChildExit, [1, 2, 3])
    pids = {client: bench.peer.process(client).pid for client in (1, 2, 3)}
    exits = bench.peer.said(ChildExit)
    assert {(e.ids[0], e.pid) for e in exits} == set(pids.items())
    assert [(e.incarnation, e.status, e.replaced) for e in exits] == [(0, 0, False)] * 3


def test_quit_in_the_middle_of_a_step(bench: Bench, zmq_client: str) -> None:
    publisher = bench.launch(zmq_client, "zmq-pub", first_id=1, group="p")
    subscriber = bench.launch(zmq_client, "zmq-sub", first_id=2, group="s")
    endpoint = bench.configure_publisher(1, 1, step_settings(rate="max"))
    bench.configure_subscribers([2], 1, publishers={1: endpoint})
    bench.peer.heard(Ready, [2], epoch=1)
    window = bench.start([1, 2], 1, 30)
    bench.await_end(type(window)(window.start_ns, window.start_ns, window.offset_ns), 0.1)
    bench.quit()
    assert bench.await_gone(publisher, 5) == 0
    assert bench.await_gone(subscriber, 5) == 0


# --- the controller is gone, or wrong --------------------------------------------------------------------------------


def test_a_cut_lifeline_ends_everything_within_2_s(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=5)
    program.cut_lifeline()
    bench.await_gone(program, 2)


def test_a_cut_lifeline_ends_a_group_in_the_middle_of_a_step(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-pub")
    Listener(bench.peer, bench.configure_publisher(1, 1, step_settings(rate="max"))).await_probe(1)
    bench.start([1], 1, 30)
    program.cut_lifeline()
    bench.await_gone(program, 2)


@pytest.fixture
def short_silence() -> Callable[[], Bench]:
    return lambda: Bench(silence_s=1.0)


def test_without_a_lifeline_silence_ends_the_group(zmq_client: str, short_silence: Callable[[], Bench]) -> None:
    bench = short_silence()
    try:
        program = bench.launch(zmq_client, "zmq-sub", count=2, lifeline=False)
        # Pings keep them alive for longer than the silence …
        for _ in range(8):
            bench.peer.tell_everyone(Ping(time_ns=1))
            bench.peer.stays(lambda: program.exit_code() is None, "nobody exits while there are pings")
        assert len(program.children()) == 3
        # … and then nobody speaks any more.
        assert bench.await_gone(program, 1 + 5 + 3) == 4
        assert "silent" in program.stderr()
    finally:
        bench.close()


def test_a_controller_that_vanished_holds_nobody_up(zmq_client: str, short_silence: Callable[[], Bench]) -> None:
    bench = short_silence()
    try:
        program = bench.launch(zmq_client, "zmq-sub", lifeline=False)
        # Far more to say within the silence than a queue of libzmq's holds by default.
        bench.tell_configure([1], 1, step_settings(rate=1.0), probe=False, progress_s=0.0001)
        bench.peer.heard(Ack, [1], command="configure")
        bench.start([1], 1, 60)
        bench.peer.heard(Progress, [1], times=5)
        bench.peer.vanish()
        bench.peer.wait(lambda: program.exit_code() is not None, "the group ends", 1 + 5 + 3)
        assert program.exit_code() == 4
    finally:
        bench.close()


def test_a_controller_that_refuses_to_be_dialled_again_has_ended(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2, lifeline=False)
    bench.peer.vanish()
    # It might have been silent for ever.
    assert bench.await_gone(program, 5) == 4
    assert "ended" in program.stderr()


def test_nobody_at_the_endpoint(bench: Bench, zmq_client: str) -> None:
    with bench.peer.context.socket(zmq.ROUTER) as free:
        port = free.bind_to_random_port("tcp://127.0.0.1")
    nobody = {"HYDRA_CONTROL": f"tcp://127.0.0.1:{port}", "HYDRA_WELCOME_S": "0.5"}
    program = bench.launch(zmq_client, "zmq-sub", count=2, env=nobody, lifeline=False, await_hello=False)
    assert bench.await_gone(program, 8) == 4
    assert "welcome" in program.stderr()


def test_the_wrong_server_key(bench: Bench, zmq_client: str) -> None:
    stranger = zmq.curve_keypair()[0].decode()
    env = {"HYDRA_CONTROL_SERVER_KEY": stranger, "HYDRA_WELCOME_S": "0.5"}
    program = bench.launch(zmq_client, "zmq-sub", env=env, lifeline=False, await_hello=False)
    assert bench.await_gone(program, 8) == 4
    assert not bench.peer.log


def test_what_is_no_command_is_ignored(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub", first_id=1, group="p")
    bench.launch(zmq_client, "zmq-sub", first_id=2, group="s")
    garbage = [
        b"",
        b"\x00\xff",
        b"{}",
        b"[]",
        b"null",
        b'{"type":"quit"',
        b'{"type":"quit","v":3}',
        b'{"type":"QUIT","v":2}',
        b'{"type":"explode","v":2}',
        b'{"type":"stop","v":2,"epoch":"1","stop_at_ns":1}',
        b'{"type":"stop","v":2,"epoch":1,"stop_at_ns":-1}',
        b'{"type":"ping","v":2,"time_ns":1,"reply":true,"more":1}',
        b'{"type":"ack","v":2,"ids":[1],"seq":1,"epoch":1,"command":"start"}',
        b'{"type":"configure","v":2,"epoch":1,"settings":{"rate":-5,"burst":1},"publishers":[],"probe":true}',
        b'{"type":"quit","v":2}' + b" " * 600_000,
    ]
    for frame in garbage:
        bench.peer.tell_raw([1, 2], frame)
    bench.peer.relays_in_sync([1, 2])
    assert not bench.peer.said(Error)
    assert not [a for a in bench.peer.said(Ack) if a.command != "ping"]
    Listener(bench.peer, bench.configure_publisher(1, 1)).await_probe(1)


def test_a_command_that_names_somebody_else_is_ignored(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", first_id=2)
    bench.peer.tell([2], Quit(ids=[77]))
    bench.peer.relays_in_sync([2])
    bench.peer.stays(lambda: len(bench.groups[0].children()) == 2, "the end of somebody else")


# --- deaths ----------------------------------------------------------------------------------------------------------


def test_a_client_that_was_killed_is_reported_and_replaced(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", first_id=5, count=3)
    before = bench.peer.process(6)
    kill(before.pid)
    exit_ = bench.peer.heard(ChildExit, [6])
    assert (exit_.ids, exit_.pid, exit_.status, exit_.replaced) == ([6], before.pid, -9, True)
    after = bench.peer.heard(Arrival, [6], incarnation=1)
    assert after.pid != before.pid
    speaker = Speaker(bench.peer, 100)
    bench.configure_subscribers([5, 6, 7], 1, publishers={100: speaker.endpoint})
    speaker.await_subscriptions(3)
    speaker.probe(1)
    bench.peer.heard(Ready, [5, 6, 7], epoch=1)


def test_the_replacement_serves_the_next_step(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub", first_id=1)
    bench.configure_publisher(1, 1, step_settings(rate="max"))
    bench.start([1], 1, 30)
    kill(bench.peer.process(1).pid)
    bench.peer.heard(Arrival, [1], incarnation=1)
    Listener(bench.peer, bench.configure_publisher(1, 2)).await_probe(2)
    window = bench.start([1], 2, 0.1)
    bench.await_end(window)
    assert bench.publisher_report(1, 2, window).sent > 0
    assert not bench.peer.said(Report, epoch=1)


def test_the_relay_has_a_client_killed_that_hangs(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", first_id=1, count=3)
    before = {c: bench.peer.process(c).pid for c in (1, 2, 3)}
    kill(before[2], signal.SIGSTOP)
    kill(before[3], signal.SIGSTOP)
    bench.peer.tell_relay("g", Evict(ids=[2, 3]))
    for client in (2, 3):
        exit_ = bench.peer.heard(ChildExit, [client])
        assert (exit_.pid, exit_.status, exit_.replaced) == (before[client], -9, True)
        bench.peer.heard(Arrival, [client], incarnation=1)
    assert bench.peer.process(1).pid == before[1]
    assert not bench.peer.said(ChildExit, 1)


def test_an_evict_of_an_earlier_incarnation_is_not_its_successors(bench: Bench, zmq_client: str) -> None:
    """It is said again as long as nobody has told of the end, and may come after the replacement."""
    bench.launch(zmq_client, "zmq-sub", first_id=1, count=2)
    before = bench.peer.process(2).pid
    again = Evict(ids=[2], incarnation=0)
    bench.peer.tell_relay("g", again)
    exit_ = bench.peer.heard(ChildExit, [2])
    assert (exit_.pid, exit_.incarnation, exit_.replaced) == (before, 0, True)
    after = bench.peer.heard(Arrival, [2], incarnation=1).pid
    bench.peer.tell_relay("g", again)
    bench.peer.stays(lambda: len(bench.peer.said(ChildExit)) == 1, "the end of the replacement")
    assert bench.peer.process(2).pid == after
    bench.peer.tell_relay("g", Evict(ids=[2], incarnation=1))
    exit_ = bench.peer.heard(ChildExit, [2], times=2)
    assert (exit_.pid, exit_.incarnation) == (after, 1)
    bench.peer.heard(Arrival, [2], incarnation=2)


def test_who_was_dismissed_is_not_replaced(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", first_id=1, count=2)
    bench.peer.tell_relay("g", Quit(ids=[2]))
    exit_ = bench.peer.heard(ChildExit, [2])
    assert (exit_.status, exit_.replaced) == (0, False)
    bench.peer.stays(lambda: len(program.children()) == 2, "a replacement of who was dismissed, or another end")


def test_replacements_run_out(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", arguments=["--respawns", "1"])
    kill(bench.peer.process(1).pid)
    kill(bench.peer.heard(Arrival, [1], incarnation=1).pid, signal.SIGTERM)
    bench.peer.heard(ChildExit, [1], times=2)
    first, second = bench.peer.said(ChildExit, 1)
    assert (first.status, first.incarnation, first.replaced) == (-9, 0, True)
    assert (second.status, second.incarnation, second.replaced) == (-15, 1, False)
    bench.await_gone(program, 5)


def test_the_others_live_on_when_one_is_not_replaced(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2, arguments=["--respawns", "0"])
    kill(bench.peer.process(1).pid)
    exit_ = bench.peer.heard(ChildExit, [1])
    assert not exit_.replaced
    # A controller that asks for its end has not heard of it.
    bench.peer.tell_relay("g", Evict(ids=[1]))
    assert without_seq(bench.peer.heard(ChildExit, [1], times=2)) == without_seq(exit_)
    assert not bench.peer.said(ChildExit, 2)
    bench.peer.tell([2], Quit())
    assert bench.await_gone(program, 5) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_parent_takes_everybody_along(bench: Bench, zmq_client: str, number: signal.Signals) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=4)
    kill(program.pid, number)
    code = bench.await_gone(program, 2)
    assert code == (0 if number == signal.SIGTERM else -9)


def test_no_group_without_its_relay(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2)
    kill(bench.peer.relay().pid)
    assert bench.await_gone(program, 2) == 5


def test_ctrl_c_is_the_controllers_business(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub")
    kill(program.pid, signal.SIGINT)
    kill(bench.peer.process(1).pid, signal.SIGINT)
    kill(bench.peer.relay().pid, signal.SIGINT)
    bench.configure_subscribers([1], 1, probe=False)
    assert len(program.members()) == 3


# --- nonsense --------------------------------------------------------------------------------------------------------


def run_to_the_end(bench: Bench, command: str, arguments: list[str], env: dict[str, str]) -> GroupProgram:
    program = GroupProgram(command, arguments, env)
    bench.groups.append(program)
    program.process.wait(20)
    return program


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["carrier-pigeon", *ARGUMENTS[1:]],
        ARGUMENTS[:-2],
        [*ARGUMENTS[:-1], "0"],
        [*ARGUMENTS[:-1], "-1"],
        [*ARGUMENTS[:-1], "many"],
        [*ARGUMENTS[:-1], "99999999999999999999"],
        [*ARGUMENTS[:-1], "1.5"],
        [*ARGUMENTS, "--fork-window", "0"],
        [*ARGUMENTS, "--respawns", "-1"],
        [*ARGUMENTS, "--colour", "red"],
        [*ARGUMENTS, "surplus"],
    ],
)
def test_nonsense_arguments_are_one_line_and_exit_code_2(bench: Bench, zmq_client: str, arguments: list[str]) -> None:
    program = run_to_the_end(bench, zmq_client, arguments, bench.peer.environment)
    assert program.exit_code() == 2
    lines = program.stderr().splitlines()
    assert len(lines) == 1, lines


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HYDRA_CONTROL", ""),
        ("HYDRA_CONTROL_SERVER_KEY", ""),
        ("HYDRA_CONTROL_CLIENT_KEY", ""),
        ("HYDRA_CONTROL_CLIENT_SECRET", "tooshort"),
        ("HYDRA_CONTROL_CLIENT_SECRET", "\x7f" * 40),
        ("HYDRA_CONTROL", "nonsense"),
        ("HYDRA_LIFELINE", "rope"),
        ("HYDRA_WELCOME_S", "soon"),
    ],
)
def test_a_bad_environment_is_one_line_and_exit_code_2(bench: Bench, zmq_client: str, name: str, value: str) -> None:
    program = run_to_the_end(bench, zmq_client, ARGUMENTS, {**bench.peer.environment, name: value})
    assert program.exit_code() == 2
    (line,) = program.stderr().splitlines()
    assert name in line
    assert bench.peer.keys.client_secret not in line


def test_no_key_is_on_any_command_line(bench: Bench, zmq_client: str) -> None:
    program = bench.launch(zmq_client, "zmq-sub")
    told = subprocess.run(["ps", "-ww", "-o", "args=", "-s", str(program.pid)], capture_output=True, check=True).stdout
    assert bench.peer.keys.client_secret.encode() not in told
