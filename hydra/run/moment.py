"""How far a step is, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hydra.model import HostSample, StepPlan
from hydra.wire.messages import Progress


class Told(NamedTuple):
    """What clients have told of a step: how many have, their messages, and the sum of their mean rates (messages/s)."""

    clients: int = 0
    messages: int = 0
    rates_pps: float = 0.0

    @property
    def mean_pps(self) -> float:
        """The mean rate of those that have told something."""
        return self.rates_pps / self.clients if self.clients else 0.0


NOTHING_TOLD: Final = Told()


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
        sent: what publishers have told so far.
        received: what subscribers have told so far.
        hosts: two samples of each host, by its name: what it did between them is what it did last.
    """

    elapsed_s: float
    share: float
    sent_pps: float = 0.0
    received_pps: float = 0.0
    reading: bool = False
    time_ns: int = 0
    sent: Told = NOTHING_TOLD
    received: Told = NOTHING_TOLD
    hosts: Mapping[str, tuple[HostSample, HostSample]] = field(default_factory=dict)

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
        messages = sum(progress[p].messages for p in publishers if p in progress)
        share = max(share, messages / (plan.settings.messages * len(publishers)))
    sent, received = _told(progress, publishers, start_ns), _told(progress, subscribers, start_ns)
    return Moment(
        *(elapsed_s, min(share, 1.0), sent.rates_pps, received.mean_pps), time_ns=now_ns, sent=sent, received=received
    )


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
    told = _told(progress, subscribers, start_ns)
    elapsed_s = max(now_ns - start_ns, 0) / 1e9
    return Moment(elapsed_s, min(share, 1.0), 0.0, told.mean_pps, reading=True, time_ns=now_ns, received=told)


def _told(progress: Mapping[int, Progress], clients: range, start_ns: int) -> Told:
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
    return Told(count, messages, rates_pps)
