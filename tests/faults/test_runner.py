"""What a run makes of clients that fail: rows healed or tried again, an exit code and a reason for that."""

from __future__ import annotations

import io
import os
import re
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.resource_needs import needs
from hydra.config.shortages import RowCheck, Shortage
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, ClusterError, ServerError
from hydra.events.event import Event, StoredEvent
from hydra.events.group_events import ClientExit, Evicted, GroupExit
from hydra.events.run_events import PhasesTimed, RunFailed, WindowOpened
from hydra.jupyter.markup import warnings_of
from hydra.jupyter.run_data import load
from hydra.local.engine import LocalEngine
from hydra.measure.step_result import StepResult
from hydra.model import Scenario
from hydra.monitor.progress_view import Observer
from hydra.options import interrupts
from hydra.options.interrupts import Interrupts, Left
from hydra.report.run_catalog import catalog
from hydra.run import report_collection
from hydra.run import step_sequence as taking
from hydra.run.context import RunContext
from hydra.run.runner import run
from hydra.store.database import RunStore
from hydra.sweep import Row, for_scenario
from hydra.system import RunServers, Waiting
from tests.faults.faulty import FaultyZmq, cluster, pid, scenario
from tests.integration.command import hydra, steps, table
from tests.jupyter.runs import make
from tests.suite.waiting import TIME_FACTOR

SMALL = {"sweep.clients": [3], "drain_max_s": 0.5, "ready_timeout_s": 20 * TIME_FACTOR}
LATER = pytest.mark.tier("all")


pytestmark = pytest.mark.tier("test")


@pytest.fixture(autouse=True)
def _reports_are_late_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some never come."""
    monkeypatch.setattr(report_collection, "_REPORT_MARGIN_S", 2.0 * TIME_FACTOR)


class _HookedStore(RunStore):
    """Does something to the clients when a certain event is noted."""

    hook: Callable[[Event], object] = staticmethod(lambda _: None)

    def add_event(self, event: Event, epoch: int | None = None) -> None:
        super().add_event(event, epoch)
        self.hook(event)


@dataclass
class Ran:
    """A run that has ended."""

    code: int
    rows: list[Row]
    statuses: list[str]
    events: list[StoredEvent]
    output: str = field(repr=False)


def ran(
    folder: Path,
    its_scenario: Scenario,
    fault: Callable[[Path], object],
    at: type[Event],
    times: int = 1,
    engine: type[LocalEngine] = LocalEngine,
) -> Ran:
    """Runs a scenario; the first ``times`` times that an event of the type ``at`` is noted, the fault is done.

    ``fault`` is given the folder with the pids of every client's processes.
    """
    log, left = folder / "log", times

    def hook(event: Event) -> None:
        nonlocal left
        if isinstance(event, at) and left:
            left -= 1
            fault(log)

    stream, system = io.StringIO(), FaultyZmq(its_scenario, log)
    with _HookedStore.create(folder / "run", {"scenario": its_scenario}) as store:
        store.hook = hook  # type: ignore[attr-defined]
        code = run_on_this_host(folder, its_scenario, system, store, Observer(stream), engine)
        results = store.results()
        events = store.events()
    assert not left
    statuses = [str(r.status) for r in results]
    return Ran(code, for_scenario(its_scenario).rows(results), statuses, events, stream.getvalue())


def run_on_this_host(
    folder: Path,
    its_scenario: Scenario,
    system: FaultyZmq,
    store: RunStore,
    observer: Observer,
    engine: type[LocalEngine] = LocalEngine,
) -> int:
    its_cluster = cluster()
    its_engine = engine(its_cluster.agents, folder / "sandbox")
    context = RunContext(ResolvedScenario.of(its_scenario), its_cluster, its_engine, system, store, observer)
    return run(context).code


class Broken(FaultyZmq):
    """A system that cannot be opened."""

    error: BaseException

    def open(self, *_: Any) -> None:
        raise self.error


def broken_run(
    folder: Path, error: BaseException, system: type[Broken] = Broken, observer: type[Observer] = Observer
) -> Path:
    """The folder of a run that ended with this error when its system was opened."""
    its_scenario, run_folder = scenario(**SMALL), folder / "runs" / "one"
    its_system = system(its_scenario, folder / "log")
    its_system.error = error
    facts = {"scenario": its_scenario, "began": "2026-01-01"}
    with RunStore.create(run_folder, facts) as store, pytest.raises(type(error), match=str(error) or None):
        run_on_this_host(folder, its_scenario, its_system, store, observer(quiet=True))
    return run_folder


class _RemovedEngine(LocalEngine):
    """On a cluster from which another process has removed the run."""

    def confirm(self, wait: Waiting) -> None:
        raise ClusterError("the run was removed", "begin again with --resume")


def hit(client: int, number: signal.Signals) -> Callable[[Path], object]:
    return lambda log: os.kill(pid(log, client), number)


def end_group_of(client: int) -> Callable[[Path], object]:
    def end(log: Path) -> None:
        parent = psutil.Process(pid(log, client)).ppid()
        os.kill(parent, signal.SIGKILL)
        os.waitid(os.P_PID, parent, os.WEXITED | os.WNOWAIT)

    return end


def group_of(log: Path, client: int) -> list[psutil.Process]:
    """The processes of the client's group: the parent, the relay, the clients."""
    parent = psutil.Process(psutil.Process(pid(log, client)).ppid())
    return [parent, *sorted(parent.children(), key=lambda p: (p.create_time(), p.pid))]


