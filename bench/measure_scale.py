"""What figures and store cost with many subscribers: `python bench/measure_scale.py [10000 100000 …]`.

Their reports come as batches of 1,000, as relays send them: each with 20 lags, three missing ranges and a histogram of
some 150 buckets. Seconds are of CPU, so that whatever else the machine does changes them little.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from store import SECOND, subscriber  # type: ignore[import-not-found]  # beside this file

from hydra.measure.figures import figures, merge_histograms
from hydra.measure.observation import Observation
from hydra.model import LAG_BINS, Histogram, ProcessUsage, PublisherReport, Settings, StepPlan, StepResult
from hydra.store.database import DATABASE, RunStore
from hydra.wire.report_batch import encode
from hydra.wire.subscriber_table import concatenate, decode

GROUP = 1000
SIZES = (10_000, 100_000, 1_000_000)


def measure(clients: int) -> None:
    """One step of so many subscribers, in a process of its own: its peak of memory is this step's."""
    rng = np.random.default_rng(1)
    lags: list[int | None] = rng.integers(100, 5000, LAG_BINS).tolist()
    reports = [(n, replace(subscriber(rng, ranges=3), lag_bins_us=lags)) for n in range(GROUP)]
    begin = time.process_time()
    columns, payload = encode(reports)
    encoded = time.process_time() - begin
    payloads = [bytes(bytearray(payload)) for _ in range(clients // GROUP)]
    took = []
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder, RunStore.create(Path(folder) / "run", {}) as store:
        took.append(time.process_time())
        batches = [decode(range(n * GROUP + 1, n * GROUP + GROUP + 1), columns, p) for n, p in enumerate(payloads)]
        took.append(time.process_time())
        table = concatenate(batches)
        took.append(time.process_time())
        del batches
        sent = PublisherReport(100_000, 100_000, 0, 10**18, 10**18 + 9 * SECOND, 10**7, Histogram(), ProcessUsage())
        o = Observation(
            plan=StepPlan(clients, Settings(rate=10_000.0), 10.0),
            queue="high-water mark",
            batch=100,
            publishers={0},
            subscribers=range(1, clients + 1),
            publisher_reports={0: sent},
            subscriber_reports=table,
            window_ns=(10**18, 10**18 + 10 * SECOND),
        )
        histograms = merge_histograms(o)
        found = figures(o, histograms)
        took.append(time.process_time())
        store.add_step(StepResult(1, o.plan, "ok", found), o, histograms)
        took.append(time.process_time())
        stored_mb = (Path(folder) / "run" / DATABASE).stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    decoded, together, made, stored = np.diff(took)
    print(
        f"{clients:>9,}: encode {encoded:.3f} s a batch of {len(payload) / 1e3:.0f} kB; all decoded {decoded:.2f} s, "
        f"one table {together:.2f} s, figures {made:.2f} s, stored {stored:.2f} s ({stored_mb:.0f} MB); "
        f"resident {peak / 1024:.0f} MB, {(peak - before) / 1024:.0f} MB of them since the batches were there"
    )


def main() -> None:
    """Each size in a process of its own."""
    if sys.argv[1:2] == ["--one"]:
        measure(int(sys.argv[2]))
        return
    for clients in [int(size) for size in sys.argv[1:]] or SIZES:
        subprocess.run([sys.executable, __file__, "--one", str(clients)], check=True)


if __name__ == "__main__":
    main()
