"""What of a step's losses does not come of its rate: one subscriber that loses alone, and losses as it starts. Pure.

A step tells of each only what it saw. Whether that is so at every rate is for a search to say (sweep/side_findings.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

from hydra.measure.loss import Fates
from hydra.measure.loss_bursts import Course
from hydra.wire.arrays import Flags, Ints

ALONE: Final = 4.0
"""A subscriber loses alone if it loses at least this many times as much as every other one."""
FEWEST: Final = 10
"""Messages that a subscriber lost at least: of fewer it is chance who lost them."""
START_S: Final = 0.1
"""What is lost within this time of the start is lost as the step starts."""


@dataclass(frozen=True, slots=True)
class Lone:
    """A subscriber that lost alone: its id, and the share of its messages (a fraction)."""

    client: int
    loss: float


def lone_loser(ids: Ints, clients: Flags, fates: Fates) -> Lone | None:
    """The subscriber that lost at least ``ALONE`` times as much as every other one, if there is one.

    Args:
        ids: of everybody who was asked.
        clients: those that count.
        fates: of everybody who was asked.
    """
    if np.count_nonzero(clients) < 2:
        return None
    lost, expected = fates.lost[clients], fates.expected[clients]
    shares = np.divide(lost, expected, out=np.zeros(len(lost)), where=expected > 0)
    second, first = (int(at) for at in np.argsort(shares, kind="stable")[-2:])
    if lost[first] < FEWEST or shares[first] < ALONE * shares[second]:
        return None
    return Lone(int(ids[clients][first]), float(shares[first]))


def start_lost_s(lost: Course, window_s: float) -> float:
    """What was lost within ``START_S`` of the start, in seconds of traffic.

    Args:
        lost: the course of the step.
        window_s: length of the window in seconds.
    """
    slices = min(ceil(START_S * len(lost) / window_s), len(lost))
    return float(lost[:slices].sum()) * window_s / len(lost)
