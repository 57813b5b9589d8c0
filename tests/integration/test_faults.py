"""Faults in the middle of a run: no measured row is lost, and no process, topic or file is left.

What becomes of the row in which single clients fail is told in ``tests/faults``.
"""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from hydra.events.steps import WindowOpened
from tests.integration.command import LIFELINE_S, background, events, gone, hydra, steps, table, wait_until

pytestmark = pytest.mark.processes

FIXED = ("zmqfixed", "--rate", 200, "--set", "warmup_s=0", "--set", "ready_timeout_s=20.0")


def _await_window(run: Path) -> None:
    """Returns in the middle of the first step."""
    wait_until(lambda: events(run, WindowOpened), 60, "the first step")


def _client(processes: list[psutil.Process]) -> psutil.Process:
    """A client among the processes of its group: the youngest; the parent and the relay come first."""
    return max(processes, key=lambda p: (p.create_time(), p.pid))


@pytest.mark.parametrize(("victim", "status"), [("zmq-pub", "failed"), ("zmq-sub", "ok")])
def test_a_step_of_a_search_in_which_a_client_dies_is_measured_again(tmp_path: Path, victim: str, status: str) -> None:
    run = tmp_path / "run"
    search = ("--set", 'sweep.search.series=["max_rate"]', "--set", "sweep.search.max_doublings=1", "--start-rate", 200)
    arguments = ("zmqrate", "--clients", 3, "--step-seconds", 3, "--set", "warmup_s=0", *search, "--out", run)
    with background(*arguments, log=tmp_path / "log") as command:
        _await_window(run)
        _client(command.clients(victim)).kill()
        assert command.wait() == 0
    (row,) = table(run)
    assert (row["status"], row["failed_steps"], row["max_rate_steps"]) == ("ok", "1", "2")
    assert [how for _, how in steps(run)] == [status, "ok", "ok"]
    assert float(row["max_rate_with_drop_pps"]) == pytest.approx(400, rel=0.1)
    assert "; failed and measured again: 1" in (run / "table.md").read_text()


def test_a_killed_controller_leaves_nothing_and_keeps_its_rows(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "2,3,4", "--duration", 2, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: len(steps(run)) >= 1, 30, "the first row")
        family = command.family()
        assert len(family) >= 4
        # It lives: nobody else goes on with it.
        assert "another command" in hydra("zmqfixed", "--resume", run, expect=2).stderr
        command.process.kill()
        wait_until(lambda: gone(family), LIFELINE_S, "the end of every client")
    assert steps(run)[0][1] == "ok"


def test_a_killed_controller_takes_its_broker_along(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ("kafka-batch", "--clients", "2", "--msg-batch", "100,200", "--rate", 200, "--duration", 2)
    with background(*arguments, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: len(steps(run)) >= 1, 60, "the first row")
        family = command.family()
        assert any("java" in p.name() for p in family)
        command.process.kill()
        wait_until(lambda: gone(family), LIFELINE_S, "the end of clients and broker")
        wait_until(lambda: not list(run.glob("broker*/")), LIFELINE_S, "the broker's data to go")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "2,3,4", "--duration", 2, "--out", run, log=tmp_path / "log") as command:
        wait_until(lambda: len(steps(run)) >= 1, 30, "the first row")
        family = command.family()
        command.process.send_signal(number)
        assert command.wait(20) == 130
        wait_until(lambda: gone(family), LIFELINE_S, "the end of every client")
        assert "Traceback" not in command.output()
    assert [row["status"] for row in table(run)][:1] == ["ok"]


def test_a_second_ctrl_c_leaves_at_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with background(*FIXED, "--clients", "4", "--duration", 60, "--out", run, log=tmp_path / "log") as command:
        _await_window(run)
        family = command.family()
        # A stopped client does not go by itself: the first Ctrl-C waits for it.
        _client(command.clients("zmq-sub")).suspend()
        command.process.send_signal(signal.SIGINT)
        wait_until(lambda: len([p for p in family if not gone([p])]) < len(family), 10, "the tear-down to begin")
        command.process.send_signal(signal.SIGINT)
        assert command.wait(3) == 130
        wait_until(lambda: gone(family), LIFELINE_S, "the end of every client")


def test_a_killed_broker_fails_its_step_and_a_new_one_carries_the_row(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = (
        "kafka-batch",
        "--clients",
        "2",
        "--msg-batch",
        "100,200",
        "--rate",
        200,
        "--duration",
        3,
        "--set",
        "warmup_s=0",
    )
    with background(*arguments, "--client", "confluent-kafka", "--out", run, log=tmp_path / "log") as command:
        _await_window(run)
        next(p for p in command.family() if "java" in p.name()).kill()
        assert command.wait() == 0
    first, second = table(run)
    assert "broker" in first["reason"]
    assert [how for _, how in steps(run)] == ["failed", "ok", "ok"]
    for row in (first, second):
        assert (row["status"], float(row["client_loss_pct"])) == ("ok", 0)


def test_an_unbounded_queue_ends_the_step_before_it_takes_the_memory(tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = ("zmqfixed", "--clients", "30,31", "--rate", "max", "--sndhwm", 0, "--message-size", 2000)
    limit = ("--set", "publisher_memory_mb=100.0", "--set", "warmup_s=0.2")
    with background(*arguments, *limit, "--duration", 6, "--out", run, log=tmp_path / "log") as command:
        assert command.wait(90) == 0, command.output()
    rows = table(run)
    for row in rows:
        assert "the limit is 100" in row["stopped_early"]
        assert row["rate_held"] in ("", "False")
    # The second step began with an empty queue: nothing of the first one came into it.
    assert rows[1]["duplicates"] == "0"
    assert "stopped early" in (run / "table.md").read_text()
