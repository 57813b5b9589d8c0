"""Puts a run together: which engine, which system, which folder."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hydra.client.linux_process import raise_open_files
from hydra.config import plugins
from hydra.errors import EXIT_INTERRUPTED
from hydra.events.runs import EngineWaits, Resumed, RunBegan, RunComplete, RunGoesOn
from hydra.events.warnings import Interrupted
from hydra.measure.column_names import STATUS
from hydra.model import ClusterSpec, Scenario
from hydra.monitor.exports import Exports
from hydra.monitor.progress import Observer
from hydra.monitor.server_startup import servers_of
from hydra.options.engine_choice import Chosen
from hydra.report.tables import name_of, write
from hydra.run.metadata import metadata
from hydra.run.outcome import FINISHED, exit_code
from hydra.run.placement_check import check_placement
from hydra.run.runner import run
from hydra.run.servers import required
from hydra.store.database import CLIENTS_KEY, ENDED_KEY, ERROR_KEY, RunStore
from hydra.store.folders import check_folder
from hydra.store.redaction import Redactor
from hydra.store.run_lock import alone_in
from hydra.store.system_columns import added_by, sweep_of
from hydra.sweep import Turn
from hydra.sweep.remaining_time import Pace
from hydra.system import System, programs

_THERE_OR_FAILED: Final = (("ok", "skipped"), ("failed",))
"""Statuses of rows that are there, and of those that are tried again."""


def system_for(scenario: Scenario, *, is_local: bool = True) -> System:
    """The system under test that a scenario names, with its groups on this machine or elsewhere."""
    return plugins.system(scenario.system).make(scenario, required(scenario, is_local=is_local) is not None, is_local)


@dataclass(frozen=True, slots=True)
class Order:
    """What a command asks for: where the run goes, and how it was asked.

    ``resume`` continues the run that is there; ``label`` stands before its steps in the line that moves. ``whole`` is
    what ``--resume`` takes where that is not ``out``: the folder of which the run is a part. ``turn`` is all that is
    measured where the run takes turns with others; None: all of it. ``exports`` is where figures are read meanwhile.
    """

    engine: Chosen
    out: Path
    command_line: Sequence[str]
    overrides: Mapping[str, object]
    resume: bool = False
    quiet: bool = False
    plain: bool = False
    label: str = ""
    whole: Path | None = None
    turn: Turn | None = None
    exports: Exports = field(default_factory=Exports)

    @property
    def run(self) -> str:
        """What a cluster calls the run: parts of different folders may have the same name."""
        return self.out.name if self.whole is None else f"{self.whole.name}-{self.out.name}"


def launch(scenario: Scenario, cluster: ClusterSpec, order: Order) -> tuple[int, RunStore]:
    """Runs a scenario into its run directory; its exit code and what is stored.

    Ctrl-C (or SIGTERM) ends the run cleanly and keeps what was measured; a second one leaves at once.

    Raises:
        HydraError: the run could not begin, or could not go on.
    """
    redactor = Redactor.of_run(scenario, *order.engine.secrets())
    with redactor.in_errors():
        return _launch(scenario, cluster, order, redactor)


def _launch(scenario: Scenario, cluster: ClusterSpec, order: Order, redactor: Redactor) -> tuple[int, RunStore]:
    order.exports.end(well=False)  # of the turn before; nobody waits for its readers should this one not begin
    if not order.resume:
        check_folder(order.out)
    observer = Observer(quiet=order.quiet, plain=order.plain, redact=redactor.text, label=order.label)
    raise_open_files()
    with contextlib.ExitStack() as stack:
        if order.resume:
            stack.enter_context(alone_in(order.out))
            if order.turn is None and (left := left_of(scenario, order.out)) is None:
                return _complete(scenario, order, observer, redactor)
        system = system_for(scenario, is_local=order.engine.spec.is_local)
        system.check()

        def tell(text: str) -> None:
            observer.show(EngineWaits(text))

        opening = order.engine.open(cluster.agents, order.run, order.out, lambda: programs(system), tell)
        its_engine = stack.enter_context(opening)
        check_placement(scenario, cluster, its_engine.agents(), is_local=its_engine.is_local)
        store = _store(scenario, cluster, order, redactor)
        if not order.resume:
            stack.enter_context(alone_in(order.out))
        if order.turn is None:
            sweep = sweep_of(scenario)
            about = (sweep.expected_s(), sweep.bound_s(), servers_of(scenario))
            began = RunBegan(scenario.name, str(order.out), *about)
            observer.show(left if order.resume and left else began)
        within = "" if order.whole is None else f"{order.whole.name}/"
        order.exports.begin(within + order.out.name, scenario.system)
        try:
            code = run(scenario, cluster, its_engine, system, store, observer, order.turn, order.exports)
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        # It may have been the last step of this run, and not the last run of what it is a part of.
        if code == EXIT_INTERRUPTED or (observer.ends and order.whole):
            observer.show(Interrupted(str(order.whole or order.out), by_key=observer.ends))
            code = EXIT_INTERRUPTED
            order.exports.end(well=False)
        return code, store


def left_of(scenario: Scenario, directory: Path) -> RunGoesOn | None:
    """What is there of a run that is resumed, and what is left; None: nothing is."""
    with RunStore.open(directory) as store, store.reading():
        results = store.results()
    sweep = sweep_of(scenario)
    again = sweep.offered_again(results)
    names = [[name_of(scenario, row) for row in sweep.rows(results) if row[STATUS] in its] for its in _THERE_OR_FAILED]
    kept = [result for result in results if result.epoch not in again]
    coming = sweep.next(kept)
    if coming is None:
        return None
    steps, done = sweep.steps(), sum(result.status != "failed" for result in kept)
    to_go = None if steps is None else max(steps - done, 1)
    left_s = Pace(scenario, sweep).left_s(kept, coming)
    return RunGoesOn(str(directory), names[0], scenario.sweep.rows, names[1], to_go, left_s)


def _complete(scenario: Scenario, order: Order, observer: Observer, redactor: Redactor) -> tuple[int, RunStore]:
    """Concludes a run that has everything, should it have ended before it could."""
    store = RunStore.open(order.out, writable=True)
    store.redact = redactor.text
    rows = sweep_of(scenario).rows(store.results())
    if store.meta(ENDED_KEY) != FINISHED:
        store.set_meta(ENDED_KEY, FINISHED)
        store.set_meta(ERROR_KEY, "")
        write(order.out, scenario, rows, store.meta(CLIENTS_KEY, []), store.events())
    observer.show(RunComplete(str(order.out)))
    return exit_code(rows, observer), store


def _store(scenario: Scenario, cluster: ClusterSpec, order: Order, redactor: Redactor) -> RunStore:
    if not order.resume:
        asked = (order.engine.master, order.command_line, order.overrides)
        facts = metadata(order.out.name, scenario, cluster, *asked, redactor)
        store = RunStore.create(order.out, facts, added_by(scenario.system))
        store.redact = redactor.text
        return store
    store = RunStore.open(order.out, writable=True)
    store.redact = redactor.text
    if order.turn is None:
        offer_again(scenario, store)
    store.set_meta(ENDED_KEY, "")
    store.set_meta(ERROR_KEY, "")
    return store


def offer_again(scenario: Scenario, store: RunStore) -> None:
    """Has a run that goes on measure every row that failed once more."""
    results = store.results()
    again = sweep_of(scenario).offered_again(results)
    store.add_event(Resumed(len(results), len(again)))
    store.offer_again(again)
