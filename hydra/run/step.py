"""One step over the control channel: configure, start, stop, drain, collect."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from hydra.control.bounded import fit_unacknowledged
from hydra.control.controller import Controller
from hydra.control.outstanding import RESEND_EVERY_S, Outstanding
from hydra.errors import StepError
from hydra.events.happened import ClientError, PhasesTimed, StartUnacknowledged, WindowOpened
from hydra.events.journal import Journal
from hydra.events.words import named
from hydra.model import DrainEnd, PublisherReport, Settings, StepPlan, SubscriberReport
from hydra.run.deployment import Deployment
from hydra.sweep.cohort import cohort_ids
from hydra.system import System
from hydra.wire.clock import boot_id, wall_offset_ns
from hydra.wire.messages import (
    Configure,
    Finish,
    FromController,
    KafkaTopic,
    Ping,
    Progress,
    PublisherEndpoint,
    Sent,
    Start,
    Stop,
    encode,
)
from hydra.wire.program import FLUSH_AT_MOST_S

_SAMPLED: Final = 100
"""Subscribers that report progress every second, for the progress display."""
_PROGRESS_A_SECOND: Final = 100
"""Progress messages that the sampled subscribers together send in a second at most, and as many the others."""
_REPORT_MARGIN_S: Final = 15.0
"""Reports are waited for until none has come for this long, however many there are."""
_ANSWER_WITHIN_S: Final = 30.0
_LEAD_NS: Final = 200_000_000
_LEAD_PER_CLIENT_NS: Final = 250_000
"""How far ahead of the window ``start`` is sent: ten thousand clients have acknowledged a command within 1.6 s."""
_STARTS: Final = 5
"""How often a step is begun at most: it begins anew when a client has not acknowledged the start in time."""
_RESENDS_IN_LEAD: Final = 4
_EASILY: Final = 1 / 3
"""Share of a lead: when all have acknowledged within it, half the lead would have been enough as well."""
_SETTLE_S: Final = 0.2
_SETTLE_AT_MOST_S: Final = 5.0
_TICK_NS: Final = 250_000_000
_QUIET_S: Final = 0.5
_QUIET_PER_CLIENT_S: Final = 0.00025
_NOTHING_FOLLOWS: Final[frozenset[DrainEnd]] = frozenset({"complete", "marked"})
"""Ends of a drain after which no data of the step can follow; after any other end, some may still be on its way."""

Shares = Sequence[tuple[Sequence[int], FromController]]
"""Clients, and the command that is theirs."""

Tick = Callable[[float, float], None]
"""Takes the seconds since the window began and the mean rate (messages/s) that subscribers have reported so far."""


@dataclass(frozen=True, slots=True)
class RawStep:
    """What every client reported about a step, before anything is computed.

    ``window_ns`` is the step's start and end on the step's clock; ``silent`` are clients that are alive and did not
    report; ``agents`` says where each client was when the step began; ``last_words`` are the messages that each
    subscriber had counted when it last reported progress in the window.
    """

    publishers: Mapping[int, PublisherReport]
    subscribers: Mapping[int, SubscriberReport]
    asked: Set[int]
    dead: Set[int]
    silent: Set[int]
    cohort: Set[int]
    agents: Mapping[int, str]
    window_ns: tuple[int, int]
    last_words: Mapping[int, int]


class Phases:
    """Times the parts of a step.

    Attributes:
        took_s: the name of each and its seconds, in the order of their ends.
    """

    def __init__(self) -> None:
        self.took_s: list[tuple[str, float]] = []
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """Ends a phase, which began when the one before it ended."""
        now = time.monotonic()
        self.took_s.append((name, now - self._began))
        self._began = now


class Stepper:
    """Measures one step after the other on a deployment.

    Attributes:
        epoch: the number of the step that is measured, or was last. The caller raises it before each step; a step that
            has to be begun anew raises it further.
    """

    def __init__(
        self,
        controller: Controller,
        deployment: Deployment,
        system: System,
        ready_timeout_s: float,
        drain_max_s: float | None,
        journal: Journal,
        *,
        epoch: int = 0,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.epoch = epoch
        self._journal = journal
        self._clock_ns = clock_ns
        self._controller = controller
        self._deployment = deployment
        self._system = system
        self._ready_timeout_s = ready_timeout_s
        self._drain_max_s = drain_max_s
        # What each subscriber's readiness was last proven for; a subscriber for which that has changed is probed again.
        self._proven: dict[int, tuple[object, ...]] = {}
        # How often the lead of the next start is doubled, because it was too short for some client.
        self._doublings = 0

    def measure(self, plan: StepPlan, tick: Tick) -> RawStep:
        """Carries out one step, under the number that is then :attr:`epoch`.

        Args:
            plan: what to measure.
            tick: called a few times a second during the window.

        Raises:
            StepError: it cannot be measured; the text says why.
        """
        phases = Phases()
        deployment, roster = self._deployment, self._controller.roster
        deployment.begin_step()
        asked, agents = set(deployment.subscribers), deployment.agents()
        cohort = cohort_ids(plan.cohort, deployment.subscribers)
        log_begin, proven, start = self._begin(plan, cohort, phases)
        epoch, answers = self.epoch, roster.answers
        window = self._run_window(start, tick)
        phases.end("lead and window")
        publishers = self._collect(plan, window, log_begin)
        phases.end("reports")
        self._journal.note(PhasesTimed(epoch, tuple(phases.took_s)))
        if not any(report.stopped_early for report in publishers.values()):
            # (A publisher that stopped early begins the next step with a new socket.)
            self._proven = {c: proven[c] for c in caught_up(answers.subscriber_reports, cohort) if c in proven}
        for client, text in answers.errors.items():
            self._journal.note(ClientError(client, text))
        return RawStep(
            publishers=publishers,
            subscribers=dict(answers.subscriber_reports),
            asked=asked,
            dead=(deployment.died & asked) - answers.subscriber_reports.keys(),
            silent=deployment.alive(asked) - answers.subscriber_reports.keys(),
            cohort=cohort,
            agents=agents,
            window_ns=window,
            last_words={c: p.messages for c, p in answers.progress.items() if c in asked and p.time_ns <= window[1]},
        )

    # --- configure and start ---------------------------------------------------------------------------------------

    def _begin(
        self, plan: StepPlan, cohort: Set[int], phases: Phases
    ) -> tuple[dict[int, int] | None, dict[int, tuple[object, ...]], Start]:
        """Configures and starts all clients; under a new epoch each time some client does not acknowledge it in time.

        Returns what :meth:`_configure` does, what each subscriber's readiness was proven for, and the start.

        Raises:
            StepError: it could not be begun.
        """
        for _ in range(_STARTS):
            self._controller.roster.begin(self.epoch)
            self._journal.epoch = self.epoch
            log_begin = self._configure(plan, cohort, phases)
            # No subscriber is ready for the next step until it is known that no more data of this one can arrive.
            proven, self._proven = self._proven, {}
            start, missing = self._start(plan)
            if not missing:
                return log_begin, proven, start
            phases.end("start that failed")
            self._journal.note(StartUnacknowledged(self.epoch, missing))
            self._doublings = min(self._doublings + 1, _STARTS - 1)
            self.epoch += 1
        self._deployment.evict(missing)
        raise StepError(f"{len(missing)} clients did not acknowledge one of {_STARTS} starts in time: {named(missing)}")

    def _configure(self, plan: StepPlan, cohort: Set[int], phases: Phases) -> dict[int, int] | None:
        """Tells everyone the step's settings and waits until they are ready.

        Returns the end offsets of the log before the step's first message where its growth is all that tells what the
        broker took (acks 0), None elsewhere.
        """
        deployment, answers = self._deployment, self._controller.roster.answers
        topic = self._system.topic()
        proofs = {c: self._proof(c, plan.settings, topic) for c in deployment.subscribers}
        unproven = {c for c, proof in proofs.items() if self._proven.get(c) != proof}
        publishers, sampled = deployment.publishers, deployment.subscribers[:_SAMPLED]
        progress_s = max(1.0, (len(sampled) + len(publishers)) / _PROGRESS_A_SECOND)
        # The others report as often as that allows: of a client that dies, its last progress is all that is known.
        seldom_s = max(1.0, len(deployment.subscribers) / _PROGRESS_A_SECOND)
        command = Configure(
            epoch=self.epoch,
            settings=plan.settings,
            publishers=[],
            probe=bool(unproven),
            progress_s=progress_s,
            kafka=topic,
        )
        timeout_s = self._ready_timeout_s
        self._require([(publishers, command)], answers.configured, "publishers", "bind", timeout_s)
        self._require_publishers()
        phases.end("bind")
        endpoints = [PublisherEndpoint(p, answers.ready[p]) for p in publishers]
        kinds: dict[tuple[bool, bool, bool], list[int]] = {}
        for client in deployment.subscribers:
            kinds.setdefault((client in cohort, client in unproven, client in sampled), []).append(client)
        shares = [
            (
                ids,
                msgspec.structs.replace(
                    command,
                    settings=cohort_settings(plan) if in_cohort else plan.settings,
                    publishers=endpoints,
                    probe=probe,
                    progress_s=progress_s if sample else seldom_s,
                ),
            )
            for (in_cohort, probe, sample), ids in kinds.items()
        ]
        self._require(
            shares, lambda: answers.acked("configure"), "subscribers", "take their settings", _ANSWER_WITHIN_S
        )
        phases.end("settings")
        # Each of them has its command already, and answers again if the command is sent again.
        shares = [(ids, told) for ids, told in shares if told.probe]
        self._require(shares, answers.ready.keys, "subscribers", "get a probe", timeout_s, told=True)
        self._require_publishers()
        phases.end("readiness")
        self._proven.update((c, proofs[c]) for c in unproven)
        if topic is None or plan.settings.acks != "0":
            return None
        if not unproven:
            return topic.offsets
        # The log has grown by the probes, which are not acknowledged either: end them, and wait until it stops growing.
        self._end_probes(publishers, msgspec.structs.replace(command, probe=False))
        log_begin = self._settled(self._system.end_offsets())
        phases.end("end of probes")
        return log_begin

    def _end_probes(self, publishers: Sequence[int], command: Configure) -> None:
        """Has the publishers end their probes by a ``configure`` of the same epoch."""
        roster = self._controller.roster
        # A late answer to the ``configure`` before must not be taken for an answer to this one: the echo of a ping
        # arrives after all of those.
        ping = Ping(time_ns=self._clock_ns(), reply=True)
        self._require(
            [(publishers, ping)],
            lambda: {c for c in publishers if roster.pongs.get(c, (0, 0))[0] == ping.time_ns},
            "publishers",
            "answer a ping",
            _ANSWER_WITHIN_S,
        )
        roster.answers.forget("configure", publishers)
        self._require(
            [(publishers, command)],
            lambda: roster.answers.acked("configure"),
            "publishers",
            "end their probes",
            _ANSWER_WITHIN_S,
        )
        self._require_publishers()

    def _start(self, plan: StepPlan) -> tuple[Start, Set[int]]:
        """Tells all clients when the window begins; returns it, and the clients that had not acknowledged it by then.

        The publishers learn of it only when all subscribers have: if the start fails, nothing has been sent.
        """
        deployment, answers = self._deployment, self._controller.roster.answers
        offset_ns = wall_offset_ns()
        lead_ns = (_LEAD_NS + plan.clients * _LEAD_PER_CLIENT_NS) << self._doublings
        start_ns = self._clock_ns() + offset_ns + lead_ns
        command = Start(
            epoch=self.epoch,
            start_at_ns=start_ns,
            stop_at_ns=start_ns + round(plan.duration_s * 1e9),
            wall_offset_ns=offset_ns,
            boot_id=boot_id(),
        )
        for ids, share in ((deployment.subscribers, 0.75), (deployment.publishers, 1.0)):
            left_ns = start_ns - round((1 - share) * lead_ns) - self._clock_ns() - offset_ns
            missing = self._ask(
                [(ids, command)],
                lambda: answers.acked("start"),
                left_ns / 1e9,
                self._look_for_failure,
                every_s=lead_ns / 1e9 / _RESENDS_IN_LEAD,
            )
            self._require_publishers()
            if missing:
                return command, missing
        left_ns = start_ns - self._clock_ns() - offset_ns
        if left_ns >= (1 - _EASILY) * lead_ns:
            # The delay that made the lead longer is over.
            self._doublings = max(0, self._doublings - 1)
        # What arrived after the window began may have been acknowledged too late.
        return command, set(deployment.publishers) if left_ns < 0 else set()

    def _proof(self, client: int, settings: Settings, topic: KafkaTopic | None) -> tuple[object, ...]:
        """What a subscriber's readiness depends on: both ends' processes, and settings that need new sockets."""
        roster = self._controller.roster
        present = roster.present()
        ends = [roster.hello(c).pid for c in (client, *self._deployment.publishers) if c in present]
        where = (topic.bootstrap, topic.topic) if topic else ()
        return (*ends, settings.sndhwm, settings.rcvhwm, settings.nodrop, *where)

    # --- commands and answers --------------------------------------------------------------------------------------

    def _ask(
        self,
        shares: Shares,
        answered: Callable[[], Set[int]],
        timeout_s: float,
        look: Callable[[], None] = lambda: None,
        *,
        told: bool = False,
        margin_s: float = 0.0,
        every_s: float = RESEND_EVERY_S,
    ) -> Set[int]:
        """Sends these clients their commands, repeatedly, until each has answered or died.

        Args:
            shares: which clients get which command.
            answered: the clients that have answered so far; others may be among them.
            timeout_s: how long that may take.
            look: called repeatedly meanwhile; an exception that it raises ends the wait.
            told: whether the commands have been sent once already.
            margin_s: how long it may take after the last new answer.
            every_s: how often the command is sent again to those that have not answered.

        Returns those that have neither answered in time nor died.
        """
        deployment = self._deployment
        required = {client for ids, _ in shares for client in ids}
        longest = max((len(encode(command)) for _, command in shares), default=1)
        outstanding = Outstanding(
            required, self._now_s(), timeout_s, margin_s=margin_s, every_s=every_s, command_bytes=longest
        )
        if not told:
            self._tell(shares, required)

        def done() -> bool:
            deployment.watch()
            look()
            answers, now_s = answered(), self._now_s()
            if _all_in(required, answers, deployment.died):
                return True
            outstanding.heard(len(answers), now_s)
            if again := outstanding.again(answers, deployment.died, now_s):
                self._tell(shares, set(again))
            return outstanding.over(now_s)

        self._controller.wait_until(done, math.inf)
        return required - answered() - deployment.died

    def _tell(self, shares: Shares, clients: Set[int]) -> None:
        for ids, command in shares:
            self._controller.tell([client for client in ids if client in clients], command)

    def _require(
        self,
        shares: Shares,
        answered: Callable[[], Set[int]],
        who: str,
        what: str,
        timeout_s: float,
        *,
        told: bool = False,
    ) -> None:
        """Gives these clients their commands and waits until they, as far as they live, have answered.

        Raises:
            StepError: some did not, said that they cannot, or the system under test failed.
        """
        asked = {client for ids, _ in shares for client in ids}

        def look() -> None:
            for client, text in self._controller.roster.answers.errors.items():
                if client in asked:
                    raise StepError(f"client {client}: {text}")
            self._look_for_failure()

        self._insist(self._ask(shares, answered, timeout_s, look, told=told), len(asked), who, what, timeout_s)

    def _insist(self, missing: Set[int], asked: int, who: str, what: str, timeout_s: float) -> None:
        """Evicts the clients that have not answered; raises StepError if there are any."""
        if missing:
            self._deployment.evict(missing)
            raise StepError(f"{len(missing)} of {asked} {who} did not {what} within {timeout_s:g} s: {named(missing)}")

    def _look_for_failure(self) -> None:
        if failure := self._system.failure():
            raise StepError(failure)

    def _now_s(self) -> float:
        return self._clock_ns() / 1e9

    def _require_publishers(self) -> None:
        if dead := self._deployment.died.intersection(self._deployment.publishers):
            raise StepError(f"publisher {min(dead)} died")

    # --- the window ------------------------------------------------------------------------------------------------

    def _run_window(self, start: Start, tick: Tick) -> tuple[int, int]:
        """Waits for the end of the window, which may come early; returns it (ns on the step's clock)."""
        deployment, answers = self._deployment, self._controller.roster.answers
        offset_ns, start_ns, stop_ns = start.wall_offset_ns, start.start_at_ns, start.stop_at_ns
        self._journal.note(WindowOpened(self.epoch))
        next_tick_ns = start_ns

        def over() -> bool:
            nonlocal next_tick_ns
            deployment.watch()
            self._require_publishers()
            self._look_for_failure()
            now_ns = self._clock_ns() + offset_ns
            if now_ns >= next_tick_ns:
                next_tick_ns = now_ns + _TICK_NS
                tick((now_ns - start_ns) / 1e9, _mean_rate(answers.progress, deployment.subscribers, start_ns))
            # A publisher that cannot go on reports an error; what it sent until then is measured.
            return now_ns >= stop_ns or any(p in answers.errors for p in deployment.publishers)

        self._controller.wait_until(over, math.inf)
        return start_ns, min(stop_ns, self._clock_ns() + offset_ns)

    # --- reports -----------------------------------------------------------------------------------------------------

    def _collect(
        self, plan: StepPlan, window: tuple[int, int], log_begin: Mapping[int, int] | None
    ) -> Mapping[int, PublisherReport]:
        """Takes the publishers' reports, tells the subscribers what to expect and takes theirs."""
        deployment, answers = self._deployment, self._controller.roster.answers
        stop = Stop(epoch=self.epoch, stop_at_ns=window[1])
        self._controller.tell(deployment.subscribers, stop)
        # A publisher that stopped early has reported an error, and still reports what it sent.
        timeout_s = FLUSH_AT_MOST_S + _REPORT_MARGIN_S
        missing = self._ask(
            [(deployment.publishers, stop)],
            answers.publisher_reports.keys,
            timeout_s,
            self._look_for_failure,
            margin_s=_REPORT_MARGIN_S,
        )
        self._insist(missing, len(deployment.publishers), "publishers", "report", timeout_s)
        self._require_publishers()
        if round(plan.duration_s * 1e9) > window[1] - window[0]:
            # Only this message tells a subscriber that the window has ended earlier than planned.
            self._ask([(deployment.subscribers, stop)], lambda: answers.acked("stop"), _ANSWER_WITHIN_S, told=True)
        reports = fit_unacknowledged(answers.publisher_reports)
        end_offsets = self._system.end_offsets()
        if log_begin is not None:
            end_offsets = self._settled(end_offsets)
            # Nothing was acknowledged: what the broker accepted is what its log grew by (there is one publisher).
            grown = sum(end_offsets.values()) - sum(log_begin.values())
            reports = {p: replace(r, acknowledged=grown) for p, r in reports.items()}
        drain_max_s = plan.duration_s + 5 if self._drain_max_s is None else self._drain_max_s
        finish = Finish(
            epoch=self.epoch,
            publishers=[Sent(publisher=p, sent=r.sent, unacknowledged=r.unacknowledged) for p, r in reports.items()],
            end_offsets=end_offsets,
            drain_max_s=drain_max_s,
            quiet_s=quiet_s(len(deployment.subscribers)),
        )
        self._ask(
            [(deployment.subscribers, finish)],
            answers.subscriber_reports.keys,
            drain_max_s + _REPORT_MARGIN_S,
            self._look_for_failure,
            margin_s=_REPORT_MARGIN_S,
        )
        return reports

    def _settled(self, end_offsets: dict[int, int]) -> dict[int, int]:
        """The end offsets once they have stopped growing: without acknowledgements, a flush waits for no log."""
        deadline = time.monotonic() + _SETTLE_AT_MOST_S
        while time.monotonic() < deadline:
            self._controller.wait_until(lambda: False, _SETTLE_S)
            before, end_offsets = end_offsets, self._system.end_offsets()
            if before == end_offsets:
                break
        return end_offsets


def _all_in(required: Set[int], answered: Set[int], died: Set[int]) -> bool:
    """Whether all of these clients have answered or died; counted first, for it is asked after every few messages."""
    return len(answered) + len(died) >= len(required) and not required - answered - died


def caught_up(reports: Mapping[int, SubscriberReport], cohort: Set[int]) -> Set[int]:
    """The subscribers that no more data of the step can reach; all others prove their readiness again."""
    return {c for c, report in reports.items() if c not in cohort and report.drain in _NOTHING_FOLLOWS}


def quiet_s(clients: int) -> float:
    """How long a subscriber with missing messages receives nothing before it counts them as lost, in seconds.

    A publisher serves its connections in turn. At full rate and 7,680 subscribers one turn was seen to take a second,
    which is 0.13 ms for each of them; twice that is waited for, and what a scheduler may take on a small step.
    """
    return _QUIET_S + clients * _QUIET_PER_CLIENT_S


def cohort_settings(plan: StepPlan) -> Settings:
    """The step's settings as the cohort gets them."""
    if plan.cohort.kind == "slow":
        return replace(plan.settings, receive_rate=plan.cohort.rate)
    return replace(plan.settings, reconnect_rate=plan.cohort.rate)


def _mean_rate(progress: Mapping[int, Progress], subscribers: range, start_ns: int) -> float:
    """Mean of the subscribers' messages/s between the start and their last progress; 0 before any has reported."""
    told = [
        p.messages / (p.time_ns - start_ns) * 1e9
        for client, p in progress.items()
        if client in subscribers and p.time_ns > start_ns
    ]
    return sum(told) / len(told) if told else 0.0
