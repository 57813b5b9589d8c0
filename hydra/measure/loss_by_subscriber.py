"""Who lost messages when: the gaps of subscribers, as shares of groups of them in parts of the window. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hydra.measure.loss_bursts import Course, before
from hydra.wire.report_validation import MAX_MISSING_RANGES


@dataclass(frozen=True, slots=True)
class Loser:
    """A subscriber that lost messages.

    Attributes:
        client: its id.
        expected: messages that it should have got.
        lost: messages of those that it never got.
        gaps: by publisher, the first and the last sequence of each missing range; of many, the first.
    """

    client: int
    expected: int
    lost: int
    gaps: Mapping[int, Sequence[tuple[int, int]]]

    @property
    def known_until(self) -> float:
        """Behind which sequence there may be gaps that are not listed: where the first list that is full ends."""
        full = [ranges for ranges in self.gaps.values() if len(ranges) >= MAX_MISSING_RANGES]
        return min((ranges[-1][1] + 1 for ranges in full or self.gaps.values() if ranges), default=0)

    @property
    def unlisted(self) -> int:
        """Lost messages that are in none of the gaps."""
        return max(self.lost - sum(last - first + 1 for ranges in self.gaps.values() for first, last in ranges), 0)


def shares(losers: Iterable[Loser], groups: Sequence[range], expected: Sequence[int], sequences: Course) -> Course:
    """The share of what was due that was lost, by group and part of the window.

    NaN where it is not known: where a list of gaps had no room for more, these lie somewhere behind the last one.

    Args:
        losers: all subscribers with a loss.
        groups: ids of subscribers, rising.
        expected: messages that those of each group should have got together.
        sequences: what :func:`hydra.measure.due_messages.edges` gave.
    """
    firsts = np.array([group.start for group in groups])
    of_groups: list[list[tuple[int, int]]] = [[] for _ in groups]
    known_until = [float(np.inf)] * len(groups)
    for loser in losers:
        row = int(np.searchsorted(firsts, loser.client, side="right")) - 1
        listed = [(first, last + 1) for gaps in loser.gaps.values() for first, last in gaps]
        of_groups[row] += listed
        if loser.unlisted:
            known_until[row] = min(known_until[row], loser.known_until)
    width = np.diff(sequences) / max(float(sequences[-1]), 1.0)
    found = np.zeros((len(groups), len(width)))
    for row, (ranges, due) in enumerate(zip(of_groups, expected, strict=True)):
        if ranges and due:
            first, behind = np.array(ranges, np.float64).T
            one = np.ones(len(first))
            lost = np.diff(before(first, one, sequences) - before(behind, one, sequences))
            found[row] = np.divide(lost, due * width, out=np.zeros_like(lost), where=width > 0)
        found[row, sequences[1:] > known_until[row]] = np.nan
    return np.clip(found, 0.0, 1.0)