def end_relay_of(client: int) -> Callable[[Path], object]:
    return lambda log: group_of(log, client)[1].kill()


def suspend(client: int, which: slice, seconds: float) -> Callable[[Path], object]:
    """Suspends these processes of the client's group for so long."""

    def begin(log: Path) -> None:
        processes = group_of(log, client)[which]
        for process in processes:
            process.suspend()

        def go_on() -> None:
            for process in processes:
                process.resume()

        threading.Timer(seconds, go_on).start()

    return begin


@LATER
@pytest.mark.parametrize(
    ("fault", "at", "reported"),
    [(hit(2, signal.SIGSTOP), WindowOpened, Evicted), (end_group_of(2), PhasesTimed, GroupExit)],
    ids=["silent in the warm-up", "lost after the warm-up"],
)
def test_whoever_is_lost_before_the_step_is_there_again_when_it_begins(
    tmp_path: Path, fault: Callable[[Path], object], at: type[Event], reported: type[Event]
) -> None:
    done = ran(tmp_path, scenario(**SMALL, warmup_s=0.3), fault, at)
    (row,) = done.rows
    assert any(event.kind == reported.kind for event in done.events)
    assert (row["status"], row["failed_clients"], row["client_loss_pct"]) == ("ok", 0, 0)
    assert (done.code, done.statuses) == (EXIT_GOOD, ["ok"])


@pytest.mark.parametrize(
    ("times", "code", "statuses"),
    [(1, EXIT_GOOD, ["failed", "ok"]), pytest.param(2, EXIT_INCOMPLETE, ["failed", "failed"], marks=LATER)],
)
def test_a_failed_row_of_a_grid_is_tried_once_more(tmp_path: Path, times: int, code: int, statuses: list[str]) -> None:
    done = ran(tmp_path, scenario(**SMALL, warmup_s=0.0), hit(0, signal.SIGKILL), WindowOpened, times)
    (row,) = done.rows
    assert (done.code, done.statuses, row["status"]) == (code, statuses, statuses[-1])
    assert "publisher 0 died" in str(row["reason"])


@pytest.mark.parametrize("repeat", [1, 2])
def test_the_next_repeat_of_a_row_is_no_further_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeat: int
) -> None:
    epochs = iter(range(1, 2 * repeat + 1))
    monkeypatch.setattr(
        taking.StepSequence, "take", lambda _, plan: StepResult(next(epochs), plan, "failed", reason="there is no air")
    )
    done = ran(tmp_path, scenario(**SMALL, **{"sweep.repeat": repeat}), lambda _: None, WindowOpened, times=0)
    messages = [line.split(": ") for line in done.output.splitlines() if "FAILED" in line]
    expected = []
    for number in range(1, repeat + 1):
        step = f"step {number} of {repeat}"
        expected += [(step, "FAILED, is measured again"), (f"{step}, try 2", "FAILED")]
    assert [(line[1], line[3]) for line in messages] == expected


@LATER
@pytest.mark.parametrize("client", [0, 2], ids=["publisher", "subscriber"])
def test_a_run_that_was_removed_ends_with_that_and_its_step_is_not_stored(tmp_path: Path, client: int) -> None:
    its_scenario = scenario(**SMALL, warmup_s=0.0)
    with pytest.raises(ClusterError, match="the run was removed"):
        ran(tmp_path, its_scenario, hit(client, signal.SIGKILL), WindowOpened, engine=_RemovedEngine)
    with RunStore.open(tmp_path / "run") as store:
        assert store.results() == []
        assert store.meta("ended") == "failed"


@pytest.mark.parametrize(
    ("fault", "column", "count", "what", "noted"),
    [
        pytest.param(hit(2, signal.SIGKILL), "failed_dead", 1, "1 died", ClientExit, id="killed"),
        *(
            pytest.param(*case, id=name, marks=LATER)
            for name, case in {
                "stopped": (hit(2, signal.SIGSTOP), "failed_silent", 1, "1 never answered", Evicted),
                "its group killed": (end_group_of(2), "failed_dead", 2, "2 died", GroupExit),
                "its relay killed": (end_relay_of(2), "failed_dead", 2, "2 died", GroupExit),
            }.items()
        ),
    ],
)
def test_who_fails_in_a_step_by_itself_counts_there_alone_and_in_the_exit_code(
    tmp_path: Path, fault: Callable[[Path], object], column: str, count: int, what: str, noted: type[Event]
) -> None:
    their_scenario = scenario(**{**SMALL, "sweep.clients": [6, 7]}, warmup_s=0.0)
    done = ran(tmp_path, their_scenario, fault, WindowOpened)
    first, second = done.rows
    assert (first["status"], first["failed_clients"], first[column]) == ("ok", count, count)
    assert 0 < float(str(first["client_loss_pct"])) <= 100 * count / 6 + 0.01
    assert (second["status"], second["failed_clients"], second["client_loss_pct"]) == ("ok", 0, 0)
    assert any((event.kind, event.epoch) == (noted.kind, 1) for event in done.events)
    assert done.code == EXIT_INCOMPLETE
    (line,) = (line for line in done.output.splitlines() if "by themselves" in line)
    assert line.startswith("warning: ")
    # How they died follows in brackets.
    assert re.search(rf": row 1 \(6 subscribers\): {what}( \(.+\))?$", line)


