"""One step over the control channel: start, window, stop, drain and reports."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from pyroaring import BitMap

from hydra.events.run_events import ClientError, PhasesTimed, WindowOpened
from hydra.measure.message_accounting import is_complete
from hydra.measure.observation import SMOOTH, Observation, with_cpu
from hydra.model import StepPlan
from hydra.monitor.step_progress import StepProgress, Tick, watched
from hydra.run.command_exchange import CommandExchange
from hydra.run.context import RunContext
from hydra.run.deployment import Deployment
from hydra.run.host_sampling import StepHosts
from hydra.run.report_collection import ReportCollector, caught_up, stored_only
from hydra.run.server_counters import ServerCounters
from hydra.run.server_restarts import ServerRestarts
from hydra.run.step_start import StepStarter, StepTiming
from hydra.run.step_window import run_window


class StepRunner:
    """Measures one step after the other on a deployment.

    Arguments:
        run: the run of the steps.
        deployment: the clients.

    Attributes:
        run: the run of the steps.
    """

    def __init__(self, run: RunContext, deployment: Deployment) -> None:
        self.run = run
        self._deployment = deployment
        self._asker = CommandExchange(run, deployment)
        self._beginner = StepStarter(run, deployment, self._asker)

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
                return self._measure(plan, tick, counters)
        finally:
            self.run.system.after_step()

    def _measure(self, plan: StepPlan, tick: Tick, counters: ServerCounters) -> Observation:
        phases = StepTiming()
        deployment = self._deployment
        deployment.begin_step()
        asked, agents = BitMap(deployment.subscribers), deployment.agents()
        step = self.run.setup(plan, deployment.subscribers)
        cohort = step.cohort
        begun = self._beginner.begin(step, phases)
        epoch, answers = self.run.epoch, self.run.controller.roster.answers
        self.run.journal.note(WindowOpened(epoch))

        def now_ns() -> int:
            return begun.clocks.step_ns(self.run.clock_ns())

        # A step with a number of messages may end long before its time limit.
        known_s = plan.duration_s if plan.settings.messages is None else 0.0
        hosts = StepHosts(self.run.controller, epoch, begun.clocks.step_ns, known_s, self.run.system.server_processes)

        machines, controller = self.run.machines, self.run.controller
        machines.begin(controller, self.run.system.server_processes())
        machine_of = machines.of_agents(controller)
        restarts = ServerRestarts(self.run, plan.restarts)
        others = asked - cohort
        each = 0.0 if cohort or step.group else 1.0
        if step.one_publisher:
            each /= len(deployment.publishers)
        each *= plan.settings.chosen_topics / plan.settings.topics

        def sampled(moment: StepProgress) -> None:
            hosts.sample(moment.time_ns)
            machines.sample(controller)
            start_ns = begun.start.start_at_ns
            tick(
                replace(
                    moment,
                    hosts=hosts.lately,
                    watched=lambda: watched(moment, answers.progress, others, start_ns, each, hosts.cpu_pct()),
                )
            )

        try:
            window = run_window(self.run, deployment, self._asker, counters, plan, begun, sampled, restarts)
            restarts.end()
        except BaseException:
            # Otherwise the next step would wait for a server that nothing starts.
            self.run.system.abandon_restart()
            raise
        finally:
            hosts.end()
        machines.end(controller)
        phases.end("lead and window")
        collect = ReportCollector(self.run, deployment, self._asker, step, window, now_ns)
        publishers, grown = collect.publishers(begun.log_begin)
        # A server that was started again counts from 0.
        servers = {} if restarts.down_ns else counters.figures()
        reading_ns: int | None = None
        if step.stored:
            phases.end("publishers' reports")
            if deployment.subscribers:
                reading_ns = self._beginner.read_stored(step, begun, collect.drain_max_s)
            collect.stored(publishers, reading_ns or window[1], tick)
        else:
            collect.subscribers(publishers, tick)
        read_until_ns = min(int(answers.subscriber_reports.table().last_ns.max(initial=window[1])), now_ns())
        begun.clocks.hear_once_more(self.run.controller.wait_until)
        load = hosts.load(self.run.clock_ns())
        activities = machines.activities(controller)
        # Read after these two waits, during which late reports may have arrived.
        reports, reported = answers.subscriber_reports.table(), BitMap(answers.subscriber_reports.ids)
        phases.end("reports")
        self.run.journal.note(PhasesTimed(epoch, tuple(phases.took_s)))
        if not any(report.stopped_early for report in publishers.values()):
            # (A publisher that stopped early begins the next step with a new socket.)
            # A member of a consumer group cannot know that nothing follows; the reports of all members show it.
            nothing_left = step.group != "" and is_complete(reports, publishers)
            self._beginner.ready(begun, caught_up(reports, cohort, nothing_left=nothing_left))
        for client, text in answers.errors.items():
            self.run.journal.note(ClientError(client, text))
        told = {c: p for c, p in answers.progress.items() if c in asked}
        gone = asked - reported
        spec, scenario = self.run.spec, self.run.scenario
        return Observation(
            plan=plan,
            queue=spec.queue,
            batch=spec.batch_of(plan.settings),
            direct=spec.servers is None,
            columns=self.run.resolved.added,
            publishers=set(deployment.publishers),
            subscribers=asked.to_array(),
            publisher_reports=publishers,
            subscriber_reports=reports if reading_ns is None else stored_only(reports),
            group=step.group,
            one_publisher=step.one_publisher,
            log_acknowledges=step.log_acknowledges,
            counted=scenario.client in spec.tools,
            loss_target=scenario.loss_target,
            steady="rate" in scenario.sweep.decided,
            dead=(deployment.died & gone).to_array(),
            deaths={how: (ids & gone).to_array() for how, ids in deployment.deaths.items()},
            silent=(deployment.alive(asked) - reported).to_array(),
            cohort=cohort.to_array(),
            agents=agents,
            pacing=SMOOTH if plan.settings.rate == "max" else scenario.native.pacing,
            window_ns=window,
            last_words={c: p.messages for c, p in told.items() if reading_ns is not None or p.time_ns <= window[1]},
            reading_ns=reading_ns,
            log_growth=grown,
            servers=with_cpu(servers, load.servers),
            clocks=begun.clocks.used(agents, window[0], read_until_ns),
            hosts=load.hosts,
            host_of=load.host_of,
            threads=load.threads,
            machines=activities,
            machine_of=machine_of,
            events=bool(plan.restarts) or spec.undisturbed(plan.settings) != plan.settings,
            connecting=begun.connecting
            and replace(
                begun.connecting,
                # The end of one of several servers does not disconnect every subscriber.
                down_ns=tuple(restarts.down_ns) if self.run.resolved.servers == 1 else (),
                losses_known=scenario.client in spec.shows_disconnections
                and not (spec.connects_to_all and self.run.resolved.servers > 1),
            ),
        )
