"""The losses of a step by time, burst and subscriber, and the losses that its rate does not cause. Pure.

The loss profile of a step has its losses by the time at which the messages were due, from the missing ranges of the
subscribers: sequence n of a paced publisher is due n/rate after the start. A *burst* is a part of the profile with
losses; its size is the mean loss of the subscribers in it, in seconds of traffic. A burst longer than a second counts
as several, so a step of 5 s gives the same evidence as five steps of 1 s.

Messages that are added to the backlog or never sent are so throughout the step: that part of the rate is one burst in
every second.

One subscriber may lose alone, and messages may be lost at the start of a step; the rate is not the cause. A step
contains only its own losses; a search decides whether they occur at every rate (sweep/search_answer.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.measure.column import FEWEST, START_S, LoneLossySubscriber
from hydra.measure.loss import DEADLINE, MessageOutcomes
from hydra.model import StepPlan
from hydra.wire.arrays import Flags, Ints, sums
from hydra.wire.load_schedule import LoadSchedule
from hydra.wire.report_validation import MAX_MISSING_RANGES
from hydra.wire.subscriber_table import SubscriberTable

SLICE_S: Final = 0.02
"""The length of the slices in which losses are counted, in seconds."""
_QUIET_SLICES: Final = 5
"""A burst ends after this number of slices without a loss."""
_LONGEST_S: Final = 1.0
_AT_ONCE: Final = 8192
"""Subscribers whose missing ranges are added up at once: those of a million would take gigabytes as floats."""

LossProfile = npt.NDArray[np.float64]


def loss_profile(reports: SubscriberTable, rate_pps: float, window_s: float, share: float = 1.0) -> LossProfile:
    """The lost share of the messages due in each slice of the window, as a mean over the subscribers.

    Messages missing at a subscriber whose drain reached its time limit may be on their way and are no loss.

    Args:
        reports: the reports of the subscribers.
        rate_pps: the requested rate of each publisher in messages/s.
        window_s: the planned length of the window in seconds.
        share: the mean share of a publisher's messages that a subscriber expects.
    """
    slices = max(ceil(window_s / SLICE_S), 1)
    width = rate_pps * window_s / slices
    edges: LossProfile = np.arange(slices + 1, dtype=np.float64) * width
    before = lost_before(reports, rate_pps * window_s, edges)
    return np.clip(np.diff(before) / (width * max(len(reports.missing), 1) * share), 0.0, 1.0)


def lost_before(reports: SubscriberTable, due: float, edges: LossProfile) -> LossProfile:
    """The messages that all subscribers lost before each edge (a sequence); ``due`` were due in the window."""
    if len(reports) > _AT_ONCE:
        return np.asarray(sum(lost_before(part, due, edges) for part in reports.parts(_AT_ONCE)))
    lossy = np.repeat(reports.drain != DEADLINE, reports.ledger_counts) & (reports.missing > 0)
    if not bool(lossy.any()):
        return np.zeros(len(edges))
    lossy_ranges = np.repeat(lossy, reports.range_counts)
    listed = reports.ranges.reshape(-1, 2)[lossy_ranges]
    begin, behind, count = _unlisted(reports, lossy, due)
    first = np.concatenate((listed[:, 0].astype(np.float64), begin))
    end = np.concatenate((listed[:, 1] + 1.0, behind))
    density = np.concatenate((_densities(reports)[lossy_ranges], count / (behind - begin)))
    # The sum over ranges of the part of each before the edge: a piecewise linear function with bends at the beginning
    # and the end of each range.
    return before(first, density, edges) - before(end, density, edges)


def _densities(reports: SubscriberTable) -> LossProfile:
    """The part of each listed range that is missing: below 1 if it spans messages of topics of other subscribers."""
    spanned = sums(reports.ranges[1::2] - reports.ranges[0::2] + 1, reports.range_counts)
    shares = np.minimum(reports.missing / np.maximum(spanned, 1), 1.0)
    return np.repeat(shares, reports.range_counts)


def before(points: LossProfile, weights: LossProfile, edges: LossProfile) -> LossProfile:
    """Σ weight · max(0, edge − point) over the points, for every edge; the edges rise."""
    # A point counts from the first edge after it.
    at = np.searchsorted(edges, points, side="right")
    weight = np.cumsum(np.bincount(at, weights, len(edges) + 1))
    moment = np.cumsum(np.bincount(at, weights * points, len(edges) + 1))
    return np.asarray((weight * np.append(edges, 0.0) - moment)[:-1])


def _unlisted(reports: SubscriberTable, lossy: Flags, due: float) -> tuple[LossProfile, LossProfile, LossProfile]:
    """The missing sequences for which the lists of ranges had no space: begin, end and count for each list.

    They are after the last listed range; an even spread is the weakest assumption.
    """
    low, high = reports.ranges[0::2], reports.ranges[1::2]
    count = np.maximum(reports.missing - sums(high - low + 1, reports.range_counts), 0)
    cut = lossy & (count > 0)
    begin = np.zeros(int(np.count_nonzero(cut)))
    some = reports.range_counts[cut] > 0
    begin[some] = high[reports.range_offsets[1:][cut][some] - 1] + 1
    return begin, np.maximum(due, begin + count[cut]), count[cut].astype(np.float64)


def bursts(lost: LossProfile, window_s: float, unsustained: float) -> list[float]:
    """The size of each burst, in seconds of traffic.

    Args:
        lost: the loss profile of the step.
        window_s: the length of the window in seconds.
        unsustained: the share of the rate that was added to the backlog or never sent, throughout the window.
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


