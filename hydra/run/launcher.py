"""The start of a run: its engine, its system and its run directory."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Final

import click

from hydra.client.linux_process import raise_open_files, running_on
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.resource_needs import expected_start_s
from hydra.config.shortages import MachineLimits, check_row, read_limits
from hydra.errors import EXIT_INTERRUPTED, HydraError, PlacementError, RefusedKeyError, UsageError
from hydra.events.run_events import (
    EngineWaits,
    ReadAheadLimited,
    RolesPinned,
    RunBegan,
    RunComplete,
    RunResumed,
    RunResumeSummary,
    SlowedByMachine,
)
from hydra.events.value_formatting import duration
from hydra.events.warnings import CleanupFailed, Interrupted
from hydra.measure.column import STATUS
from hydra.model import Agent, ClusterSpec, Scenario, format_cpus
from hydra.monitor.metrics_exports import Exports
from hydra.monitor.progress_view import Observer, servers_of
from hydra.options import interrupts
from hydra.options.engine_choice import SelectedEngine
from hydra.report.tables import name_of
from hydra.run.context import RunContext
from hydra.run.machine_watch import MachineWatch
from hydra.run.own_machine import is_apart, pinned_scenario
from hydra.run.placement_preview import check_placement, unfit_rows, without_unknown
from hydra.run.run_metadata import metadata
from hydra.run.runner import RunEnd, conclude, run
from hydra.store.database import ENDED_KEY, ERROR_KEY, FINISHED, INTERRUPTED, RunStore
from hydra.store.redaction import Redactor
from hydra.store.run_folders import DATABASE, check_folder, locked
from hydra.sweep import RepeatTurn, plan_of
from hydra.sweep.interface import StepPace
from hydra.system import System, programs

_LONG_S: Final = 3600.0
"""A run that is expected to take longer is begun only after a question, on a terminal."""
_KEPT_OR_FAILED: Final = (("ok", "skipped"), ("failed",))
"""The statuses of rows that are kept, and of rows that are measured again."""


def system_for(resolved: ResolvedScenario, *, is_local: bool = True) -> System:
    """The system under test of a scenario, with its groups on this host or on other hosts."""
    return resolved.system.identity.make(
        resolved.scenario, resolved.server_groups(is_local=is_local) is not None, is_local
    )


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The request of a command for a run: its directory, the command line, and the display.

    ``resume`` continues the run in ``out``; ``label`` is shown before its steps in the live view. ``whole`` is the
    folder for ``--resume`` if that is not ``out``: the folder of which the run is a part. ``turn`` is the only part
    that is measured if the run is interleaved with others; None: the whole run. ``exports`` are the open exports of
    metrics. ``agreed``: whether a long run begins without a question. ``note`` is a line that is shown when the run
    has begun. ``others`` are the other scenarios of the command line, whose secrets it may have.
    """

    engine: SelectedEngine
    cluster: ClusterSpec
    out: Path
    command_line: Sequence[str]
    overrides: Mapping[str, object]
    resume: bool = False
    quiet: bool = False
    plain: bool = False
    label: str = ""
    whole: Path | None = None
    turn: RepeatTurn | None = None
    exports: Exports = field(default_factory=Exports)
    agreed: bool = False
    note: str = ""
    others: Sequence[ResolvedScenario] = ()

    def part(self, name: str, label: str) -> RunRequest:
        """The request for a run in a subfolder of ``out``."""
        out = self.out / name
        return replace(self, out=out, resume=(out / DATABASE).is_file(), label=label, whole=self.out, agreed=True)

    def show(self, text: str) -> None:
        """Shows a line, unless only warnings are shown."""
        if not self.quiet:
            click.echo(text, err=True)

    def expected_s(self, resolved: ResolvedScenario, starts: int = 1) -> float:
        """About how many seconds a run takes, with its starts if everything runs on this machine."""
        start_s = expected_start_s(resolved, len(os.sched_getaffinity(0))) if self.engine.spec.is_local else 0.0
        return resolved.sweep.expected_s() + starts * start_s

    def confirm(self, expected_s: float) -> None:
        """Asks on a terminal whether a run that is expected to take more than an hour is to begin.

        Raises:
            click.Abort: the user answers no.
        """
        if self.agreed or self.resume or expected_s <= _LONG_S or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        click.confirm(f"Begin a run of about {duration(expected_s)}?", abort=True, err=True)

    @property
    def run(self) -> str:
        """The name of the run in a cluster, unique although parts of different folders may have the same name."""
        return self.out.name if self.whole is None else f"{self.whole.name}-{self.out.name}"


