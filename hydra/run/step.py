"""One step over the control channel: start, window, stop, drain and reports."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from pyroaring import BitMap

from hydra.events.group_events import ClientError
from hydra.events.run_events import PhasesTimed, WindowOpened
from hydra.measure.connections import ConnectFacts
from hydra.measure.loss_pattern import sending_s
from hydra.measure.message_accounting import is_complete
from hydra.measure.observation import SMOOTH, Observation, ServerFigures, with_cpu
from hydra.model import StepPlan
from hydra.monitor.step_progress import TICK_NS, StepProgress, Tick, sending, watched
from hydra.run.command_exchange import CommandExchange
from hydra.run.context import RunContext, StepTiming
from hydra.run.deployment import Deployment
from hydra.run.host_sampling import StepHosts
from hydra.run.report_collection import Publishers, ReportCollector, caught_up, stored_only
from hydra.run.step_servers import ServerCounters, ServerRestarts
from hydra.run.step_start import StartedStep, StepStarter
from hydra.system import batch_of, undisturbed
from hydra.wire.messages import Progress
from hydra.wire.subscriber_table import SubscriberTable


class StepRunner:
    """Measures one step after the other on a deployment.

    Arguments:
        run: the run of the steps.
        deployment: the clients.

    Attributes:
        run, deployment: the arguments.
        asker: sends commands to the clients.
        beginner: begins steps.
    """

    def __init__(self, run: RunContext, deployment: Deployment) -> None:
        self.run, self.deployment = run, deployment
        self.asker = CommandExchange(run, deployment)
        self.beginner = StepStarter(run, deployment, self.asker)

    def measure(self, plan: StepPlan, tick: Tick) -> Observation:
        """Carries out one step, under the present epoch of the run.

        Args:
            plan: the plan of the step.
            tick: called a few times a second during the step.

        Raises:
            StepError: it cannot be measured; the text states why.
        """
        try:
            with contextlib.closing(ServerCounters(self.run)) as counters:
                return _RunningStep(self, plan, counters).measured(tick)
        finally:
            self.run.system.after_step()


class _RunningStep:
    """One step, which begins when this object is made.

    Arguments:
        runner: the runner of the step.
        plan: the plan of the step.
        counters: the counters of the servers.
    """

    def __init__(self, runner: StepRunner, plan: StepPlan, counters: ServerCounters) -> None:
        run, deployment = self._run, self._deployment = runner.run, runner.deployment
        self._asker, self._beginner = runner.asker, runner.beginner
        self._plan, self._counters = plan, counters
        self._phases = StepTiming()
        deployment.begin_step()
        self._subscribers, self._agents = BitMap(deployment.subscribers), deployment.agents()
        self._setup = run.setup(plan, deployment.subscribers)
        self._begun = runner.beginner.begin(self._setup, self._phases)
        run.journal.note(WindowOpened(run.epoch))
        self._restarts = ServerRestarts(run, plan.restarts)
        self._reading_ns: int | None = None

    def _now_ns(self) -> int:
        return self._begun.clocks.step_ns(self._run.clock_ns())

    def measured(self, tick: Tick) -> Observation:
        """Carries the step out; arguments and errors as for :meth:`StepRunner.measure`."""
        run, plan, step_ns = self._run, self._plan, self._begun.clocks.step_ns
        # A step with a number of messages may end long before its time limit.
        known_s = plan.duration_s if plan.settings.messages is None else 0.0
        hosts = StepHosts(run.controller, run.epoch, step_ns, known_s, run.system.servers.processes)
        run.machines.begin(run.controller, run.system.servers.processes())
        machine_of = run.machines.of_agents(run.controller)
        window = self._through_window(hosts, tick)
        run.machines.end(run.controller)
        self._phases.end("lead and window")
        publishers, grown, servers = self._collect(window, tick)
        answers, clocks = run.controller.roster.answers, self._begun.clocks
        read_until_ns = min(int(answers.subscriber_reports.table().last_ns.max(initial=window[1])), self._now_ns())
        clocks.hear_once_more(run.controller.wait_until)
        load, machines = hosts.load(run.clock_ns()), run.machines.activities(run.controller)
        # Read after these two waits, during which late reports may have arrived.
        reports, reported = answers.subscriber_reports.table(), BitMap(answers.subscriber_reports.ids)
        self._phases.end("reports")
        run.journal.note(PhasesTimed(run.epoch, tuple(self._phases.took_s)))
        self._prove_readiness(reports, publishers)
        for client, text in answers.errors.items():
            run.journal.note(ClientError(client, text))
        return replace(
            self._of_clients(window, publishers, reports, reported),
            log_growth=grown,
            servers=with_cpu(servers, load.servers),
            clocks=clocks.used(self._agents, window[0], read_until_ns),
            hosts=load.hosts,
            host_of=load.host_of,
            threads=load.threads,
            machines=machines,
            machine_of=machine_of,
            connecting=self._connecting(),
        )

    def _through_window(self, hosts: StepHosts, tick: Tick) -> tuple[int, int]:
        """Waits for the end of the window while hosts are sampled; returns its begin and end."""
        run, deployment, setup = self._run, self._deployment, self._setup
        answers, start_ns = run.controller.roster.answers, self._begun.start.start_at_ns
        others, settings = self._subscribers - setup.cohort, self._plan.settings
        each = 0.0 if setup.cohort or setup.delivery.group else 1.0
        if setup.delivery.one_publisher:
            each /= len(deployment.publishers)
        each *= settings.chosen_topics / settings.topics

        def sampled(moment: StepProgress) -> None:
            hosts.sample(moment.time_ns)
            run.machines.sample(run.controller)
            tick(
                replace(
                    moment,
                    hosts=hosts.lately,
                    watched=lambda: watched(moment, answers.progress, others, start_ns, each, hosts.cpu_pct()),
                )
            )

        try:
            window = _run_window(
                *(run, deployment, self._asker, self._counters, self._plan, self._begun, sampled, self._restarts)
            )
            self._restarts.end()
        finally:
            hosts.end()
        return window

    def _collect(self, window: tuple[int, int], tick: Tick) -> tuple[Publishers, int | None, ServerFigures]:
        """Collects all reports: those of publishers, the growth of the servers' log, and the servers' figures."""
        setup = self._setup
        collect = ReportCollector(self._run, self._deployment, self._asker, setup, window, self._now_ns)
        publishers, grown = collect.publishers(self._begun.log_begin)
        # A server that was started again counts from 0.
        servers = {} if self._restarts.down_ns else self._counters.figures()
        if not setup.stored:
            collect.subscribers(publishers, tick)
            return publishers, grown, servers
        self._phases.end("publishers' reports")
        if self._deployment.subscribers:
            self._reading_ns = self._beginner.read_stored(setup, self._begun, collect.drain_max_s)
        collect.stored(publishers, self._reading_ns or window[1], tick)
        return publishers, grown, servers

    def _prove_readiness(self, reports: SubscriberTable, publishers: Publishers) -> None:
        """Has every subscriber that more data of this step may reach prove its readiness for the next one."""
        # A publisher that stopped early begins the next step with a new socket.
        if any(report.stopped_early for report in publishers.values()):
            return
        # A member of a consumer group cannot know that nothing follows; the reports of all members show it.
        nothing_left = self._setup.delivery.group != "" and is_complete(reports, publishers)
        self._beginner.ready(self._begun, caught_up(reports, self._setup.cohort, nothing_left=nothing_left))

    def _of_clients(
        self, window: tuple[int, int], publishers: Publishers, reports: SubscriberTable, reported: BitMap
    ) -> Observation:
        """What is known of the step from its clients and its scenario."""
        run, plan, setup, deployment = self._run, self._plan, self._setup, self._deployment
        spec, scenario, subscribers = run.spec, run.scenario, self._subscribers
        unreported = subscribers - reported
        progress = {c: p for c, p in run.controller.roster.answers.progress.items() if c in subscribers}
        stored = self._reading_ns is not None
        return Observation(
            plan=plan,
            queue=setup.delivery.queue,
            batch=batch_of(plan.settings, spec.published.columns),
            direct=spec.servers is None,
            columns=run.resolved.added,
            publishers=set(deployment.publishers),
            subscribers=subscribers.to_array(),
            publisher_reports=publishers,
            subscriber_reports=stored_only(reports) if stored else reports,
            group=setup.delivery.group,
            one_publisher=setup.delivery.one_publisher,
            log_acknowledges=setup.delivery.log_acknowledges,
            counted=run.implementation.program == "tool",
            loss_target=scenario.loss_target,
            steady="rate" in scenario.sweep.decided,
            dead=(deployment.died & unreported).to_array(),
            deaths={how: (ids & unreported).to_array() for how, ids in deployment.deaths.items()},
            silent=(deployment.alive(subscribers) - reported).to_array(),
            cohort=setup.cohort.to_array(),
            agents=self._agents,
            pacing=SMOOTH if plan.settings.rate == "max" else scenario.native.pacing,
            window_ns=window,
            last_words={c: p.messages for c, p in progress.items() if stored or p.time_ns <= window[1]},
            reading_ns=self._reading_ns,
            events=bool(plan.restarts) or undisturbed(spec, plan.settings) != plan.settings,
        )

    def _connecting(self) -> ConnectFacts | None:
        """What is known of how the subscribers connected; None: the step did not measure it."""
        run, facts = self._run, self._begun.connecting
        shows = run.implementation.shows_losses
        return facts and replace(
            facts,
            # The end of one of several servers does not disconnect every subscriber.
            down_ns=tuple(self._restarts.down_ns) if run.resolved.servers == 1 else (),
            losses_known=shows == "always" or (shows == "of one server" and run.resolved.servers <= 1),
        )


def _run_window(
    run: RunContext,
    deployment: Deployment,
    asker: CommandExchange,
    counters: ServerCounters,
    plan: StepPlan,
    begun: StartedStep,
    tick: Tick,
    restarts: ServerRestarts,
) -> tuple[int, int]:
    """Waits for the end of the window; returns its begin and end (ns on the step's clock).

    The window ends early when a publisher reports an error, or when all publishers have sent all messages of the step;
    at a numeric rate not before the time of these messages (n messages span n − 1 intervals, but take n).

    Raises:
        StepError: a publisher died, or the system failed.
    """
    answers = run.controller.roster.answers
    start_ns, stop_ns = begun.start.start_at_ns, begun.start.stop_at_ns
    next_tick_ns = start_ns
    began = False

    def now_ns() -> int:
        return begun.clocks.step_ns(run.clock_ns())

    def over() -> bool:
        nonlocal next_tick_ns, began
        deployment.watch()
        asker.require_publishers()
        asker.check_system()
        at_ns = now_ns()
        if at_ns >= next_tick_ns:
            if not began:
                began = True
                counters.sample()
            next_tick_ns = at_ns + TICK_NS
            restarts.look((at_ns - start_ns) / 1e9, now_ns)
            run.system.during(plan.settings, (at_ns - start_ns) / 1e9, plan.duration_s)
            tick(sending(plan, answers.progress, deployment.publishers, deployment.subscribers, start_ns, at_ns))
        # A publisher that cannot continue reports an error; its messages until then are measured.
        failed = any(p in answers.errors for p in deployment.publishers)
        done_ns = window_end_ns(plan, answers.progress, deployment.publishers, start_ns)
        return at_ns >= stop_ns or failed or (done_ns is not None and at_ns >= done_ns)

    while not over():
        # Waits for the next message or the next tick, without a wait of fixed length.
        done_ns = window_end_ns(plan, answers.progress, deployment.publishers, start_ns)
        run.controller.poll(max(min(next_tick_ns, stop_ns, done_ns or stop_ns) - now_ns(), 0) / 1e9)
    counters.sample()
    done_ns = window_end_ns(plan, answers.progress, deployment.publishers, start_ns)
    end_ns = now_ns() if done_ns is None else max(done_ns, start_ns + 1)
    return start_ns, min(stop_ns, end_ns)


def window_end_ns(plan: StepPlan, progress: Mapping[int, Progress], publishers: range, start_ns: int) -> int | None:
    """The time at which a window may end early; None: not all publishers have sent all messages of the step."""
    done_ns = _all_sent_ns(plan, progress, publishers)
    if done_ns is None or plan.settings.rate == "max":
        return done_ns
    return max(done_ns, start_ns + round(sending_s(plan) * 1e9))


def _all_sent_ns(plan: StepPlan, progress: Mapping[int, Progress], publishers: range) -> int | None:
    """The time at which the last publisher had sent all messages of the step; None: not all publishers have."""
    most = plan.settings.messages
    if most is None or any(p not in progress or progress[p].messages < most for p in publishers):
        return None
    return max(progress[p].time_ns for p in publishers)
