"""The steps of a run: each is measured and stored, or stored with the reason why it was not measured.

Also stores the implementations of the run's clients. All results are kept in every case.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pyroaring import BitMap

from hydra.config.shortages import check_row, read_limits
from hydra.control.roster import Roster
from hydra.errors import DoesNotFitError, PlacementError, ReadinessError, RowSkippedError, StepError
from hydra.events.run_events import FramesRejected, StepStored, SystemFact, SystemRestarted
from hydra.measure.latency import MERGED_IN_REPEATS, MergedHistograms, merge_histograms
from hydra.measure.measured_step import MeasuredStep
from hydra.measure.observation import Observation
from hydra.measure.steadiness import received_of, settled
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import EVENT_KINDS, RESTART, USER, Cohort, Histogram, Role, StepPlan
from hydra.monitor.progress_view import ServerStartup
from hydra.monitor.run_snapshot import ClientCounts, WindowProgress
from hydra.monitor.step_progress import ReportedTotals, StepProgress
from hydra.run.context import RunContext
from hydra.run.deployment import Deployment
from hydra.run.own_machine import roles_of, unkept_pin
from hydra.run.step import StepRunner
from hydra.store.database import CLIENTS_KEY, MACHINES_KEY, RunStore
from hydra.sweep.step_workload import loaded
from hydra.system import disturbed, undisturbed
from hydra.wire.arrays import total

_WARMUP_RATE: Final = 1_000.0
"""The most messages/s of a warm-up: enough to use every path, too few to fill a queue."""
_WARM_UPS: Final = 2
"""The most warm-ups of a row: a second one if groups had to be launched again after the first."""


class StepSequence:
    """Measures the steps of a run after its servers and system have started."""

    def __init__(self, run: RunContext, deployment: Deployment, starting: ServerStartup) -> None:
        self._run = run
        self._deployment = deployment
        self._starting = starting
        run.epoch = run.store.last_epoch()
        self._stepper = StepRunner(run, deployment)
        self._begun = self._run.epoch > 0
        self._implementations = Implementations(run.store)
        self._looked = False

    def take(self, plan: StepPlan) -> StepResult:
        """Measures a step and stores it, or stores why it could not be measured.

        Raises:
            PlacementError: not even the first step fits on the cluster. (After a listed point, others may still fit.)
            HydraError: no further step can be measured.
        """
        began = time.monotonic()
        try:
            observation = self._measure(plan)
        except (PlacementError, DoesNotFitError) as e:
            if not self._begun and isinstance(e, PlacementError) and not plan.point:
                raise
            result = StepResult(self._run.epoch, plan, "skipped", reason=self._run.store.redact(str(e)))
            self._run.store.add_step(result)
            self._run.exports.keeper.step_ended(result)
        except RowSkippedError:
            result = self._passed_over(plan)
        except (StepError, ReadinessError) as e:
            self._deployment.confirm()
            reason = self._run.store.redact(str(e))
            result = StepResult(self._run.epoch, plan, "failed", self._timed(StepFigures(), began), reason)
            self._run.store.add_step(result)
            self._run.exports.keeper.step_ended(result)
        else:
            if len(observation.dead) or len(observation.silent):
                self._deployment.confirm()
            measured = time.monotonic()
            histograms = merge_histograms(observation)
            found = self._timed(StepFigures.of_step(MeasuredStep(observation, histograms)), began)
            result = StepResult(self._run.epoch, plan, "ok", found, histograms=self._kept(histograms))
            # With a million clients, computing the figures takes seconds and storing them half a minute.
            self._run.controller.poll(0.0)
            self._run.store.add_step(result, observation, histograms, lambda: self._run.controller.poll(0.0))
            self._run.machines.step_stored()
            self._run.exports.keeper.step_ended(result, histograms.latency)
            self._run.journal.note(StepStored(self._run.epoch, time.monotonic() - measured))
        finally:
            self._run.journal.epoch = None
        self._begun = True
        return result

    def _timed(self, found: StepFigures, began: float) -> StepFigures:
        """The figures of a step with the time that it took, by which the next step may be decided."""
        return replace(found, wall_s=time.monotonic() - began) if self._run.scenario.sweep.decided else found

    def pass_over(self, plan: StepPlan) -> StepResult:
        """Stores, without a measurement, that the user skipped the row of this step."""
        self._run.epoch += 1
        return self._passed_over(plan)

    def _passed_over(self, plan: StepPlan) -> StepResult:
        result = StepResult(self._run.epoch, plan, "skipped", StepFigures(skipped_by=USER), "by hand, with the key s")
        self._run.store.add_step(result)
        self._run.exports.keeper.step_ended(result)
        return result

    def _kept(self, histograms: MergedHistograms) -> dict[str, Histogram]:
        """The histograms from which repeated rows are computed, as the store returns them to a resumed run."""
        repeated = self._run.scenario.sweep.repeat > 1
        return {name: h for name in MERGED_IN_REPEATS if (h := getattr(histograms, name)).counts} if repeated else {}

    def _measure(self, plan: StepPlan) -> Observation:
        self._run.epoch += 1
        if plan.rest_s:
            self._run.controller.wait_until(lambda: self._run.observer.passes_over, plan.rest_s)
        self._require_room(plan)
        if failure := self._run.system.servers.failure():
            self._run.journal.note(SystemRestarted(failure))
            with self._starting.shown():
                self._run.system.servers.revive()
        changed = self._deployment.scale(plan.clients, plan.publishers)
        self._implementations.note(self._run.controller.roster, self._deployment)
        self._look_at_machines()
        # A warm-up of a tool is useless, because its process ends with that step.
        is_tool = self._run.implementation.program == "tool"
        # A row that measures connecting has no connections before it.
        warmup_s = 0.0 if is_tool or plan.settings.connect_rate is not None else self._run.scenario.warmup_s
        for _ in range(_WARM_UPS):
            if not changed or not warmup_s:
                break
            self._warm_up(plan)
            self._warm_up_until_steady(plan)
            # Clients that died in the warm-up are launched again before the step begins.
            changed = self._deployment.scale(plan.clients, plan.publishers)
        try:
            plan = loaded(plan, self._run.scenario)
        except ValueError as e:
            raise StepError(f"its load and its events give no workload: {e}") from e
        for event in self._run.scenario.events:
            plan = replace(plan, settings=disturbed(self._run.spec, plan.settings, event, plan.duration_s))
        # A tool reports no seconds.
        plan = replace(plan, course=plan.course and self._run.implementation.program != "tool")
        observation = self._take_time_series(plan) if plan.course else self._stepper.measure(plan, self._tick)
        events, spec = self._run.scenario.events, self._run.spec
        kept = self._run.store.course(self._run.epoch) if plan.course else None
        self._deployment.evict(BitMap(observation.silent))
        return replace(
            observation,
            received=received_of(*kept[1:]) if kept and not plan.load and not events else (),
            course=kept[2] if kept else (),
            facts=kept[1] if kept else None,
            held_back_s=self._run.delivery(plan.settings).held_back_s,
            # Impairments are those of the cohort, and a burst is part of the load.
            outages=[
                *(
                    (event.at_s, event.at_s + (event.for_s if event.kind == RESTART else 0.0))
                    for event in events
                    if event.kind not in EVENT_KINDS
                ),
                # A disturbance that a setting asks for has no time that is known here.
                *([(0.0, plan.duration_s)] if undisturbed(spec, plan.settings) != plan.settings and not events else []),
            ],
        )

    def _look_at_machines(self) -> None:
        """Stores the record of each host that is new, and checks the pins on all hosts.

        Raises:
            UsageError: the processes on a host do not run on the CPUs of their pin.
        """
        machines, store = self._run.machines, self._run.store
        if machines.look(self._run.controller) or not self._looked:
            self._looked = True
            store.set_meta(MACHINES_KEY, {**store.meta(MACHINES_KEY, {}), **machines.records})
        # Another role may have come to a known host.
        unkept = unkept_pin(roles_of(self._run.resolved), machines.others(self._run.controller))
        if unkept is not None:
            raise unkept

    def _take_time_series(self, plan: StepPlan) -> Observation:
        """Measures a step, and stores its time series during the step."""
        from hydra.run import time_series_recorder  # most steps have none

        publishers, subscribers = self._deployment.publishers, self._deployment.subscribers
        copies = time_series_recorder.copies(self._run.setup(plan, subscribers), subscribers, len(publishers))
        keeper = time_series_recorder.TimeSeriesRecorder(self._run, plan, len(publishers), copies)

        def tick(moment: StepProgress) -> None:
            if moment.doing != "draining":
                keeper.tick(moment)
            self._tick(replace(moment, p99_us=keeper.p99_us))

        observation = self._stepper.measure(plan, tick)
        keeper.end(observation)
        return observation

    def _tick(self, moment: StepProgress) -> None:
        """Shows and exports the progress of the step.

        Raises:
            RowSkippedError: the user skips this row.
        """
        self._run.observer.tick(moment)
        if self._run.observer.passes_over:
            raise RowSkippedError("the user skips this row")
        if self._run.exports.are_read and moment.doing != "draining":  # a drain has no new reports
            self._export(moment)

    def _export(self, moment: StepProgress) -> None:
        present = self._run.controller.roster.present()
        roles: Sequence[tuple[Role, range, ReportedTotals]] = (
            ("publisher", self._deployment.publishers, moment.sent),
            ("subscriber", self._deployment.subscribers, moment.received),
        )
        clients = {
            role: ClientCounts(len(ids), present.range_cardinality(ids.start, ids.stop), reported.clients)
            for role, ids, reported in roles
        }
        sent, received = moment.sent, moment.received
        progress = WindowProgress(
            *(moment.elapsed_s, moment.share),
            sent_pps=sent.mean_pps if sent.clients else None,
            received_pps=received.mean_pps if received.clients else None,
            clients=clients,
            hosts=moment.hosts(),
        )
        self._run.exports.keeper.tick(progress, sent.messages, received.messages)
        for warning in self._run.exports.warnings():
            self._run.journal.note(warning)

    def _require_room(self, plan: StepPlan) -> None:
        """Rejects a step that this host cannot hold, if everything runs on it."""
        deployment = self._deployment
        present = deployment.everyone()
        running = (len(present & BitMap(deployment.publishers)), len(present & BitMap(deployment.subscribers)))
        size = (plan.publishers or self._run.scenario.publishers, plan.clients)
        if not deployment.is_local or (size[0] <= running[0] and size[1] <= running[1]):
            return
        free = read_limits(self._run.store.directory)
        stored = self._run.system.servers.stored_bytes()
        checked = check_row(self._run.resolved, self._run.cluster, free, size, running, stored)
        if not checked.fits:
            raise DoesNotFitError("; ".join(str(s) for s in checked.shortages if s.severe))

    def _warm_up_until_steady(self, plan: StepPlan) -> None:
        """Warms up at the step's own rate until two parts in a row receive alike, or ``warmup_max_s`` is reached."""
        part_s, most_s = self._run.scenario.warmup_s, self._run.scenario.warmup_max_s
        if self._run.scenario.sweep.decided:
            return
        received: list[int] = []
        while (len(received) + 2) * part_s <= most_s and not settled(received):
            received.append(self._warm_up(plan, at_its_rate=True))

    def _warm_up(self, plan: StepPlan, *, at_its_rate: bool = False) -> int:
        """Sends messages that no figure counts through every path of the new deployment; returns how many arrived."""
        rate = min(plan.settings.rate, _WARMUP_RATE) if plan.settings.rate != "max" else _WARMUP_RATE
        settings = replace(undisturbed(self._run.spec, plan.settings), rate=plan.settings.rate if at_its_rate else rate)
        warm_up = replace(plan, settings=settings, duration_s=self._run.scenario.warmup_s, cohort=Cohort())
        try:
            seen = self._stepper.measure(warm_up, lambda _: None)
        except StepError as e:
            raise StepError(f"in the warm-up: {e}") from e
        self._deployment.evict(BitMap(seen.silent))
        self._run.epoch += 1
        self._run.journal.epoch = None
        return total(seen.subscriber_reports.in_window)

    def close(self) -> None:
        """Stores the frames that the controller rejected, and the facts that the system reports at its end."""
        for reason, count in self._run.controller.refused().items():
            self._run.journal.note(FramesRejected(reason, count))
        for name, text in self._run.system.metadata().items():
            self._run.journal.note(SystemFact(name, text))


class Implementations:
    """The implementations and library versions that clients have reported, as stored with the run."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._clients: list[dict[str, object]] = store.meta(CLIENTS_KEY, [])

    def note(self, roster: Roster, deployment: Deployment) -> None:
        """Stores the reports of the connected clients."""
        roles: dict[Role, range] = {"publisher": deployment.publishers, "subscriber": deployment.subscribers}
        for role, clients in roles.items():
            for _, ids in roster.identities(BitMap(clients)):
                hello = roster.hello(ids.min())
                entry: dict[str, object] = {
                    "role": role,
                    "implementation": hello.implementation,
                    "versions": hello.versions,
                }
                if entry not in self._clients:
                    self._clients.append(entry)
        if self._clients != self._store.meta(CLIENTS_KEY):
            self._store.set_meta(CLIENTS_KEY, self._clients)
