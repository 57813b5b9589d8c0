"""One step over the control channel: begun, its window, stop, drain, collect."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from hydra.control.controller import Controller
from hydra.events.clients import ClientError
from hydra.events.journal import Journal
from hydra.events.steps import PhasesTimed, WindowOpened
from hydra.measure.consumer_group import whole
from hydra.measure.servers import ServerFigures
from hydra.model import AgentClock, HostSample, PublisherReport, StepPlan, ThreadSample
from hydra.monitor.step_progress import Moment, Tick, watched
from hydra.run.command_exchange import Asker
from hydra.run.deployment import Deployment
from hydra.run.hosts import StepHosts
from hydra.run.report_collection import Collector, caught_up, stored_only
from hydra.run.server_counters import ServerCounters
from hydra.run.step_start import Beginner
from hydra.run.step_timing import Phases
from hydra.run.window import run_window
from hydra.sweep.cohort import cohort_ids
from hydra.system import System, SystemSpec
from hydra.wire.subscriber_table import SubscriberTable


@dataclass(frozen=True, slots=True)
class RawStep:
    """What every client reported about a step, before anything is computed.

    ``window_ns`` is the step's start and end on the step's clock; ``silent`` are clients that are alive and did not
    report; ``deaths`` are the dead by the way in which they ended; ``agents`` says where each client was when the step
    began; ``last_words`` are the messages that each subscriber had counted when it last reported progress in the
    window. ``reading_ns`` is when subscribers were told to read what had been stored, None where they read while it was
    sent. ``log_growth`` is by how many messages the servers' log grew, None where they keep none; ``servers`` what they
    counted in the window. ``clocks`` tells of each agent how wrong the step's clock can have been there. ``hosts`` has
    the samples of each host, by its name: the controller's own, or the id of the first agent there; ``host_of`` tells
    that name of each agent, for those that share clocks and network namespace share samples. ``threads`` are the
    busiest ones, by agent.
    """

    publishers: Mapping[int, PublisherReport]
    subscribers: SubscriberTable
    asked: BitMap
    dead: BitMap
    silent: BitMap
    cohort: BitMap
    agents: Mapping[int, str]
    window_ns: tuple[int, int]
    last_words: Mapping[int, int]
    deaths: Mapping[str, BitMap] = field(default_factory=dict)
    reading_ns: int | None = None
    log_growth: int | None = None
    servers: ServerFigures = field(default_factory=dict)
    clocks: Mapping[str, AgentClock] = field(default_factory=dict)
    hosts: Mapping[str, Sequence[HostSample]] = field(default_factory=dict)
    host_of: Mapping[str, str] = field(default_factory=dict)
    threads: Mapping[str, Sequence[ThreadSample]] = field(default_factory=dict)


class Stepper:
    """Measures one step after the other on a deployment.

    Arguments:
        controller: speaks with the clients.
        deployment: which they are.
        system: what they measure.
        spec: what that system is.
        ready_timeout_s: how long they may take to become ready.
        drain_max_s: how long subscribers may drain; None is the step's length + 5 s.
        journal: takes what happens.
        epoch: the number of the last step.
        clock_ns: CLOCK_MONOTONIC.
    """

    def __init__(
        self,
        controller: Controller,
        deployment: Deployment,
        system: System,
        spec: SystemSpec,
        ready_timeout_s: float,
        drain_max_s: float | None,
        journal: Journal,
        *,
        epoch: int = 0,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._journal = journal
        self._clock_ns = clock_ns
        self._controller = controller
        self._deployment = deployment
        self._system = system
        self._spec = spec
        self._drain_max_s = drain_max_s
        self._asker = Asker(controller, deployment, system, clock_ns)
        self._beginner = Beginner(
            *(controller, deployment, system, self._asker, spec, ready_timeout_s, journal),
            epoch=epoch,
            clock_ns=clock_ns,
        )

    @property
    def epoch(self) -> int:
        """The number of the step that is measured, or was last.

        The caller raises it before each step; a step that has to be begun anew raises it further.
        """
        return self._beginner.epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self._beginner.epoch = epoch

    def measure(self, plan: StepPlan, tick: Tick) -> RawStep:
        """Carries out one step, under the number that is then :attr:`epoch`.

        Args:
            plan: what to measure.
            tick: called a few times a second while it goes on.

        Raises:
            StepError: it cannot be measured; the text says why.
        """
        try:
            with contextlib.closing(
                ServerCounters(self._system, self._controller.wait_until, self._clock_ns)
            ) as counters:
                return self._measure(plan, tick, counters)
        finally:
            self._system.after_step()

    def _measure(self, plan: StepPlan, tick: Tick, counters: ServerCounters) -> RawStep:
        phases = Phases()
        deployment = self._deployment
        deployment.begin_step()
        asked, agents = BitMap(deployment.subscribers), deployment.agents()
        cohort = cohort_ids(plan.cohort, deployment.subscribers)
        begun = self._beginner.begin(plan, cohort, phases)
        epoch, answers = self.epoch, self._controller.roster.answers
        self._journal.note(WindowOpened(epoch))

        def now_ns() -> int:
            return begun.clocks.step_ns(self._clock_ns())

        # A step of so many messages ends long before its time is up.
        known_s = plan.duration_s if plan.settings.messages is None else 0.0
        hosts = StepHosts(self._controller, epoch, begun.clocks.step_ns, known_s, self._system.server_processes())

        others = asked - cohort
        each = 0.0 if cohort or self._spec.group(plan.settings) else 1.0
        if self._spec.one_publisher(plan.settings):
            each /= len(deployment.publishers)

        def sampled(moment: Moment) -> None:
            hosts.sample(moment.time_ns)
            start_ns = begun.start.start_at_ns
            tick(
                replace(
                    moment,
                    hosts=hosts.lately,
                    watched=lambda: watched(moment, answers.progress, others, start_ns, each, hosts.cpu_pct()),
                )
            )

        try:
            window = run_window(
                *(self._controller, deployment, self._system, self._asker, counters),
                *(plan, begun.start, sampled, now_ns),
            )
        finally:
            hosts.end()
        phases.end("lead and window")
        collect = Collector(
            *(self._controller, deployment, self._system, self._spec, self._asker, self._drain_max_s),
            *(plan, epoch, window, now_ns),
        )
        publishers, grown = collect.publishers(begun.log_begin)
        servers = counters.figures()
        reading_ns: int | None = None
        if self._spec.stored(plan.settings):
            phases.end("publishers' reports")
            if deployment.subscribers:
                reading_ns = self._beginner.read_stored(plan, begun, collect.drain_max_s)
            collect.stored(publishers, reading_ns or window[1], tick)
        else:
            collect.subscribers(publishers, tick)
        read_until_ns = min(int(answers.subscriber_reports.table().last_ns.max(initial=window[1])), now_ns())
        begun.clocks.hear_once_more(self._controller.wait_until)
        load = hosts.load(self._clock_ns())
        # Only now, for reports that came late came while those two were waited for.
        reports, reported = answers.subscriber_reports.table(), BitMap(answers.subscriber_reports.ids)
        phases.end("reports")
        self._journal.note(PhasesTimed(epoch, tuple(phases.took_s)))
        if not any(report.stopped_early for report in publishers.values()):
            # (A publisher that stopped early begins the next step with a new socket.)
            # A member of a group cannot know that nothing follows; that nothing is missing, all of them together tell.
            members = self._spec.group(plan.settings) != ""
            nothing_left = members and whole(reports, publishers)
            self._beginner.ready(begun, caught_up(reports, cohort, nothing_left=nothing_left))
        for client, text in answers.errors.items():
            self._journal.note(ClientError(client, text))
        told = {c: p for c, p in answers.progress.items() if c in asked}
        gone = asked - reported
        return RawStep(
            publishers=publishers,
            subscribers=reports if reading_ns is None else stored_only(reports),
            asked=asked,
            dead=deployment.died & gone,
            deaths={how: ids & gone for how, ids in deployment.deaths.items()},
            silent=deployment.alive(asked) - reported,
            cohort=cohort,
            agents=agents,
            window_ns=window,
            last_words={c: p.messages for c, p in told.items() if reading_ns is not None or p.time_ns <= window[1]},
            reading_ns=reading_ns,
            log_growth=grown,
            servers=servers,
            clocks=begun.clocks.used(agents, window[0], read_until_ns),
            hosts=load.hosts,
            host_of=load.host_of,
            threads=load.threads,
        )
