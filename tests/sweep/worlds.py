"""Systems with a known answer that lose otherwise than near a limit alone: floors, stalls, memory, times, no answer.

The eight families of :mod:`tests.sweep.simulated` are worlds as well. ``now_s`` is wall clock time at the beginning of
a step, so that what a system does by its own clock continues in pauses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cosh, exp, log
from typing import Final

import numpy as np

from tests.sweep.simulated import FAMILIES, TARGET, Bursts, Family, Floats, World, seconds_of

SUBSCRIBERS: Final = 30


def above(capacity: float, rate: float, seconds: float, chance: np.random.Generator | None = None) -> Floats:
    """What is lost above a capacity in each second, measured to 0.2 %."""
    over = 1 - capacity / rate
    noise = chance.normal(0, 0.002, seconds_of(seconds)) if chance and over > 0 else np.zeros(seconds_of(seconds))
    return np.clip(over + noise, 0, 1)


def some(shares: Floats) -> list[float]:
    return [float(share) for share in shares if share > 0]


class Floor(World):
    """Each message is lost with a chance, at any rate; and what is above a capacity."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__(seed)
        self.share = share
        self.rate = self.capacity / (1 - (TARGET - share) / (1 - share))

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        over = above(self.capacity, rate, seconds, self.chance)
        return some(over + (1 - over) * self.messages(rate, seconds, self.share))


class BurstyFloor(World):
    """0.3 % at any rate, in bursts of 0.1 s."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = self.capacity / (1 - (TARGET - 0.003))

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        return self.bursts(0.03, seconds, 0.1) + some(above(self.capacity, rate, seconds, self.chance))


class OneSubscriber(World):
    """One of the subscribers always loses 5 %; the others lose in bursts, more at higher rates."""

    share = 0.05 / SUBSCRIBERS

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = self.capacity * ((TARGET - self.share) / TARGET) ** (1 / 8)

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        return self.rising(rate, seconds, 0.15, 8) + [self.share] * seconds_of(seconds)


class Start(World):
    """2 ms are lost at the start of each step. R is that of a step that never ends."""

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        first, *others = above(self.capacity, rate, seconds, self.chance)
        return [float(first) + 0.002, *some(np.array(others))]


class Exhausted(World):
    """Carries three quarters for eight seconds after it was asked for too much."""

    lasts_s = 8.0
    until_s = -1.0

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        lost = []
        for second in range(seconds_of(seconds)):
            exhausted = now_s + second < self.until_s
            lost.append(max(0.0, 1 - self.capacity * (0.75 if exhausted else 1) / rate))
            if rate > self.capacity:
                self.until_s = now_s + second + 1 + self.lasts_s
        return [share for share in lost if share > 0]


class BufferedStalls(World):
    """A stall of 0.2 s every ten seconds, of which a buffer takes all at R; its capacity is ten times that."""

    stall_s, period_s, buffer_s = 0.2, 10.0, 0.15
    """The buffer takes this many seconds of traffic at R."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = self.capacity / 5

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        assert self.rate
        begin = now_s + self.phase_s
        stalls = int((begin + seconds) // self.period_s) - int(begin // self.period_s)
        missed = max(0.0, self.stall_s - self.buffer_s * self.rate / rate)
        return ([missed] * stalls if missed else []) + some(above(2 * self.capacity, rate, seconds, self.chance))


class Stalls(World):
    """Stalls of 0.1 s, one in ten seconds, at any rate: no rate holds."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = None

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        stalls = [0.1] * int(self.chance.poisson(0.1 * seconds))
        return stalls + some(above(self.capacity, rate, seconds, self.chance))


class Proportional(World):
    """Bursts of 50 ms, as many more as the rate is higher."""

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        return self.rising(rate, seconds, 0.05, 1)


class HeavyTails(World):
    """Bursts with a Pareto law of index 1.3 from 20 ms to 1 s."""

    index, least_s = 1.3, 0.02
    mean_s = float(np.minimum(least_s * (1 - (np.arange(200_000) + 0.5) / 200_000) ** (-1 / index), 1).mean())

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        times = exp(min(8 * log(rate / self.capacity), 6.0))
        count = self.chance.poisson(TARGET / self.mean_s * times * seconds)
        return [min(self.least_s * float(x) ** (-1 / self.index), 1.0) for x in self.chance.random(count)]


class Regimes(World):
    """Its capacity is a fifth higher for 20 s, and a fifth lower for 20 s."""

    lasts_s = 20.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = self.capacity / cosh(8 * 0.2) ** (1 / 8)

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        found: list[float] = []
        for second in range(seconds_of(seconds)):
            better = int((now_s + second + self.phase_s) // self.lasts_s) % 2
            found += self.rising(rate / exp(0.2 if better else -0.2), 1, 0.15, 8)
        return found


class Hole(World):
    """Loses 3 % between 3,000 and 6,000/s, and nothing up to 20,000/s."""

    until = 6000.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.capacity = 20_000 * exp(self.chance.uniform(-0.3, 0.3))
        self.rate = self.capacity / (1 - TARGET)

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        over = above(self.capacity, rate, seconds, self.chance)
        return some(over + self.messages(rate, seconds, 0.03) if 3000 < rate < self.until else over)


class WarmsUp(World):
    """Carries 60 % at first, and all after a minute."""

    lasts_s = 60.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = self.capacity / (1 - TARGET)

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        at = now_s + np.arange(seconds_of(seconds))
        carried = (
            self.capacity * np.minimum(1, 0.6 + 0.4 * at / self.lasts_s) * np.exp(self.chance.normal(0, 0.01, len(at)))
        )
        return some(1 - carried / rate)


class Drifts(World):
    """R rises by 30 % in the time of sixty steps."""

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        since = min(now_s / (60 * (min(seconds, 5.0) + 0.25)), 1.0) - 0.5
        return self.rising(rate / exp(0.3 * since), seconds, 0.15, 8)


class TwoSpeeds(World):
    """Carries a fifth more for 3.5 s, and a fifth less for 3.5 s."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.rate = 0.8 * self.capacity / (1 - 2 * TARGET)

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        at = now_s + self.phase_s + np.arange(10 * seconds_of(seconds)) / 10
        carried = self.capacity * np.where((at // 3.5).astype(int) % 2, 1.2, 0.8)
        return some(np.maximum(1 - carried / rate, 0).reshape(-1, 10).mean(axis=1))


class Cliff(World):
    """Carries everything up to R and nothing above it."""

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        return [0.98] * seconds_of(seconds) if rate > self.capacity else []


class Independent(World):
    """Each message is lost with a chance of its own, which rises with the third power of the rate."""

    def lost_bursts(self, rate: float, seconds: float, now_s: float) -> Bursts:
        return some(self.messages(rate, seconds, min(TARGET * (rate / self.capacity) ** 3, 0.98)))


WORLDS: Final[dict[str, Callable[[int], World]]] = {
    **{family.__name__: partial(Family, family) for family in FAMILIES},
    "floor of 0.1 %": partial(Floor, share=0.001),
    "floor of 0.3 %": partial(Floor, share=0.003),
    "floor of 0.45 %": partial(Floor, share=0.0045),
    **{
        kind.__name__: kind
        for kind in (
            *(BurstyFloor, OneSubscriber, Start, Exhausted, BufferedStalls, Stalls, Proportional, HeavyTails, Regimes),
            *(Hole, WarmsUp, Drifts, TwoSpeeds, Cliff, Independent),
        )
    },
}
