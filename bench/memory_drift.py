"""Whether clients, relays and the controller grow while a step goes on.

    python bench/memory_drift.py --minutes 4 --client native --rate 20000 --clients 20

Runs one step (``hydra slo``), reads the resident memory of every process of the run each second, and prints for each
kind the means of the first and of the last minute, and the slope of a line through what lies behind the first third, in
MB an hour. The end of the step, when everybody reports, is left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import psutil


def kind_of(process: psutil.Process) -> str:
    """Controller, group's parent, relay and clients are told apart by what they were started as, and by whom."""
    words = process.cmdline()
    for kind in ("-pub", "-sub"):
        if any(word.endswith(kind) for word in words):
            parent = process.parent()
            return f"clients and relay {kind[1:]}" if parent and parent.cmdline() == words else f"group {kind[1:]}"
    return "controller" if any("hydra.cli.main" in word for word in words) else "others"


def main() -> None:
    """Runs, samples, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--client", default="native")
    parser.add_argument("--rate", type=float, default=20_000.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--scenario", default="zmqfixed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        words = ["slo", asked.scenario, "--client", asked.client, "--rate", f"{asked.rate:g}", "--p99", "10s"]
        words += ["--clients", str(asked.clients), "--duration", f"{asked.minutes}min", "--out", str(out), "--quiet"]
        with subprocess.Popen([sys.executable, "-m", "hydra.cli.main", *words]) as command:
            samples = watch(psutil.Process(command.pid), asked.minutes * 60)
        size = (out / "run.db").stat().st_size if (out / "run.db").exists() else 0
    show(samples)
    print(f"run.db: {size / 1e6:.2f} MB for {asked.minutes:g} min")


def watch(command: psutil.Process, seconds: float) -> dict[str, list[tuple[float, float]]]:
    """Seconds since the first client and MB of each kind's processes together, until the step's length is over."""
    samples: dict[str, list[tuple[float, float]]] = defaultdict(list)
    began = 0.0
    while command.is_running() and command.status() != psutil.STATUS_ZOMBIE:
        sums: dict[str, float] = defaultdict(float)
        for process in [command, *command.children(recursive=True)]:
            try:
                sums[kind_of(process)] += process.memory_info().rss / 1e6
            except psutil.Error:
                continue
        if not began and any("sub" in kind for kind in sums):
            began = time.monotonic()
        if began and time.monotonic() - began > seconds:
            break
        for kind, megabytes in sums.items():
            if began:
                samples[kind].append((time.monotonic() - began, megabytes))
        time.sleep(1.0)
    return samples


def show(samples: dict[str, list[tuple[float, float]]]) -> None:
    """A line a kind."""
    for kind, its in sorted(samples.items()):
        at, megabytes = np.array(its).T
        late = at > at[-1] / 3
        slope = np.polyfit(at[late], megabytes[late], 1)[0] * 3600 if late.sum() > 2 else float("nan")
        first, last = megabytes[at < 60].mean(), megabytes[at > at[-1] - 60].mean()
        print(f"{kind:28} first minute {first:8.1f} MB, last minute {last:8.1f} MB, slope {slope:+8.1f} MB/h")


if __name__ == "__main__":
    main()
