"""What a group's relay must do: let its clients in and nobody else, gather what they say, and remember it."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from hydra.wire import table
from hydra.wire.messages import (
    Ack,
    Batch,
    ChildExit,
    Configure,
    Error,
    Finish,
    Hello,
    Joined,
    Ping,
    Quit,
    Ready,
    Report,
    Sent,
    Start,
    Stop,
)
from tests.conformance.bench import Bench, Window, step_settings
from tests.conformance.group import GroupProgram
from tests.conformance.peer import Arrival, without_seq
from tests.conformance.zmq_ends import Listener, Speaker

DEEP = step_settings(rcvhwm=0)
PLAIN = Configure(epoch=1, settings=DEEP.shared, publishers=[], probe=False, system={"rcvhwm": 0})
PUBLISHER = 100


def stop(bench: Bench, client: int) -> None:
    """The client answers nothing any more."""
    os.kill(bench.peer.process(client).pid, signal.SIGSTOP)


def go_on(bench: Bench, client: int) -> None:
    os.kill(bench.peer.process(client).pid, signal.SIGCONT)


def acked(bench: Bench, command: str, epoch: int = 1) -> list[list[int]]:
    return [ack.ids for ack in bench.peer.said(Ack, epoch=epoch, command=command)]


def started(bench: Bench, ids: list[int], seconds: float = 30.0) -> Window:
    """Subscribers in a window, with no publisher to listen to."""
    bench.peer.tell(ids, PLAIN)
    bench.peer.heard(Ack, ids, epoch=1, command="configure")
    return bench.start(ids, 1, seconds)


FINISH = Finish(epoch=1, publishers=[], drain_max_s=0.2, quiet_s=0.1)


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
    bench.await_gone(program, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line_and_exit_code_2(
    bench: Bench, zmq_client: str, tmp_path: Path
) -> None:
    folder = tmp_path / "missing"
    standard = ["zmq-sub", "--group", "g", "--first-id", "1", "--count", "2"]
    program = GroupProgram(zmq_client, standard, {**bench.peer.environment, "TMPDIR": str(folder)})
    bench.groups.append(program)
    assert bench.await_gone(program, 10) == 2
    (line,) = program.stderr().splitlines()
    assert str(folder) in line
    assert "TMPDIR" in line


def test_a_relay_may_open_as_many_files_as_the_kernel_allows(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub")
    soft, hard = psutil.Process(bench.peer.relay().pid).rlimit(psutil.RLIMIT_NOFILE)
    assert soft == hard


def test_clients_are_told_of_until_a_welcome_names_them(bench: Bench, zmq_client: str) -> None:
    bench.peer.knowing = False
    bench.launch(zmq_client, "zmq-sub", count=3)
    bench.peer.heard(Joined, [1, 2, 3], times=2, timeout_s=4)
    said = bench.peer.said(Joined)
    facts = {fact for j in said for fact in zip(j.ids, j.incarnations, j.pids, strict=True)}
    assert sorted(client for client, _, _ in facts) == [1, 2, 3]
    bench.peer.knowing = True

    def told() -> Counter[int]:
        return Counter(client for joined in bench.peer.said(Joined) for client in joined.ids)

    # Those who came apart from the others are told of apart from them.
    once_more = told() + Counter([1, 2, 3])
    bench.peer.wait(lambda: told() >= once_more, "they are told of again")
    bench.peer.stays(lambda: told() == once_more, "told of after the welcome", 2.5)


def test_who_is_dismissed_before_it_came_ends_with_0(bench: Bench, zmq_client: str) -> None:
    """A run may be over before the last of a group has been forked."""
    bench.peer.welcoming = False
    program = bench.launch(zmq_client, "zmq-sub", count=5, arguments=["--fork-window", "1"], await_hello=False)
    bench.peer.heard(Hello, [1], timeout_s=30)
    bench.peer.tell_relay("g", Quit())
    assert bench.await_gone(program, 10) == 0
    assert not bench.peer.said(Arrival)


def test_a_ping_wakes_no_client(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub")
    bench.configure_subscribers([1], 1, probe=False)
    client = psutil.Process(bench.peer.process(1).pid)
    before = client.num_ctx_switches().voluntary
    for number in range(50):
        bench.peer.tell_relay("g", Ping(time_ns=number, reply=True))
        bench.peer.heard(Ack, [1], command="ping", echo=number)
    # By itself it may wake up once in 5 s.
    assert client.num_ctx_switches().voluntary < before + 20


# --- gathering -------------------------------------------------------------------------------------------------------


def test_answers_of_all_are_one_message(bench: Bench, zmq_client: str) -> None:
    ids = list(range(1, 9))
    bench.launch(zmq_client, "zmq-sub", count=8)
    speaker = Speaker(bench.peer, PUBLISHER)
    bench.configure_subscribers(ids, 1, DEEP, publishers={PUBLISHER: speaker.endpoint})
    speaker.await_subscriptions(8)
    speaker.probe(1)
    bench.peer.heard(Ready, ids, epoch=1)
    for told in (acked(bench, "configure"), [ready.ids for ready in bench.peer.said(Ready, epoch=1)]):
        # As long as the machine keeps nobody waiting that is one; never is anybody told of twice.
        assert len(told) < 8
        assert sorted(client for clients in told for client in clients) == ids


def test_one_that_does_not_answer_holds_nobody_up(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=4)
    stop(bench, 3)
    bench.peer.tell([1, 2, 3, 4], PLAIN)
    bench.peer.heard(Ack, [1, 2, 4], epoch=1, command="configure", timeout_s=1.5)
    assert not bench.peer.said(Ack, 3, epoch=1)
    go_on(bench, 3)
    bench.peer.heard(Ack, [3], epoch=1, command="configure")


def test_the_first_error_is_told_at_once_and_its_like_together(bench: Bench, zmq_client: str) -> None:
    ids = list(range(1, 9))
    bench.launch(zmq_client, "zmq-sub", count=8)
    bench.tell_configure(ids, 1, DEEP, system={"rcvhmw": 5})
    bench.peer.heard(Error, ids, epoch=1)
    errors = bench.peer.said(Error)
    assert len(errors) < 8
    assert len({(e.message, e.fatal) for e in errors}) == 1
    assert sorted(client for e in errors for client in e.ids) == ids


def test_reports_are_one_batch(bench: Bench, zmq_client: str) -> None:
    ids = [1, 2, 3, 4, 5]
    bench.launch(zmq_client, "zmq-sub", count=5)
    started(bench, ids)
    bench.peer.tell(ids, FINISH)
    bench.peer.heard(Report, ids, epoch=1)
    ((head, payload),) = bench.peer.payloads
    assert head.ids == ids
    rows = table.decode(head.ids, head.columns, payload)
    assert rows.ids.tolist() == ids
    assert rows.latency_count.tolist() == [0] * 5


def test_who_reports_later_is_in_a_batch_of_its_own(bench: Bench, zmq_client: str) -> None:
    ids = [1, 2, 3, 4]
    bench.launch(zmq_client, "zmq-sub", count=4)
    started(bench, ids)
    stop(bench, 2)
    bench.peer.tell(ids, FINISH)
    bench.peer.heard(Report, [1, 3, 4], epoch=1, timeout_s=3)
    assert not bench.peer.said(Report, 2)
    go_on(bench, 2)
    bench.peer.heard(Report, [2], epoch=1)
    first = list(bench.peer.payloads)
    assert [head.ids for head, _ in first] == [[1, 3, 4], [2]]
    # Said again, they are the same to the last byte.
    bench.peer.tell(ids, FINISH)
    bench.peer.wait(lambda: len(bench.peer.payloads) == 4, "both of them again")
    again = bench.peer.payloads[2:]
    assert [(without_seq(head), payload) for head, payload in again] == [(without_seq(h), p) for h, p in first]


def test_latencies_of_a_cohort_are_summed_apart(bench: Bench, zmq_client: str) -> None:
    ids = [1, 2, 3]
    bench.launch(zmq_client, "zmq-sub", count=3)
    speaker = Speaker(bench.peer, PUBLISHER)
    for clients, cohort in (([1, 3], False), ([2], True)):
        plain = Configure(
            epoch=1,
            settings=DEEP.shared,
            publishers=[],
            probe=True,
            cohort=cohort,
            system={"rcvhwm": 0},
        )
        bench.tell_configure(clients, 1, DEEP, publishers={PUBLISHER: speaker.endpoint})
        bench.peer.heard(Ack, clients, epoch=1, command="configure")
        bench.peer.tell(clients, plain)
        bench.peer.heard(Ack, clients, epoch=1, command="configure", times=2)
    speaker.await_subscriptions(3)
    speaker.probe(1)
    bench.peer.heard(Ready, ids, epoch=1)
    window = bench.start(ids, 1, 30)
    bench.peer.wait(lambda: window.now_ns() > window.start_ns, "the start of the window")
    speaker.send(1, range(10), time_ns=window.now_ns() - 50_000_000)
    finish = Finish(epoch=1, publishers=[Sent(publisher=PUBLISHER, sent=10)], drain_max_s=5.0)
    bench.peer.tell(ids, finish)
    bench.peer.heard(Report, ids, epoch=1)
    ((head, payload),) = bench.peer.payloads
    rows = table.decode(head.ids, head.columns, payload)
    assert (sum(rows.latency.counts[1::2]), sum(rows.cohort_latency.counts[1::2])) == (20, 10)
    assert rows.latency_count.tolist() == [10, 10, 10]
    assert 50_000 <= rows.cohort_latency.min_us == rows.latency_min_us[1]
    assert (rows.latency_p50_us <= rows.latency_p99_us).all()


# --- said again ------------------------------------------------------------------------------------------------------


def test_a_command_that_was_not_answered_is_said_again_by_the_relay(bench: Bench, zmq_client: str) -> None:
    """Who cannot be configured ignores a start; once it can be, nobody has to tell it again."""
    bench.launch(zmq_client, "zmq-sub")
    bench.tell_configure([1], 1, DEEP, system={"rcvhmw": 5})
    bench.peer.heard(Error, [1], epoch=1)
    window = Window(2**62, 2**62 + 1, 0)
    bench.tell_start([1], 1, window)
    bench.peer.stays(lambda: not bench.peer.said(Ack, command="start"), "an answer of one that is not configured")
    bench.peer.tell([1], PLAIN)
    bench.peer.heard(Ack, [1], epoch=1, command="start", timeout_s=3.5)


def test_a_relay_repeats_answers_without_asking(bench: Bench, zmq_client: str) -> None:
    ids = [1, 2]
    bench.launch(zmq_client, "zmq-sub", count=2)
    window = started(bench, ids)
    start = Start(epoch=1, start_at_ns=window.start_ns, stop_at_ns=window.stop_ns, clock=window.clock)
    end = Stop(epoch=1, stop_at_ns=window.stop_ns)
    bench.peer.tell(ids, end)
    bench.peer.heard(Ack, ids, epoch=1, command="stop")
    bench.peer.tell(ids, FINISH)
    bench.peer.heard(Report, ids, epoch=1)
    for client in ids:
        stop(bench, client)
    for command, answer in ((PLAIN, "configure"), (start, "start"), (end, "stop")):
        bench.peer.tell(ids, command)
        bench.peer.heard(Ack, ids, epoch=1, command=answer, times=2)
    bench.peer.tell([2], FINISH)
    bench.peer.heard(Batch, ids, epoch=1, times=2)
    # It is another stop, which only they can answer.
    bench.peer.tell([1], Stop(epoch=1, stop_at_ns=window.stop_ns - 1))
    bench.peer.stays(lambda: len(bench.peer.said(Ack, 1, command="stop")) == 2, "the answer to another stop")
    for client in ids:
        go_on(bench, client)
    bench.peer.heard(Ack, [1], epoch=1, command="stop", times=3)
    bench.peer.stays(lambda: len(bench.peer.said(Ack, 2, command="stop")) == 2, "an answer that nobody asked for")


def test_a_relay_repeats_a_publishers_answers_without_asking(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-pub")
    settings = step_settings(rate=500.0, sndhwm=0)
    configure = Configure(epoch=1, settings=settings.shared, publishers=[], probe=True, system={"sndhwm": 0})
    bench.peer.tell([1], configure)
    endpoint = bench.peer.heard(Ready, [1], epoch=1).endpoint
    Listener(bench.peer, endpoint).await_probe(1)
    window = bench.start([1], 1, 0.1)
    bench.await_end(window)
    end = Stop(epoch=1, stop_at_ns=window.stop_ns)
    bench.peer.tell([1], end)
    first = bench.peer.heard(Report, [1], epoch=1)
    stop(bench, 1)
    bench.peer.tell([1], configure)
    assert bench.peer.heard(Ready, [1], epoch=1, times=2).endpoint == endpoint
    bench.peer.heard(Ack, [1], epoch=1, command="configure", times=2)
    bench.peer.tell([1], end)
    assert without_seq(bench.peer.heard(Report, [1], epoch=1, times=2)) == without_seq(first)
    assert not bench.peer.said(Ack, command="stop")


def test_a_relay_repeats_errors_without_asking(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=2)
    impossible = Configure(epoch=1, settings=DEEP.shared, publishers=[], probe=False, system={"rcvhmw": 5})
    bench.peer.tell([1, 2], impossible)
    bench.peer.heard(Error, [1, 2], epoch=1)
    stop(bench, 1)
    bench.peer.tell([1], impossible)
    again = bench.peer.heard(Error, [1], epoch=1, times=2)
    assert again.message == bench.peer.said(Error)[0].message
    assert again.ids == [1]


def test_only_those_that_have_not_answered_are_asked_again(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=2)
    stop(bench, 2)
    for times in (1, 2):
        bench.peer.tell([1, 2], PLAIN)
        bench.peer.heard(Ack, [1], epoch=1, command="configure", times=times)
    assert not bench.peer.said(Ack, 2, command="configure")
    go_on(bench, 2)
    bench.peer.heard(Ack, [2], epoch=1, command="configure")


def test_the_next_epoch_makes_a_relay_forget_the_last(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub")
    started(bench, [1])
    bench.peer.tell([1], FINISH)
    bench.peer.heard(Report, [1], epoch=1)
    bench.configure_subscribers([1], 2, DEEP, probe=False)
    for command in (FINISH, PLAIN):
        bench.peer.tell([1], command)
    bench.peer.sync([1])
    assert len(bench.peer.payloads) == 1
    assert len(acked(bench, "configure", 1)) == 1


def test_a_replacement_gets_nothing_of_what_its_predecessor_was_told(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=2)
    stop(bench, 2)
    bench.peer.tell([1, 2], PLAIN)
    bench.peer.heard(Ack, [1], epoch=1, command="configure")
    os.kill(bench.peer.process(2).pid, signal.SIGKILL)
    bench.peer.heard(ChildExit, [2])
    bench.peer.heard(Arrival, [2], incarnation=1)
    # Longer than a command that is not answered waits to be said again.
    bench.peer.stays(lambda: not bench.peer.said(Ack, 2, command="configure"), "an answer to somebody else's", 2.5)
    bench.peer.tell([1, 2], PLAIN)
    bench.peer.heard(Ack, [2], epoch=1, command="configure")


def test_reports_of_those_that_live_do_not_wait_for_the_dead(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub", count=3)
    started(bench, [1, 2, 3])
    stop(bench, 2)
    bench.peer.tell([1, 2, 3], FINISH)
    os.kill(bench.peer.process(2).pid, signal.SIGKILL)
    bench.peer.heard(ChildExit, [2])
    bench.peer.heard(Report, [1, 3], epoch=1)
    bench.peer.heard(Arrival, [2], incarnation=1)
    bench.peer.stays(lambda: not bench.peer.said(Report, 2), "a report of one that was never told")


def test_an_answer_that_comes_late_is_none_to_the_next_command(bench: Bench, zmq_client: str) -> None:
    bench.launch(zmq_client, "zmq-sub")
    stop(bench, 1)
    bench.peer.tell([1], PLAIN)
    bench.peer.tell_anew([1], PLAIN)
    go_on(bench, 1)
    bench.peer.heard(Ack, [1], epoch=1, command="configure")
    bench.peer.stays(lambda: len(acked(bench, "configure")) == 1, "the answer to the first one")
    assert not bench.peer.said(Ack, epoch=0, echo=1)


def test_a_report_stays_in_the_batch_that_it_was_in(bench: Bench, zmq_client: str) -> None:
    """Another finish asks the client itself, whose report is the same: a batch never changes, and no other names it."""
    bench.launch(zmq_client, "zmq-sub", count=3)
    started(bench, [1, 2, 3])
    bench.peer.tell([1, 2, 3], FINISH)
    bench.peer.heard(Report, [1, 2, 3], epoch=1)
    before = len(bench.peer.payloads)
    bench.peer.tell_anew([2], FINISH)
    bench.peer.wait(lambda: len(bench.peer.payloads) > before, "an answer to another finish")
    (head, payload) = bench.peer.payloads[-1]
    assert [(without_seq(h), p) for h, p in bench.peer.payloads if 2 in h.ids] == [(without_seq(head), payload)] * 2
