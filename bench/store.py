"""What storing a step costs, and how large a run's database becomes."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from hydra.measure.figures import figures, merge_histograms
from hydra.measure.observation import Observation
from hydra.model import (
    Histogram,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    Settings,
    StepPlan,
    StepResult,
    SubscriberReport,
)
from hydra.store.database import DATABASE, RunStore
from hydra.wire.subscriber_table import table_of

SECOND = 1_000_000_000


def subscriber(rng: np.random.Generator, ranges: int) -> SubscriberReport:
    at = np.unique(rng.integers(50, 6000, 150))
    pairs = np.column_stack((at, rng.integers(1, 500, len(at)))).ravel().tolist()
    missing = [(k * 1000, k * 1000 + 17) for k in range(ranges)]
    return SubscriberReport(
        ledgers=[LedgerCounts(0, 100_000, 99_000, ranges * 18, missing)],
        batches=4000,
        first_batch=12,
        first_ns=10**18 + int(rng.integers(SECOND)),
        last_ns=10**18 + 9 * SECOND,
        bytes=10**7,
        stale=0,
        latency=Histogram(pairs, 60, 20_000),
        usage=ProcessUsage(float(rng.random()), float(rng.random()), 30_000_000),
    )


def step(clients: int, ranges: int) -> Observation:
    rng = np.random.default_rng(1)
    publisher = PublisherReport(100_000, 100_000, 0, 10**18, 10**18 + 9 * SECOND, 10**7, Histogram(), ProcessUsage())
    return Observation(
        queue="high-water mark",
        batch=100,
        plan=StepPlan(clients, Settings(rate=10_000.0), 10.0),
        publishers={0},
        subscribers=set(range(1, clients + 1)),
        publisher_reports={0: publisher},
        subscriber_reports=table_of({c: subscriber(rng, ranges) for c in range(1, clients + 1)}),
        window_ns=(10**18, 10**18 + 10 * SECOND),
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for clients in (480, 1000, 15_360):
            o = step(clients, ranges=3)
            with RunStore.create(Path(folder) / str(clients), {}) as store:
                start = time.perf_counter()
                histograms = merge_histograms(o)
                columns = figures(o, histograms)
                between = time.perf_counter()
                store.add_step(StepResult(1, o.plan, "ok", columns), o, histograms)
                end = time.perf_counter()
            print(f"{clients:>6} clients: figures {between - start:.3f} s, store {end - between:.3f} s")
        for ranges in (0, 3, 256):
            o = step(1000, ranges)
            histograms = merge_histograms(o)
            path = Path(folder) / f"large-{ranges}"
            with RunStore.create(path, {}) as store:
                for epoch in range(1, 11):
                    store.add_step(StepResult(epoch, o.plan, "ok"), o, histograms)
            size = (path / DATABASE).stat().st_size
            print(f"100 rows x 1,000 clients, {ranges:>2} missing ranges each: {size * 10 / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