_SECOND_NS: Final = 1_000_000_000


def sending_s(plan: StepPlan) -> float:
    """How many seconds a step sends if it holds its rate: its window, or the time of its messages if that is less."""
    rate, messages = plan.settings.rate, plan.settings.messages
    return plan.duration_s if rate == "max" or messages is None else min(plan.duration_s, messages / rate)


def edges(plan: StepPlan, sent: int, parts: int) -> tuple[LossProfile, LossProfile]:
    """The limits of equal parts of a step's window, in seconds and as sequences of a publisher.

    A message belongs to the part in which it was due. At rate ``max``, without due times, its position among the sent
    messages decides.

    Args:
        plan: the plan of the step.
        sent: the number of messages of the publisher that sent most.
        parts: the number of parts.
    """
    rate, length_s = plan.settings.rate, sending_s(plan)
    seconds = np.linspace(0.0, length_s, parts + 1)
    if plan.load:
        load = LoadSchedule(plan.load)
        due = np.array([load.count_by(round(at * _SECOND_NS) - 1) for at in seconds.tolist()], np.float64)
        return seconds, due
    return seconds, seconds * (sent / length_s if rate == "max" else rate)


@dataclass(frozen=True, slots=True)
class LossySubscriber:
    """A subscriber that lost messages.

    Attributes:
        client: its id.
        expected: the messages that it should have received.
        lost: the expected messages that it lost.
        gaps: by publisher, the first and the last sequence of each missing range; the first ranges if there are many.
        missing: the expected messages that it did not receive; 0: as many as the gaps have.
    """

    client: int
    expected: int
    lost: int
    gaps: Mapping[int, Sequence[tuple[int, int]]]
    missing: int = 0

    @property
    def known_until(self) -> float:
        """The sequence after which gaps may be unlisted: the end of the first full list."""
        full = [ranges for ranges in self.gaps.values() if len(ranges) >= MAX_MISSING_RANGES]
        return min((ranges[-1][1] + 1 for ranges in full or self.gaps.values() if ranges), default=0)

    @property
    def unlisted(self) -> int:
        """The number of lost messages that are in none of the gaps."""
        return max(self.lost - sum(last - first + 1 for ranges in self.gaps.values() for first, last in ranges), 0)


def shares(
    losers: Iterable[LossySubscriber], groups: Sequence[range], expected: Sequence[int], sequences: LossProfile
) -> LossProfile:
    """The lost share of the due messages, by group and part of the window.

    NaN: not known, because a list of gaps was full, and further gaps are after its last one.

    Args:
        losers: all subscribers with a loss.
        groups: ranges of subscribers' ids, rising.
        expected: the messages that the subscribers of each group should have received together.
        sequences: the sequences from :func:`hydra.measure.loss_pattern.edges`.
    """
    firsts = np.array([group.start for group in groups])
    of_groups: list[list[tuple[int, int, float]]] = [[] for _ in groups]
    known_until = [float(np.inf)] * len(groups)
    for loser in losers:
        row = int(np.searchsorted(firsts, loser.client, side="right")) - 1
        listed = [(first, last + 1) for gaps in loser.gaps.values() for first, last in gaps]
        # A gap of a subscriber with some of the topics spans messages of others: its own are spread evenly over it.
        spanned = sum(behind - first for first, behind in listed)
        weight = min(loser.missing / spanned, 1.0) if loser.missing and spanned else 1.0
        of_groups[row] += [(first, behind, weight) for first, behind in listed]
        if loser.unlisted:
            known_until[row] = min(known_until[row], loser.known_until)
    width = np.diff(sequences) / max(float(sequences[-1]), 1.0)
    found = np.zeros((len(groups), len(width)))
    for row, (ranges, due) in enumerate(zip(of_groups, expected, strict=True)):
        if ranges and due:
            first, behind, weights = np.array(ranges, np.float64).T
            lost = np.diff(before(first, weights, sequences) - before(behind, weights, sequences))
            found[row] = np.divide(lost, due * width, out=np.zeros_like(lost), where=width > 0)
        found[row, sequences[1:] > known_until[row]] = np.nan
    return np.clip(found, 0.0, 1.0)


ALONE: Final = 4.0
"""A subscriber loses alone if it loses at least this many times as much as every other one."""


def lone_loser(ids: Ints, clients: Flags, fates: MessageOutcomes) -> LoneLossySubscriber | None:
    """The subscriber that lost at least ``ALONE`` times as much as every other one, if there is one.

    Args:
        ids: the ids of all subscribers of the step.
        clients: the flags of those that count.
        fates: the outcomes of all subscribers of the step.
    """
    if np.count_nonzero(clients) < 2:
        return None
    lost, expected = fates.lost[clients], fates.expected[clients]
    shares = np.divide(lost, expected, out=np.zeros(len(lost)), where=expected > 0)
    second, first = (int(at) for at in np.argsort(shares, kind="stable")[-2:])
    if lost[first] < FEWEST or shares[first] < ALONE * shares[second]:
        return None
    return LoneLossySubscriber(int(ids[clients][first]), float(shares[first]))


def start_lost_s(lost: LossProfile, window_s: float) -> float:
    """The loss within ``START_S`` of the start, in seconds of traffic.

    Args:
        lost: the loss profile of the step.
        window_s: the length of the window in seconds.
    """
    slices = min(ceil(START_S * len(lost) / window_s), len(lost))
    return float(lost[:slices].sum()) * window_s / len(lost)
