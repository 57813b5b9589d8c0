"""The start of a step: all clients are configured, prove that they are ready, and learn the window."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec
from pyroaring import BitMap

from hydra.errors import StepError
from hydra.events.run_events import StartUnacknowledged
from hydra.events.value_formatting import counted, id_ranges
from hydra.measure.connections import ConnectFacts
from hydra.model import RESTART, Settings, SharedSettings, StepPlan, shared_of
from hydra.run.client_sets import subscription_map, turns
from hydra.run.command_exchange import ANSWER_WITHIN_S, CommandExchange, Shares
from hydra.run.context import RunContext, StepSetup, StepTiming
from hydra.run.deployment import Deployment
from hydra.run.step_clocks import ServerUsage, StepClocks, connect_command, known, lead_ns, longest_wait_s, unknown
from hydra.run.step_servers import settled
from hydra.system import batch_of
from hydra.wire.clock import wall_offset_ns
from hydra.wire.data_message import compression
from hydra.wire.messages import (
    ONE_TOPIC,
    Configure,
    Connect,
    Impairment,
    PublisherEndpoint,
    Start,
    SystemObject,
    Traffic,
)
from hydra.wire.traffic import traffic_of

_SAMPLED: Final = 100
"""Subscribers that report progress every second, for the progress display."""
_PROGRESS_A_SECOND: Final = 100
"""The most progress messages that the sampled subscribers together send in a second, and the others likewise."""
_TIME_SERIES_A_SECOND: Final = 1000
"""The most reports of seconds in a second; of more clients, each reports several seconds at once."""
_LEAD_NS: Final = 200_000_000
_LEAD_PER_CLIENT_NS: Final = 80_000
_SLOWEST_PER_CLIENT_NS: Final = 1_000_000
"""The lead is the time between sending ``start`` and the window: ``_LEAD_NS``, and the time that the settings of this
step took on the same hosts, limited from below and above for each client of a host, since they share its cores.

