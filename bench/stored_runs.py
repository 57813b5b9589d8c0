"""Run directories without a run: steps made from seeded reports, stored as Hydra stores measured ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from hydra.config.plugins import system
from hydra.measure.latency import merge_histograms
from hydra.measure.measured_step import MeasuredStep
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import (
    LAG_BINS,
    CoreTimes,
    Histogram,
    HostCounters,
    HostSample,
    InterfaceCounts,
    LedgerCounts,
    ProcessUsage,
    PublisherReport,
    Scenario,
    Settings,
    SloSpec,
    StepPlan,
    SubscriberReport,
    TcpCounts,
    TimeSeriesFacts,
    TimeSeriesInterval,
)
from hydra.store.database import ENDED_KEY, FINISHED, RunStore
from hydra.sweep import for_scenario
from hydra.sweep.grid import GridSweep
from hydra.wire.subscriber_table import table_of

SECOND_NS: Final = 1_000_000_000
BEGIN_NS: Final = 10**18
_WINDOW_S: Final = 10
_RATE: Final = 10_000.0
_RANGES: Final = 3
_HOUR_S: Final = 3600


def subscriber(rng: np.random.Generator, ranges: int = _RANGES) -> SubscriberReport:
    """The report of a subscriber that missed messages: 20 lags, ``ranges`` missing ranges, some 150 buckets."""
    at = np.unique(rng.integers(50, 6000, 150))
    pairs = np.column_stack((at, rng.integers(1, 500, len(at)))).ravel().tolist()
    missing = [(k * 1000, k * 1000 + 17) for k in range(ranges)]
    lags: list[int | None] = rng.integers(100, 5000, LAG_BINS).tolist()
    return SubscriberReport(
        ledgers=[LedgerCounts(0, 100_000, 99_000, ranges * 18, missing)],
        batches=4000,
        first_batch=12,
        first_ns=BEGIN_NS + int(rng.integers(SECOND_NS)),
        last_ns=BEGIN_NS + 9 * SECOND_NS,
        bytes=10**7,
        stale=0,
        latency=Histogram(pairs, 60, 20_000),
        usage=ProcessUsage(float(rng.random()), float(rng.random()), 30_000_000),
        lag_bins_us=lags,
    )


def publisher() -> PublisherReport:
    """The report of a publisher that sent 100,000 messages."""
    return PublisherReport(100_000, 100_000, 0, BEGIN_NS, BEGIN_NS + 9 * SECOND_NS, 10**7, Histogram(), ProcessUsage())


def observation(clients: int, window_s: int = _WINDOW_S) -> Observation:
    """A step of this number of subscribers, on a host that was sampled four times a second."""
    rng = np.random.default_rng(1)
    window_ns = (BEGIN_NS, BEGIN_NS + window_s * SECOND_NS)
    interfaces = {"eth0": InterfaceCounts(10**12, 10**12, 1, 1, 1000)}
    counters = HostCounters([CoreTimes(123.45, 0.0, 678.9)] * 16, {"cpu": 10**6}, 1, 1, interfaces, TcpCounts(1, 1), 1)
    # Hydra thins the samples of a long step to 2,400.
    every_ns = max(SECOND_NS // 4, window_s * SECOND_NS // 2400)
    return Observation(
        queue="high-water mark",
        batch=100,
        plan=StepPlan(clients, Settings(rate=_RATE), float(window_s)),
        publishers={0},
        subscribers=set(range(1, clients + 1)),
        publisher_reports={0: publisher()},
        subscriber_reports=table_of({c: subscriber(rng) for c in range(1, clients + 1)}),
        window_ns=window_ns,
        hosts={"host": [HostSample(t, counters) for t in range(*window_ns, every_ns)]},
    )


def _settings(name: str) -> Settings:
    """The usual settings of a system, at the rate of these runs."""
    return Settings(rate=_RATE, system=system(name).settings.step())


@contextmanager
def grid_run(rows: int, clients: int) -> Iterator[Path]:
    """A run directory of this many rows, which differ in the batch size; it is deleted at the end."""
    grid = GridSweep(
        clients=(clients,), duration_s=float(_WINDOW_S), vary={"msg_batch": tuple(range(100, 100 * rows + 1, 100))}
    )
    scenario = Scenario("kafka-batch", "kafka", "kafka-python", "batch", grid, _settings("kafka"))
    with TemporaryDirectory() as name:
        folder = Path(name) / "run"
        store_rows(folder, scenario, observation(clients))
        yield folder


def store_rows(folder: Path, scenario: Scenario, measured: Observation) -> None:
    """Stores a finished run whose rows have the same reports."""
    with RunStore.create(folder, {"scenario": scenario, "name": folder.name, "began": "2026-01-01T00:00:00"}) as store:
        sweep, results = for_scenario(scenario), list[StepResult]()
        while (plan := sweep.next(results)) is not None:
            its = replace(measured, plan=plan)
            histograms = merge_histograms(its)
            results.append(StepResult(len(results) + 1, plan, "ok", StepFigures.of_step(MeasuredStep(its, histograms))))
            store.add_step(results[-1], its, histograms)
        store.set_meta(ENDED_KEY, FINISHED)


@contextmanager
def hour_run() -> Iterator[Path]:
    """A run directory of one step of an hour with figures of each second; it is deleted at the end."""
    sweep = GridSweep(clients=(20,), duration_s=float(_HOUR_S))
    scenario = Scenario("zmqfixed", "zmq", "pyzmq", "fixed", sweep, _settings("zmq"), slo=SloSpec(p99_ms=10.0))
    rng = np.random.default_rng(2)
    with TemporaryDirectory() as name:
        folder = Path(name) / "run"
        with RunStore.create(folder, {"scenario": scenario, "name": "run", "began": "2026-01-01T00:00:00"}) as store:
            its = observation(20, _HOUR_S)
            histograms = merge_histograms(its)
            facts = TimeSeriesFacts(BEGIN_NS, float(_HOUR_S), 1, 20.0, complete=True)
            store.begin_time_series(1, its.plan, facts)
            store.add_seconds(1, (_second(rng, at) for at in range(_HOUR_S)))
            store.add_step(
                StepResult(1, its.plan, "ok", StepFigures.of_step(MeasuredStep(its, histograms))), its, histograms
            )
            store.set_meta(ENDED_KEY, FINISHED)
        yield folder


def _second(rng: np.random.Generator, at: int) -> TimeSeriesInterval:
    buckets = np.unique(rng.integers(50, 2000, 60))
    latency = Histogram(np.column_stack((buckets, rng.integers(1, 500, len(buckets)))).ravel().tolist(), 60, 20_000)
    copies = int(_RATE) * 20
    return TimeSeriesInterval(at, int(_RATE), int(_RATE), copies, 0, 0, latency)
