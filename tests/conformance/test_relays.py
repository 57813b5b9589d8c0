"""What a group's relay must do: accept its clients and no other process, gather their replies, and keep them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from hydra.wire import messages as wire
from hydra.wire import subscriber_table
from tests.conformance.bench import CLIENT, Bench, Window, step_settings
from tests.conformance.conftest import Share
from tests.conformance.peer import Account, Arrival, without_seq
from tests.conformance.zmq_ends import Listener, Speaker
from tests.conformance.zmq_subscribing import connected, running

DEEP = step_settings(rcvhwm=0, rate=500.0)
PLAIN = wire.Configure(epoch=1, number=1, settings=DEEP.shared, publishers=[], probe=False, system={"rcvhwm": 0})
PUBLISHER = 100
FINISH = wire.Finish(epoch=1, number=4, publishers=[], drain_max_s=0.2, quiet_s=0.1)


@pytest.fixture
def eight(share: Share, zmq_client: str) -> Bench:
    """A group of eight subscribers."""
    return share(zmq_client, "zmq-sub", count=8, first_id=1)


@contextmanager
def stopped(bench: Bench, *clients: int) -> Iterator[None]:
    """These clients answer nothing meanwhile."""
    pids = [bench.peer.process(client).pid for client in clients]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def acked(bench: Bench, command: str, epoch: int = 1) -> list[list[int]]:
    return [ack.ids for ack in bench.peer.messages_of(wire.Ack, epoch=epoch, command=command)]


def obeyed(bench: Bench, ids: list[int], command: wire.Configure | wire.Start | wire.Stop, times: int = 1) -> None:
    """Sends clients a command of epoch 1, and waits until they have acknowledged such a command ``times`` times."""
    bench.peer.send_to(ids, command)
    bench.peer.heard(wire.Ack, ids, epoch=1, command=type(command).__name__.lower(), times=times)


def finished(bench: Bench, ids: list[int], finish: wire.Finish = FINISH) -> None:
    """Sends clients the end of epoch 1, and waits for their reports."""
    bench.peer.send_to(ids, finish)
    bench.peer.heard(Account, ids, epoch=1)


def started(bench: Bench, ids: list[int]) -> Window:
    """Subscribers in a window, with no publisher to listen to."""
    obeyed(bench, ids, PLAIN)
    return bench.start(ids, 1, 30)


# --- who comes in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 100])
def test_nothing_lies_in_the_folder_and_nobody_else_comes_in(
    bench: Bench, zmq_client: str, tmp_path: Path, length: int
) -> None:
    """A folder whose name is too long for the name of a socket is not used at all."""
    folder = tmp_path / ("x" * length)
    folder.mkdir(exist_ok=True)
    bench.launch(zmq_client, "zmq-sub", count=2, env={"TMPDIR": str(folder)})
    assert list(folder.iterdir()) == []
    fds = Path(f"/proc/{bench.peer.relay().pid}/fd").iterdir()
    own = {link[8:-1] for fd in fds if (link := str(fd.readlink())).startswith("socket:[")}
    rows = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    paths = {row[7] for row in rows if len(row) > 7 and row[6] in own}
    assert len(paths) == 1
    assert not Path(paths.pop()).parent.exists()
    bench.configure_subscribers([1, 2], 1, probe=False)


def test_nothing_is_left_of_a_group_that_was_killed(bench: Bench, zmq_client: str, tmp_path: Path) -> None:
    program = bench.launch(zmq_client, "zmq-sub", count=2, env={"TMPDIR": str(tmp_path)})
    os.kill(program.pid, signal.SIGKILL)
    bench.await_exit(program)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_2(
    bench: Bench, zmq_client: str, tmp_path: Path
) -> None:
    folder = tmp_path / "missing"
    standard = ["zmq-sub", "--group", "g", "--first-id", "1", "--count", "2"]
    line = bench.refused(zmq_client, standard, {"TMPDIR": str(folder)})
    assert str(folder) in line
    assert "TMPDIR" in line


def test_a_relay_may_open_as_many_files_as_the_kernel_allows(eight: Bench) -> None:
    soft, hard = psutil.Process(eight.peer.relay().pid).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == hard


@pytest.mark.tier("all")
def test_clients_are_told_of_until_a_welcome_names_them(bench: Bench, zmq_client: str) -> None:
    bench.peer.knowing = False
    bench.launch(zmq_client, "zmq-sub", count=3)
    bench.peer.heard(wire.Joined, [1, 2, 3], times=2)
    text = bench.peer.messages_of(wire.Joined)
    facts = {fact for j in text for fact in zip(j.ids, j.incarnations, j.pids, strict=True)}
    assert sorted(client for client, _, _ in facts) == [1, 2, 3]
    bench.peer.knowing = True

    def told() -> Counter[int]:
        return Counter(client for joined in bench.peer.messages_of(wire.Joined) for client in joined.ids)

    # Clients that joined separately are registered separately.
    once_more = told() + Counter([1, 2, 3])
    bench.peer.wait(lambda: told() >= once_more, "they are told of again")
    bench.peer.stays(lambda: told() == once_more, "told of after the welcome", 1.5)


def test_who_is_dismissed_before_it_came_ends_with_0(bench: Bench, zmq_client: str) -> None:
    """A run may be over before the last of a group has been forked."""
    bench.peer.welcoming = False
    program = bench.launch(zmq_client, "zmq-sub", count=5, arguments=["--fork-window", "1"], await_hello=False)
    bench.peer.heard(wire.Hello, [1])
    bench.peer.send_to_relay("g", wire.Quit())
    assert bench.await_exit(program) == 0
    assert not bench.peer.messages_of(Arrival)


def test_a_ping_wakes_no_client(eight: Bench) -> None:
    eight.configure_subscribers([1], 1, probe=False)
    client = psutil.Process(eight.peer.process(1).pid)
    before = client.num_ctx_switches().voluntary
    for number in range(50):
        eight.peer.send_to_relay("g", wire.Ping(time_ns=number, reply=True))
        eight.peer.heard(wire.Ack, [1], command="ping", echo=number)
    # By itself it may wake up once in 5 s.
    assert client.num_ctx_switches().voluntary < before + 20


# --- gathering -------------------------------------------------------------------------------------------------------


def test_answers_of_all_are_one_message(eight: Bench) -> None:
    ids = list(range(1, 9))
    speaker = Speaker(eight.peer, PUBLISHER)
    connected(eight, 1, speaker, ids=ids, settings=DEEP)
    for reported in (acked(eight, "configure"), [ready.ids for ready in eight.peer.messages_of(wire.Ready, epoch=1)]):
        # It is one message unless the machine is slow; no client is named twice.
        assert len(reported) < 8
        assert sorted(client for clients in reported for client in clients) == ids


def test_one_that_does_not_answer_holds_nobody_up_and_is_asked_again_alone(eight: Bench) -> None:
    with stopped(eight, 3):
        for times in (1, 2):
            eight.peer.send_to([1, 2, 3, 4], PLAIN)
            eight.peer.heard(wire.Ack, [1, 2, 4], epoch=1, command="configure", times=times)
        assert not eight.peer.messages_of(wire.Ack, 3, epoch=1)
    eight.peer.heard(wire.Ack, [3], epoch=1, command="configure")


def test_the_first_error_is_told_at_once_and_its_like_together(eight: Bench) -> None:
    ids = list(range(1, 9))
    eight.send_configure(ids, 1, DEEP, system={"rcvhmw": 5})
    eight.peer.heard(wire.Error, ids, epoch=1)
    errors = eight.peer.messages_of(wire.Error)
    assert len(errors) < 8
    assert len({(e.message, e.fatal) for e in errors}) == 1
    assert sorted(client for e in errors for client in e.ids) == ids


def test_who_reports_later_is_in_a_batch_of_its_own(eight: Bench) -> None:
    ids = [1, 2, 3, 4]
    started(eight, ids)
    with stopped(eight, 2):
        eight.peer.send_to(ids, FINISH)
        eight.peer.heard(Account, [1, 3, 4], epoch=1)
        assert not eight.peer.messages_of(Account, 2)
    eight.peer.heard(Account, [2], epoch=1)
    first = list(eight.peer.payloads)
    assert [head.ids for head, _ in first] == [[1, 3, 4], [2]]
    rows = subscriber_table.decode(first[0][0].ids, first[0][0].columns, first[0][1])
    assert (rows.ids.tolist(), rows.latency_count.tolist()) == ([1, 3, 4], [0, 0, 0])
    # Repeated, they are the same to the last byte.
    eight.peer.send_to(ids, FINISH)
    eight.peer.wait(lambda: len(eight.peer.payloads) == 4, "both of them again")
    again = eight.peer.payloads[2:]
    assert [(without_seq(head), payload) for head, payload in again] == [(without_seq(h), p) for h, p in first]


def test_latencies_of_a_cohort_are_summed_apart(eight: Bench) -> None:
    ids = [1, 2, 3]
    speaker = Speaker(eight.peer, PUBLISHER)
    for clients, cohort in (([1, 3], False), ([2], True)):
        eight.configure_subscribers(clients, 1, DEEP, publishers={PUBLISHER: speaker.endpoint})
        obeyed(eight, clients, msgspec.structs.replace(PLAIN, probe=True, cohort=cohort), times=2)
    speaker.await_subscriptions(3)
    speaker.probe(1)
    eight.peer.heard(wire.Ready, ids, epoch=1)
    window = running(eight, 1, ids=ids)
    speaker.send(1, range(10), time_ns=window.now_ns() - 50_000_000)
    finished(
        eight,
        ids,
        wire.Finish(epoch=1, number=4, publishers=[wire.PublisherTotal(publisher=PUBLISHER, sent=10)], drain_max_s=5.0),
    )
    ((head, payload),) = eight.peer.payloads
    rows = subscriber_table.decode(head.ids, head.columns, payload)
    assert (sum(rows.latency.counts[1::2]), sum(rows.cohort_latency.counts[1::2])) == (20, 10)
    assert rows.latency_count.tolist() == [10, 10, 10]
    assert 50_000 <= rows.cohort_latency.min_us == rows.latency_min_us[1]
    assert (rows.latency_p50_us <= rows.latency_p99_us).all()


# --- repeated ------------------------------------------------------------------------------------------------------


def test_a_command_that_was_not_answered_is_said_again_by_the_relay(eight: Bench) -> None:
    """Who cannot be configured ignores a start; once it can be, no command has to be sent again."""
    eight.send_configure([1], 1, DEEP, system={"rcvhmw": 5})
    eight.hears_why_not(1, 1)
    eight.send_start([1], 1, Window(2**62, 2**62 + 1, 0))
    eight.peer.stays(
        lambda: not eight.peer.messages_of(wire.Ack, command="start"), "an answer of one that is not configured"
    )
    eight.peer.send_to([1], PLAIN)
    eight.peer.heard(wire.Ack, [1], epoch=1, command="start")


def test_a_relay_repeats_answers_without_asking(eight: Bench) -> None:
    ids = [1, 2]
    window = started(eight, ids)
    start = wire.Start(epoch=1, number=2, start_at_ns=window.start_ns, stop_at_ns=window.stop_ns, clock=window.clock)
    end = wire.Stop(epoch=1, number=3, stop_at_ns=window.stop_ns)
    obeyed(eight, ids, end)
    finished(eight, ids)
    with stopped(eight, *ids):
        for command in (PLAIN, start, end):
            obeyed(eight, ids, command, times=2)
        eight.peer.send_to([2], FINISH)
        eight.peer.heard(wire.Batch, ids, epoch=1, times=2)
        # It is another stop, which only they can answer.
        eight.peer.send_to([1], wire.Stop(epoch=1, number=5, stop_at_ns=window.stop_ns - 1))
        eight.peer.stays(
            lambda: len(eight.peer.messages_of(wire.Ack, 1, command="stop")) == 2, "an answer to another stop"
        )
    eight.peer.heard(wire.Ack, [1], epoch=1, command="stop", times=3)
    eight.peer.stays(
        lambda: len(eight.peer.messages_of(wire.Ack, 2, command="stop")) == 2, "an answer that nobody asked for"
    )


def test_a_relay_repeats_a_publishers_answers_without_asking(publisher: Bench) -> None:
    configure = msgspec.structs.replace(PLAIN, probe=True, system={"sndhwm": 0})
    publisher.peer.send_to([CLIENT], configure)
    endpoint = publisher.peer.heard(wire.Ready, [CLIENT], epoch=1).endpoint
    Listener(publisher.peer, endpoint).await_probe(1)
    window, _ = publisher.publish(CLIENT, 1, 0.05)
    end = wire.Stop(epoch=1, number=3, stop_at_ns=window.stop_ns)
    (first,) = publisher.peer.messages_of(wire.Report)
    with stopped(publisher, CLIENT):
        obeyed(publisher, [CLIENT], configure, times=2)
        assert publisher.peer.heard(wire.Ready, [CLIENT], epoch=1, times=2).endpoint == endpoint
        publisher.peer.send_to([CLIENT], end)
        assert without_seq(publisher.peer.heard(wire.Report, [CLIENT], epoch=1, times=2)) == without_seq(first)
    assert not publisher.peer.messages_of(wire.Ack, command="stop")


def test_a_relay_repeats_errors_without_asking(eight: Bench) -> None:
    impossible = msgspec.structs.replace(PLAIN, system={"rcvhmw": 5})
    eight.peer.send_to([1, 2], impossible)
    eight.peer.heard(wire.Error, [1, 2], epoch=1)
    with stopped(eight, 1):
        eight.peer.send_to([1], impossible)
        again = eight.peer.heard(wire.Error, [1], epoch=1, times=2)
    assert again.message == eight.peer.messages_of(wire.Error)[0].message
    assert again.ids == [1]


def test_the_next_epoch_makes_a_relay_forget_the_last(eight: Bench) -> None:
    started(eight, [1])
    finished(eight, [1])
    eight.configure_subscribers([1], 2, DEEP, probe=False)
    eight.peer.send_to([1], FINISH)
    eight.peer.send_to([1], PLAIN)
    eight.peer.sync([1])
    assert len(eight.peer.payloads) == 1
    assert len(acked(eight, "configure", 1)) == 1


@pytest.mark.tier("all")
def test_a_replacement_gets_nothing_of_what_its_predecessor_was_told(eight: Bench) -> None:
    with stopped(eight, 2):
        eight.peer.send_to([1, 2], PLAIN)
        eight.peer.heard(wire.Ack, [1], epoch=1, command="configure")
        os.kill(eight.peer.process(2).pid, signal.SIGKILL)
    eight.peer.heard(wire.ChildExit, [2])
    eight.peer.heard(Arrival, [2], incarnation=1)
    # Longer than a command that is not answered waits to be repeated.
    eight.peer.stays(
        lambda: not eight.peer.messages_of(wire.Ack, 2, command="configure"), "an answer to somebody else's", 2.5
    )
    obeyed(eight, [1, 2], PLAIN)


def test_reports_of_those_that_live_do_not_wait_for_the_dead(eight: Bench) -> None:
    started(eight, [1, 2, 3])
    with stopped(eight, 2):
        eight.peer.send_to([1, 2, 3], FINISH)
        os.kill(eight.peer.process(2).pid, signal.SIGKILL)
    eight.peer.heard(wire.ChildExit, [2])
    eight.peer.heard(Account, [1, 3], epoch=1)
    eight.peer.heard(Arrival, [2], incarnation=1)
    eight.peer.stays(lambda: not eight.peer.messages_of(Account, 2), "a report of one that was never told")


def test_an_answer_that_comes_late_is_none_to_the_next_command(eight: Bench) -> None:
    with stopped(eight, 1):
        eight.peer.send_to([1], PLAIN)
        eight.peer.send_new([1], PLAIN)
        eight.peer.relays_in_sync([1])
    eight.peer.heard(wire.Ack, [1], epoch=1, command="configure")
    eight.peer.stays(lambda: len(acked(eight, "configure")) == 1, "the answer to the first one")
    assert not eight.peer.messages_of(wire.Ack, number=PLAIN.number)


def test_a_report_stays_in_the_batch_that_it_was_in(eight: Bench) -> None:
    """Another finish asks the client itself, whose report is the same: a batch never changes, and no other names it."""
    started(eight, [1, 2, 3])
    finished(eight, [1, 2, 3])
    before = len(eight.peer.payloads)
    eight.peer.send_new([2], FINISH)
    eight.peer.wait(lambda: len(eight.peer.payloads) > before, "an answer to another finish")
    (head, payload) = eight.peer.payloads[-1]
    assert [(without_seq(h), p) for h, p in eight.peer.payloads if 2 in h.ids] == [(without_seq(head), payload)] * 2