A forked Python client copies 230 pages of memory when it applies settings for the first time, and 30 at its first
start, which takes 0.55 ms of CPU in all; each later time takes 0.15 ms. A thousand such clients on two cores took 1.4 s
for their first settings and 0.24 to 0.45 s for later ones; with 0.25 ms for each, some missed the first start in four
of six runs. A start reached 10,240 native clients within 0.37 to 0.45 s, and 1,000 within 0.03 to 0.05 s.
"""
_STARTS: Final = 5
"""The most starts of a step: it starts again if a client has not acknowledged the start in time."""
_RESENDS_IN_LEAD: Final = 4
_EASILY: Final = 1 / 3
"""If all clients acknowledge within this share of the lead, half the lead would have been enough, too."""
_FEWEST_DOUBLINGS: Final = -3
"""The lowest number of doublings: ``_LEAD_NS`` is halved up to three times, after starts that all clients acknowledged
within that share."""


@dataclass(frozen=True, slots=True)
class ReadinessProof:
    """Subscribers whose readiness is proven, and the conditions of the proof apart from the processes themselves."""

    clients: BitMap = field(default_factory=BitMap)
    of: Hashable = None


@dataclass(frozen=True, slots=True)
class StartedStep:
    """A step that has started.

    Attributes:
        start: its window.
        proven: the subscribers whose readiness was proven when it began.
        log_begin: the messages in the servers' log before its first one; see :meth:`hydra.system.RunServers.log_end`.
        command: the configuration of its publishers.
        clocks: the step's clock for each host.
        connecting: how the subscribers connected; None: the step does not measure it.
    """

    start: Start
    proven: ReadinessProof
    log_begin: int | None
    command: Configure
    clocks: StepClocks
    connecting: ConnectFacts | None = None


class StepStarter:
    """Starts one step after the other.

    Arguments:
        run: the run of the steps.
        deployment: the clients.
        asker: sends commands to the clients.
    """

    def __init__(self, run: RunContext, deployment: Deployment, asker: CommandExchange) -> None:
        self._run = run
        self._deployment = deployment
        self._asker = asker
        # A subscriber with a new process, or under new conditions, is probed again.
        self._proven = ReadinessProof()
        # How many times the lead of the next start is doubled, because it was too short for some client; below 0, how
        # many times its constant part is halved.
        self._doublings = 0
        self._settings_ns = 0
        self._connecting: ConnectFacts | None = None

    def ready(self, begun: StartedStep, subscribers: BitMap) -> None:
        """Records, after a step, that these subscribers are ready for the next one if its conditions are the same."""
        self._proven = replace(begun.proven, clients=begun.proven.clients & subscribers)

    def begin(self, step: StepSetup, phases: StepTiming) -> StartedStep:
        """Configures and starts all clients, again under a new epoch if a client does not acknowledge in time.

        Raises:
            StepError: the step could not be started.
        """
        for _ in range(_STARTS):
            self._run.controller.roster.begin(self._run.epoch)
            self._run.journal.epoch = self._run.epoch
            command, log_begin = self._configure(step, phases)
            # No subscriber is ready for the next step until it is known that no more data of this one can arrive.
            proven, self._proven = self._proven, ReadinessProof()
            start, clocks, missing = self._start(step)
            if not missing:
                return StartedStep(start, proven, log_begin, command, clocks, self._connecting)
            phases.end("start that failed")
            self._run.journal.note(StartUnacknowledged(self._run.epoch, missing))
            # A start that fails costs more than a lead that is too long, so the next one is not a halved one.
            self._doublings = min(max(0, self._doublings) + 1, _STARTS - 1)
            self._run.epoch += 1
        self._deployment.evict(missing)
        raise StepError(
            f"{counted(len(missing), 'client')} did not acknowledge one of {_STARTS} starts in time: "
            f"{id_ranges(missing)}"
        )

    def read_stored(self, step: StepSetup, begun: StartedStep, read_max_s: float) -> int:
        """Has the subscribers read the stored messages of this step; returns the time (ns) from which they do.

        That is the time at which they learn where the messages begin, because some libraries fetch from then on.

        Raises:
            StepError: a subscriber cannot read.
        """
        began_ns = begun.clocks.step_ns(self._run.clock_ns())
        self._configure_subscribers(replace(step, cohort=BitMap()), BitMap(), begun.command)
        answers = self._run.controller.roster.answers
        stop_ns = began_ns + round(read_max_s * 1e9)
        start = msgspec.structs.replace(
            begun.start, number=answers.next_number(), start_at_ns=began_ns, stop_at_ns=stop_ns
        )
        shares = begun.clocks.shares(BitMap(self._deployment.subscribers), start)
        self._asker.require(
            shares, lambda: answers.acked(start.number), "subscribers", "begin to read", ANSWER_WITHIN_S
        )
        return began_ns

    def _configure(self, step: StepSetup, phases: StepTiming) -> tuple[Configure, int | None]:
        """Sends all clients the step's settings and waits until they are ready.

        Subscribers that read stored messages get their settings later, as they need not be ready before.

        Returns ``StartedStep.command`` and ``StartedStep.log_begin``.
        """
        deployment, answers = self._deployment, self._run.controller.roster.answers
        plan = step.plan
        system = self._run.system.configure(plan.settings)
        traffic = traffic_of(plan.settings)
        publishers = BitMap(deployment.publishers)
        subscribers = BitMap(range(0) if step.stored else deployment.subscribers)
        topics = (traffic.seed, traffic.topics, traffic.topics_per_client, traffic.wildcard) if traffic.several else ()
        needed = (deployment.publishers, step.delivery.group, self._run.system.proof(plan.settings), topics)
        renewed = deployment.take_renewed()
        if renewed.intersect(publishers) or (subscribers and needed != self._proven.of):
            self._proven = ReadinessProof()
        self._proven = replace(self._proven, clients=self._proven.clients - renewed)
        keeps_up = any(event.kind == RESTART for event in self._run.scenario.events)
        connect = connect_command(plan.settings, len(subscribers), keeps_up=keeps_up)
        if plan.settings.connect_rate is not None:
            self._proven = ReadinessProof()
        unproven = subscribers - self._proven.clients
        command = self._command(step, system, traffic, connect, probe=bool(unproven))
        timeout_s = self._run.scenario.ready_timeout_s
        self._asker.require(
            [(publishers, command)],
            lambda: answers.acked(command.number) & answers.ready,
            "publishers",
            "bind",
            timeout_s,
        )
        self._asker.require_publishers()
        phases.end("bind")
        self._connecting = ConnectFacts() if connect else None
        if connect and subscribers and plan.settings.connect_rate is not None:
            ready = self._have_connected(step, unproven, command, connect)
            phases.end("connections")
            self._proven = ReadinessProof(ready, needed)
        elif subscribers:
            clocks = self._step_clocks(subscribers) if connect else None
            shares = self._configure_subscribers(step, unproven, command, clocks)
            phases.end("settings")
            self._await_proofs([(ids, share) for ids, share in shares if share.probe])
            phases.end("readiness")
            self._proven = ReadinessProof(self._proven.clients | unproven, needed)
        if not unproven:
            return command, self._run.system.servers.log_end(plan.settings)
        # The log contains the probes, which are no messages of the step: end them, and wait until it stops growing.
        if self._run.system.servers.log_end(plan.settings) is None:
            return command, None
        self._end_probes(publishers, msgspec.structs.replace(command, number=answers.next_number(), probe=False))
        log_begin = settled(self._run.system.servers, plan.settings, self._run.controller.wait_until)
        phases.end("end of probes")
        return command, log_begin

    def _command(
        self, step: StepSetup, system: SystemObject, traffic: Traffic, connect: Connect | None, *, probe: bool
    ) -> Configure:
        """The command for publishers, from which those for subscribers are made."""
        plan, deployment, shared = step.plan, self._deployment, self._shared(step.plan.settings)
        reporting = len(deployment.subscribers[:_SAMPLED]) + len(deployment.publishers)
        return Configure(
            epoch=self._run.epoch,
            number=self._run.controller.roster.answers.next_number(),
            settings=shared,
            publishers=[],
            probe=probe,
            progress_s=max(1.0, reporting / _PROGRESS_A_SECOND),
            group=step.delivery.group,
            payload_share=compression(shared).share if shared.payload == "json" else 0,
            load=list(plan.load),
            course_s=max(1.0, len(deployment.subscribers) / _TIME_SERIES_A_SECOND) if plan.course else 0.0,
            system=system,
            traffic=msgspec.UNSET if traffic == ONE_TOPIC else traffic,
            connect=connect or msgspec.UNSET,
        )

    def _have_connected(self, step: StepSetup, subscribers: BitMap, command: Configure, connect: Connect) -> BitMap:
        """Has all subscribers connect at their due times; returns those that are ready.

        The others have given up, and are part of the step.
        """
        run, answers = self._run, self._run.controller.roster.answers
        usage = ServerUsage(run.system.servers.processes())
        clocks = self._step_clocks(subscribers)
        connect = msgspec.structs.replace(
            connect,
            at_ns=clocks.step_ns(run.clock_ns()) + lead_ns(clocks.most_on_a_host(subscribers)),
            first=subscribers.min(),
        )
        shares = self._configure_subscribers(
            step, subscribers, msgspec.structs.replace(command, connect=connect), clocks
        )
        within_s = longest_wait_s(connect, subscribers.max(), clocks.step_ns(run.clock_ns()))
        self._asker.ask(shares, lambda: answers.ready, within_s, self._asker.check_system, is_sent=True)
        self._asker.require_publishers()
        self._connecting = usage.facts(
            step.plan.settings, run.system.servers.connections, len(self._deployment.publishers)
        )
        return subscribers & answers.ready

    def _configure_subscribers(
        self, step: StepSetup, unproven: BitMap, command: Configure, clocks: StepClocks | None = None
    ) -> list[tuple[BitMap, Configure]]:
        """Sends the subscribers their settings; returns the command of each.

        ``command`` is the configuration of the publishers. ``clocks`` are the hosts' clocks, if subscribers need them
        before the start.
        """
        deployment, answers = self._deployment, self._run.controller.roster.answers
        endpoints = {p: PublisherEndpoint(p, answers.endpoints[p]) for p in deployment.publishers}
        plan, one = step.plan, step.delivery.one_publisher
        # The others report as often as the limit allows: for a client that dies, only its last progress is known.
        seldom_s = max(1.0, len(deployment.subscribers) / _PROGRESS_A_SECOND)
        everyone, sampled = BitMap(deployment.subscribers), BitMap(deployment.subscribers[:_SAMPLED])
        shares = []
        number = answers.next_number()
        sent_ns = self._run.clock_ns()
        for in_cohort, probe, sample in itertools.product((False, True), repeat=3):
            ids = everyone
            for has, those in ((in_cohort, step.cohort), (probe, unproven), (sample, sampled)):
                ids = ids & those if has else ids - those
            for publishers, listeners in subscription_map(ids, deployment.publishers, one=one):
                configure = msgspec.structs.replace(
                    command,
                    number=number,
                    settings=self._shared(cohort_settings(plan) if in_cohort else plan.settings),
                    publishers=[endpoints[p] for p in publishers],
                    probe=probe,
                    progress_s=command.progress_s if sample else seldom_s,
                    cohort=in_cohort,
                    load=[],
                    spells=[Impairment(s.kind, s.begin_s, s.end_s, s.rate) for s in plan.spells] if in_cohort else [],
                )
                shares += shares_by_host(listeners, configure, clocks)
        self._asker.require(
            shares, lambda: answers.acked(number), "subscribers", "apply their settings", ANSWER_WITHIN_S
        )
        self._settings_ns = self._run.clock_ns() - sent_ns
        return shares

    def _await_proofs(self, shares: Shares) -> None:
        """Waits until these subscribers have received a probe from every publisher.

        Each of them has its command already, and answers again if the command is resent.
        """
        answers = self._run.controller.roster.answers
        timeout_s = self._run.scenario.ready_timeout_s
        self._asker.require(shares, lambda: answers.ready, "subscribers", "receive a probe", timeout_s, is_sent=True)
        self._asker.require_publishers()

    def _end_probes(self, publishers: BitMap, command: Configure) -> None:
        """Ends the publishers' probes by a ``configure`` of the same epoch."""
        answers = self._run.controller.roster.answers
        self._asker.require(
            [(publishers, command)],
            lambda: answers.acked(command.number),
            "publishers",
            "end their probes",
            ANSWER_WITHIN_S,
        )
        self._asker.require_publishers()

    def _await_clocks(self, clients: BitMap) -> None:
        """Waits until the clocks of all hosts are known.

        Raises:
            StepError: the clock of a host is not known in time, or the step cannot start for another reason.
        """
        roster, deployment = self._run.controller.roster, self._deployment
        missing, dead = unknown(roster, clients), len(deployment.died)

        def all_known() -> bool:
            nonlocal missing, dead
            deployment.watch()
            self._asker.require_publishers()
            self._asker.check_system()
            if (died := len(deployment.died)) > dead:
                # A host may have no clients left. (With thousands of clients this is not checked after every message.)
                missing, dead = unknown(roster, clients), died
            missing = {host: name for host, name in missing.items() if not known(roster, host)}
            return not missing

        within_s = self._run.scenario.ready_timeout_s
        if not self._run.controller.wait_until(all_known, within_s):
            hosts = ", ".join(sorted(set(missing.values())))
            raise StepError(
                f"the clock of {hosts} could not be compared with the controller's within {within_s:g} s: "
                "no relay there answered enough pings",
                "look at the stderr of the groups there in the run's sandbox, or raise ready_timeout_s",
            )

    def _step_clocks(self, clients: BitMap) -> StepClocks:
        """The step's clock for the hosts of these clients, when all are known."""
        self._await_clocks(clients)
        return StepClocks(self._run.controller.roster, clients, self._run.clock_ns(), wall_offset_ns())

    def _start(self, step: StepSetup) -> tuple[Start, StepClocks, BitMap]:
        """Sends all clients the window; returns it, and the clients that had not acknowledged before it began.

        The publishers get it after all subscribers have acknowledged it: if the start fails, nothing has been sent.
        """
        deployment, answers = self._deployment, self._run.controller.roster.answers
        plan, publishers = step.plan, BitMap(deployment.publishers)
        everyone = publishers | BitMap(deployment.subscribers)
        clocks = self._step_clocks(everyone)
        subscribers = BitMap() if step.stored else everyone - publishers
        lead_ns = start_lead_ns(clocks.most_on_a_host(subscribers), self._settings_ns, self._doublings)
        start_ns = clocks.step_ns(self._run.clock_ns()) + lead_ns
        command = Start(
            epoch=self._run.epoch,
            number=answers.next_number(),
            start_at_ns=start_ns,
            stop_at_ns=start_ns + round(plan.duration_s * 1e9),
            clock=clocks.own,
        )
        begins = turns(deployment.publishers, plan.settings.rate, start_ns, one=step.delivery.one_publisher)
        in_turn = [
            part
            for ids, begin_ns in begins
            for part in clocks.shares(BitMap(ids), msgspec.structs.replace(command, start_at_ns=begin_ns))
        ]
        for shares, share in ((clocks.shares(subscribers, command), 0.75), (in_turn, 1.0)):
            left_ns = start_ns - round((1 - share) * lead_ns) - clocks.step_ns(self._run.clock_ns())
            missing = self._asker.ask(
                shares,
                lambda: answers.acked(command.number),
                left_ns / 1e9,
                self._asker.check_system,
                every_s=lead_ns / 1e9 / _RESENDS_IN_LEAD,
            )
            self._asker.require_publishers()
            if missing:
                return command, clocks, missing
        left_ns = start_ns - clocks.step_ns(self._run.clock_ns())
        if left_ns >= (1 - _EASILY) * lead_ns:
            # The delay that made the lead longer is over.
            self._doublings = max(_FEWEST_DOUBLINGS, self._doublings - 1)
        elif self._doublings < 0:
            self._doublings += 1
        # If the window has begun already, publishers may have received the start too late.
        return command, clocks, publishers if left_ns < 0 else BitMap()

    def _shared(self, settings: Settings) -> SharedSettings:
        """The settings for clients of every system."""
        burst = batch_of(settings, self._run.spec.published.columns) if settings.burst is None else settings.burst
        # Only this process knows the folder of a relative path.
        file = str(Path(settings.payload_file).absolute()) if settings.payload_file else ""
        size = settings.largest_bytes
        return replace(shared_of(settings), burst=burst, payload_file=file, message_size=size)


