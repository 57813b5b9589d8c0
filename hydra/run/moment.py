"""How far a step is, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hydra.model import StepPlan
from hydra.wire.messages import Progress


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a step's window, or of the reading of what was stored.

    Attributes:
        elapsed_s: seconds since the window (or the reading) began.
        share: the part of the step that is done, 0 to 1: of its messages where it has a number of them, of its length
            otherwise.
        sent_pps: mean rate (messages/s) of all publishers together, as far as they have told.
        received_pps: mean rate that a subscriber has reported so far.
        reading: whether what was stored is being read.
        time_ns: when this is, on the step's clock.
    """

    elapsed_s: float
    share: float
    sent_pps: float = 0.0
    received_pps: float = 0.0
    reading: bool = False
    time_ns: int = 0

    @property
    def left_s(self) -> float | None:
        """About how long it still takes; None before anybody can tell."""
        return self.elapsed_s * (1 - self.share) / self.share if self.share > 0 else None


Tick = Callable[[Moment], None]
"""Called a few times a second while a step goes on."""


def sending(
    plan: StepPlan, progress: Mapping[int, Progress], publishers: range, subscribers: range, start_ns: int, now_ns: int
) -> Moment:
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
        sent = sum(progress[p].messages for p in publishers if p in progress)
        share = max(share, sent / (plan.settings.messages * len(publishers)))
    sent_pps = sum(_rates(progress, publishers, start_ns))
    received = _rates(progress, subscribers, start_ns)
    received_pps = sum(received) / len(received) if received else 0.0
    return Moment(elapsed_s, min(share, 1.0), sent_pps, received_pps, time_ns=now_ns)


def reading(
    expected: int, progress: Mapping[int, Progress], subscribers: range, start_ns: int, now_ns: int, *, shared: bool
) -> Moment:
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
    rates = _rates(progress, subscribers, start_ns)
    mean = sum(rates) / len(rates) if rates else 0.0
    return Moment(max(now_ns - start_ns, 0) / 1e9, min(share, 1.0), 0.0, mean, reading=True, time_ns=now_ns)


def _rates(progress: Mapping[int, Progress], clients: range, start_ns: int) -> list[float]:
    """Mean messages/s of each client between the start and its last progress."""
    return [
        p.messages / (p.time_ns - start_ns) * 1e9
        for client, p in progress.items()
        if client in clients and p.time_ns > start_ns
    ]
