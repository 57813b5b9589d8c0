"""The progress of a step, for the live view and the exported metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final, Literal, NamedTuple

from pyroaring import BitMap

from hydra.measure.step_result import StepResult
from hydra.model import HostSample, StepPlan
from hydra.wire.messages import Progress

_SLOWEST: Final = 3
"""The number of slowest subscribers that are shown."""
Doing = Literal["sending", "draining", "reading"]
"""The phase of a step: its window is open; subscribers drain after its end; subscribers read stored messages."""


@dataclass(frozen=True, slots=True)
class ProgressDetails:
    """Details of a running step beside its rates, computed only if they are shown.

    Attributes:
        missing: the share of the sent messages that subscribers do not have yet, lost or on their way, from the mean
            rates; None: not known.
        slowest: the subscribers with the lowest mean rates, and these rates (messages/s), slowest first, without the
            cohort.
        of: the number of subscribers that reported their progress, of which these are the slowest.
        cpu_pct: the CPU time of all cores that each host used in about the last second, in %.
    """

    missing: float | None = None
    slowest: tuple[tuple[int, float], ...] = ()
    of: int = 0
    cpu_pct: Mapping[str, float] = field(default_factory=dict)


class ReportedTotals(NamedTuple):
    """The reports of clients in a step: their number, their messages, and the sum of their mean rates (messages/s)."""

    clients: int = 0
    messages: int = 0
    rates_pps: float = 0.0

    @property
    def mean_pps(self) -> float:
        """The mean rate of the clients that have reported, messages/s."""
        return self.rates_pps / self.clients if self.clients else 0.0


NO_REPORTS: Final = ReportedTotals()


@dataclass(frozen=True, slots=True)
class StepProgress:
    """A moment of a step's window, of its drain, or of the reading of stored messages.

    Attributes:
        elapsed_s: seconds since the window (or the drain, or the reading) began.
        share: the completed part of the step, 0 to 1: of its messages if it has a number of them, otherwise of its
            length.
        sent_pps: mean rate (messages/s) of all publishers together that have reported.
        received_pps: mean rate (messages/s) of the subscribers that have reported.
        doing: the phase of the step.
        time_ns: the moment on the step's clock, in ns.
        sent: the reports of publishers so far.
        received: the reports of subscribers so far.
        hosts: returns the last two samples of each host, by its name; a call unpacks the samples received since.
        p99_us: 99th percentile of the latency in the last reported second, in µs; None without a time series.
        watched: returns further details of this moment; a call takes about a millisecond.
    """

    elapsed_s: float
    share: float
    sent_pps: float = 0.0
    received_pps: float = 0.0
    doing: Doing = "sending"
    time_ns: int = 0
    sent: ReportedTotals = NO_REPORTS
    received: ReportedTotals = NO_REPORTS
    hosts: Callable[[], Mapping[str, tuple[HostSample, HostSample]]] = dict
    p99_us: float | None = None
    watched: Callable[[], ProgressDetails] = ProgressDetails

    @property
    def left_s(self) -> float | None:
        """About how many seconds the step still takes; None if that is not known yet."""
        return self.elapsed_s * (1 - self.share) / self.share if self.share > 0 else None


Tick = Callable[[StepProgress], None]
"""Called a few times a second during a step."""
TICK_NS: Final = 250_000_000
"""The time between two calls."""


def sending(
    plan: StepPlan, progress: Mapping[int, Progress], publishers: range, subscribers: range, start_ns: int, now_ns: int
) -> StepProgress:
    """A moment of the window.

    Args:
        plan: the plan of the step.
        progress: the last report of each client.
        publishers: the ids of the publishers.
        subscribers: the ids of the subscribers.
        start_ns: the start of the window on the step's clock.
        now_ns: the present on that clock.
    """
    elapsed_s = max(now_ns - start_ns, 0) / 1e9
    share = elapsed_s / plan.duration_s
    if plan.settings.messages is not None:
        messages = sum(progress[p].messages for p in publishers if p in progress)
        share = max(share, messages / (plan.settings.messages * len(publishers)))
    sent, received = _totals(progress, publishers, start_ns), _totals(progress, subscribers, start_ns)
    return StepProgress(
        *(elapsed_s, min(share, 1.0), sent.rates_pps, received.mean_pps), time_ns=now_ns, sent=sent, received=received
    )


def reading(
    expected: int, progress: Mapping[int, Progress], subscribers: range, start_ns: int, now_ns: int, *, shared: bool
) -> StepProgress:
    """How many of the stored messages the subscribers have read by now.

    Args:
        expected: the number of stored messages.
        progress: the last report of each client.
        subscribers: the ids of the subscribers.
        start_ns: the time when they began to read, on the step's clock.
        now_ns: the present on that clock.
        shared: whether the subscribers share the messages; otherwise each reads all of them.
    """
    read = sum(progress[c].messages for c in subscribers if c in progress)
    share = read / max(expected * (1 if shared else len(subscribers)), 1)
    totals = _totals(progress, subscribers, start_ns)
    elapsed_s = max(now_ns - start_ns, 0) / 1e9
    return StepProgress(elapsed_s, min(share, 1.0), 0.0, totals.mean_pps, "reading", time_ns=now_ns, received=totals)


def draining(drain_s: float, start_ns: int, now_ns: int) -> StepProgress:
    """A moment of the drain, which takes at most ``drain_s`` seconds; both times are on the step's clock."""
    elapsed_s = max(now_ns - start_ns, 0) / 1e9
    return StepProgress(elapsed_s, min(elapsed_s / drain_s, 1.0) if drain_s else 1.0, doing="draining", time_ns=now_ns)