def shares_by_host(ids: BitMap, command: Configure, clocks: StepClocks | None) -> list[tuple[BitMap, Configure]]:
    """The command for each host's share of these clients; one for all if they need no clock yet."""
    connect = command.connect
    if clocks is None or not isinstance(connect, Connect):
        return [(ids, command)]
    replaced = msgspec.structs.replace
    return [(share, replaced(command, connect=replaced(connect, clock=clock))) for share, clock in clocks.of_hosts(ids)]


def start_lead_ns(clients: int, settings_ns: int, doublings: int = 0) -> int:
    """The lead of a start before its window, ns; the limits keep a single slow client from making it long.

    Args:
        clients: the number of subscribers on the host with the most.
        settings_ns: how long the subscribers took to apply their settings.
        doublings: how many times the lead is doubled; below 0, how many times its constant part is halved.
    """
    shared_ns = min(max(settings_ns, clients * _LEAD_PER_CLIENT_NS), clients * _SLOWEST_PER_CLIENT_NS)
    return (_LEAD_NS >> -doublings) + shared_ns if doublings < 0 else (_LEAD_NS + shared_ns) << doublings


def cohort_settings(plan: StepPlan) -> Settings:
    """The step's settings for the cohort."""
    if plan.cohort.kind == "spells":
        return plan.settings
    if plan.cohort.kind == "slow":
        return replace(plan.settings, receive_rate=plan.cohort.rate)
    return replace(plan.settings, reconnect_rate=plan.cohort.rate)
