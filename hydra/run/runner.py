"""The run of one scenario from start to end, with its exit code.

The phases are: check, place, and wait until clients are ready; for every step of the sweep: configure, start, stop,
drain, collect and store; tear down. In every case all results are kept, and no process or temporary file remains.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.control.controller import Controller
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, HydraError
from hydra.events.event import StoredEvent
from hydra.events.run_events import RunDone, RunFailed
from hydra.events.warnings import SubscribersFailed
from hydra.measure.column import STATUS
from hydra.measure.loss_columns import Loss
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import StepPlan
from hydra.monitor.progress_view import Observer, ServerStartup, servers_of
from hydra.options import interrupts
from hydra.report.run_setup import stored_setup
from hydra.report.tables import RunTables
from hydra.run.context import RunContext
from hydra.run.deployment import Deployment
from hydra.run.step_sequence import StepSequence
from hydra.store.database import ENDED_KEY, ERROR_KEY, FINISHED, INTERRUPTED, SERVERS_KEY, RunStore
from hydra.sweep import RepeatTurn, Row, Sweep
from hydra.sweep.cleanness import answers, is_good, unreported_in
from hydra.sweep.interface import StepPace
from hydra.sweep.step_workload import loaded

_TABLES_APART: Final = 20
"""After a step the tables are written again if writing took at most 1 / this share of the time since then: the time for
the tables of thousands of rows would exceed that of their steps."""


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The result of a run, for display without reading it again.

    Attributes:
        code: the exit code.
        results: the results of its steps.
        tables: its tables, with rows, warnings and what was measured.
    """

    code: int
    results: Sequence[StepResult]
    tables: RunTables

    @classmethod
    def of(cls, resolved: ResolvedScenario, store: RunStore, results: Sequence[StepResult] | None = None) -> RunEnd:
        """The result of a run with its events; ``results`` are those in hand, None: those that are stored."""
        known = store.results() if results is None else results
        return cls(EXIT_GOOD, known, tables_of(resolved, store, known, store.events()))

    def judged(self, observer: Observer) -> RunEnd:
        """The result with the exit code for its rows; shows a warning if subscribers failed by themselves."""
        rows = self.tables.rows
        if failed := [
            (n, row[CLIENTS], text) for n, row in enumerate(rows, 1) if (text := unreported_in(Loss.of_row(row)))
        ]:
            observer.show(SubscribersFailed(failed))
        return replace(self, code=code_of(rows))


def tables_of(
    resolved: ResolvedScenario, store: RunStore, results: Sequence[StepResult], events: Sequence[StoredEvent] = ()
) -> RunTables:
    """The tables of these steps of a run."""
    return RunTables(resolved.scenario, resolved.sweep.rows(results), stored_setup(store, results), results, events)


def conclude(store: RunStore, ended: str, error: str) -> None:
    """Stores how the run ended, and its error."""
    store.set_meta(ENDED_KEY, ended)
    store.set_meta(ERROR_KEY, error)
    if error:
        store.add_event(RunFailed(error))


def code_of(rows: Sequence[Row]) -> int:
    """EXIT_INCOMPLETE if a row could not be measured, a search has no figure, or subscribers failed by themselves.

    A failed step may have been retried: only the final state of its row counts.
    """
    good = all(
        row[STATUS] == "ok" and not Loss.of_row(row).without_report and all(map(is_good, answers(row).values()))
        for row in rows
    )
    return EXIT_GOOD if good else EXIT_INCOMPLETE


