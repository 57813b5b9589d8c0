"""Stops of steps with planted ones, found; of steady steps, none: simulated message by message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from hydra.measure.figures import figures
from hydra.measure.stops import Found, Stop, find, found_in, traffic_in
from hydra.measure.steadiness import unsteady
from hydra.model import Cohort, Histogram, Settings, StepPlan, TimeSeriesFacts, TimeSeriesInterval
from hydra.sweep.cleanness import why_not_clean
from hydra.wire.buckets import index_of
from hydra.wire.load_schedule import LoadSchedule
from tests.measure.observations import observed

Floats = npt.NDArray[np.float64]
Step = tuple[TimeSeriesFacts, list[TimeSeriesInterval]]


@dataclass(frozen=True)
class World:
    """A step and what delays its messages.

    Attributes:
        rate: messages/s of each publisher.
        publishers: their number; all are due at the same times.
        subscribers: their number.
        linger_s: a publisher sends what it has this long after the first of these messages.
        burst_s: the network hands over what it has at multiples of this time; 0: at once.
        lost: the share of copies that is lost by chance.
        load: the points of a changing rate.
    """

    rate: float
    publishers: int = 1
    subscribers: int = 1
    linger_s: float = 0.0
    burst_s: float = 0.0
    lost: float = 0.0
    load: tuple[tuple[float, float], ...] = ()
    seconds: int = 10

    @property
    def points(self) -> list[tuple[float, float]]:
        return list(self.load) or [(0.0, self.rate)]

    def due_s(self) -> Floats:
        """When the messages of a publisher are due."""
        load = LoadSchedule(self.points)
        return load.times_ns(0, load.total(self.seconds)) / 1e9

    def step(
        self, dice: np.random.Generator, stops: Sequence[tuple[float, float]] = (), *, kept: bool = True
    ) -> list[TimeSeriesInterval]:
        """The intervals. In a stop (begin, length) nothing arrives; what was due is late, or lost (not ``kept``)."""
        due = self.due_s()
        sent = due.copy()
        if self.linger_s:
            begin = -1e9
            for n, at_s in enumerate(due):
                begin = at_s if at_s > begin + self.linger_s else begin
                sent[n] = begin + self.linger_s
        copies = self.publishers * self.subscribers
        due, sent = np.repeat(due, copies), np.repeat(sent, copies)
        arrived = sent + 0.0002 + dice.exponential(0.002, len(sent))
        if self.burst_s:
            arrived = np.ceil(arrived / self.burst_s) * self.burst_s
        there = dice.random(len(due)) >= self.lost
        for begin_s, for_s in stops:
            within = (arrived >= begin_s) & (arrived < begin_s + for_s)
            if kept:
                arrived[within] = begin_s + for_s + dice.exponential(0.01, int(within.sum()))
            there &= ~within | kept
        return intervals(due, arrived, there, self.points, self.publishers, self.seconds)

    def found(self, course: list[TimeSeriesInterval], limit: float | None = None) -> Found:
        settings = Settings(rate=self.rate, receive_rate=limit)
        step = replace(
            observed(self.rate),
            plan=StepPlan(self.subscribers, settings, self.seconds, load=self.load),
            publishers=range(self.publishers),
            subscribers=range(self.subscribers),
            held_back_s=self.linger_s,
        )
        return find(course, self.seconds, traffic_in(step, self.subscribers))


def intervals(
    due: Floats, arrived: Floats, there: npt.NDArray[np.bool_], points: list[tuple[float, float]], each: int, seconds: int
) -> list[TimeSeriesInterval]:
    load = LoadSchedule(points)
    found = []
    last = max(seconds, int(arrived.max(initial=0.0)) + 1)
    latency_us = np.maximum(np.rint((arrived - due) * 1e6), 1).astype(np.int64)
    for second in range(last):
        its = latency_us[there & (arrived >= second) & (arrived < second + 1)]
        values, counts = np.unique(its // 1000 * 1000 + 1, return_counts=True)
        indexes = Counter[int]()
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            indexes[index_of(value)] += count
        flat = [number for pair in sorted(indexes.items()) for number in pair]
        histogram = Histogram(flat, int(its.min()), int(its.max())) if len(its) else Histogram()
        begin, end = (load.count_by(round(min(at, seconds) * 1e9) - 1) for at in (second, second + 1))
        lost = int((~there & (due >= second) & (due < second + 1)).sum())
        found.append(TimeSeriesInterval(second, (end - begin) * each, received=len(its), lost=lost, latency=histogram))
    return found


WORLDS = {
    "one publisher, one subscriber": World(50),
    "ten publishers": World(5, publishers=10),
    "ten subscribers": World(50, subscribers=10),
    "fast": World(3000),
    "linger": World(200, linger_s=0.1),
    "bursts": World(200, burst_s=0.1),
    "ramp": World(0, load=((0.0, 50.0), (10.0, 500.0))),
    "a few are lost": World(100, subscribers=2, lost=0.004),
}


@pytest.mark.parametrize("kept", [True, False], ids=["late", "lost"])
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.tier("test")
def test_stops_of_any_length_at_any_phase_are_found(name: str, kept: bool) -> None:
    dice, world, simulated, found = np.random.default_rng(48), WORLDS[name], 60, 0
    for _ in range(simulated):
        for_s = dice.choice([1.5, dice.uniform(1.5, 2.5), dice.uniform(1.5, 8.0)])
        begin_s = dice.uniform(0, 10 - for_s)
        stops = world.found(world.step(dice, [(begin_s, for_s)], kept=kept)).stops
        found += bool(stops) and abs(stops[0].at_s - begin_s) <= 1.0
    assert found >= 0.95 * simulated
