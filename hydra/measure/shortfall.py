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


def course(reports: Collection[SubscriberReport], asked: int, rate_pps: float, window_s: float) -> Course:
    """The share of what was due in each slice of the window that was lost, as a mean over the subscribers.

    Args:
        reports: of the subscribers.
        asked: how many subscribers there were.
        rate_pps: messages/s that each publisher was asked for.
        window_s: length of the window in seconds.
    """
    slices = max(ceil(window_s / SLICE_S), 1)
    width_s = window_s / slices
    edges = np.zeros(slices + 1)
    publishers = 1
    for report in reports:
        publishers = max(publishers, len(report.ledgers))
        for ledger in report.ledgers:
            for first, last in _missing(ledger, rate_pps, window_s):
                _spread(edges, first / rate_pps / width_s, (last + 1) / rate_pps / width_s)
    lost: Course = np.cumsum(edges[:-1]) * width_s * rate_pps
    due = rate_pps * width_s * max(asked, 1) * publishers
    return np.clip(lost / due, 0.0, 1.0)


def _missing(ledger: LedgerCounts, rate_pps: float, window_s: float) -> Iterable[SequenceRange]:
    """The missing ranges; of a list that was cut, the rest follows on the last that is known, as if it were one."""
    yield from ledger.missing_ranges
    rest = ledger.missing - sum(last - first + 1 for first, last in ledger.missing_ranges)
    if rest > 0:
        behind = ledger.missing_ranges[-1][1] + 1 if ledger.missing_ranges else 0
        end = max(int(rate_pps * window_s), behind + rest)
        # Nobody knows where in what is left of the window they were: in its middle they are as near as can be.
        first = behind + (end - behind - rest) // 2
        yield first, first + rest - 1


def _spread(edges: Course, begin: float, end: float) -> None:
    """Adds a loss from ``begin`` to ``end`` (in slices) to the differences whose running sum is the course.

    Within a slice a part of it counts as the same part of the slice's loss, spread over the slice.
    """
    last = len(edges) - 2
    first_slice, last_slice = min(int(begin), last), min(int(end), last)
    if first_slice == last_slice:
        edges[first_slice] += end - begin
        edges[first_slice + 1] -= end - begin
        return
    head, tail = first_slice + 1 - begin, end - last_slice
    edges[first_slice] += head
    edges[first_slice + 1] += 1 - head
    edges[last_slice] += tail - 1
    edges[last_slice + 1] -= tail


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