def run(context: RunContext, turn: RepeatTurn | None = None) -> RunEnd:
    """Runs a scenario into a run directory, from the first step that is not measured yet.

    Args:
        context: the parts of the run.
        turn: the turn that is measured now; None: the whole sweep.

    Raises:
        HydraError: the run could not continue; all results so far are stored.
        KeyboardInterrupt: an interrupt, or the user pressed the key to end the run; raised after the tear-down.
    """
    interrupts.present().raise_waiting()  # it came when the run before this one was torn down
    began = time.monotonic()
    scenario, sweep = context.scenario, context.resolved.sweep
    store, observer, exports = context.store, context.observer, context.exports
    results = store.results()
    skipped = [result.plan for result in results if result.passed_over]
    ended, error = "failed", ""
    pace = StepPace(scenario, sweep)
    tables_due_s = began
    observer.sweep_begins(sweep.steps(), results, scenario.sweep.varied)
    try:
        with _up(context) as steps:
            while (plan := _coming(sweep, results, turn)) is not None:
                if observer.ends:
                    raise KeyboardInterrupt
                step_began = time.monotonic()
                observer.step_begins(plan, pace.left_s(results, plan))
                sent = plan
                with contextlib.suppress(ValueError):  # a load without a message: the step has its own error
                    sent = loaded(plan, scenario)
                exports.keeper.step_begins(len(results) + 1, sent)
                if plan in skipped:
                    result = steps.pass_over(plan)  # a repeat of a row that the user skipped
                else:
                    result = steps.take(plan)
                    if result.status == "ok":
                        pace.took(plan, time.monotonic() - step_began)
                    elif result.passed_over:
                        skipped.append(plan)
                results.append(result)
                observer.step_ended(result, sweep.progress(results), again=_again(sweep, results, turn))
                if (writes_s := time.monotonic()) >= tables_due_s and sweep.next(results) is not None:
                    tables_of(context.resolved, store, results).write(store.directory)
                    tables_due_s = time.monotonic() + _TABLES_APART * (time.monotonic() - writes_s)
        ended = FINISHED if sweep.next(results) is None else ""
        interrupts.present().raise_waiting()
    except KeyboardInterrupt:
        ended = ended if ended == FINISHED else INTERRUPTED
        raise
    except Exception as e:
        error = store.redact(str(e) if isinstance(e, HydraError) else f"{type(e).__name__}: {e}")
        raise
    finally:
        exports.end(well=ended in (FINISHED, ""))
        # The error that stopped the run must reach the user, although a full disk, for instance, makes this fail, too.
        with contextlib.nullcontext() if ended in (FINISHED, "") else contextlib.suppress(HydraError):
            conclude(store, ended, error)
            # After an interrupt, ``results`` may lack a step that is stored already.
            end = RunEnd.of(context.resolved, store, results if ended in (FINISHED, "") else None)
            end.tables.write(store.directory)
    if turn is None:
        observer.show(RunDone(time.monotonic() - began, str(store.directory)))
    return end.judged(observer)


def _coming(sweep: Sweep, results: Sequence[StepResult], turn: RepeatTurn | None) -> StepPlan | None:
    """The next step; None if there is none, or none of this turn."""
    if turn is not None and sweep.turn(results) != turn:
        return None
    return sweep.next(results)


def _again(sweep: Sweep, results: Sequence[StepResult], turn: RepeatTurn | None) -> bool:
    """Whether the last step failed and is retried; the next repeat of a row has the same plan but is no retry."""
    *earlier, last = results
    if last.status != "failed" or _coming(sweep, results, turn) != last.plan:
        return False
    return sweep.turn(results) == sweep.turn(earlier)


@contextlib.contextmanager
def _up(run: RunContext) -> Iterator[StepSequence]:
    """Starts everything that the steps need, and tears it down in reverse order in every case."""
    engine, system = run.engine, run.system
    with contextlib.ExitStack() as stack:
        name = run.store.directory.name
        stack.push(_release)
        controller = run.controller = Controller(name, host=engine.address)
        stack.callback(controller.close)
        stack.callback(engine.close)

        def warn() -> None:
            for warning in (*system.warnings(), *run.exports.warnings()):
                run.journal.note(warning)

        stack.callback(warn)
        stack.callback(system.close)
        deployment = Deployment(run)
        stack.callback(deployment.close)
        stack.push(partial(_brace, run))
        # The terminal is restored before the tear-down, which a user may interrupt.
        stack.callback(run.observer.close)
        groups, spec = system.servers.groups(), run.resolved.server_groups(is_local=engine.is_local)
        starting = ServerStartup(run.observer, servers_of(run.resolved), controller.wait_until)
        servers = None
        if groups is not None and spec is not None:
            from hydra.run.deployed_servers import DeployedServers  # most systems have no such servers

            servers = DeployedServers(run, *groups, spec, starting)
        with starting.shown():
            system.open(name, run.store.directory, starting.wait, servers)
        warn()
        # A resumed run may have other servers than before.
        known, facts = run.store.meta(SERVERS_KEY, []), system.servers.facts()
        if facts is not None and (its_servers := msgspec.to_builtins(facts)) not in known:
            run.store.set_meta(SERVERS_KEY, [*known, its_servers])
        steps = StepSequence(run, deployment, starting)
        yield steps
        steps.close()


def _brace(run: RunContext, kind: type[BaseException] | None, *_: object) -> bool:
    """Stores before the tear-down that the run was interrupted: a further interrupt may end the process at once."""
    interrupts.present().hold(run.left)
    if kind is not None and issubclass(kind, KeyboardInterrupt):
        with contextlib.suppress(HydraError):  # what is stored stays as it is, and the tear-down has to happen
            run.store.set_meta(ENDED_KEY, INTERRUPTED)
    return False


def _release(kind: type[BaseException] | None, *_: object) -> bool:
    """Ends the tear-down; after an interrupted run only its tables are still written."""
    if kind is None or not issubclass(kind, KeyboardInterrupt):
        interrupts.present().release()
    return False
