"""One scenario from start to end.

Check, place, wait until ready; then for every step the sweep asks for: configure, start, stop, drain, collect, store;
tear down. Whatever happens, everything that was measured is kept, and no process or temporary file is left.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hydra.control.controller import Controller
from hydra.errors import EXIT_GOOD, HydraError
from hydra.events.runs import RunDone
from hydra.model import Scenario, StepPlan, StepResult
from hydra.monitor.server_startup import Starting, servers_of
from hydra.options.interrupts import leave_at_once_on_the_next
from hydra.report.tables import write
from hydra.run.context import RunContext
from hydra.run.deployment import Deployment
from hydra.run.outcome import FINISHED, RunEnd, conclude, exit_code
from hydra.run.servers import DeployedServers, required
from hydra.run.step_sequence import Steps
from hydra.store.database import CLIENTS_KEY
from hydra.sweep import Sweep, Turn
from hydra.sweep.remaining_time import Pace
from hydra.sweep.workload import loaded


def run(context: RunContext, turn: Turn | None = None) -> RunEnd:
    """Runs a scenario into a run directory, from the first step that is not there yet.

    Args:
        context: what the run consists of.
        turn: all that is measured now; None: the whole sweep.

    Raises:
        HydraError: the run could not go on; what was measured until then is stored.
        KeyboardInterrupt: as it came, or because the user wants no further step; after everything was torn down.
    """
    began = time.monotonic()
    scenario, sweep = context.scenario, context.resolved.sweep
    store, observer, exports = context.store, context.observer, context.exports
    results = store.results()
    ended, error = "failed", ""
    pace = Pace(scenario, sweep)
    observer.sweep_begins(sweep.steps(), results, scenario.sweep.varied)
    try:
        with _up(context) as steps:
            while (plan := _coming(sweep, results, turn)) is not None:
                if observer.ends:
                    raise KeyboardInterrupt
                step_began = time.monotonic()
                observer.step_begins(plan, pace.left_s(results, plan))
                exports.keeper.step_begins(len(results) + 1, _as_sent(plan, scenario))
                if any(earlier.passed_over and earlier.plan == plan for earlier in results):
                    result = steps.pass_over(plan)  # a repeat of a row that nobody wants
                else:
                    result = steps.take(plan)
                    if result.status == "ok":
                        pace.took(plan, time.monotonic() - step_began)
                results.append(result)
                observer.step_ended(result, again=_again(sweep, results, turn))
                write(store.directory, scenario, sweep.rows(results), store.meta(CLIENTS_KEY, []))
        ended = FINISHED if sweep.next(results) is None else ""
    except KeyboardInterrupt:
        ended = "interrupted"
        raise
    except Exception as e:
        error = store.redact(str(e) if isinstance(e, HydraError) else f"{type(e).__name__}: {e}")
        raise
    finally:
        exports.end(well=ended in ("finished", ""))
        # The error that stopped the run must reach the user: a full disk, for instance, makes this fail as well.
        with contextlib.nullcontext() if ended in (FINISHED, "") else contextlib.suppress(HydraError):
            conclude(store, ended, error)
            # An interrupt may have come between a step's storing and our learning of it: the store knows all.
            end = RunEnd.of(context.resolved, store, EXIT_GOOD)
            write(store.directory, scenario, end.rows, end.clients, end.events)
    if turn is None:
        observer.show(RunDone(time.monotonic() - began, str(store.directory)))
    return replace(end, code=exit_code(end.rows, observer))


def _coming(sweep: Sweep, results: Sequence[StepResult], turn: Turn | None) -> StepPlan | None:
    """The next step; None where there is none, or none of this turn."""
    if turn is not None and sweep.turn(results) != turn:
        return None
    return sweep.next(results)


def _again(sweep: Sweep, results: Sequence[StepResult], turn: Turn | None) -> bool:
    """Whether the last step failed and is tried once more; the next repeat of a row has the same plan and is no try."""
    *earlier, last = results
    if last.status != "failed" or _coming(sweep, results, turn) != last.plan:
        return False
    return sweep.turn(results) == sweep.turn(earlier)


def _as_sent(plan: StepPlan, scenario: Scenario) -> StepPlan:
    """The plan with its load; without where that sends nothing, of which the step tells."""
    try:
        return loaded(plan, scenario)
    except ValueError:
        return plan


@contextlib.contextmanager
def _up(run: RunContext) -> Iterator[Steps]:
    """Everything that the steps need, brought up in order and torn down in the reverse order on every way out."""
    engine, system = run.engine, run.system
    with contextlib.ExitStack() as stack:
        name = run.store.directory.name
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
        stack.push(_brace)
        # The terminal is as it was before the tear-down begins: whoever is impatient may end that at once.
        stack.callback(run.observer.close)
        program, joined, spec = system.server(), system.cluster(), required(run.resolved, is_local=engine.is_local)
        starting = Starting(run.observer, servers_of(run.resolved), controller.wait_until)
        servers = None
        if program is not None and joined is not None and spec is not None:
            servers = DeployedServers(run, program, joined, spec, starting)
        with starting.shown():
            system.open(name, run.store.directory, starting.wait, servers)
        warn()
        steps = Steps(run, deployment, starting)
        yield steps
        steps.close()


def _brace(kind: type[BaseException] | None, *_: object) -> bool:
    """Called before the tear-down: an impatient second Ctrl-C no longer waits for that."""
    if kind is not None and issubclass(kind, KeyboardInterrupt):
        leave_at_once_on_the_next()
    return False