_LEAST_FILES: Final = 32


def launch(resolved: ResolvedScenario, request: RunRequest) -> RunEnd:
    """Runs a scenario into its run directory.

    Ctrl-C (or SIGTERM) ends the run cleanly and keeps all results; a second one ends it at once.

    Raises:
        HydraError: the run could not begin or continue.
    """
    redactor = Redactor.of_runs([resolved, *request.others], *request.engine.secrets())
    observer = Observer(quiet=request.quiet, plain=request.plain, redact=redactor.text, label=request.label)
    interrupts.present().early = ""
    try:
        with redactor.in_errors():
            return _launch(resolved, request, redactor, observer)
    except KeyboardInterrupt:
        if not (request.out / DATABASE).is_file():
            observer.show(Interrupted())
        raise


def _launch(resolved: ResolvedScenario, request: RunRequest, redactor: Redactor, observer: Observer) -> RunEnd:
    # What else uses the CPU is known from now on.
    machines = MachineWatch()
    request.exports.end(well=False)  # of the last turn, whose readers get no wait if this one fails
    if not request.resume:
        check_folder(request.out)
    raise_open_files()
    require_open_files()
    left: RunResumeSummary | None = None
    with contextlib.ExitStack() as stack:
        if request.resume:
            stack.enter_context(locked(request.out))
            if request.turn is None and (left := resume_summary(resolved, request.out)) is None:
                return _complete(resolved, request, observer, redactor)
        here = _ThisMachine(resolved, request)
        if request.engine.spec.is_local:
            here = _ThisMachine.fitting(resolved, request, machines, stack)
            resolved, request = here.resolved, here.request
        if here.limited is not None:
            observer.show(here.limited)
        system = system_for(resolved, is_local=request.engine.spec.is_local)
        system.check()

        def show_wait(text: str) -> None:
            observer.show(EngineWaits(text))

        opening = request.engine.open(
            request.cluster.agents, request.run, request.out, lambda: programs(system), show_wait
        )
        its_engine = stack.enter_context(opening)
        machine = read_limits(request.out) if its_engine.is_local else None
        if machine is not None:
            _check_payload_files(resolved.scenario)
        agents = its_engine.agents()
        resolved, left_out = without_unknown(resolved, agents)
        with _holders_named(request):
            check_placement(resolved, request.cluster, agents, machine)
        if request.turn is not None and request.resume:
            left_out = None  # the first turn has shown and stored it
        if left_out is not None:
            observer.show(left_out)
        if request.turn is None and left is not None:
            observer.show(left)
        elif request.turn is None:
            _announce(resolved, request, observer, agents, machine)
        measured = (resolved, request.cluster, its_engine, system)
        shown = (observer, request.exports, machines, _on_cluster(request))
        try:
            with _store(resolved, request, redactor) as store:
                if not request.resume:
                    stack.enter_context(locked(request.out))
                for event in filter(None, (left_out, here.limited, here.pinned)):
                    store.add_event(event)
                within = "" if request.whole is None else f"{request.whole.name}/"
                request.exports.begin(within + request.out.name, resolved.system.identity.name)
                end = run(RunContext(*measured, store, *shown), request.turn)
        except KeyboardInterrupt:
            if not (request.out / DATABASE).is_file():
                raise
            end = replace(_concluded(resolved, request, redactor, INTERRUPTED), code=EXIT_INTERRUPTED)
        # The last step of this run may not be the last one of the whole that it is a part of.
        if end.code == EXIT_INTERRUPTED or (observer.ends and request.whole):
            folder = str(request.whole or request.out)
            observer.show(Interrupted(folder, len(end.results), by_key=observer.ends))
            end = replace(end, code=EXIT_INTERRUPTED)
            request.exports.end(well=False)
        return end


