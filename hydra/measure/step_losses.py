"""The losses of a measured step, what its rate lacks, and how its seconds differ. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hydra.measure import loss_interval, loss_pattern, steadiness, stops
from hydra.measure.acceptance import Acceptance
from hydra.measure.column import Differences, LoneLossySubscriber, LossBursts, LossEvidence
from hydra.measure.lag import BacklogGrowth, growth
from hydra.measure.loss import TopicLosses
from hydra.measure.loss_interval import ConfidenceInterval
from hydra.measure.loss_pattern import sending_s
from hydra.measure.step_messages import StepMessages
from hydra.wire.arrays import Flags, total


class Shortfall(NamedTuple):
    """What a rate lacks that a system carries.

    Attributes:
        bursts: the sizes of the bursts of lost messages.
        pct: the share of the due messages that counts as lost or as backlog, in %.
        start_ms: the messages lost at the start of the step, in ms of traffic.
        lone: the subscriber that lost alone; None: there is none.
        rest: the bursts of all other subscribers; None: there is no such subscriber.
    """

    bursts: LossBursts
    pct: float
    start_ms: float
    lone: LoneLossySubscriber | None = None
    rest: LossBursts | None = None


@dataclass(frozen=True, eq=False)
class StepLosses(StepMessages):
    """What became of the messages of a step, and what its rate lacks."""

    @cached_property
    def loss_evidence(self) -> LossEvidence | None:
        """The evidence for the loss of the subscribers outside the cohort."""
        accounts, others = self.accounts, self.others
        # The losses of a dead subscriber are not random, and losses in reading from a log have no time.
        if (
            accounts is None
            or not accounts.exact
            or accounts.truncated
            or self.o.stored
            or self.outcome.loss_pct is None
        ):
            return None
        if not bool(self.subscribers.reported[others].all()):
            return None
        sent = max((p.sent for p in self.publishers), default=0)
        found = loss_interval.of_reports(accounts.evidence(self.reports), self.o.plan, sent)
        return found if found.total or not self.outcome.loss_pct else None

    @cached_property
    def loss_limits(self) -> ConfidenceInterval | None:
        """The 95 % confidence interval of that loss, in %."""
        lost_pct, evidence = self.outcome.loss_pct, self.loss_evidence
        return loss_interval.around(lost_pct, [evidence]) if evidence and lost_pct is not None else None

    @cached_property
    def growing(self) -> BacklogGrowth:
        """The growth of the backlog."""
        return growth(self.reports.lag_bins_us, self.o.plan.duration_s)

    @property
    def passed(self) -> bool | None:
        """Whether the rate passes; None: not known."""
        return self.passes(self.others, self.acceptance.unaccepted_share if self.acceptance else 0.0)

    def passes(self, clients: Flags, unaccepted: float = 0.0, *, reporting: bool = False) -> bool | None:
        """Whether the rate passes for these subscribers (``reporting``: all of them reported); None: not known.

        ``unaccepted`` is the share of the messages sent that the system did not accept; they count as lost. With a stop
        the system did not carry the rate all the time.
        """
        accounts, target = self.accounts, self.o.loss_target
        if accounts is None:
            return None
        if self.stops and self.stops.stops:
            return False
        of = accounts.of_reporting if reporting else accounts.of
        at_best = of(clients).passes(target, unaccepted)
        if at_best and self.o.steady and self.growing.falling_behind:
            return False
        if at_best and not accounts.exact and not of(clients, "least").passes(target, unaccepted):
            return None
        return at_best

    @cached_property
    def shortfall(self) -> Shortfall | None:
        """What the rate lacks; None at rate ``max`` and without an account."""
        o, accounts, taken, reports = self.o, self.accounts, self.acceptance, self.reports
        rate = o.plan.settings.rate
        if rate == "max" or o.plan.load or o.stored or accounts is None or taken is None or accounts.truncated:
            return None
        if not self.outcome.expected or not len(reports):
            return None
        # The planned length counts, since a step that stopped early lacks the messages of the rest.
        length_s, unsustained, share = sending_s(o.plan), self._unsustained(taken), self._own_share
        profile = loss_pattern.loss_profile(accounts.evidence(reports), rate, length_s, share)
        sizes = loss_pattern.bursts(profile, length_s, unsustained)
        # What was due in a stop was not carried; the part of it that was lost is in the bursts already.
        if self.stops and (more_s := self.stops.stopped_s - sum(sizes)) > 0:
            sizes.append(more_s)
        found = Shortfall(
            LossBursts(tuple(sizes)),
            pct=100 * sum(sizes) / length_s,
            start_ms=1000 * loss_pattern.start_lost_s(profile, length_s),
        )
        # A single member of a consumer group has no losses.
        lone = None if o.group else loss_pattern.lone_loser(self.subscribers.ids, self.others, accounts.most)
        if lone is None:
            return found
        rest = loss_pattern.loss_profile(reports.take(reports.ids != lone.client), rate, length_s, share)
        of_rest = LossBursts(tuple(loss_pattern.bursts(rest, length_s, unsustained)))
        return found._replace(lone=lone, rest=of_rest)

    @property
    def lone(self) -> LoneLossySubscriber | None:
        """The subscriber that lost alone."""
        return self.shortfall.lone if self.shortfall else None

    def _unsustained(self, taken: Acceptance) -> float:
        """The share of the rate that cannot be sustained.

        A growing or undrained backlog, messages that a publisher never sent, and messages that a server never accepted.
        If no lag is known, it is all that was not received in time.
        """
        outcome, share = self.outcome, self.growing.share
        behind = (outcome.undrained + outcome.unknown) / outcome.expected
        if share is None:
            behind = 1 - (outcome.in_time + outcome.lost) / outcome.expected
        return min(max(share or 0.0, behind, taken.unsent_share) + taken.unaccepted_of_due, 1.0)

    @property
    def _own_share(self) -> float:
        """The mean share of a publisher's messages that a subscriber expects: below 1 if it has some of the topics."""
        o, reports = self.o, self.reports
        if o.plan.settings.chosen_topics == o.plan.settings.topics:
            return 1.0
        acknowledged = {p: report.acknowledged for p, report in o.publisher_reports.items()}
        due = sum(acknowledged.get(publisher, 0) for publisher in reports.publisher.tolist())
        return total(reports.received + reports.missing) / due if due else 1.0

    @cached_property
    def topic_losses(self) -> TopicLosses:
        """The losses of the topics with most messages, beside those of all others."""
        known = bool(self.subscribers.reported[self.others].all())
        return TopicLosses.of(self.reports) if known else TopicLosses()

    # --- seconds ---------------------------------------------------------------------------------------------------

    @cached_property
    def stops(self) -> stops.Found | None:
        """The times in which nothing arrived; None: they are unknown."""
        return stops.found_in(self.o)

    @cached_property
    def differences(self) -> Differences | None:
        """How the seconds of the window differ; None: they are too few."""
        received = self.o.received
        interval_s = max(round(self.o.window_s / len(received)), 1) if received else 1
        found = steadiness.unsteady(received, interval_s, self.stops or stops.Found())
        return None if found is None else Differences(tuple(found))
