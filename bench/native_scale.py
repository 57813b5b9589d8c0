"""How long thousands of native clients take: `hydra zmqfixed --client native`, as a user runs it, at 10 messages/s.

A row for each client count, every count in a run of its own:

- present: from the launch until every process has dialled in (CURVE handshake, hello, welcome);
- ready: until every subscriber has also been configured and has received a probe over its data socket;
- configure: the next configure, until every client has acknowledged it;
- reports, stored: from the end of the window until every report is in, and until they are in the database;
- lost, failed: of the step's row.

Limits that the counts need (`hydra check zmqfixed --client native --clients …` names them) are the caller's business.

Run: python bench/native_scale.py [CLIENTS …] [--clients-per-process K] [--rounds N]
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from hydra.native import build
from hydra.store.database import RunStore

COLUMNS = ("present", "ready", "configure", "reports", "stored", "agg pps", "lost %", "failed")


def measure(clients: int, packed: int, rate: float) -> dict[str, float]:
    """The columns of one run.

    Raises:
        RuntimeError: it could not be measured; the text is what hydra said.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        names = ["--clients", str(clients), "--rate", str(rate), "--duration", "5", "--out", str(out)]
        flags = ["--client", "native", "--clients-per-process", str(packed)]
        hydra = Path(sys.executable).with_name("hydra")
        run = subprocess.run([hydra, "zmqfixed", *names, *flags], capture_output=True, text=True, check=False)
        if run.returncode:
            raise RuntimeError(run.stdout[-1000:] + run.stderr[-1000:])
        with RunStore.open(out) as store:
            (row,) = store.results()
            said: dict[str, list[str]] = defaultdict(list)
            for event in store.events():
                said[event.kind].append(event.text)
    first, then = (_seconds(text) for text in said["phases"])  # the warm-up's and the step's
    present = float(re.findall(r"after ([0-9.]+) s", said["present"][0])[0])
    stored = float(re.findall(r": ([0-9.]+) s", said["stored"][0])[0])
    return {
        "present": present,
        "ready": present + first["bind"] + first["settings"] + first["readiness"],
        "configure": then["settings"],
        "reports": then["reports"],
        "stored": then["reports"] + stored,
        "agg pps": float(row.figures["aggregate_pps"] or 0),
        "lost %": float(row.figures["client_loss_pct"] or 0),
        "failed": float(row.figures["failed_clients"] or 0),
    }


def _seconds(phases: str) -> dict[str, float]:
    parts = phases.partition(": ")[2].split(", ")
    return {name: float(s) for name, s in (part.removesuffix(" s").rsplit(" ", 1) for part in parts)}


def main() -> int:
    """Prints a table of medians, with the smallest and largest of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", type=int, nargs="*", default=[1000])
    parser.add_argument("--clients-per-process", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=10.0)
    options = parser.parse_args()
    if build.find() is None:
        print("not measured: the native client is not built")
        return 0
    print(" | ".join(["clients", *COLUMNS]))
    for clients in options.clients:
        rounds = [measure(clients, options.clients_per_process, options.rate) for _ in range(options.rounds)]
        cells = []
        for column in COLUMNS:
            figures = [r[column] for r in rounds]
            spread = f" ({min(figures):.4g}-{max(figures):.4g})" if len(figures) > 1 else ""
            cells.append(f"{statistics.median(figures):.4g}{spread}")
        print(" | ".join([str(clients), *cells]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
