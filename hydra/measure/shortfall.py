"""When in a step messages were lost, and what each burst of losses cost: the evidence of a search. Pure.

The course of a step is its losses by the time at which they were due, which the missing ranges of the subscribers tell:
sequence n of a paced publisher is due n/rate after the start. A *burst* is a stretch of it with losses; its size is the
mean loss of the subscribers in it, in seconds of traffic. One that goes on for longer than a second is several, so that
a step of 5 s says what five of 1 s would.

What piles up, or is never sent, goes on for the whole step: that part of the rate is one burst in every second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import LedgerCounts, SequenceRange, SubscriberReport

SLICE_S: Final = 0.02
"""Length of the slices in which losses are counted."""
_QUIET_SLICES: Final = 5
"""So many slices without a loss end a burst."""
_LONGEST_S: Final = 1.0

Course = npt.NDArray[np.float64]


def course(reports: Collection[SubscriberReport], rate_pps: float, window_s: float) -> Course:
    """The share of what was due in each slice of the window that was lost, as a mean over the subscribers.

    Args:
        reports: of the subscribers.
        rate_pps: messages/s that each publisher was asked for.
        window_s: length of the window in seconds, as it was asked for.
    """
    slices = max(ceil(window_s / SLICE_S), 1)
    width = rate_pps * window_s / slices
    ledgers = sum(len(report.ledgers) for report in reports)
    ranges = [r for report in reports for r in _lost(report, int(rate_pps * window_s))]
    if not ranges:
        return np.zeros(slices)
    # How much was lost before each edge of a slice is the sum over ranges of how much of each lies before it. That is
    # a broken line: it rises from the beginning of a range to its end.
    edges = np.arange(slices + 1, dtype=np.float64) * width
    first, last = np.array(ranges, np.float64).T
    lost = np.diff(_before(np.sort(first), edges) - _before(np.sort(last + 1), edges))
    return np.clip(lost / (width * ledgers), 0.0, 1.0)


def _before(points: Course, edges: Course) -> Course:
    """Σ max(0, edge − point) over the points, for every edge; both rise."""
    counts = np.searchsorted(points, edges)
    sums = np.concatenate(([0.0], np.cumsum(points)))
    return np.asarray(counts * edges - sums[counts])


def _lost(report: SubscriberReport, due: int) -> list[SequenceRange]:
    """The missing ranges without what is known to wait, the youngest; none where the drain had to end: unknown."""
    if report.drain == "deadline":
        return []
    ranges = sorted(r for ledger in report.ledgers if ledger.missing for r in _missing(ledger, due))
    waiting = report.undrained
    while waiting and ranges:
        first, last = ranges.pop()
        taken = min(waiting, last - first + 1)
        waiting -= taken
        if first <= last - taken:
            ranges.append((first, last - taken))
    return ranges


def _missing(ledger: LedgerCounts, due: int) -> Iterable[SequenceRange]:
    """The missing ranges; of a list that was cut, the rest stands in the middle of what follows.

    Nobody knows where in what is left of the window the others were: there they are as near as can be.
    """
    yield from ledger.missing_ranges
    rest = ledger.missing - sum(last - first + 1 for first, last in ledger.missing_ranges)
    if rest > 0:
        behind = ledger.missing_ranges[-1][1] + 1 if ledger.missing_ranges else 0
        first = behind + max(due - behind - rest, 0) // 2
        yield first, first + rest - 1


def bursts(lost: Course, window_s: float, unsustained: float) -> list[float]:
    """What each burst cost, in seconds of traffic.

    Args:
        lost: the course of the step.
        window_s: length of the window in seconds.
        unsustained: the share of the rate that piled up or was never sent, all through the window.
    """
    width_s = window_s / len(lost)
    at = np.flatnonzero(lost > 0)
    found: list[float] = []
    if len(at):
        longest = max(round(_LONGEST_S / width_s), 1)
        for stretch in np.split(at, np.flatnonzero(np.diff(at) > _QUIET_SLICES) + 1):
            for first in range(int(stretch[0]), int(stretch[-1]) + 1, longest):
                size = float(lost[first : min(first + longest, int(stretch[-1]) + 1)].sum()) * width_s
                if size > 0:
                    found.append(size)
    if unsustained > 0:
        seconds = max(round(window_s / _LONGEST_S), 1)
        found += [unsustained * window_s / seconds] * seconds
    return found


def written(sizes: Sequence[float]) -> str:
    """Bursts as a figure holds them: seconds with a space between them."""
    return " ".join(f"{size:.4g}" for size in sizes)


def read(text: str) -> tuple[float, ...]:
    """What :func:`written` wrote."""
    return tuple(map(float, text.split()))