def watched(
    moment: StepProgress,
    progress: Mapping[int, Progress],
    clients: BitMap,
    start_ns: int,
    publishers_each: float,
    cpu_pct: Mapping[str, float],
) -> ProgressDetails:
    """Further details of a moment of the window.

    Args:
        moment: the moment.
        progress: the last report of each client.
        clients: the subscribers outside the cohort.
        start_ns: the start of the window on the step's clock.
        publishers_each: the share of the publishers that each subscriber subscribes to; 0: not known.
        cpu_pct: as in :class:`ProgressDetails`.
    """
    rates = {
        client: p.messages / (p.time_ns - start_ns) * 1e9
        for client, p in progress.items()
        if p.time_ns > start_ns and client in clients
    }
    due_pps = moment.sent_pps * publishers_each
    missing = max(1 - moment.received_pps / due_pps, 0.0) if due_pps and moment.received_pps else None
    slowest = nsmallest(_SLOWEST, rates.items(), key=lambda each: each[1])
    return ProgressDetails(missing, tuple(slowest), len(rates), cpu_pct)


def _totals(progress: Mapping[int, Progress], clients: range, start_ns: int) -> ReportedTotals:
    """The reports of these clients since the start."""
    count, messages, rates_pps = 0, 0, 0.0
    # A few publishers are looked up directly, not searched for among a million subscribers.
    few = len(clients) < len(progress)
    for client in clients if few else progress:
        last = progress.get(client) if few or client in clients else None
        if last is not None and last.time_ns > start_ns:
            count += 1
            messages += last.messages
            rates_pps += last.messages / (last.time_ns - start_ns) * 1e9
    return ReportedTotals(count, messages, rates_pps)


@dataclass(frozen=True, slots=True)
class SparklinePoint:
    """The figures of a completed step in the sparklines; None: it has no such figure.

    Attributes:
        delivered_pps: messages/s that all subscribers together received.
        loss_pct: the share of the messages that were lost, in %.
        p99_us: 99th percentile of the latency in µs, since messages were due if that is known, otherwise since sent.
    """

    delivered_pps: float | None = None
    loss_pct: float | None = None
    p99_us: float | None = None

    @classmethod
    def of(cls, result: StepResult) -> SparklinePoint:
        """The figures of a result."""
        figures = result.figures
        return cls(figures.rates.aggregate_pps, figures.totals.client_loss_pct, figures.p99_us)


@dataclass(frozen=True, slots=True)
class LiveViewState:
    """The state of a run at one moment.

    Attributes:
        title: the name of the step, as in ``step 3 of 6: 30 clients, 1,000/s``; "" before the first.
        points: the completed steps, in their order.
        left_s: about how many seconds the whole sweep still takes; None: not known.
        moment: the progress of the step's window, drain or reading; None while the step is prepared.
        watched: further details of that progress.
        preparing: the servers that are starting; "": only clients are starting.
        clients: the numbers of clients that have connected and that the step needs; None: the run awaits none.
        keys: whether the user can press keys.
        ends: whether the user wants the run to end after this step.
        passes_over: whether the user wants to skip this row.
    """

    title: str
    points: Sequence[SparklinePoint] = ()
    left_s: float | None = None
    moment: StepProgress | None = None
    watched: ProgressDetails = field(default_factory=ProgressDetails)
    preparing: str = ""
    clients: tuple[int, int] | None = None
    keys: bool = False
    ends: bool = False
    passes_over: bool = False