@dataclass(frozen=True, slots=True)
class _ThisMachine:
    """A scenario and a request, with what the memory and the CPUs of this machine demand if groups run here.

    Attributes:
        resolved: the scenario.
        request: the request.
        limited: the limit of the read-ahead; None: there is none.
        pinned: the CPUs of each role; None: no role is pinned.
    """

    resolved: ResolvedScenario
    request: RunRequest
    limited: ReadAheadLimited | None = None
    pinned: RolesPinned | None = None

    @classmethod
    def fitting(
        cls, resolved: ResolvedScenario, request: RunRequest, machines: MachineWatch, stack: contextlib.ExitStack
    ) -> _ThisMachine:
        """The scenario as it fits this machine; the command itself is moved to the CPUs of the subscribers."""
        apart = is_apart(resolved)
        resolved, limit = _within_memory(resolved, request)
        resolved, pins = pinned_scenario(resolved, machines.own)
        # The command itself disturbs the subscribers at most, whose threads are the most.
        stack.enter_context(running_on(pins["subscriber"] if apart and "subscriber" in pins else ()))
        pinned = RolesPinned({role: format_cpus(cpus) for role, cpus in pins.items()}) if pins else None
        if limit is None:
            return cls(resolved, request, pinned=pinned)
        # The rest of the run has the same limit, if it is resumed.
        limited = replace(request, overrides={**request.overrides, **limit.override})
        return cls(resolved, limited, limit, pinned)


def _announce(
    resolved: ResolvedScenario,
    request: RunRequest,
    observer: Observer,
    agents: Sequence[Agent],
    machine: MachineLimits | None,
) -> None:
    """Shows what a new run measures and what slows it down, and asks whether a long one is to begin.

    Raises:
        click.Abort: the user answers no.
    """
    began = _began(resolved, request, agents, machine)
    observer.show(began)
    if request.note:
        request.show(request.note)
    if machine is not None:
        shortages = check_row(resolved, request.cluster, machine, resolved.scenario.sizes[-1]).shortages
        if slow := [str(shortage) for shortage in shortages if not shortage.severe]:
            observer.show(SlowedByMachine(slow))
    request.confirm(began.expected_s)


