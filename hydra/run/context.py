"""The parts of a run, which every object that carries it out shares."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.control.controller import Controller
from hydra.engine.interface import Engine, GroupEvents
from hydra.events.warnings import CleanupFailed, Journal
from hydra.model import ClusterSpec, Scenario, Settings, StepPlan
from hydra.monitor.metrics_exports import Exports
from hydra.monitor.progress_view import Observer
from hydra.run.machine_watch import MachineWatch
from hydra.store.database import RunStore
from hydra.sweep.step_workload import cohort_ids
from hydra.system import DeliveryRules, Implementation, System, SystemSpec


@dataclass(frozen=True, slots=True)
class StepSetup:
    """A step as it is carried out, with the properties of its system at its settings.

    Attributes:
        plan: the plan of the step.
        cohort: the subscribers of the step's cohort.
        delivery: how its system delivers messages at its settings.
    """

    plan: StepPlan
    cohort: BitMap
    delivery: DeliveryRules

    @property
    def stored(self) -> bool:
        """Whether subscribers read from the log, after everything has been sent."""
        return self.delivery.log is not None and self.delivery.log.read_after


@dataclass(slots=True)
class RunContext:
    """A run, for the one thread that carries it out.

    Attributes:
        resolved: the scenario of the run.
        cluster: the agents of the run.
        engine: the engine that launches groups.
        system: the system under test.
        store: the run directory.
        observer: the display of the run.
        exports: the exports of its metrics during the run.
        machines: looks at the hosts of the run.
        on_cluster: what the run leaves on the cluster if its process ends at once.
        clock_ns: reads CLOCK_MONOTONIC.
        epoch: the number of the present or last step. The epoch rises before each step, and each time a step has to be
            started again.
        controller: the end of the control channel; it exists during the run.
        journal: stores and shows events.
        events: the events of the engine, shared by all objects that launch groups.
    """

    resolved: ResolvedScenario
    cluster: ClusterSpec
    engine: Engine
    system: System
    store: RunStore
    observer: Observer
    exports: Exports = field(default_factory=Exports)
    machines: MachineWatch = field(default_factory=MachineWatch)
    on_cluster: Sequence[CleanupFailed] = ()
    clock_ns: Callable[[], int] = time.monotonic_ns
    epoch: int = 0
    controller: Controller = field(init=False)
    journal: Journal = field(init=False)
    events: GroupEvents = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.store.add_event, self.observer.show)
        self.events = GroupEvents(self.engine)

    @property
    def scenario(self) -> Scenario:
        """The scenario of the run."""
        return self.resolved.scenario

    @property
    def spec(self) -> SystemSpec:
        """The specification of its system."""
        return self.resolved.system

    @property
    def implementation(self) -> Implementation:
        """What its clients are written with."""
        return self.spec.identity.implementations[self.scenario.client]

    def delivery(self, settings: Settings) -> DeliveryRules:
        """How its system delivers messages at these settings."""
        return self.spec.delivery(self.scenario, settings)

    def setup(self, plan: StepPlan, subscribers: range) -> StepSetup:
        """The setup of a step with these subscribers."""
        return StepSetup(plan, cohort_ids(plan.cohort, subscribers), self.delivery(plan.settings))

    def left(self) -> list[str]:
        """A line for each thing that stays if this process ends at once, with what removes it; returns at once."""
        return [self.store.redact(str(warning)) for warning in (*self.system.servers.left(), *self.on_cluster)]

    def now_s(self) -> float:
        """The monotonic clock in seconds."""
        return self.clock_ns() / 1e9


class StepTiming:
    """Measures how long the phases of a step take.

    Attributes:
        took_s: the name and the seconds of each phase, in their order.
    """

    def __init__(self) -> None:
        self.took_s: list[tuple[str, float]] = []
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """Ends a phase, which began at the end of the one before it."""
        now = time.monotonic()
        self.took_s.append((name, now - self._began))
        self._began = now
