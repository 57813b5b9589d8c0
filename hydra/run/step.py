"""One step over the control channel: begun, its window, stop, drain, collect."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from hydra.control.bounded import fit_unacknowledged
from hydra.control.controller import Controller
from hydra.events.clients import ClientError
from hydra.events.journal import Journal
from hydra.events.steps import PhasesTimed, WindowOpened
from hydra.measure.group import whole
from hydra.model import DrainEnd, PublisherReport, StepPlan, SubscriberReport
from hydra.run.asking import ANSWER_WITHIN_S, Asker
from hydra.run.beginning import Beginner
from hydra.run.deployment import Deployment
from hydra.run.phases import Phases
from hydra.run.settling import settled
from hydra.sweep.cohort import cohort_ids
from hydra.system import System, SystemSpec
from hydra.wire.messages import Finish, Progress, Sent, Start, Stop
from hydra.wire.program import FLUSH_AT_MOST_S

_REPORT_MARGIN_S: Final = 15.0
"""Reports are waited for until none has come for this long, however many there are."""
_TICK_NS: Final = 250_000_000
_QUIET_S: Final = 0.5
_QUIET_PER_CLIENT_S: Final = 0.00025
_NOTHING_FOLLOWS: Final[frozenset[DrainEnd]] = frozenset({"complete", "marked"})
"""Ends of a drain after which no data of the step can follow; after any other end, some may still be on its way."""

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
            tick: called a few times a second during the window.

        Raises:
            StepError: it cannot be measured; the text says why.
        """
        phases = Phases()
        deployment, roster = self._deployment, self._controller.roster
        deployment.begin_step()
        asked, agents = set(deployment.subscribers), deployment.agents()
        cohort = cohort_ids(plan.cohort, deployment.subscribers)
        begun = self._beginner.begin(plan, cohort, phases)
        epoch, answers = self.epoch, roster.answers
        window = self._run_window(begun.start, tick)
        phases.end("lead and window")
        publishers = self._collect(plan, window, begun.log_begin)
        phases.end("reports")
        self._journal.note(PhasesTimed(epoch, tuple(phases.took_s)))
        if not any(report.stopped_early for report in publishers.values()):
            # (A publisher that stopped early begins the next step with a new socket.)
            # A member of a group cannot know that nothing follows; that nothing is missing, all of them together tell.
            members = self._spec.group(plan.settings) != ""
            nothing_left = members and whole(answers.subscriber_reports.values(), publishers)
            caught = caught_up(answers.subscriber_reports, cohort, nothing_left=nothing_left)
            self._beginner.ready({c: begun.proven[c] for c in caught if c in begun.proven})
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
            self._asker.require_publishers()
            self._asker.look_for_failure()
            now_ns = self._clock_ns() + offset_ns
            if now_ns >= next_tick_ns:
                next_tick_ns = now_ns + _TICK_NS
                tick((now_ns - start_ns) / 1e9, _mean_rate(answers.progress, deployment.subscribers, start_ns))
            # A publisher that cannot go on reports an error; what it sent until then is measured.
            return now_ns >= stop_ns or any(p in answers.errors for p in deployment.publishers)

        self._controller.wait_until(over, math.inf)
        return start_ns, min(stop_ns, self._clock_ns() + offset_ns)

    # --- reports -----------------------------------------------------------------------------------------------------

    def _collect(self, plan: StepPlan, window: tuple[int, int], log_begin: int | None) -> Mapping[int, PublisherReport]:
        """Takes the publishers' reports, tells the subscribers what to expect and takes theirs."""
        deployment, answers = self._deployment, self._controller.roster.answers
        stop = Stop(epoch=self.epoch, stop_at_ns=window[1])
        self._controller.tell(deployment.subscribers, stop)
        # A publisher that stopped early has reported an error, and still reports what it sent.
        timeout_s = FLUSH_AT_MOST_S + _REPORT_MARGIN_S
        missing = self._asker.ask(
            [(deployment.publishers, stop)],
            answers.publisher_reports.keys,
            timeout_s,
            self._asker.look_for_failure,
            margin_s=_REPORT_MARGIN_S,
        )
        self._asker.insist(missing, len(deployment.publishers), "publishers", "report", timeout_s)
        self._asker.require_publishers()
        if round(plan.duration_s * 1e9) > window[1] - window[0]:
            # Only this message tells a subscriber that the window has ended earlier than planned.
            self._asker.ask([(deployment.subscribers, stop)], lambda: answers.acked("stop"), ANSWER_WITHIN_S, told=True)
        reports = fit_unacknowledged(answers.publisher_reports)
        if log_begin is not None:
            log_end = settled(self._system, plan.settings, self._controller.wait_until)
            # Nothing was acknowledged: what the servers accepted is what their log grew by (there is one publisher).
            reports = {p: replace(r, acknowledged=(log_end or 0) - log_begin) for p, r in reports.items()}
        drain_max_s = plan.duration_s + 5 if self._drain_max_s is None else self._drain_max_s
        finish = Finish(
            epoch=self.epoch,
            publishers=[Sent(publisher=p, sent=r.sent, unacknowledged=r.unacknowledged) for p, r in reports.items()],
            drain_max_s=drain_max_s,
            quiet_s=quiet_s(len(deployment.subscribers)),
            system=self._system.finish(),
        )
        self._asker.ask(
            [(deployment.subscribers, finish)],
            answers.subscriber_reports.keys,
            drain_max_s + _REPORT_MARGIN_S,
            self._asker.look_for_failure,
            margin_s=_REPORT_MARGIN_S,
        )
        return reports


def caught_up(reports: Mapping[int, SubscriberReport], cohort: Set[int], *, nothing_left: bool = False) -> Set[int]:
    """The subscribers that no more data of the step can reach; all others prove their readiness again.

    ``nothing_left``: they are a group that has received everything.
    """
    return {c for c, r in reports.items() if c not in cohort and (nothing_left or r.drain in _NOTHING_FOLLOWS)}


def quiet_s(clients: int) -> float:
    """How long a subscriber with missing messages receives nothing before it counts them as lost, in seconds.

    A publisher serves its connections in turn. At full rate and 7,680 subscribers one turn was seen to take a second,
    which is 0.13 ms for each of them; twice that is waited for, and what a scheduler may take on a small step.
    """
    return _QUIET_S + clients * _QUIET_PER_CLIENT_S


def _mean_rate(progress: Mapping[int, Progress], subscribers: range, start_ns: int) -> float:
    """Mean of the subscribers' messages/s between the start and their last progress; 0 before any has reported."""
    told = [
        p.messages / (p.time_ns - start_ns) * 1e9
        for client, p in progress.items()
        if client in subscribers and p.time_ns > start_ns
    ]
    return sum(told) / len(told) if told else 0.0