def require_open_files() -> None:
    """Rejects a limit of open files so low that libraries of a run end this process, or report other causes.

    Raises:
        UsageError: the limit is that low.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files < _LEAST_FILES:  # no limit is -1 in the kernel, and cannot be set for open files
        raise UsageError(f"ulimit -n is {files} (open files), and the command itself needs {_LEAST_FILES}", "raise it")


def _within_memory(resolved: ResolvedScenario, request: RunRequest) -> tuple[ResolvedScenario, ReadAheadLimited | None]:
    """The scenario with the limit of the read-ahead that this machine needs, and the limit of a run that begins.

    A resumed run keeps the limit of its first rows.
    """
    if resolved.system.resources.read_ahead(resolved.scenario) is None:
        return resolved, None

    from hydra.config.read_ahead import ahead_limit, kept_limit

    if request.resume:
        with RunStore.open(request.out) as store:
            overrides = store.meta("overrides", {})
        return kept_limit(resolved, overrides), None
    limit = ahead_limit(resolved, request.cluster, read_limits(request.out))
    return (resolved, None) if limit is None else (kept_limit(resolved, limit.override), limit)


@contextlib.contextmanager
def _holders_named(request: RunRequest) -> Iterator[None]:
    """Adds the other runs on the cluster to the remedy of a placement that fails: they may hold the agents."""
    engine = request.engine
    try:
        yield
    except PlacementError as e:
        rows: list[dict[str, object]] = []
        with contextlib.suppress(HydraError):  # the placement's own error is enough
            rows = engine.spec.leftovers.listed(engine.master, engine.settings) if engine.spec.leftovers else []
        if not (runs := sorted({str(row["run"]) for row in rows} - {request.run})):
            raise
        kill = f"hydra kill RUN --master {quote(engine.master)} ends one"
        there = f"the cluster has other runs of Hydra, which may hold it ({', '.join(runs)}): {kill}"
        raise PlacementError(e.what, "; ".join(filter(None, (e.remedy, there)))) from e


def _on_cluster(request: RunRequest) -> list[CleanupFailed]:
    """What a run leaves on a cluster if its process ends at once."""
    master = f"--master {quote(request.engine.master)}"
    if request.engine.spec.leftovers is None:
        return []
    return [CleanupFailed(f"the run {request.run}", master, f"hydra kill {quote(request.run)} {master} removes it")]


def _check_payload_files(scenario: Scenario) -> None:
    """Rejects a file of lines that the publishers on this machine could not read.

    Raises:
        RefusedKeyError: there is such a file.
    """
    if "lines" not in scenario.values_of("payload"):
        return

    from hydra.client.payload import beginning

    key = "settings.payload_file"
    for name in scenario.values_of("payload_file"):
        try:
            beginning(str(name), 1)
        except OSError as e:
            raise RefusedKeyError("", key, str(e), "name a file of lines on this machine") from e


def _began(
    resolved: ResolvedScenario, request: RunRequest, agents: Sequence[Agent], machine: MachineLimits | None
) -> RunBegan:
    """The line about a run before its first step."""
    scenario, sweep, plan = resolved.scenario, resolved.sweep, plan_of(resolved.scenario)
    expected_s = request.expected_s(resolved)
    return RunBegan(
        scenario.name,
        str(request.out),
        scenario.sweep.rows,
        scenario.sweep.counts,
        expected_s,
        sweep.bound_s() if plan.keeps_time else None,
        "" if machine is not None else servers_of(resolved),
        None if plan.sharp_ratio is None else plan.sharp_ratio * expected_s,
        3 * expected_s if plan.in_order and scenario.sweep.rows == 1 else None,
        *(unfit_rows(resolved, request.cluster, agents, machine) or ()),
    )


def resume_summary(resolved: ResolvedScenario, directory: Path) -> RunResumeSummary | None:
    """The kept and the remaining rows of a resumed run; None: nothing remains."""
    with RunStore.open(directory) as store, store.reading():
        results = store.results()
    scenario, sweep = resolved.scenario, resolved.sweep
    again = sweep.offered_again(results)
    names = [[name_of(scenario, row) for row in sweep.rows(results) if row[STATUS] in its] for its in _KEPT_OR_FAILED]
    kept = [result for result in results if result.epoch not in again]
    coming = sweep.next(kept)
    if coming is None:
        return None
    steps, done = sweep.steps(), sum(result.status != "failed" for result in kept)
    to_go = None if steps is None else max(steps - done, 1)
    left_s = StepPace(scenario, sweep).left_s(kept, coming)
    return RunResumeSummary(str(directory), names[0], scenario.sweep.rows, names[1], to_go, left_s)


def _complete(resolved: ResolvedScenario, request: RunRequest, observer: Observer, redactor: Redactor) -> RunEnd:
    """Returns the end of a run that has measured everything, and shows that nothing remains."""
    end = _concluded(resolved, request, redactor, FINISHED)
    observer.show(RunComplete(str(request.out)))
    return end.judged(observer)


def _concluded(resolved: ResolvedScenario, request: RunRequest, redactor: Redactor, ended: str) -> RunEnd:
    """Returns the end of a stored run; stores this end and writes the tables if the run itself did not.

    An interrupt does not replace another end, which came before it.
    """
    with RunStore.open(request.out, writable=True) as store:
        store.redact = redactor.text
        end, before = RunEnd.of(resolved, store), store.meta(ENDED_KEY)
        if before != ended:
            # A full disk, for instance, must not turn an interrupt into a failure.
            with contextlib.nullcontext() if ended == FINISHED else contextlib.suppress(HydraError):
                if ended == FINISHED or not before:
                    conclude(store, ended, "")
                end.tables.write(request.out)
        return end


def _store(resolved: ResolvedScenario, request: RunRequest, redactor: Redactor) -> RunStore:
    if not request.resume:
        facts = metadata(
            request.out.name,
            resolved.as_named,
            request.cluster,
            request.engine.master,
            request.command_line,
            request.overrides,
            redactor,
        )
        store = RunStore.create(request.out, facts, resolved.added)
        store.redact = redactor.text
        return store
    store = RunStore.open(request.out, writable=True)
    store.redact = redactor.text
    if request.turn is None:
        offer_again(resolved, store)
    store.set_meta(ENDED_KEY, "")
    store.set_meta(ERROR_KEY, "")
    return store


def offer_again(resolved: ResolvedScenario, store: RunStore) -> None:
    """Has a resumed run measure every failed row again."""
    results = store.results()
    again = resolved.sweep.offered_again(results)
    store.add_event(RunResumed(len(results), len(again)))
    store.offer_again(again)
