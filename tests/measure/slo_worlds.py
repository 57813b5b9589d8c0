"""Systems whose share of bad messages is known, for the answers of ``hydra slo`` to be tried in.

Each gives the part of every second's messages that are bad, so that their mean in the long run is the share that is
asked for. What is bad together is 0.15 to 1 s of traffic, as in the promise of docs/slo.md; ``regimes`` breaks it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import Histogram, TimeSeriesFacts, TimeSeriesInterval
from hydra.wire.buckets import index_of
from hydra.wire.histogram import merge

Chance = np.random.Generator
Parts = npt.NDArray[np.float64]
World = Callable[[float, int, Chance], Parts]
"""Takes the share, the seconds of a step, and chance."""
Made = tuple[TimeSeriesFacts, list[TimeSeriesInterval], Histogram]
"""What is stored of a step's seconds, and its whole histogram of latency."""
SUBSCRIBERS: Final = 30
RATE: Final = 100


def independent(share: float, seconds: int, chance: Chance) -> Parts:
    """Each message by itself, for all of its subscribers."""
    return chance.binomial(RATE, share, seconds) / RATE


def few_messages(share: float, seconds: int, chance: Chance) -> Parts:
    """Likewise, three messages a second."""
    return chance.binomial(3, share, seconds) / 3


def periodic(share: float, seconds: int, chance: Chance) -> Parts:
    """A stall each ten seconds."""
    return _spread(np.arange(-chance.uniform(0, 10), seconds, 10.0), lambda n: np.full(n, 10 * share), seconds)


def stalls(share: float, seconds: int, chance: Chance) -> Parts:
    """Stalls of 0.15 s, whenever they come."""
    return _poisson(share, seconds, chance, 0.15, lambda n: np.full(n, 0.15))


def long_stalls(share: float, seconds: int, chance: Chance) -> Parts:
    """Stalls of a second: as long as is reckoned with."""
    return _poisson(share, seconds, chance, 1.0, np.ones)


def bursts(share: float, seconds: int, chance: Chance) -> Parts:
    """Bursts of exponential length."""
    return _poisson(share, seconds, chance, 0.15, lambda n: chance.exponential(0.15, n))


def heavy(share: float, seconds: int, chance: Chance) -> Parts:
    """Pareto lengths of at most a second, index 1.3."""
    low, index = 0.02, 1.3
    mean_s = low**index + index * low**index * (1 - low ** (1 - index)) / (1 - index)
    return _poisson(share, seconds, chance, mean_s, lambda n: np.minimum(low * chance.random(n) ** (-1 / index), 1.0))


def background(share: float, seconds: int, chance: Chance) -> Parts:
    """Half of it message by message, half in stalls."""
    return np.minimum(independent(share / 2, seconds, chance) + stalls(share / 2, seconds, chance), 1.0)


def regimes(share: float, seconds: int, chance: Chance) -> Parts:
    """About 20 s in which 5 % are bad, then a long time in which none is: such stretches are no stalls of a second."""
    parts, at = np.zeros(seconds), 0
    bad = chance.random() < share / 0.05
    while at < seconds:
        length = max(round(chance.exponential(20.0 if bad else 20.0 * (0.05 / share - 1))), 1)
        parts[at : at + length] = 0.05 * bad
        at, bad = at + length, not bad
    return parts


WORLDS: Final = (independent, few_messages, periodic, stalls, long_stalls, bursts, heavy, background)


def _poisson(share: float, seconds: int, chance: Chance, mean_s: float, lengths: Callable[[int], Parts]) -> Parts:
    early = 2  # what began before the step reaches into it
    begins = chance.uniform(-early, seconds, chance.poisson(share / mean_s * (seconds + early)))
    return _spread(begins, lengths, seconds)


def _spread(begins: Parts, lengths: Callable[[int], Parts], seconds: int) -> Parts:
    """Which part of every second lies in a stall."""
    edges = np.arange(seconds + 1.0)
    ends = begins + lengths(len(begins))
    before = [np.clip(edges - b, 0, e - b) for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
    return np.minimum(np.diff(np.sum(before, axis=0)), 1.0) if before else np.zeros(seconds)


def stalled(seconds: int, chance: Chance, *, rate: int = RATE, stall_s: float = 0.2, each_s: float = 10.0) -> Made:
    """A step in which all stands still for 0.2 s each 10 s; other messages take 5 ms."""
    due = np.arange(seconds * rate) / rate
    since = (due + chance.uniform(0, each_s)) % each_s
    return step(due, np.where(since < stall_s, stall_s - since, 0.005), seconds)


def jittery(seconds: int, chance: Chance, p99_ms: float, messages: int) -> Made:
    """A step of messages whose latencies know nothing of each other, log-normal."""
    spread, quantile = 0.5, 2.3263
    latency = p99_ms / 1000 * np.exp(spread * (chance.normal(size=messages) - quantile))
    return step(np.arange(messages) * seconds / messages, latency, seconds)


def lossy(lost: Parts) -> Made:
    """A step in which these parts of every second's messages are lost, for all subscribers; others take 5 ms."""
    facts, series, _ = step(np.arange(len(lost) * RATE) / RATE, np.full(len(lost) * RATE, 0.005), len(lost))
    for n, part in enumerate(lost.tolist()):
        ended = round(part * RATE) * SUBSCRIBERS
        left = RATE * SUBSCRIBERS - ended
        latency = Histogram([index_of(5000), left], 5000, 5000) if left else Histogram()
        series[n] = replace(series[n], lost=ended, received=left, latency=latency)
    return facts, series, merge(interval.latency for interval in series)


def step(due_s: Parts, latency_s: Parts, seconds: int, subscribers: int = SUBSCRIBERS) -> Made:
    """A step in which all subscribers get each message at the same time."""
    arrived = np.minimum(due_s + latency_s, seconds - 1e-9).astype(int)
    due = np.bincount(due_s.astype(int), minlength=seconds)
    us = np.maximum((latency_s * 1e6).astype(int), 1)
    its = [_histogram(us[arrived == second], subscribers) for second in range(seconds)]
    series = [
        TimeSeriesInterval(n, int(due[n]), int(due[n]), sum(latency.counts[1::2]), lost=0, latency=latency)
        for n, latency in enumerate(its)
    ]
    return TimeSeriesFacts(0, float(seconds), 1, float(subscribers), complete=True), series, merge(its)


def _histogram(us: npt.NDArray[np.int64], subscribers: int) -> Histogram:
    if not len(us):
        return Histogram()
    indices, counts = np.unique([index_of(int(value)) for value in us], return_counts=True)
    pairs = [int(n) for pair in zip(indices, subscribers * counts, strict=True) for n in pair]
    return Histogram(pairs, int(us.min()), int(us.max()))
