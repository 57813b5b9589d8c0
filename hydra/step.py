"""One step over the control channel: configure, start, stop, drain, collect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from hydra.client.clock import wall_offset_ns
from hydra.client.publisher import FLUSH_AT_MOST_S
from hydra.control.client import boot_id
from hydra.control.controller import Controller
from hydra.control.protocol import Configure, Finish, KafkaTopic, Progress, PublisherEndpoint, Sent, Start, Stop
from hydra.deployment import Deployment, Note, named
from hydra.errors import StepError
from hydra.model import DrainEnd, PublisherReport, Settings, StepPlan, SubscriberReport
from hydra.sweep.cohort import cohort_ids
from hydra.system import System

_SAMPLED: Final = 100
"""Subscribers that report progress every second, for whoever looks on."""
_PROGRESS_A_SECOND: Final = 100
"""Progress messages that the sampled subscribers together send in a second at most, and as many the others."""
_REPORT_MARGIN_S: Final = 15.0
_LEAD_NS: Final = 200_000_000
_LEAD_PER_CLIENT_NS: Final = 50_000
"""How far ahead of the window ``start`` is sent, so that it has reached everyone by then."""
_SETTLE_S: Final = 0.2
_SETTLE_AT_MOST_S: Final = 5.0
_TICK_NS: Final = 250_000_000
_QUIET_S: Final = 0.5
_QUIET_PER_CLIENT_S: Final = 0.00025
_NOTHING_FOLLOWS: Final[frozenset[DrainEnd]] = frozenset({"complete", "marked"})
"""How a drain ends that proves it: after any other end, data of the step may still be on its way."""

Tick = Callable[[float, float], None]
"""Takes the seconds since the window began and the mean rate (messages/s) that subscribers have told of so far."""


@dataclass(frozen=True, slots=True)
class RawStep:
    """What every client said of a step, before anything is computed.

    ``window_ns`` is the step's start and end on the step's clock; ``silent`` are clients that are alive and did not
    report; ``agents`` says where each client was when the step began; ``last_words`` are the messages that each
    subscriber last told of while the step went on.
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
    """How long each part of a step took, in the order of their ends."""

    def __init__(self) -> None:
        self._took: list[str] = []
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """What has gone on since the phase before is called this."""
        now = time.monotonic()
        self._took.append(f"{name} {now - self._began:.3f} s")
        self._began = now

    def __str__(self) -> str:
        return ", ".join(self._took)


