"""How far a step is, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Final, Literal, NamedTuple

from pyroaring import BitMap

from hydra.model import HostSample, StepPlan
from hydra.wire.messages import Progress

_SLOWEST: Final = 3
"""Subscribers that are named."""
Doing = Literal["sending", "draining", "reading"]
"""What a step does: its window is open; its end was told and subscribers receive the rest; what was stored is read."""


@dataclass(frozen=True, slots=True)
class ProgressDetails:
    """What can be told of a running step beside its rates: made only for who shows it.

    Attributes:
        missing: the part of what was sent that subscribers do not have yet, lost or on its way, from their mean rates;
            None: not known.
        slowest: the subscribers with the lowest mean rates and these (messages/s), slowest first, those of the cohort
            left out.
        of: of how many subscribers these are the slowest: those that tell how far they are.
        cpu_pct: the CPU time of all cores that each host used in about the last second, in %.
    """

    missing: float | None = None
    slowest: tuple[tuple[int, float], ...] = ()
    of: int = 0
    cpu_pct: Mapping[str, float] = field(default_factory=dict)


class ReportedTotals(NamedTuple):
    """What clients have told of a step: how many have, their messages, and the sum of their mean rates (messages/s)."""

    clients: int = 0
    messages: int = 0
    rates_pps: float = 0.0

    @property
    def mean_pps(self) -> float:
        """The mean rate of those that have told something."""
        return self.rates_pps / self.clients if self.clients else 0.0


NOTHING_TOLD: Final = ReportedTotals()


@dataclass(frozen=True, slots=True)
class StepProgress:
    """A moment of a step's window, of its drain, or of the reading of what was stored.

    Attributes:
        elapsed_s: seconds since the window (or the drain, or the reading) began.
        share: the part of the step that is done, 0 to 1: of its messages where it has a number of them, of its length
            otherwise.
        sent_pps: mean rate (messages/s) of all publishers together, as far as they have told.
        received_pps: mean rate that a subscriber has reported so far.
        doing: what the step does.
        time_ns: when this is, on the step's clock.
        sent: what publishers have told so far.
        received: what subscribers have told so far.
        hosts: two samples of each host, by its name: what it did between them is what it did last. Asking unpacks
            what has come since.
        p99_us: of the latency in the last second that clients told of; None where they tell of no seconds.
        watched: more about this moment, for who shows it; asking takes about a millisecond.
    """

    elapsed_s: float
    share: float
    sent_pps: float = 0.0
    received_pps: float = 0.0
    doing: Doing = "sending"
    time_ns: int = 0
    sent: ReportedTotals = NOTHING_TOLD
    received: ReportedTotals = NOTHING_TOLD
    hosts: Callable[[], Mapping[str, tuple[HostSample, HostSample]]] = dict
    p99_us: float | None = None
    watched: Callable[[], ProgressDetails] = ProgressDetails

    @property
    def left_s(self) -> float | None:
        """About how long it still takes; None before anybody can tell."""
        return self.elapsed_s * (1 - self.share) / self.share if self.share > 0 else None


Tick = Callable[[StepProgress], None]
"""Called a few times a second while a step goes on."""


def sending(
    plan: StepPlan, progress: Mapping[int, Progress], publishers: range, subscribers: range, start_ns: int, now_ns: int
) -> StepProgress:
    """A moment of the window.

    Args:
        plan: what is measured.
        progress: what clients told last.
        publishers: their ids.
        subscribers: theirs.
        start_ns: the window's begin on the step's clock.
        now_ns: now on that clock.
    """
    elapsed_s = max(now_ns - start_ns, 0) / 1e9
    share = elapsed_s / plan.duration_s
    if plan.settings.messages is not None:
        messages = sum(progress[p].messages for p in publishers if p in progress)
        share = max(share, messages / (plan.settings.messages * len(publishers)))
    sent, received = _told(progress, publishers, start_ns), _told(progress, subscribers, start_ns)
    return StepProgress(
        *(elapsed_s, min(share, 1.0), sent.rates_pps, received.mean_pps), time_ns=now_ns, sent=sent, received=received
    )


def reading(
    expected: int, progress: Mapping[int, Progress], subscribers: range, start_ns: int, now_ns: int, *, shared: bool
) -> StepProgress:
    """A moment of the reading of what was stored.

    Args:
        expected: messages that are there to be read.
        progress: what clients told last.
        subscribers: their ids.
        start_ns: when they began to read, on the step's clock.
        now_ns: now on that clock.
        shared: whether the subscribers share the messages, instead of reading all of them each.
    """
    read = sum(progress[c].messages for c in subscribers if c in progress)
    share = read / max(expected * (1 if shared else len(subscribers)), 1)
    told = _told(progress, subscribers, start_ns)
    elapsed_s = max(now_ns - start_ns, 0) / 1e9
    return StepProgress(elapsed_s, min(share, 1.0), 0.0, told.mean_pps, "reading", time_ns=now_ns, received=told)


def draining(drain_s: float, start_ns: int, now_ns: int) -> StepProgress:
    """A moment of the drain, which takes ``drain_s`` seconds at most; it began and now is on the step's clock."""
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
    """What else can be told of a moment of the window.

    Args:
        moment: the one.
        progress: what clients told last.
        clients: the subscribers outside the cohort.
        start_ns: the window's begin on the step's clock.
        publishers_each: to which part of the publishers each subscriber listens; 0: nobody knows who gets what.
        cpu_pct: as of :class:`ProgressDetails`.
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


def _told(progress: Mapping[int, Progress], clients: range, start_ns: int) -> ReportedTotals:
    """What these clients have told since the start."""
    count, messages, rates_pps = 0, 0, 0.0
    # Few publishers are not looked for among a million subscribers.
    few = len(clients) < len(progress)
    for client in clients if few else progress:
        said = progress.get(client) if few or client in clients else None
        if said is not None and said.time_ns > start_ns:
            count += 1
            messages += said.messages
            rates_pps += said.messages / (said.time_ns - start_ns) * 1e9
    return ReportedTotals(count, messages, rates_pps)
