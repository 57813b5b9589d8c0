"""The clients, messages and connections of a measured step as typed parts. Pure.

In a step with a cohort, the parts are those of the other subscribers. Only ``everyone`` and the sums of reported counts
are over all subscribers. What cannot be known is None, never an invented number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from hydra.measure import loss
from hydra.measure.acceptance import Acceptance, acceptance, subscribers_lost
from hydra.measure.column import ReportColumn
from hydra.measure.connections import Connections, reports_of
from hydra.measure.latency import MergedHistograms, StepLatencies
from hydra.measure.loss import FailedClients, MessageOutcome, StepSubscribers, step_subscribers
from hydra.measure.loss_pattern import sending_s
from hydra.measure.message_accounting import MessageAccounts, accounts_of, counted_account, counted_payload
from hydra.measure.message_accounting import account as log_account
from hydra.measure.observation import Observation, mean_over
from hydra.measure.rates import SECOND_NS, jain, nearest_rank
from hydra.measure.traffic import StepRates
from hydra.model import Figure, PublisherReport
from hydra.wire.arrays import Flags, Ints, sorted_ids, total
from hydra.wire.data_message import payload
from hydra.wire.report_validation import MAX_ABSENT
from hydra.wire.subscriber_table import OF_LEDGERS, SubscriberTable
from hydra.wire.traffic import traffic_of

_NOTHING: Final = MessageOutcome()


@dataclass(frozen=True, eq=False)
class StepMessages:
    """What became of the messages of a step; each part is computed when it is first read.

    Attributes:
        o: the observations of the step.
        histograms: its merged histograms.
    """

    o: Observation
    histograms: MergedHistograms

    # --- clients ---------------------------------------------------------------------------------------------------

    @cached_property
    def publishers(self) -> list[PublisherReport]:
        """The reports of the publishers."""
        return list(self.o.publisher_reports.values())

    @cached_property
    def subscribers(self) -> StepSubscribers:
        """The subscribers, with the reports of those that reported."""
        o = self.o
        return step_subscribers(o.subscribers, o.subscriber_reports, o.cohort, o.dead, o.silent)

    @property
    def others(self) -> Flags:
        """The flags of the subscribers outside the cohort."""
        return self.subscribers.others

    @cached_property
    def reports(self) -> SubscriberTable:
        """The reports of the subscribers outside the cohort."""
        return self.subscribers.reports_of(self.others)

    @cached_property
    def failed(self) -> FailedClients:
        """The numbers of failed subscribers; messages without a header show no subscriber that lost any."""
        counts = self.accounts.most if self.accounts and not self.o.counted else None
        return loss.failed_clients(self.subscribers, self.others, counts)

    @property
    def subscriber_cpu_s(self) -> float:
        """The CPU time of all subscribers."""
        reports = self.subscribers.reports
        return float((reports.cpu_user_s + reports.cpu_system_s).sum())

    @property
    def subscriber_rss_max_bytes(self) -> int | None:
        """The largest resident set size of a subscriber; None: none reported."""
        sizes = self.subscribers.reports.max_rss_bytes
        return int(sizes.max()) if len(sizes) else None

    @property
    def deaths(self) -> str | None:
        """How the dead subscribers ended: ``SIGKILL``, ``2 × SIGKILL, 1 × exit code 3``; None: none died."""
        if not self.failed.dead or not self.o.deaths:
            return None
        dead = self.subscribers.ids[self.others & self.subscribers.dead]
        counts = {how: int(np.isin(dead, sorted_ids(ids)).sum()) for how, ids in self.o.deaths.items()}
        found = {how: count for how, count in counts.items() if count}
        return ", ".join(f"{count} × {how}" if len(found) > 1 else how for how, count in found.items())

    def reported(self, column: ReportColumn) -> Figure:
        """The figure of a system's column from the reports of its clients."""
        reports = (p.system for p in self.publishers)
        systems = reports if column.role == "publisher" else self.o.subscriber_reports.systems()
        values: list[Any] = [value for each in systems if (value := (each or {}).get(column.key)) is not None]
        if not values:
            return None
        if column.fold == "mean":
            return float(sum(values)) / len(values)
        folded: Figure = sum(values) if column.fold == "sum" else max(values)
        return None if column.fold == "common" and min(values) != folded else folded

    # --- messages --------------------------------------------------------------------------------------------------

    @cached_property
    def accounts(self) -> MessageAccounts | None:
        """The accounts of all subscribers; None if a publisher's report lacks, so the expected messages are unknown."""
        o = self.o
        if not o.publisher_reports or not all(p in o.publisher_reports for p in o.publishers):
            return None
        return accounts_of(
            *(self.subscribers, o.publisher_reports, o.window_s, o.last_words),
            # Messages that are only counted cannot be assigned to members of a consumer group.
            group=bool(o.group) and not o.counted,
            one_publisher=o.one_publisher,
            traffic=traffic_of(o.plan.settings),
        )

    @cached_property
    def outcome(self) -> MessageOutcome:
        """The outcome of the messages of the subscribers outside the cohort; of nothing if it is unknown."""
        return self.accounts.of(self.others) if self.accounts else _NOTHING

    @cached_property
    def least(self) -> MessageOutcome:
        """The same with the least possible number of received messages."""
        return self.accounts.of(self.others, "least") if self.accounts else _NOTHING

    @property
    def exact(self) -> MessageOutcome | None:
        """The same if the number of received messages is known exactly."""
        return self.outcome if self.accounts and self.accounts.exact else None

    @property
    def live(self) -> MessageOutcome | None:
        """The same if subscribers read while publishers sent."""
        return None if self.o.stored else self.exact

    @property
    def bounded(self) -> bool:
        """Whether only the limits of the loss are known."""
        return self.accounts is not None and not self.accounts.exact

    @cached_property
    def everyone(self) -> MessageOutcome | None:
        """The outcome of the messages of all subscribers, the cohort included; None: unknown, or no subscribers."""
        return self.accounts.of() if self.accounts and len(self.subscribers.ids) else None

    @property
    def exact_of_all(self) -> MessageOutcome | None:
        """The same if the number of received messages is known exactly."""
        return self.everyone if self.accounts and self.accounts.exact else None

    @cached_property
    def of_cohort(self) -> MessageOutcome:
        """The outcome of the cohort's messages; of nothing if unknown, as losses of a group belong to no member."""
        known = self.accounts if self.accounts and self.accounts.exact and not self.o.group else None
        return known.of(self.subscribers.cohort) if known else _NOTHING

    @cached_property
    def cohort_reports(self) -> SubscriberTable:
        """The reports of the cohort."""
        return self.subscribers.reports_of(self.subscribers.cohort)

    @property
    def reconnects(self) -> int:
        """The reconnects of the cohort."""
        return total(self.cohort_reports.reconnects)

    @property
    def absent_s(self) -> float | None:
        """The time in which members of the cohort were disconnected; None: not all of it is listed."""
        reports = self.cohort_reports
        # The last intervals of a full list may be joined over times in which the subscriber was connected.
        if bool((reports.absent_counts >= MAX_ABSENT).any()):
            return None
        return total(reports.absent[1::2] - reports.absent[0::2]) / SECOND_NS

    @property
    def cohort_felt(self) -> bool | None:
        """Whether buffers of slow subscribers filled; None: there are none."""
        slow = self.o.plan.cohort.kind == "slow" and len(self.cohort_reports)
        return bool(self.cohort_reports.felt.any()) if slow else None

    @cached_property
    def ledgers(self) -> SubscriberTable:
        """The ledgers of all subscribers, or of their group."""
        return self.accounts.ledgers(self.subscribers.reports) if self.accounts else self.subscribers.reports

    def added(self, name: str) -> int:
        """The sum of a count that all subscribers report."""
        return total(getattr(self.ledgers if name in OF_LEDGERS else self.subscribers.reports, name))

    @property
    def _received_exactly(self) -> bool:
        """Whether subscribers outside the cohort expected messages, and it is known how many they received."""
        return bool(self.exact and self.outcome.expected)

    @cached_property
    def received(self) -> Ints:
        """The messages that each subscriber outside the cohort received; empty if the numbers are unknown."""
        known = self.accounts if self._received_exactly else None
        return known.received(self.others) if known else np.zeros(0, np.int64)

    @property
    def mean_received(self) -> float | None:
        """The mean of these numbers."""
        return total(self.received) / len(self.received) if len(self.received) else None

    def received_at(self, percent: float) -> int | None:
        """A nearest-rank percentile of these numbers; None: they are unknown."""
        return nearest_rank(self.received, percent) if len(self.received) else None

    @property
    def fairness(self) -> float | None:
        """Jain's index of these numbers."""
        return jain(self.received) if len(self.received) else None

    @property
    def payload(self) -> str | None:
        """What the messages contained; None: zeros of one size."""
        return counted_payload(self.o.plan.settings) if self.o.counted else payload(self.o.plan.settings)

    @cached_property
    def traffic(self) -> StepRates:
        """What was sent and received per second."""
        return StepRates(self.o, self.subscribers, self.accounts, self._received_exactly)

    @cached_property
    def latencies(self) -> StepLatencies:
        """The latencies, and what publishers waited for."""
        return StepLatencies(self.o, self.histograms, self.publishers, self.subscribers)

    @cached_property
    def acceptance(self) -> Acceptance | None:
        """What the system accepted; None: a publisher's report lacks."""
        plan = self.o.plan
        if self.accounts is None:
            return None
        return acceptance(self.publishers, plan.settings.rate, sending_s(plan), self.o.loss_target)

    @property
    def unexplained(self) -> Acceptance | None:
        """The same if nothing that the step asked for explains lost connections and stops of publishers."""
        return None if self.o.explained else self.acceptance

    @cached_property
    def subscribers_lost(self) -> tuple[int, str] | None:
        """The subscribers whose connection was lost without such a cause, and why the first of them lost it.

        The reason is "" if it is not known. None: something explains it, or a publisher's report lacks.
        """
        if self.unexplained is None or self.o.plan.cohort.kind != "none":
            return None
        return subscribers_lost(self.o.subscriber_reports.systems())

    @property
    def account(self) -> str | None:
        """The agreement of the servers' log with the clients' counts; None: not known."""
        o = self.o
        if o.counted:
            return counted_account(self.publishers, self.subscribers.reports, o.log_growth, shared=bool(o.group))
        if o.log_growth is None or self.accounts is None:
            return None
        all_ = self.accounts.of()
        extra, duplicates = (
            int(self.ledgers.of_clients(counts).max(initial=0))
            for counts in (self.ledgers.extra, self.ledgers.duplicates)
        )
        return log_account(
            o.log_growth,
            # The acknowledged messages of a publisher without a report are unknown.
            sum(p.acknowledged for p in self.publishers),
            sum(p.sent for p in self.publishers) if o.log_acknowledges else None,
            missing=all_.expected - all_.received,
            duplicates=duplicates,
            extra=extra,
            shared=bool(o.group),
        )

    # --- connections -----------------------------------------------------------------------------------------------

    @cached_property
    def connections(self) -> Connections:
        """How the subscribers connected and came back."""
        o = self.o
        reports = reports_of(o.subscriber_reports.systems())
        # The disconnections of a cohort are planned, or follow from its slowness.
        return Connections(o.connecting, reports, len(self.subscribers.ids), planned=bool(len(o.cohort)))

    def server_mean(self, *names: str) -> float | None:
        """The mean, over the servers that report any of these figures, of their sum; None: none does."""
        return mean_over(self.o.servers, *names)
