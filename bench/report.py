"""What a report of a large run costs: 100 rows of 1,000 clients; at most 30 s, and run.db below 100 MB."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from store import step  # type: ignore[import-not-found]  # beside this file, whose folder Python puts first

from hydra.jupyter.command import write_report
from hydra.measure.figures import figures, merge_histograms
from hydra.model import CoreTimes, HostCounters, HostSample, InterfaceCounts, Scenario, Settings, StepResult, TcpCounts
from hydra.store.database import DATABASE, RunStore
from hydra.sweep import GridSweep, for_scenario

CLIENTS, ROWS = 1000, 100


def main() -> None:
    spec = GridSweep(clients=(CLIENTS,), duration_s=10.0, vary={"msg_batch": tuple(range(100, 100 * (ROWS + 1), 100))})
    scenario = Scenario("kafka-batch", "kafka", "kafka-python", "batch", spec, Settings(rate=10_000.0))
    o = step(CLIENTS, ranges=3)
    start_ns, stop_ns = o.window_ns
    interfaces = {"eth0": InterfaceCounts(10**12, 10**12, 1, 1, 1000)}
    counters = HostCounters([CoreTimes(123.45, 0.0, 678.9)] * 16, {"cpu": 10**6}, 1, 1, interfaces, TcpCounts(1, 1), 1)
    sample = HostSample(0, counters)
    samples = [replace(sample, time_ns=t) for t in range(start_ns, stop_ns, 250_000_000)]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        with RunStore.create(run, {"scenario": scenario, "name": "run"}) as store:
            sweep, results = for_scenario(scenario), list[StepResult]()
            while (plan := sweep.next(results)) is not None:
                observed = replace(o, plan=plan, hosts={"host": samples})
                histograms = merge_histograms(observed)
                results.append(StepResult(len(results) + 1, plan, "ok", figures(observed, histograms)))
                store.add_step(results[-1], observed, histograms)
            store.set_meta("ended", "finished")
        start = time.perf_counter()
        paths = write_report(run)
        seconds = time.perf_counter() - start
        sizes = ", ".join(f"{p.name} {p.stat().st_size / 1e6:.1f} MB" for p in (run / DATABASE, *paths))
    print(f"{ROWS} rows x {CLIENTS:,} clients: report in {seconds:.1f} s; {sizes}")


if __name__ == "__main__":
    main()
