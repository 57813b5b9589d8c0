"""What publishers sent and subscribers received in a step, per second. Pure.

A step at rate ``max`` that sends a number of messages has rates from its first message to its last; any other step has
rates over its window. The window of a tool contains the start of its program, so its reports are over its own time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from hydra.measure import rates
from hydra.measure.loss import StepSubscribers
from hydra.measure.message_accounting import MessageAccounts
from hydra.measure.observation import Observation
from hydra.model import PublisherReport
from hydra.wire.arrays import Floats, total
from hydra.wire.subscriber_table import SubscriberTable


@dataclass(frozen=True, eq=False)
class StepRates:
    """The rates of a step; None: not known.

    Attributes:
        o: the step.
        subscribers: its subscribers.
        accounts: the outcomes of their messages; None: the expected messages are unknown.
        known: whether the number of received messages is known exactly.
    """

    o: Observation
    subscribers: StepSubscribers
    accounts: MessageAccounts | None
    known: bool

    @property
    def _spans(self) -> bool:
        """Whether rates are those from the first message to the last."""
        return self.o.plan.settings.rate == "max" and self.o.plan.settings.messages is not None

    @cached_property
    def _too_few(self) -> bool:
        """Whether the step has no rate: at rate ``max``, a few messages take as long as a single delay."""
        return self._spans and any(p.acknowledged < rates.LEAST_MESSAGES for p in self._publishers)

    @cached_property
    def _publishers(self) -> list[PublisherReport]:
        return list(self.o.publisher_reports.values())

    @cached_property
    def _others(self) -> SubscriberTable:
        """The reports of the subscribers outside the cohort."""
        return self.subscribers.reports_of(self.subscribers.others)

    # --- sending ---------------------------------------------------------------------------------------------------

    @cached_property
    def _own_tx_pps(self) -> list[float] | None:
        """The messages/s of each publisher in its own time; None: not known."""
        requested = self.o.plan.settings.rate
        if requested == "max":
            return rates.own_tx_rates_pps(self._publishers, 0 if self.o.counted else 1)
        return [rates.tool_tx_rate_pps(p, requested, self.o.window_ns) for p in self._publishers]

    @property
    def _in_window(self) -> bool:
        return not self.o.counted and not self._spans

    @property
    def tx_pps(self) -> float | None:
        """The mean messages/s of a publisher."""
        if self.accounts is None or self._too_few:
            return None
        if self._in_window:
            return rates.tx_rate_pps(self._publishers, self.o.rated_ns)
        return fmean(self._own_tx_pps) if self._own_tx_pps else None

    @property
    def tx_mb_s(self) -> float | None:
        """The megabytes/s of all publishers."""
        if self.accounts is None or self._too_few:
            return None
        if self._in_window:
            return rates.tx_mb_s(self._publishers, self.o.rated_ns)
        return rates.tx_mb_s_at(self._publishers, self._own_tx_pps) if self._own_tx_pps else None

    @property
    def tx_span_pps(self) -> float | None:
        """The mean messages/s of a publisher from its first message to its last."""
        return None if self.accounts is None or self._too_few else rates.tx_span_rate_pps(self._publishers)

    # --- receiving -------------------------------------------------------------------------------------------------

    @cached_property
    def _receiving_s(self) -> float | None:
        """The seconds by which receive rates are divided: the window, or the time of reading stored messages."""
        if self.o.reading_ns is None:
            start_ns, stop_ns = self.o.rated_ns
            return (stop_ns - start_ns) / rates.SECOND_NS
        read_ns = int(self.subscribers.reports.last_ns.max(initial=0)) - self.o.reading_ns
        return read_ns / rates.SECOND_NS if read_ns > 0 else None

    def _own_rx_pps(self, reports: SubscriberTable) -> Floats | None:
        """The messages/s of each of these subscribers from its first message to its last."""
        return rates.own_rx_rates_pps(reports, shared=bool(self.o.group))

    def _tool_rx_pps(self, reports: SubscriberTable) -> Floats:
        """The messages/s that each tool read in its own time; NaN: unknown."""
        requested = self.o.plan.settings.rate
        if requested == "max" or self.o.stored:
            return rates.rx_span_rates_pps(reports)
        return rates.tool_rx_rates_pps(reports, self._publishers, requested)

    @property
    def rx_pps(self) -> float | None:
        """The mean messages/s that a subscriber outside the cohort received."""
        accounts, others = self.accounts, self.subscribers.others
        if accounts is None or not self.known:
            return None
        if self.o.counted:
            # Tools without a rate from the first batch to the last have no other.
            own = None if self.rx_span_pps is None else rates.known(self._tool_rx_pps(self._others))
            return float(own.mean()) if own is not None and len(own) else None
        if self._too_few:
            return None
        if self._spans and not self.o.stored:
            own = self._own_rx_pps(self._others) if bool(self.subscribers.reported[others].all()) else None
            return None if own is None else float(own.mean())
        received = (accounts.most.received if self.o.stored else accounts.most.in_window)[others]
        seconds = self._receiving_s
        return total(received) / len(received) / seconds if seconds and len(received) else None

    @property
    def aggregate_pps(self) -> float | None:
        """The messages/s that all subscribers received together."""
        if self.accounts is None or not self.known or self._too_few:
            return None
        if self._spans and not self.o.stored:
            own = self._own_rx_pps(self.subscribers.reports) if bool(self.subscribers.reported.all()) else None
            return None if own is None else float(own.sum())
        of_all, seconds = self.accounts.of(), self._receiving_s
        return (of_all.received if self.o.stored else of_all.in_window) / seconds if seconds else None

    @property
    def rx_mb_s(self) -> float | None:
        """The megabytes/s that all subscribers received together."""
        reports = self.subscribers.reports
        if not self.known or self._too_few:
            return None
        if self.o.counted:
            return rates.tool_rx_mb_s(reports, self._tool_rx_pps(reports))
        if self._spans and not self.o.stored:
            own = self._own_rx_pps(reports)
            return None if own is None else rates.rx_mb_s(reports, own, 1.0)
        counts, seconds = reports.received if self.o.stored else reports.in_window, self._receiving_s
        return rates.rx_mb_s(reports, reports.of_clients(counts), seconds) if seconds else None

    @cached_property
    def rx_spans_pps(self) -> list[float]:
        """The messages/s of each subscriber outside the cohort from its first batch to its last, if it has two."""
        return rates.known(rates.rx_span_rates_pps(self._others)).tolist() if self.known and not self._too_few else []

    @property
    def rx_span_pps(self) -> float | None:
        """The mean of these rates."""
        return fmean(self.rx_spans_pps) if self.rx_spans_pps else None