class Stepper:
    """Measures one step after the other on a deployment."""

    def __init__(
        self,
        controller: Controller,
        deployment: Deployment,
        system: System,
        ready_timeout_s: float,
        drain_max_s: float | None,
        note: Note,
    ) -> None:
        self._note = note
        self._controller = controller
        self._deployment = deployment
        self._system = system
        self._ready_timeout_s = ready_timeout_s
        self._drain_max_s = drain_max_s
        # What each subscriber's readiness was last proven for; whoever differs is probed again.
        self._proven: dict[int, tuple[object, ...]] = {}

    def measure(self, plan: StepPlan, epoch: int, tick: Tick) -> RawStep:
        """Carries out one step.

        Args:
            plan: what to measure.
            epoch: the step's number, higher than any before.
            tick: called a few times a second during the window.

        Raises:
            StepError: it cannot be measured; the text says why.
        """
        phases = Phases()
        deployment, roster = self._deployment, self._controller.roster
        deployment.begin_step()
        roster.begin(epoch)
        asked, agents = set(deployment.subscribers), deployment.agents()
        cohort = cohort_ids(plan.cohort, deployment.subscribers)
        log_begin = self._configure(plan, epoch, cohort, phases)
        # Nobody is ready for the next step until it is known that nothing of this one can follow.
        proven, self._proven = self._proven, {}
        window = self._run_window(plan, epoch, tick)
        phases.end("lead and window")
        publishers = self._collect(plan, epoch, log_begin)
        phases.end("reports")
        self._note("phases", f"epoch {epoch}: {phases}")
        answers = roster.answers
        if not any(report.stopped_early for report in publishers.values()):
            # (A publisher that stopped early begins the next step with a new socket.)
            self._proven = {c: proven[c] for c in caught_up(answers.subscriber_reports, cohort) if c in proven}
        for client, text in answers.errors.items():
            self._note("client_error", f"client {client} in epoch {epoch}: {text}")
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

    # --- configure -------------------------------------------------------------------------------------------------

    def _configure(self, plan: StepPlan, epoch: int, cohort: Set[int], phases: Phases) -> dict[int, int] | None:
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
        # The others do so as often as that allows: what one told of last is all that is known of it when it dies.
        seldom_s = max(1.0, len(deployment.subscribers) / _PROGRESS_A_SECOND)
        command = Configure(
            epoch=epoch,
            settings=plan.settings,
            publishers=[],
            probe=bool(unproven),
            progress_s=progress_s,
            kafka=topic,
        )
        self._controller.tell(publishers, command)
        self._await(publishers, lambda: answers.ready.keys(), "publishers", "bind", self._ready_timeout_s)
        self._require_publishers()
        phases.end("bind")
        endpoints = [PublisherEndpoint(p, answers.ready[p]) for p in publishers]
        shares: dict[tuple[bool, bool, bool], list[int]] = {}
        for client in deployment.subscribers:
            shares.setdefault((client in cohort, client in unproven, client in sampled), []).append(client)
        for (in_cohort, probe, sample), ids in shares.items():
            self._controller.tell(
                ids,
                msgspec.structs.replace(
                    command,
                    settings=cohort_settings(plan) if in_cohort else plan.settings,
                    publishers=endpoints,
                    probe=probe,
                    progress_s=progress_s if sample else seldom_s,
                ),
            )
        everyone = [*publishers, *deployment.subscribers]
        self._await(everyone, lambda: answers.acked("configure"), "clients", "take their settings", 30.0)
        phases.end("settings")
        self._await(unproven, lambda: answers.ready.keys(), "subscribers", "get a probe", self._ready_timeout_s)
        self._require_publishers()
        phases.end("readiness")
        self._proven.update((c, proofs[c]) for c in unproven)
        if topic is None or plan.settings.acks != "0":
            return None
        if not unproven:
            return topic.offsets
        # The log has grown by the probes, which have no acknowledgements either: they end, and it comes to rest.
        answers.forget("configure", publishers)
        self._controller.tell(publishers, msgspec.structs.replace(command, probe=False))
        self._await(publishers, lambda: answers.acked("configure"), "publishers", "end their probes", 30.0)
        self._require_publishers()
        log_begin = self._settled(self._system.end_offsets())
        phases.end("end of probes")
        return log_begin

    def _proof(self, client: int, settings: Settings, topic: KafkaTopic | None) -> tuple[object, ...]:
        """What a subscriber's readiness depends on: the processes at both ends, and what rebuilds their sockets."""
        roster = self._controller.roster
        present = roster.present()
        ends = [roster.hello(c).pid for c in (client, *self._deployment.publishers) if c in present]
        where = (topic.bootstrap, topic.topic) if topic else ()
        return (*ends, settings.sndhwm, settings.rcvhwm, settings.nodrop, *where)

    def _await(
        self,
        ids: Iterable[int],
        answered: Callable[[], Set[int]],
        who: str,
        what: str,
        timeout_s: float,
        *,
        refusals: bool = True,
    ) -> None:
        """Waits until these clients, as far as they live, have answered; with ``refusals`` an error ends the step.

        Raises:
            StepError: some did not, said that they cannot, or the system under test is in trouble.
        """
        deployment, answers = self._deployment, self._controller.roster.answers
        wanted = set(ids)

        def done() -> bool:
            deployment.watch()
            for client, text in answers.errors.items():
                if client in wanted and refusals:
                    raise StepError(f"client {client}: {text}")
            if trouble := self._system.trouble():
                raise StepError(trouble)
            return _all_in(wanted, answered(), deployment.died)

        if not self._controller.wait_until(done, timeout_s):
            missing = wanted - answered() - deployment.died
            deployment.evict(missing)
            raise StepError(
                f"{len(missing)} of {len(wanted)} {who} did not {what} within {timeout_s:g} s: {named(missing)}"
            )

    def _require_publishers(self) -> None:
        if dead := self._deployment.died.intersection(self._deployment.publishers):
            raise StepError(f"publisher {min(dead)} died")

    # --- the window ------------------------------------------------------------------------------------------------

    def _run_window(self, plan: StepPlan, epoch: int, tick: Tick) -> tuple[int, int]:
        """Starts everyone and waits for the end of the window; returns it (ns on the step's clock)."""
        deployment, answers = self._deployment, self._controller.roster.answers
        offset_ns = wall_offset_ns()
        lead_ns = _LEAD_NS + plan.clients * _LEAD_PER_CLIENT_NS
        start_ns = time.monotonic_ns() + offset_ns + lead_ns
        stop_ns = start_ns + round(plan.duration_s * 1e9)
        everyone = [*deployment.publishers, *deployment.subscribers]
        self._controller.tell(
            everyone,
            Start(epoch=epoch, start_at_ns=start_ns, stop_at_ns=stop_ns, wall_offset_ns=offset_ns, boot_id=boot_id()),
        )
        self._note("window", f"epoch {epoch} runs")
        next_tick_ns = start_ns

        def over() -> bool:
            nonlocal next_tick_ns
            deployment.watch()
            self._require_publishers()
            if trouble := self._system.trouble():
                raise StepError(trouble)
            now_ns = time.monotonic_ns() + offset_ns
            if now_ns >= next_tick_ns:
                next_tick_ns = now_ns + _TICK_NS
                tick((now_ns - start_ns) / 1e9, _mean_rate(answers.progress, deployment.subscribers, start_ns))
            # A publisher that cannot go on says so; what it sent until then is measured.
            return now_ns >= stop_ns or any(p in answers.errors for p in deployment.publishers)

        self._controller.wait_until(over, lead_ns / 1e9 + plan.duration_s + _REPORT_MARGIN_S)
        stop_ns = min(stop_ns, time.monotonic_ns() + offset_ns)
        self._controller.tell(everyone, Stop(epoch=epoch, stop_at_ns=stop_ns))
        return start_ns, stop_ns

    # --- what came of it ---------------------------------------------------------------------------------------------

    def _collect(
        self, plan: StepPlan, epoch: int, log_begin: Mapping[int, int] | None
    ) -> Mapping[int, PublisherReport]:
        """Takes the publishers' reports, tells the subscribers what to expect and takes theirs."""
        deployment, answers = self._deployment, self._controller.roster.answers
        self._await(
            deployment.publishers,
            lambda: answers.publisher_reports.keys(),
            "publishers",
            "report",
            FLUSH_AT_MOST_S + _REPORT_MARGIN_S,
            # A publisher that stopped early has said so with an error, and still reports what it sent.
            refusals=False,
        )
        self._require_publishers()
        reports: dict[int, PublisherReport] = dict(answers.publisher_reports)
        end_offsets = self._system.end_offsets()
        if log_begin is not None:
            end_offsets = self._settled(end_offsets)
            # Nobody acknowledged anything: what the broker took is what its log grew by (there is one publisher).
            grown = sum(end_offsets.values()) - sum(log_begin.values())
            reports = {p: replace(r, acknowledged=grown) for p, r in reports.items()}
        drain_max_s = plan.duration_s + 5 if self._drain_max_s is None else self._drain_max_s
        self._controller.tell(
            deployment.subscribers,
            Finish(
                epoch=epoch,
                publishers=[
                    Sent(publisher=p, sent=r.sent, unacknowledged=r.unacknowledged) for p, r in reports.items()
                ],
                end_offsets=end_offsets,
                drain_max_s=drain_max_s,
                quiet_s=quiet_s(len(deployment.subscribers)),
            ),
        )
        asked = set(deployment.subscribers)

        def all_in() -> bool:
            deployment.watch()
            if trouble := self._system.trouble():
                raise StepError(trouble)
            return _all_in(asked, answers.subscriber_reports.keys(), deployment.died)

        self._controller.wait_until(all_in, drain_max_s + _REPORT_MARGIN_S)
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


def _all_in(wanted: Set[int], answered: Set[int], died: Set[int]) -> bool:
    """Whether all of these clients have answered or died; counted first, for it is asked after every few messages."""
    return len(answered) + len(died) >= len(wanted) and not wanted - answered - died


def caught_up(reports: Mapping[int, SubscriberReport], cohort: Set[int]) -> Set[int]:
    """The subscribers that nothing of the step can reach any more; all others prove their readiness again."""
    return {c for c, report in reports.items() if c not in cohort and report.drain in _NOTHING_FOLLOWS}


def quiet_s(clients: int) -> float:
    """How long a subscriber that misses something hears nothing before it takes the rest for lost, in seconds.

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
    """Messages/s since the start, as of when each subscriber told of it; 0 before any did."""
    told = [
        p.messages / (p.time_ns - start_ns) * 1e9
        for client, p in progress.items()
        if client in subscribers and p.time_ns > start_ns
    ]
    return sum(told) / len(told) if told else 0.0
