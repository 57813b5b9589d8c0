"""Stops of steps with planted ones, found; of steady steps, none: simulated message by message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from hydra.measure.observation import Observation
from hydra.measure.stops import Found, TrafficStop, find, found_in, traffic_in
from hydra.model import Histogram, Settings, StepPlan, TimeSeriesFacts, TimeSeriesInterval
from hydra.sweep.cleanness import why_not_clean
from hydra.wire.buckets import index_of
from hydra.wire.histogram import merge
from hydra.wire.load_schedule import LoadSchedule
from tests.measure.observations import observed
from tests.suite.figures import figures

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
        present = dice.random(len(due)) >= self.lost
        for begin_s, for_s in stops:
            within = (arrived >= begin_s) & (arrived < begin_s + for_s)
            if kept:
                arrived[within] = begin_s + for_s + dice.exponential(0.01, int(within.sum()))
            present &= ~within | kept
        return intervals(due, arrived, present, self.points, self.publishers, self.seconds)

    def found(self, series: list[TimeSeriesInterval], limit: float | None = None) -> Found:
        settings = Settings(rate=self.rate, receive_rate=limit)
        step = replace(
            observed(self.rate),
            plan=StepPlan(self.subscribers, settings, self.seconds, load=self.load),
            publishers=range(self.publishers),
            subscribers=range(self.subscribers),
            held_back_s=self.linger_s,
        )
        return find(series, self.seconds, traffic_in(step, self.subscribers))


def intervals(
    due: Floats,
    arrived: Floats,
    present: npt.NDArray[np.bool_],
    points: list[tuple[float, float]],
    each: int,
    seconds: int,
) -> list[TimeSeriesInterval]:
    load = LoadSchedule(points)
    found = []
    last = max(seconds, int(arrived.max(initial=0.0)) + 1)
    latency_us = np.maximum(np.rint((arrived - due) * 1e6), 1).astype(np.int64)
    for second in range(last):
        its = latency_us[present & (arrived >= second) & (arrived < second + 1)]
        values, counts = np.unique(its // 1000 * 1000 + 1, return_counts=True)
        indexes = Counter[int]()
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            indexes[index_of(value)] += count
        flat = [number for pair in sorted(indexes.items()) for number in pair]
        histogram = Histogram(flat, int(its.min()), int(its.max())) if len(its) else Histogram()
        begin, end = (load.count_by(round(min(at, seconds) * 1e9) - 1) for at in (second, second + 1))
        lost = int((~present & (due >= second) & (due < second + 1)).sum())
        found.append(TimeSeriesInterval(second, (end - begin) * each, received=len(its), lost=lost, latency=histogram))
    return found


WORLDS = {
    "one publisher, one subscriber": World(50),
    "ten publishers": World(5, publishers=10),
    "ten subscribers": World(50, subscribers=10),
    "fast": World(3000),
    "linger": World(200, linger_s=0.1),
    "bursts": World(200, burst_s=0.1),
    "ramp": World(275, load=((0.0, 50.0), (10.0, 500.0))),
    "a few are lost": World(100, subscribers=2, lost=0.004),
}


@pytest.mark.parametrize("kept", [True, False], ids=["late", "lost"])
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.tier("test")
def test_stops_of_any_length_at_any_phase_are_found(name: str, kept: bool) -> None:
    dice, world, simulated, found = np.random.default_rng(48), WORLDS[name], 25, 0
    for _ in range(simulated):
        for_s = dice.choice([1.5, dice.uniform(1.5, 2.5), dice.uniform(1.5, 8.0)])
        begin_s = dice.uniform(0, 10 - for_s)
        stops = world.found(world.step(dice, [(begin_s, for_s)], kept=kept)).stops
        found += bool(stops) and abs(stops[0].at_s - begin_s) <= 1.0
        lengths_off_s = abs(sum(stop.for_s for stop in stops) - for_s)
        assert not kept or not stops or lengths_off_s <= 0.3 + world.linger_s + world.burst_s
    assert found >= 0.95 * simulated


STEADY = [
    *(World(rate) for rate in (0.5, 0.7, 0.999, 1.0, 1.0001, 3.0, 9.99, 70.0, 999.9, 50_000.0)),
    World(0.5, subscribers=20),
    World(1.0, publishers=50),
    World(1.0001, publishers=50),
    World(1.7, linger_s=1.0),
    World(50, linger_s=1.0),
    World(500, linger_s=0.3),
    World(1000, linger_s=2.5),
    World(200, burst_s=0.1),
    World(2, burst_s=0.1),
    World(1.0, subscribers=2, lost=0.2),
    World(100, lost=0.5),
    World(275, load=((0.0, 50.0), (10.0, 500.0))),
    World(60, load=((0.0, 100.0), (2.0, 100.0), (2.0, 0.0), (6.0, 0.0), (6.0, 100.0), (10.0, 100.0))),
]


@pytest.mark.tier("test")
def test_of_steady_steps_at_most_one_in_a_hundred_is_reported() -> None:
    dice, reported, simulated = np.random.default_rng(5), list[World](), 0
    for world in STEADY:
        for _ in range(1 if world.rate > 10_000 else 5):
            found = world.found(world.step(dice))
            simulated += 1
            if found.stops or found.shortages:
                reported.append(world)
    assert len(reported) <= 0.01 * simulated, reported


def counted(received: Sequence[float]) -> list[TimeSeriesInterval]:
    return [TimeSeriesInterval(second, 0, received=round(count)) for second, count in enumerate(received)]


@pytest.mark.tier("test")
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.3])
def test_at_max_what_the_other_seconds_received_is_due(noise: float) -> None:
    dice, simulated, found, reported = np.random.default_rng(6), 200, 0, 0
    for _ in range(simulated):
        usual = 5000 * np.maximum(1 + noise * dice.standard_normal(10), 0)
        for_s = dice.uniform(1.5, 8.0)
        begin_s = dice.uniform(0, 10 - for_s)
        running = [1 - max(min(n + 1, begin_s + for_s) - max(n, begin_s), 0.0) for n in range(10)]
        found += bool(find(counted((usual * running).tolist()), 10, traffic_in(observed("max"), 1)).stops)
        reported += bool(find(counted(usual.tolist()), 10, traffic_in(observed("max"), 1)).stops)
    assert found >= 0.95 * simulated
    assert reported <= 0.01 * simulated


@pytest.mark.parametrize(
    ("received", "stops"),
    [
        ([50, 50, 50, 24, 1, 50, 50, 50], [3]),  # 1.5 s without a whole second
        ([50, 50, 50, 50, 50, 50, 24, 1], [6]),  # at the end
        ([50, 24, 1, 50, 50, 1, 24, 50, 50, 50], [1, 5]),
        ([10, 20, 50, 50, 50, 50, 50, 50], []),  # a slow beginning
        ([50, 50, 50, 50, 12, 12, 12, 12], []),  # a change
        ([0, 50, 50, 50, 50, 50, 50, 50], [0]),
    ],
)
def test_at_max_two_seconds_between_usual_ones_are_a_stop(received: list[int], stops: list[int]) -> None:
    found = find(counted([100 * each for each in received]), len(received), traffic_in(observed("max"), 1))
    assert [stop.at_s for stop in found.stops] == stops


def due(received: Sequence[int], each: int) -> list[TimeSeriesInterval]:
    return [TimeSeriesInterval(second, each, received=count, lost=0) for second, count in enumerate(received)]


def test_the_length_of_the_trouble_decides_nothing() -> None:
    world = World(150)
    for stopped in range(1, 10):
        received = [0] * stopped + [150] * (10 - stopped)
        assert world.found(due(received, 150)).stops == [TrafficStop(0, float(stopped))]
    found = world.found(due([150, 150, 150, 0, 0, 0, 0, 750, 150, 150], 150))
    assert found == Found([TrafficStop(3, 4.0)], [], frozenset({3, 4, 5, 6}))
    # Two seconds are enough; one has no second that is empty beside one that is not.
    assert replace(world, seconds=2).found(due([150, 0], 150)).stops == [TrafficStop(1, 1.0)]


def test_a_backlog_that_grows_and_a_subscriber_that_stands_alone_are_no_stop() -> None:
    dice, world = np.random.default_rng(7), World(400, seconds=10)
    at = world.due_s()
    overloaded = intervals(at, at * 1.9, np.ones(len(at), np.bool_), world.points, 1, 10)
    assert not world.found(overloaded).stops
    both = World(400, subscribers=2)
    one, other = world.step(dice, [(3.3, 4.0)]), world.step(dice)
    together = [
        replace(a, received=a.received + b.received, latency=merge((a.latency, b.latency)))
        for a, b in zip(one[:10], other[:10], strict=True)
    ]
    assert not both.found(together).stops


@pytest.mark.parametrize(
    ("received", "limit", "outages", "stops"),
    [
        ([20, 20, 0, 0, 20, 20], None, [], [TrafficStop(2, 2.0)]),
        ([20, 20, 0, 0, 20, 20], None, [(2.4, 2.4)], []),
        ([20, 5, 0, 0, 60, 20], None, [(1.4, 2.4)], []),
        ([20, 5, 0, 0, 60, 0], None, [(1.4, 2.4)], [TrafficStop(5, 1.0)]),  # something had arrived after the event
        ([20, 0, 0, 0, 60, 20], None, [(2.4, 2.4)], [TrafficStop(1, 1.0)]),  # before it
        ([1, 0, 0, 0, 1, 0], 0.25, [], []),  # all that subscribers may read
        ([8, 8, 0, 0, 8, 8], 4.0, [], [TrafficStop(2, 2.0)]),
    ],
)
def test_what_explains_that_nothing_arrives(
    received: list[int], limit: float | None, outages: list[tuple[float, float]], stops: list[TrafficStop]
) -> None:
    settings = Settings(rate=20.0, receive_rate=limit)
    step = replace(
        observed(20.0), plan=StepPlan(2, settings, 6), course=due(received, 20), outages=outages,
        facts=TimeSeriesFacts(0, 6, 1, 1.0, complete=True), window_ns=(0, 6_000_000_000),
    )  # fmt: skip
    found = found_in(step)
    assert found is not None
    assert found.stops == stops


@pytest.mark.parametrize(
    "step",
    [
        replace(observed(), facts=None),
        replace(observed(), facts=TimeSeriesFacts(0, 10, 1, 2.0, complete=False)),
        replace(observed(), facts=TimeSeriesFacts(0, 10, 1, 0.0, complete=True)),
        replace(observed(), facts=TimeSeriesFacts(0, 10, 1, 2.0, complete=True), reading_ns=1),
        replace(observed(), facts=TimeSeriesFacts(0, 1.5, 1, 2.0, complete=True)),
    ],
)
def test_without_the_messages_of_each_second_nothing_is_known(step: Observation) -> None:
    assert found_in(replace(step, course=due([0] * 10, 100))) is None


def test_a_step_with_a_stop_is_neither_steady_nor_clean() -> None:
    facts = TimeSeriesFacts(0, 10, 1, 2.0, complete=True)
    received = [200, 200, 200, 0, 0, 0, 800, 200, 200, 200]
    stopped = figures(replace(observed(), received=received, course=due(received, 100), facts=facts))
    assert (stopped["steady"], stopped["stopped_s"]) == (False, 3.0)
    assert str(stopped["unsteady"]) == "stop 3 3; second 6 3"
    # What was due in a stop is part of a search's shortfall, and the rate does not pass.
    assert (stopped["passed"], stopped["shortfall_pct"], str(stopped["bursts_s"])) == (False, 30.0, "3")
    assert why_not_clean(stopped) == "nothing arrived for 3 s although messages were due"
    running = figures(replace(observed(), received=[200] * 10, course=due([200] * 10, 100), facts=facts))
    assert (running["steady"], running["stopped_s"], running["unsteady"]) == (True, 0, None)
    assert why_not_clean(running) == ""
    assert figures(observed())["stopped_s"] is None


def test_a_short_stop_is_not_steady_and_may_be_clean() -> None:
    dice, world = np.random.default_rng(8), World(100)
    series = world.step(dice, [(3.4, 0.9)])
    step = replace(
        observed(), course=series, facts=TimeSeriesFacts(0, 10, 1, 1.0, complete=True),
        plan=StepPlan(1, Settings(rate=100.0), 10), subscribers=[1],
    )  # fmt: skip
    found = figures(step)
    assert (found["steady"], found["stopped_s"]) == (False, 0)
    assert str(found["unsteady"]).startswith("short 3 -0.6")
