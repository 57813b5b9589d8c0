"""Latencies that a proxy plants on a subscriber's connection come out as its own log has them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import pytest

from hydra.model import Histogram
from hydra.wire.buckets import percentiles_us
from tests.conformance.bench import Bench, step_settings
from tests.truth.pauses import Pause, after, witnessed
from tests.truth.priority import first
from tests.truth.proxy import HandedOn, Plan, Proxy
from tests.truth.scale import cases
from tests.truth.stage import Stage

pytestmark = pytest.mark.tier("all")

RATE, SECONDS = 500.0, 1.0
SETTINGS = step_settings(rate=RATE, message_size=100, sndhwm=0)
SHORTEST_MS, LONG_MS, LONGEST_MS = 1.0, 20.0, 40.0
LONGEST_AT = 250
"""One message waits for longer than any other, so that the maximum is a planted one too; a slope leads up to it."""
STEP_MS = 1.2
"""How much longer or shorter a message waits than the one before. Messages are due every 2 ms, so they still leave the
proxy one by one (a subscriber takes one reading of its clock for what it finds together), and none after a long silence
(to wake from which takes its time)."""
PERCENTS = (50.0, 90.0, 99.0)
WITHIN_NS = 500_000
"""How long a message may take from the proxy's hands into the subscriber's, of the time that the machine has: its
wake-up, and a pause that is too short to be witnessed."""


def delays_ns(seed: int) -> list[int]:
    """For each sequence: back and forth between the shortest and a long delay, from which one sticks out."""
    draw = random.Random(seed)
    goal_ms = now_ms = draw.uniform(SHORTEST_MS, LONG_MS)
    delays = []
    for n in range(math.ceil(RATE * SECONDS)):
        if now_ms == goal_ms:
            goal_ms = draw.uniform(SHORTEST_MS, LONG_MS)
        step_ms = draw.uniform(0, STEP_MS) if now_ms <= LONG_MS else STEP_MS
        now_ms = min(now_ms + step_ms, goal_ms) if now_ms < goal_ms else max(now_ms - step_ms, goal_ms)
        if n <= LONGEST_AT:
            now_ms = max(now_ms, LONGEST_MS - STEP_MS * (LONGEST_AT - n))
        delays.append(round(now_ms * 1e6))
    return delays


def at_percentiles_us(values_ns: Sequence[int]) -> list[float]:
    """The values (µs) at ``PERCENTS`` by nearest rank, and the largest."""
    ordered = sorted(values_ns)
    ranks = [math.ceil(Fraction(str(p)) * len(ordered) / 100) for p in PERCENTS]
    return [ordered[rank - 1] / 1000 for rank in ranks] + [ordered[-1] / 1000]


@dataclass(frozen=True)
class Compared:
    """A reported percentile (µs), and between which two it has to be."""

    name: str
    reported: float
    earliest: float
    latest: float

    @property
    def early(self) -> bool:
        """Whether it would have arrived before it was handed on; a figure is rounded down to 1 µs."""
        return self.reported < self.earliest - 1

    @property
    def late(self) -> bool:
        """Whether it is too far above; a figure is rounded up to the end of its bucket, of three significant digits."""
        return self.reported > self.latest * 1.001


def compare(latency: Histogram, log: Sequence[HandedOn], pauses: Sequence[Pause]) -> list[Compared]:
    """Each percentile beside the same one of the proxy's log, and of that log with what the way from there may take."""
    names = [*map("p{:g}".format, PERCENTS), "max"]
    reported = [value or 0 for value in (*percentiles_us(latency, PERCENTS), latency.max_us)]
    earliest = at_percentiles_us([m.before_ns - m.due_ns for m in log])
    latest = at_percentiles_us([after(m.after_ns, WITHIN_NS, pauses) - m.due_ns for m in log])
    return [Compared(*each) for each in zip(names, reported, earliest, latest, strict=True)]


@pytest.mark.tier("quick")
def test_the_comparison_sees_a_figure_that_is_off_by_more_than_the_way_takes_without_the_pauses() -> None:
    log = [HandedOn(n, 0, 5_000_000, 5_010_000) for n in range(100)]
    early, good, late = (Histogram([(2 << 10) + (us >> 2), 100], us, us) for us in (4_750, 5_050, 5_560))
    assert all(c.early and not c.late for c in compare(early, log, []))
    assert not any(c.early or c.late for c in compare(good, log, []))
    assert all(c.late and not c.early for c in compare(late, log, [(0, 5_000_000), (5_520_000, 9_000_000)]))
    assert not any(c.late for c in compare(late, log, [(5_000_000, 5_100_000)]))


@pytest.mark.parametrize("seed", cases([1], [2, 3, 4]))
def test_planted_delays_come_out_at_every_percentile(bench: Bench, zmq_command: str, seed: int) -> None:
    stage = Stage(bench, first(zmq_command))
    delays = delays_ns(seed)
    step = stage.next(SETTINGS)
    plan = Plan(step.epoch, SETTINGS.shared.message_size, delays.__getitem__)
    with Proxy(step.endpoint) as proxy, witnessed() as witness:
        step.connect({1: proxy.endpoint})
        proxy.plan = plan
        measured = step.run(SECONDS, begun=plan.synchronise)
    log, report = plan.handed_on, measured.subscribers[1]
    assert len(log) == measured.publisher.sent == report.ledgers[0].received
    # The log shows what was really planted: no wait was shorter than the given one.
    assert all(m.before_ns - m.due_ns >= delays[m.sequence] for m in log)
    compared = compare(report.latency, log, witness.pauses)
    assert not [c for c in compared if c.early or c.late], witness.pauses
