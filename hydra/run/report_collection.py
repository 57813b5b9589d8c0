"""The end of a step: publishers report; subscribers learn the number of messages, drain and report."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np
from pyroaring import BitMap

from hydra.control.epoch_replies import fit_unacknowledged
from hydra.model import DRAIN_ENDS, PublisherReport
from hydra.monitor.step_progress import TICK_NS, Tick, draining, reading
from hydra.run.client_sets import subscription_map
from hydra.run.command_exchange import ANSWER_WITHIN_S, CommandExchange
from hydra.run.context import RunContext, StepSetup
from hydra.run.deployment import Deployment
from hydra.run.step_servers import settled
from hydra.wire import FLUSH_AT_MOST_S
from hydra.wire.messages import Finish, PublisherTotal, Stop
from hydra.wire.subscriber_table import EMPTY, SubscriberTable

_REPORT_MARGIN_S: Final = 15.0
"""The wait for reports ends when none has arrived for this many seconds."""
_QUIET_S: Final = 0.5
_QUIET_PER_CLIENT_S: Final = 0.00025
_NOTHING_FOLLOWS: Final = [DRAIN_ENDS.index("complete"), DRAIN_ENDS.index("marked")]
"""The ends of a drain after which no data of the step can follow; after any other end, data may be on its way."""

_AGES: Final = ("latency_count", "latency_min_us", "latency_p50_us", "latency_p99_us", "latency_max_us")
_AGES_OF_ALL: Final = (
    "lag_bins_us", "latency_bounds", "latency_counts", "cohort_latency_bounds", "cohort_latency_counts",
    "hot_latency_bounds", "hot_latency_counts",
)  # fmt: skip

Publishers = Mapping[int, PublisherReport]
"""The reports of publishers by id."""


class ReportCollector:
    """Collects the reports of one step.

    Attributes:
        drain_max_s: the time limit of the drain in seconds.

    Arguments:
        run: the run of the step.
        deployment: the clients.
        asker: sends commands to the clients.
        step: the setup of the step.
        window: its begin and end (ns on the step's clock).
        now_ns: reads that clock.
    """

    def __init__(
        self,
        run: RunContext,
        deployment: Deployment,
        asker: CommandExchange,
        step: StepSetup,
        window: tuple[int, int],
        now_ns: Callable[[], int],
    ) -> None:
        self._run = run
        self._deployment = deployment
        self._asker = asker
        self._step = step
        self._plan = plan = step.plan
        self._window = window
        self._now_ns = now_ns
        drain_max_s = run.scenario.drain_max_s
        self.drain_max_s = plan.duration_s + 5 if drain_max_s is None else drain_max_s
        if step.stored:
            # Subscribers read all messages, which may take as long as sending them.
            self.drain_max_s = max(self.drain_max_s, plan.duration_s)

    # --- publishers ------------------------------------------------------------------------------------------------

    def publishers(self, log_begin: int | None) -> tuple[Publishers, int | None]:
        """Ends the window; returns the publishers' reports, and the messages by which the servers' log grew.

        Args:
            log_begin: the messages in the log when the step began; None: there is no log.

        Raises:
            StepError: a publisher died or did not report, or the system failed.
        """
        deployment, answers = self._deployment, self._run.controller.roster.answers
        stop = Stop(epoch=self._run.epoch, number=answers.next_number(), stop_at_ns=self._window[1])
        publishers = BitMap(deployment.publishers)
        live = BitMap(range(0) if self._step.stored else deployment.subscribers)
        self._run.controller.send_to(live, stop)
        # A publisher that stopped early has reported an error, and still reports what it sent.
        timeout_s = FLUSH_AT_MOST_S + _REPORT_MARGIN_S
        missing = self._asker.ask(
            [(publishers, stop)],
            lambda: BitMap(answers.publisher_reports),
            timeout_s,
            self._asker.check_system,
            margin_s=_REPORT_MARGIN_S,
        )
        self._asker.evict_unanswered(missing, len(publishers), "publishers", "report", timeout_s)
        self._asker.require_publishers()
        if round(self._plan.duration_s * 1e9) > self._window[1] - self._window[0]:
            # Only this message informs subscribers that the window ended earlier than planned.
            self._asker.ask([(live, stop)], lambda: answers.acked(stop.number), ANSWER_WITHIN_S, is_sent=True)
        reports = fit_unacknowledged(answers.publisher_reports)
        if log_begin is None:
            return reports, None
        expected = log_begin + sum(r.sent for r in reports.values())
        log_end = settled(self._run.system.servers, self._plan.settings, self._run.controller.wait_until, expected)
        grown = (log_end or 0) - log_begin
        if self._step.delivery.log_acknowledges:
            # The servers accepted the messages by which their log grew (there is one publisher).
            reports = {p: replace(r, acknowledged=grown) for p, r in reports.items()}
        return reports, grown

    # --- subscribers -----------------------------------------------------------------------------------------------

    def subscribers(self, publishers: Publishers, tick: Tick) -> None:
        """Sends the subscribers the number of messages to expect, and waits for their reports."""
        since_ns = self._now_ns()
        self._finish(publishers, lambda now_ns: tick(draining(self.drain_max_s, since_ns, now_ns)))

    def stored(self, publishers: Publishers, since_ns: int, tick: Tick) -> None:
        """As :meth:`subscribers`, for subscribers that read stored messages since ``since_ns``."""
        deployment, answers = self._deployment, self._run.controller.roster.answers
        expected = sum(r.acknowledged for r in publishers.values())
        shared = self._step.delivery.group != ""

        def report(now_ns: int) -> None:
            tick(reading(expected, answers.progress, deployment.subscribers, since_ns, now_ns, shared=shared))

        self._finish(publishers, report)

    def _finish(self, publishers: Publishers, report: Callable[[int], None]) -> None:
        """Waits for the reports; ``report`` is called a few times a second with the time on the step's clock, ns."""
        subscribers, answers = BitMap(self._deployment.subscribers), self._run.controller.roster.answers
        if not subscribers:
            return
        next_tick_ns = self._now_ns()

        def look() -> None:
            nonlocal next_tick_ns
            self._asker.check_system()
            now_ns = self._now_ns()
            if now_ns >= next_tick_ns:
                next_tick_ns = now_ns + TICK_NS
                report(now_ns)

        sent = {
            p: PublisherTotal(publisher=p, sent=r.sent, unacknowledged=r.unacknowledged) for p, r in publishers.items()
        }
        finish = Finish(
            epoch=self._run.epoch,
            number=answers.next_number(),
            publishers=[],
            drain_max_s=self.drain_max_s,
            quiet_s=quiet_s(len(subscribers)),
            system=self._run.system.finish(),
        )
        one = self._step.delivery.one_publisher
        self._asker.ask(
            [
                (listeners, msgspec.structs.replace(finish, publishers=[sent[p] for p in served]))
                for served, listeners in subscription_map(subscribers, sorted(sent), one=one)
            ],
            lambda: answers.subscriber_reports.ids,
            self.drain_max_s + _REPORT_MARGIN_S,
            look,
            margin_s=_REPORT_MARGIN_S,
        )


def caught_up(reports: SubscriberTable, cohort: BitMap, *, nothing_left: bool = False) -> BitMap:
    """The subscribers that no more data of the step can reach; all others must prove their readiness again.

    ``nothing_left``: they are a consumer group that has received everything.
    """
    done = np.isin(reports.drain, _NOTHING_FOLLOWS) | nothing_left
    return BitMap(array("I", reports.ids[done].astype(np.uint32).tobytes())) - cohort


def quiet_s(clients: int) -> float:
    """The seconds without a message after which a subscriber counts missing messages as lost.

    A publisher serves its connections in turn. At full rate with 7,680 subscribers one turn took a second, which is
    0.13 ms for each. The time is twice that, plus the delays of a scheduler in a small step.
    """
    return _QUIET_S + clients * _QUIET_PER_CLIENT_S


def stored_only(reports: SubscriberTable) -> SubscriberTable:
    """The reports without latencies and lags, which have no meaning for stored messages."""
    none: dict[str, Any] = dict.fromkeys(_AGES, np.zeros_like(reports.latency_count))
    none |= dict.fromkeys(_AGES_OF_ALL, EMPTY.latency_counts)
    return reports.changed(**none)
