"""When in a step messages were lost, and what each burst of losses cost: the evidence of a search. Pure.

The course of a step is its losses by the time at which they were due, which the missing ranges of the subscribers tell:
sequence n of a paced publisher is due n/rate after the start. A *burst* is a stretch of it with losses; its size is the
mean loss of the subscribers in it, in seconds of traffic. One that goes on for longer than a second is several, so that
a step of 5 s says what five of 1 s would.

What piles up, or is never sent, goes on for the whole step: that part of the rate is one burst in every second.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import LedgerCounts, SubscriberReport

SLICE_S: Final = 0.02
"""Length of the slices in which losses are counted."""
_QUIET_SLICES: Final = 5
"""So many slices without a loss end a burst."""
_LONGEST_S: Final = 1.0

Course = npt.NDArray[np.float64]


def course(reports: Collection[SubscriberReport], rate_pps: float, window_s: float) -> Course:
    """The share of what was due in each slice of the window that was lost, as a mean over the subscribers.

    What is missing at a subscriber whose drain ran into its deadline may be on its way and is no loss.

    Args:
        reports: of the subscribers.
        rate_pps: messages/s that each publisher was asked for.
        window_s: length of the window in seconds, as it was asked for.
    """
    slices = max(ceil(window_s / SLICE_S), 1)
    width = rate_pps * window_s / slices
    ledgers = [ledger for report in reports for ledger in report.ledgers]
    lossy = [x for r in reports if r.drain != "deadline" for x in r.ledgers if x.missing]
    if not lossy:
        return np.zeros(slices)
    # Millions of numbers at worst: taken one by one they cost a quarter of what an array of pairs would.
    listed = chain.from_iterable(chain.from_iterable(x.missing_ranges for x in lossy))
    known = np.fromiter(listed, np.float64).reshape(-1, 2)
    cut = [rest for x in lossy if (rest := _unlisted(x, rate_pps * window_s))]
    first = np.concatenate((known[:, 0], [begin for begin, _, _ in cut]))
    end = np.concatenate((known[:, 1] + 1, [end for _, end, _ in cut]))
    density = np.concatenate((np.ones(len(known)), [count / (end - begin) for begin, end, count in cut]))
    # How much was lost before an edge of a slice is the sum over ranges of how much of each lies before it: a broken
    # line, which bends at the beginning of a range and at its end.
    edges: Course = np.arange(slices + 1, dtype=np.float64) * width
    before = _before(first, density, edges) - _before(end, density, edges)
    return np.clip(np.diff(before) / (width * len(ledgers)), 0.0, 1.0)


def _before(points: Course, weights: Course, edges: Course) -> Course:
    """Σ weight · max(0, edge − point) over the points, for every edge; the edges rise."""
    order = np.argsort(points)
    weight = np.concatenate(([0.0], np.cumsum(weights[order])))
    moment = np.concatenate(([0.0], np.cumsum((weights * points)[order])))
    at = np.searchsorted(points[order], edges)
    return np.asarray(weight[at] * edges - moment[at])


def _unlisted(ledger: LedgerCounts, due: float) -> tuple[float, float, int] | None:
    """Where the missing sequences are that a list of ranges had no room for, and how many: (from, to, count).

    They are somewhere behind the last that is listed; that they are spread evenly there is the least that is claimed.
    """
    count = ledger.missing - sum(last - first + 1 for first, last in ledger.missing_ranges)
    begin = ledger.missing_ranges[-1][1] + 1 if ledger.missing_ranges else 0
    return (begin, max(due, begin + count), count) if count > 0 else None


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
