"""Steps of one subscriber that misses messages, and losses over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hydra.measure import loss_pattern
from hydra.measure.observation import Observation
from hydra.model import DrainEnd, LedgerCounts, Rate, SequenceRange, Settings, StepPlan, SubscriberReport
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import SECOND, START, published, received

RATE = 1000.0
"""Messages/s: 20 of them are due in a slice of 0.02 s."""


def slices(seconds: float, **lost: float) -> loss_pattern.LossProfile:
    """The loss of each slice, 0 except for the slices ``s7=0.5``, or ``s10_19=0.5`` for a stretch of them."""
    found = np.zeros(round(seconds / loss_pattern.SLICE_S))
    for name, share in lost.items():
        first, _, last = name[1:].partition("_")
        found[int(first) : int(last or first) + 1] = share
    return found


def observed(report: SubscriberReport, rate: Rate = RATE, seconds: float = 2.0, **more: object) -> Observation:
    o = Observation(
        queue="high-water mark", batch=100, plan=StepPlan(1, Settings(rate=rate), 2.0), publishers={0}, subscribers={1},
        publisher_reports={0: published(2000)}, subscriber_reports=table_of({1: report}),
        window_ns=(START, START + int(seconds * SECOND)),
    )  # fmt: skip
    return replace(o, **more)  # type: ignore[arg-type]


def account(missing: list[SequenceRange], late: int = 0, undrained: int = 0, drain: DrainEnd = "complete",
            lag_s: float | None = 0.0, slope: float = 0.0) -> SubscriberReport:  # fmt: skip
    """Of 2,000 messages, with a lag that grows by ``slope``; None: no lag is known."""
    lost = sum(b - a + 1 for a, b in missing)
    bins: list[int | None] = [] if lag_s is None else [int(1e6 * (lag_s + slope * 0.1 * k)) + k % 2 for k in range(20)]
    counts = LedgerCounts(0, 2000 - lost, 2000 - lost - late, lost, missing)
    return received(2000 - lost, ledgers=[counts], undrained=undrained, drain=drain, lag_bins_us=bins)
