"""Snapshots for the tests of what exposes them."""

from __future__ import annotations

from hydra import model
from hydra.measure.step_result import StepFigures, StepResult
from hydra.measure.verdict import Causes
from hydra.model import Figure, Histogram, HostSample, Settings, StepPlan
from hydra.monitor.metric_families import MetricFamily, families
from hydra.monitor.run_snapshot import ClientCounts, SnapshotUpdater, WindowProgress
from hydra.wire.buckets import index_of

PLAN = StepPlan(clients=3, settings=Settings(rate=100.0), duration_s=2.0)

FIGURES: dict[str, Figure] = {"clients": 3, "sent": 200, "in_window": 590, "late": 4, "lost": 6, "client_loss_pct": 1.0}
FIGURES |= {"avg_tx_rate_pps": 100.0, "avg_rx_rate_pps": 99.0, "aggregate_pps": 295.0, "requested_rate": 100.0}
FIGURES |= {"latency_p50_us": 120, "latency_max_us": 2_000_000, "verdict": Causes(("none",))}


def host(time_s: float, busy_s: float) -> HostSample:
    """A host of one core at this time, after so much work."""
    cores, tcp = [model.CoreTimes(busy_s, 0.0, time_s)], model.TcpCounts(0, 0)
    return HostSample(round(time_s * 1e9), model.HostCounters(cores, {}, 8 << 30, 6 << 30, {}, tcp, 0))


def latencies(*values_us: int) -> Histogram:
    """A histogram of these values, which rise."""
    counts = [number for value in values_us for number in (index_of(value), 1)]
    return Histogram(counts, values_us[0], values_us[-1])


def progress() -> WindowProgress:
    """A step in the middle of its window."""
    clients = {"publisher": ClientCounts(1, 1, 1), "subscriber": ClientCounts(3, 3, 2)}
    hosts = {"here": (host(10.0, 1.0), host(11.0, 1.25))}
    return WindowProgress(1.0, 0.5, 101.0, 98.0, clients, hosts)  # type: ignore[arg-type]  # names of roles


def running() -> SnapshotUpdater:
    """A run with one step that is measured and one that continues."""
    keeper = SnapshotUpdater("r", "zmq")
    keeper.step_begins(1, PLAN)
    keeper.step_ended(StepResult(1, PLAN, "ok", StepFigures.of(FIGURES)), latencies(120, 120_000))
    keeper.step_begins(2, PLAN)
    keeper.tick(progress(), 100, 290)
    return keeper


def exposed() -> list[MetricFamily]:
    """What is exposed of it."""
    return families([running().snapshot])