@LATER
@pytest.mark.parametrize(
    ("which", "seconds"), [(slice(1, 2), 5.0), (slice(None), 3.0)], ids=["its relay cut off", "all of it suspended"]
)
def test_a_group_that_is_away_for_a_while_in_a_window_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path, which: slice, seconds: float
) -> None:
    its_scenario = scenario(**{**SMALL, "sweep.clients": [6], "sweep.duration_s": seconds + 1}, warmup_s=0.0)
    done = ran(tmp_path, its_scenario, suspend(2, which, seconds), WindowOpened)
    (row,) = done.rows
    exact = ("failed_clients", "client_loss_pct", "lost", "unknown", "duplicates", "extra")
    assert {name: row[name] for name in exact} == dict.fromkeys(exact, 0)
    assert (done.code, done.statuses) == (EXIT_GOOD, ["ok"])


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ServerError("the broker went away", "start it again"), "the broker went away; start it again"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_a_run_that_could_not_go_on_keeps_why(tmp_path: Path, error: Exception, why: str) -> None:
    folder = broken_run(tmp_path, error)
    recorded = load(folder)
    assert [event.text for event in recorded.events if event.kind == RunFailed.kind] == [why]
    (first, *_) = warnings_of(recorded)
    assert f"the run could not continue: {why}" in first.text
    (entry,) = catalog(tmp_path / "runs")
    assert (entry["ended"], entry["why"]) == ("failed", why)


def test_a_tear_down_is_held_only_when_the_terminal_is_as_before_and_the_interrupt_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    class Interrupted(Broken):
        def close(self) -> None:
            happened.append("torn down")
            super().close()

    class Seen(Observer):
        def close(self) -> None:
            happened.append("terminal")
            super().close()

    class Held(Interrupts):
        def hold(self, left: Left) -> None:
            happened.append("held")
            super().hold(left)

    held = Held()
    monkeypatch.setattr(interrupts, "present", lambda: held)
    broken_run(tmp_path, KeyboardInterrupt(), Interrupted, Seen)
    assert happened == ["terminal", "held", "torn down"]
    (entry,) = catalog(tmp_path / "runs")
    assert entry["ended"] == "interrupted"


def test_a_full_disk_does_not_hide_that_it_was_what_stopped_the_run(tmp_path: Path) -> None:
    class NoRoom(Broken):
        def open(self, *_: Any) -> None:
            (tmp_path / "runs" / "one" / ".table.md.new").mkdir()  # nothing can be written there
            super().open()

    with RunStore.open(broken_run(tmp_path, ServerError("no space left"), NoRoom)) as store:
        assert store.meta("ended") == "failed"


@LATER
def test_resume_tries_the_failed_rows_again(tmp_path: Path) -> None:
    overrides = {"sweep.clients": [2, 3], "sweep.duration_s": 0.3, "settings.rate": 100.0}
    folder = make(
        tmp_path / "run", scenario(**overrides), lambda plan: ("failed", "once") if plan.clients == 2 else ("ok", "")
    )
    with RunStore.open(folder, writable=True) as store:
        store.set_meta("overrides", overrides)
    assert [status for _, status in steps(folder)] == ["failed", "failed", "ok"]
    hydra("zmqfixed", "--resume", folder)
    assert [(row["clients"], row["status"]) for row in table(folder)] == [("2", "ok"), ("3", "ok")]
    # What failed is still stored, and nothing twice.
    assert [status for _, status in steps(folder)] == ["failed", "failed", "ok", "ok"]
    with closing(sqlite3.connect(folder / "run.db")) as db:
        assert db.execute("SELECT count(*) FROM clients WHERE epoch > 3").fetchone() == (3,)


def test_a_row_is_checked_with_what_the_brokers_keep_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    its_scenario = scenario(**SMALL)
    lacking = RowCheck(
        1, 3, needs(ResolvedScenario.of(its_scenario), 3, 2, 8), [Shortage("disk", "0 GB", "1 GB", "make room")]
    )
    stored: list[int] = []

    def check(*arguments: Any) -> RowCheck:
        stored.append(arguments[-1])
        return lacking

    monkeypatch.setattr(RunServers, "stored_bytes", lambda _: 4096)
    monkeypatch.setattr(taking, "check_row", check)
    done = ran(tmp_path, its_scenario, lambda _: None, WindowOpened, times=0)
    assert (stored, done.statuses) == ([4096], ["skipped"])
