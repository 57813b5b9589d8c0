"""What a run consists of: every object of the run path takes it, and beside it only what is its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyroaring import BitMap

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.control.controller import Controller
from hydra.engine.interface import Engine, GroupEvents
from hydra.events.warnings import Journal
from hydra.model import ClusterSpec, Scenario, StepPlan
from hydra.monitor.metrics_exports import Exports
from hydra.monitor.progress_view import Observer
from hydra.store.database import RunStore
from hydra.sweep.step_workload import cohort_ids
from hydra.system import System, SystemSpec


@dataclass(frozen=True, slots=True)
class StepSetup:
    """A step as it is carried out, with what its system says of it, asked once.

    Attributes:
        plan: what is measured.
        cohort: subscribers of the step's cohort.
        group, one_publisher, stored, log_acknowledges: of the system at these settings, see
            :class:`hydra.system.SystemSpec`.
    """

    plan: StepPlan
    cohort: BitMap
    group: str
    one_publisher: bool
    stored: bool
    log_acknowledges: bool


@dataclass(slots=True)
class RunContext:
    """A run, for the one thread that carries it out.

    Attributes:
        resolved: what is measured.
        cluster: on which agents.
        engine: where groups are launched.
        system: what clients talk to.
        store: the run directory.
        observer: what is shown meanwhile.
        exports: where its figures are read meanwhile.
        clock_ns: CLOCK_MONOTONIC.
        epoch: the number of the step that is measured, or was last. It is raised before each step; a step that has to
            be begun anew raises it further.
        controller: speaks with the clients; there while the run goes on.
        journal: keeps what happens, and shows it.
        events: what the engine tells, shared by all who launch groups on it.
    """

    resolved: ResolvedScenario
    cluster: ClusterSpec
    engine: Engine
    system: System
    store: RunStore
    observer: Observer
    exports: Exports = field(default_factory=Exports)
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
        """What is measured."""
        return self.resolved.scenario

    @property
    def spec(self) -> SystemSpec:
        """What is known of its system."""
        return self.resolved.system

    def setup(self, plan: StepPlan, subscribers: range) -> StepSetup:
        """A step of these subscribers."""
        spec, settings, cohort = self.spec, plan.settings, cohort_ids(plan.cohort, subscribers)
        return StepSetup(
            plan,
            cohort,
            group=spec.group(settings),
            one_publisher=spec.one_publisher(settings),
            stored=spec.stored(settings),
            log_acknowledges=spec.log_acknowledges(settings),
        )

    def now_s(self) -> float:
        """A clock that never goes back, in seconds."""
        return self.clock_ns() / 1e9
