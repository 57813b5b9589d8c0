"""When in a step messages were lost, and what each burst of losses cost: the evidence of a search. Pure.

The course of a step is its losses by the time at which they were due, which the missing ranges of the subscribers tell:
sequence n of a paced publisher is due n/rate after the start. A *burst* is a stretch of it with losses; its size is the
mean loss of the subscribers in it, in seconds of traffic. One that goes on for longer than a second is several, so that
a step of 5 s says what five of 1 s would.

What piles up, or is never sent, goes on for the whole step: that part of the rate is one burst in every second.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.measure.loss import DEADLINE
from hydra.wire.arrays import Flags, sums
from hydra.wire.subscriber_table import SubscriberTable

SLICE_S: Final = 0.02
"""Length of the slices in which losses are counted."""
_QUIET_SLICES: Final = 5
"""So many slices without a loss end a burst."""
_LONGEST_S: Final = 1.0
_AT_ONCE: Final = 16_384
"""Subscribers whose missing ranges are added up at once: of a million they are gigabytes as floating point numbers."""

Course = npt.NDArray[np.float64]


def course(reports: SubscriberTable, rate_pps: float, window_s: float) -> Course:
    """The share of what was due in each slice of the window that was lost, as a mean over the subscribers.

    What is missing at a subscriber whose drain ran into its deadline may be on its way and is no loss.

    Args:
        reports: of the subscribers.
        rate_pps: messages/s that each publisher was asked for.
        window_s: length of the window in seconds, as it was asked for.
    """
    slices = max(ceil(window_s / SLICE_S), 1)
    width = rate_pps * window_s / slices
    edges: Course = np.arange(slices + 1, dtype=np.float64) * width
    before = np.zeros(slices + 1)
    for part in reports.parts(_AT_ONCE):
        before += lost_before(part, rate_pps * window_s, edges)
    return np.clip(np.diff(before) / (width * max(len(reports.missing), 1)), 0.0, 1.0)


def lost_before(reports: SubscriberTable, due: float, edges: Course) -> Course:
    """How many messages were lost before each edge (a sequence), of all subscribers; ``due`` were due in the window."""
    lossy = np.repeat(reports.drain != DEADLINE, reports.ledger_counts) & (reports.missing > 0)
    if not bool(lossy.any()):
        return np.zeros(len(edges))
    listed = reports.ranges.reshape(-1, 2)[np.repeat(lossy, reports.range_counts)]
    begin, behind, count = _unlisted(reports, lossy, due)
    first = np.concatenate((listed[:, 0].astype(np.float64), begin))
    end = np.concatenate((listed[:, 1] + 1.0, behind))
    density = np.concatenate((np.ones(len(listed)), count / (behind - begin)))
    # The sum over ranges of how much of each lies before the edge: a broken line, which bends at the beginning of a
    # range and at its end.
    return before(first, density, edges) - before(end, density, edges)


def before(points: Course, weights: Course, edges: Course) -> Course:
    """Σ weight · max(0, edge − point) over the points, for every edge; the edges rise."""
    # A point counts from the first edge behind it on.
    at = np.searchsorted(edges, points, side="right")
    weight = np.cumsum(np.bincount(at, weights, len(edges) + 1))
    moment = np.cumsum(np.bincount(at, weights * points, len(edges) + 1))
    return np.asarray((weight * np.append(edges, 0.0) - moment)[:-1])


def _unlisted(reports: SubscriberTable, lossy: Flags, due: float) -> tuple[Course, Course, Course]:
    """Where the missing sequences are that lists of ranges had no room for, and how many: from, to and count of each.

    They are somewhere behind the last that is listed; that they are spread evenly there is the least that is claimed.
    """
    low, high = reports.ranges[0::2], reports.ranges[1::2]
    count = reports.missing - sums(high - low + 1, reports.range_counts)
    cut = lossy & (count > 0)
    begin = np.zeros(int(np.count_nonzero(cut)))
    some = reports.range_counts[cut] > 0
    begin[some] = high[reports.range_offsets[1:][cut][some] - 1] + 1
    return begin, np.maximum(due, begin + count[cut]), count[cut].astype(np.float64)


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
