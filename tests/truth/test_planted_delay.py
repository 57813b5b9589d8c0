"""Latencies that a proxy plants on a subscriber's connection come out as its own log has them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from hydra.measure.latency import percentiles_us
from hydra.model import Histogram, Settings
from tests.conformance.bench import Bench
from tests.truth.priority import first
from tests.truth.proxy import HandedOn, Plan, Proxy
from tests.truth.scale import cases
from tests.truth.stage import Stage

pytestmark = pytest.mark.processes

RATE, SECONDS = 500.0, 1.0
SETTINGS = Settings(rate=RATE, message_size=100, sndhwm=0)
LONGEST_MS = 40
LONGEST_AT = 250
"""One message waits for longer than any other, so that the maximum is a planted one too."""
PERCENTS = (50.0, 90.0, 99.0)
WITHIN_US = 200.0
"""How long a message may take from the proxy's hands into the subscriber's, its wake-up included."""
ATTEMPTS = 4
"""A machine that others use as well may be late by itself, but not every time."""


def delays_ns(seed: int) -> list[int]:
    """For each sequence: 1 to 20 ms, in steps that no bucket of a histogram is as wide as."""
    draw = random.Random(seed)
    delays = [draw.randint(1_000_000, 20_000_000) for _ in range(math.ceil(RATE * SECONDS))]
    delays[LONGEST_AT] = LONGEST_MS * 1_000_000
    return delays


def at_percentiles_us(values_ns: Sequence[int]) -> list[float]:
    """The values (µs) at ``PERCENTS`` by nearest rank, as HdrHistogram rounds it, and the largest."""
    ordered = sorted(values_ns)
    ranks = [max(int(p * len(ordered) / 100 + 0.5), 1) for p in PERCENTS]
    return [ordered[rank - 1] / 1000 for rank in ranks] + [ordered[-1] / 1000]


def beyond(latency: Histogram, log: Sequence[HandedOn]) -> list[str]:
    """Which of the reported percentiles the log contradicts.

    Nothing arrives before the proxy began to hand it on, and nothing later than ``WITHIN_US`` after it had; a figure
    is rounded down to 1 µs and then up to the end of its bucket, of three significant digits.
    """
    reported = [*percentiles_us(latency, PERCENTS), latency.max_us]
    earliest = at_percentiles_us([m.before_ns - m.due_ns for m in log])
    latest = at_percentiles_us([m.after_ns - m.due_ns for m in log])
    return [
        f"{name}: {us} µs, handed on {low:.0f} to {high:.0f} µs after it was due"
        for name, us, low, high in zip([*map("p{:g}".format, PERCENTS), "max"], reported, earliest, latest, strict=True)
        if us is None or not low - 1 <= us <= (high + WITHIN_US) * 1.001
    ]


def test_the_comparison_sees_a_figure_that_is_off_by_a_quarter_of_a_millisecond() -> None:
    log = [HandedOn(n, 0, 5_000_000, 5_010_000) for n in range(100)]
    good = Histogram([(2 << 10) + (5_050 >> 2), 100], 5_050, 5_050)
    early = Histogram([(2 << 10) + (4_990 >> 2), 100], 4_990, 4_990)
    late = Histogram([(2 << 10) + (5_260 >> 2), 100], 5_260, 5_260)
    assert [len(beyond(h, log)) for h in (good, early, late)] == [0, 4, 4]


@pytest.mark.parametrize("seed", cases([1], [2, 3, 4]))
def test_planted_delays_come_out_at_every_percentile(bench: Bench, zmq_command: str, seed: int) -> None:
    stage = Stage(bench, first(zmq_command))
    delays = delays_ns(seed)
    found: list[list[str]] = []
    proxy: Proxy | None = None
    try:
        for _ in range(ATTEMPTS):
            step = stage.next(SETTINGS)
            proxy = proxy or Proxy(step.endpoint)
            plan = Plan(step.epoch, SETTINGS.message_size, delays.__getitem__)
            step.connect({1: proxy.endpoint})
            proxy.plan = plan

            measured = step.run(SECONDS, begun=plan.synchronise)

            log, report = plan.handed_on, measured.subscribers[1]
            assert len(log) == measured.publisher.sent == report.ledgers[0].received
            # What the log says was really planted: nobody waited for less than what was asked.
            assert all(m.before_ns - m.due_ns >= delays[m.sequence] for m in log)
            found.append(beyond(report.latency, log))
            if not found[-1]:
                return
    finally:
        if proxy is not None:
            proxy.close()
    pytest.fail(f"in {ATTEMPTS} attempts: {found}")
