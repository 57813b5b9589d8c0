"""Steps to be stored, with all that a step may hold."""

from __future__ import annotations

from dataclasses import replace

from hydra import model
from hydra.measure.observation import Observation
from hydra.measure.step_result import StepResult
from hydra.model import Histogram, HostSample, LedgerCounts, Settings, StepPlan
from hydra.store.database import RunStore
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import START, STOP, published, received
from tests.suite.figures import figures

CORES = [model.CoreTimes(1.25, 0.5, 10.0), model.CoreTimes(2.0, 0.0, 10.0)]
LINKS = {"eth0": model.InterfaceCounts(1, 2, 3, 4, 1000), "eth1": model.InterfaceCounts(0, 0, 0, 0, None)}
COUNTERS = model.HostCounters(CORES, {"cpu": 5}, 8 << 30, 1 << 62, LINKS, model.TcpCounts(7, 8), 9)
THREADS = [model.ThreadSample(START, "g-1", [model.BusyThread(17, "IO/0", 99.5)]), model.ThreadSample(STOP, "g-1")]
PLAN = StepPlan(3, Settings(rate="max"), 10.0, "slow", model.Cohort("slow", 0.1, 50.0, 7))


def observed() -> Observation:
    ledger = LedgerCounts(0, 900, 890, 100, [(5, 104)], duplicates=2, reordered=3, extra=4)
    lossy = received(900, absent=[(1, 2)], felt=False, ledgers=[ledger])
    return Observation(
        queue="high-water mark", batch=100, plan=PLAN, window_ns=(START, STOP),
        publishers={0}, subscribers={1, 2, 3}, dead={3}, cohort={2}, agents={0: "a", 1: "b", 2: "b"},
        publisher_reports={0: published(1000, blocked_ns=5)},
        subscriber_reports=table_of({1: received(1000), 2: lossy}, cohort={2}),
        hosts={"h": [HostSample(START + n, COUNTERS) for n in (1, 2)], "b": []},
        host_of={"a": "h", "b": "h", "c": "b"}, threads={"a": THREADS},
    )  # fmt: skip


def stored(store: RunStore, epoch: int = 1) -> StepResult:
    o = observed()
    result = StepResult(epoch, PLAN, "ok", figures(o))
    store.add_step(result, o)
    return result


def with_clocks() -> Observation:
    early = received(1000, latency=Histogram([-3001, 2, -2, 1, 0, 5, 50, 992], -3500, 50))
    clocks = {
        "a": model.AgentClock(0, 0, 0, 0, same_host=True, jumps=0),
        "b": model.AgentClock(-(10**15), 40_000, 75_000, 110_000, same_host=False, jumps=2),
    }
    return replace(observed(), subscriber_reports=table_of({1: early}), clocks=clocks)
