"""One scenario from start to end.

Check, place, wait until ready; then for every step the sweep asks for: configure, start, stop, drain, collect, store;
tear down. Whatever happens, everything that was measured is kept, and no process or temporary file is left.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from hydra.control.controller import Controller
from hydra.engine.interface import Engine, GroupEvents
from hydra.errors import HydraError
from hydra.events.journal import Journal
from hydra.events.runs import RunDone
from hydra.model import ClusterSpec, Scenario, StepPlan, StepResult
from hydra.monitor.exports import Exports
from hydra.monitor.progress import Observer
from hydra.monitor.server_startup import Starting, servers_of
from hydra.options.interrupts import leave_at_once_on_the_next
from hydra.report.tables import write
from hydra.run.deployment import Deployment
from hydra.run.outcome import FINISHED, conclude, exit_code
from hydra.run.servers import DeployedServers, required
from hydra.run.step_sequence import Steps
from hydra.store.database import CLIENTS_KEY, RunStore
from hydra.store.system_columns import sweep_of
from hydra.sweep import Repeated, Sweep, Turn
from hydra.sweep.remaining_time import Pace
from hydra.sweep.workload import loaded
from hydra.system import System


def run(
    scenario: Scenario,
    cluster: ClusterSpec,
    engine: Engine,
    system: System,
    store: RunStore,
    observer: Observer,
    turn: Turn | None = None,
    exports: Exports | None = None,
) -> int:
    """Runs a scenario into a run directory, from the first step that is not there yet; returns the exit code.

    Args:
        scenario: what is measured.
        cluster: on which agents.
        engine: where groups are launched.
        system: what clients talk to.
        store: the run directory.
        observer: what is shown meanwhile.
        turn: all that is measured now; None: the whole sweep.
        exports: where its figures are read meanwhile; None: nowhere.

    Raises:
        HydraError: the run could not go on; what was measured until then is stored.
        KeyboardInterrupt: as it came, or because the user wants no further step; after everything was torn down.
    """
    began = time.monotonic()
    sweep = sweep_of(scenario)
    results = store.results()
    ended, error = "failed", ""
    pace = Pace(scenario, sweep)
    exports = exports or Exports()
    observer.sweep_begins(sweep.steps(), results, scenario.sweep.varied)
    try:
        with _up(scenario, cluster, engine, system, store, observer, exports) as steps:
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
            write(store.directory, scenario, sweep.rows(store.results()), store.meta(CLIENTS_KEY, []), store.events())
    if turn is None:
        observer.show(RunDone(time.monotonic() - began, str(store.directory)))
    return exit_code(sweep.rows(results), observer)


def _coming(sweep: Sweep, results: Sequence[StepResult], turn: Turn | None) -> StepPlan | None:
    """The next step; None where there is none, or none of this turn."""
    if turn is not None and isinstance(sweep, Repeated) and sweep.turn(results) != turn:
        return None
    return sweep.next(results)


def _again(sweep: Sweep, results: Sequence[StepResult], turn: Turn | None) -> bool:
    """Whether the last step failed and is tried once more; the next repeat of a row has the same plan and is no try."""
    *earlier, last = results
    if last.status != "failed" or _coming(sweep, results, turn) != last.plan:
        return False
    return not isinstance(sweep, Repeated) or sweep.turn(results) == sweep.turn(earlier)


def _as_sent(plan: StepPlan, scenario: Scenario) -> StepPlan:
    """The plan with its load; without where that sends nothing, of which the step tells."""
    try:
        return loaded(plan, scenario)
    except ValueError:
        return plan


@contextlib.contextmanager
def _up(
    scenario: Scenario,
    cluster: ClusterSpec,
    engine: Engine,
    system: System,
    store: RunStore,
    observer: Observer,
    exports: Exports,
) -> Iterator[Steps]:
    """Everything that the steps need, brought up in order and torn down in the reverse order on every way out."""
    with contextlib.ExitStack() as stack:
        name = store.directory.name
        controller = Controller(name, host=engine.address)
        stack.callback(controller.close)
        stack.callback(engine.close)

        journal = Journal(store.add_event, observer.show)

        def warn() -> None:
            for warning in (*system.warnings(), *exports.warnings()):
                journal.note(warning)

        stack.callback(warn)
        stack.callback(system.close)
        events = GroupEvents(engine)
        deployment = Deployment(
            *(engine, events, controller, system, scenario, cluster, journal.note), look=observer.present
        )
        stack.callback(deployment.close)
        stack.push(_brace)
        # The terminal is as it was before the tear-down begins: whoever is impatient may end that at once.
        stack.callback(observer.close)
        program, joined, spec = system.server(), system.cluster(), required(scenario, is_local=engine.is_local)
        starting = Starting(observer, servers_of(scenario), controller.wait_until)
        servers = None
        if program is not None and joined is not None and spec is not None:
            servers = DeployedServers(
                *(engine, events, controller, program, joined, spec, scenario.ready_timeout_s),
                *(journal.note, starting),
            )
        with starting.shown():
            system.open(name, store.directory, starting.wait, servers)
        warn()
        steps = Steps(scenario, cluster, controller, deployment, system, store, observer, exports, journal, starting)
        yield steps
        steps.close()


def _brace(kind: type[BaseException] | None, *_: object) -> bool:
    """Called before the tear-down: an impatient second Ctrl-C no longer waits for that."""
    if kind is not None and issubclass(kind, KeyboardInterrupt):
        leave_at_once_on_the_next()
    return False
