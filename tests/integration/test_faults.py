"""Faults in the middle of a run and around it: no measured row is lost, and no process, topic or file is left.

What becomes of the row in which single clients fail is tested in ``tests/faults``, of brokers in ``test_brokers.py``.
"""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import psutil
import pytest

from hydra.events.group_events import ClientsConnected
from hydra.events.run_events import WindowOpened
from hydra.kafkatest.broker import LocalBroker
from tests.integration.brokers import FIXED as BROKERS
from tests.integration.brokers import nothing_is_left_of
from tests.integration.command import LIFELINE_S, all_ended, background, events, hydra, measured, steps, table
from tests.suite.waiting import TIME_FACTOR, wait_until

pytestmark = pytest.mark.tier("all")

FIXED = ("zmqfixed", "--rate", 200, "--set", "warmup_s=0", "--set", f"ready_timeout_s={60 * TIME_FACTOR}")
MANY = ("--clients", "2,3,4,5,6,7,8")
"""More rows than are measured: none of a run's rows is the last one before the run is ended."""
BATCHES = ("kafka-batch", "--clients", "2", "--msg-batch", "100,200,300,400,500", "--rate", 200)


def _client(processes: list[psutil.Process]) -> psutil.Process:
    """A client among the processes of its group: the youngest; the parent and the relay come first."""
    return max(processes, key=lambda p: (p.create_time(), p.pid))


@pytest.mark.parametrize(("victim", "status"), [("zmq-pub", "failed"), ("zmq-sub", "ok")])
def test_a_step_of_a_search_in_which_a_client_dies_is_measured_again(run: Path, victim: str, status: str) -> None:
    search = ("--interval", "--set", 'sweep.search.series=["max_rate"]', "--set", "sweep.search.max_doublings=1",
              "--start-rate", 200, "--set", "sweep.search.fresh_steps=0")  # fmt: skip
    arguments = ("zmqrate", "--clients", 3, "--duration", 3, "--set", "warmup_s=0", *search, "--out", run)
    with background(*arguments) as command:
        command.until(lambda: events(run, ClientsConnected), "the clients")
        client = _client(command.clients(victim))
        command.until(lambda: events(run, WindowOpened), "the first step")
        client.kill()
        assert command.wait() == 0
    (row,) = table(run)
    assert (row["status"], row["failed_steps"], row["max_rate_steps"]) == ("ok", "1", "2")
    assert [how for _, how in steps(run)] == [status, "ok", "ok"]
    assert float(row["max_rate_with_drop_pps"]) == pytest.approx(400, rel=0.1)
    assert "; failed and measured again: 1" in (run / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "brokers", "number", "code"),
    [
        ((*FIXED, *MANY), 0, signal.SIGKILL, -9),
        ((*FIXED, *MANY), 0, signal.SIGINT, 130),
        ((*FIXED, *MANY), 0, signal.SIGTERM, 130),
        (BATCHES, 1, signal.SIGKILL, -9),
        ((*BROKERS, *MANY), 2, signal.SIGKILL, -9),
    ],
)
def test_an_ended_controller_leaves_nothing_and_keeps_its_rows(
    run: Path, arguments: tuple[object, ...], brokers: int, number: signal.Signals, code: int
) -> None:
    with background(*arguments, "--duration", 2, "--out", run) as command:
        command.until(lambda: steps(run), "the first row")
        family = command.family()
        assert len(family) >= 4
        assert len(command.named("java")) == brokers
        if (brokers, code) == (0, -9):
            # It lives: no other command continues it.
            assert "another command" in hydra("zmqfixed", "--resume", run, expect=2).stderr
        command.process.send_signal(number)
        assert command.wait() == code
        wait_until(lambda: all_ended(family), "the end of clients and brokers", LIFELINE_S)
        wait_until(lambda: nothing_is_left_of(run), "the brokers' data to go", LIFELINE_S)
        assert "Traceback" not in command.output()
    assert steps(run)[0][1] == "ok"
    if code == 130:
        assert table(run)[0]["status"] == "ok"


def test_a_second_ctrl_c_waits_for_nobody_and_leaves_nothing(run: Path) -> None:
    with background(*FIXED, "--clients", "4", "--duration", 600, "--out", run) as command:
        command.until(lambda: events(run, WindowOpened), "the first step")
        family = command.family()
        # A stopped client does not go by itself: the first Ctrl-C waits for it.
        stopped = _client(command.clients("zmq-sub"))
        stopped.suspend()
        command.process.send_signal(signal.SIGINT)
        wait_until(lambda: any(all_ended([p]) for p in family), "the tear-down to begin")
        assert not all_ended([stopped])
        command.process.send_signal(signal.SIGINT)
        assert command.wait() == 130
        wait_until(lambda: all_ended(family), "the end of every client", LIFELINE_S)


def test_an_unbounded_queue_ends_the_step_before_it_takes_the_memory(run: Path) -> None:
    arguments = ("zmqfixed", "--clients", "30,31", "--rate", "max", "--sndhwm", 0, "--message-size", 2000)
    limit = ("--client", "pyzmq", "--set", "publisher_memory_mb=100.0", "--set", "warmup_s=0.2")
    rows = measured(run, *arguments, *limit, "--duration", 50)  # it ends as soon as the queue is that long
    for row in rows:
        assert "the limit is 100" in row["stopped_early"]
        assert row["rate_held"] in ("", "False")
    # The second step began with an empty queue: nothing of the first one came into it.
    assert rows[1]["duplicates"] == "0"
    assert "stopped before the end of the window" in (run / "table.md").read_text()


def test_a_bootstrap_server_that_goes_away_ends_the_run_with_its_rows_kept(run: Path, own_broker: LocalBroker) -> None:
    bootstrap, pids = own_broker.bootstrap, own_broker.pids
    assert pids is not None
    arguments = ("kafka-fixed", "--clients", "2,3,4", "--rate", 200, "--duration", 3, "--client", "confluent-kafka")
    more = (
        "--set",
        "warmup_s=0",
        "--set",
        f"ready_timeout_s={10 * TIME_FACTOR}",
        "--bootstrap",
        bootstrap,
        "--out",
        run,
    )
    with background(*arguments, *more) as command:
        command.until(lambda: len(steps(run)) == 1, "the first row")
        command.until(lambda: len(events(run, WindowOpened)) == 2, "the second step")
        family = command.family()
        os.kill(pids[1], signal.SIGKILL)
        wait_until(lambda: f"the Kafka broker at {bootstrap} does not answer" in command.output(), "the run to say so")
        assert command.wait() == 1
        assert all_ended(family)
        assert "Traceback" not in command.output()
    assert [row["status"] for row in table(run)] == ["ok", "failed"]


def test_two_runs_side_by_side_do_not_touch_each_other(tmp_path: Path) -> None:
    common = ("zmqfixed", "--rate", 200, "--clients", "3", "--duration", 1, "--set", "warmup_s=0")
    with background(*common, "--out", tmp_path / "a") as one, background(*common, "--out", tmp_path / "b") as two:
        assert (one.wait(), two.wait()) == (0, 0)
    for name in ("a", "b"):
        (row,) = table(tmp_path / name)
        assert (row["status"], float(row["client_loss_pct"])) == ("ok", 0)


def test_maven_missing_is_one_line_where_the_jars_are_not_cached(tmp_path: Path, run: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "java").symlink_to(str(shutil.which("java")))
    done = hydra("kafka-batch", "--out", run, expect=2, PATH=str(tools), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "maven" in done.stderr.lower()
    assert len(done.stderr.strip().splitlines()) == 1
    assert not run.exists()
