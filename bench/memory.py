"""Section 5, memory of a client: beside a bare process of the same library, and what messages and steps add."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

from bench.clients.pyzmq_start import COMMAND as BARE_PYZMQ
from bench.hours import kinds
from bench.hydra_command import run_hydra

_ROW_S: Final = 5.0
CLIENTS: Final = 100
"""Processes share the pages of their parent and of libraries, so the memory of one depends on their number."""


def pss_bytes(pid: int) -> int:
    """Proportional resident memory of a process: what processes share is divided by their number."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def ours(scenario: str, client: str, *words: str) -> float:
    """Mean PSS (MB) of Hydra's subscribers behind a first step of 2 s at 10 messages/s."""
    found: list[float] = []

    def look(pid: int) -> None:
        processes = [process for kind, process in kinds(psutil.Process(pid)) if kind == "subscribers"]
        if processes and not found:
            found.append(_mean_mb(processes))

    flags = ["--client", client, "--clients", str(CLIENTS), "--rate", "10", "--duration", "2", "--repeat", "2"]
    run_hydra(scenario, *flags, *words, watch=look)
    return found[0]


def bare_pyzmq() -> float:
    """Mean PSS (MB) of forked processes with a socket of pyzmq each."""
    with subprocess.Popen(
        [*BARE_PYZMQ, str(CLIENTS), "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            if not process.stdout or not process.stdout.readline():
                raise RuntimeError("the bare processes are not connected")
            return _mean_mb(psutil.Process(process.pid).children())
        finally:
            process.kill()


def _mean_mb(processes: Sequence[psutil.Process]) -> float:
    return sum(pss_bytes(process.pid) for process in processes) / len(processes) / 1e6


def after(messages: int, rows: int = 1) -> float:
    """The largest memory (bytes) of a native subscriber of ZMQ behind rows of 5 s with this number of messages each."""
    words = ["--client", "native", "--clients", "10", "--rate", f"{messages / _ROW_S:g}", "--duration", f"{_ROW_S:g}"]
    repeated = ["--repeat", str(rows)] if rows > 1 else []
    return run_hydra("zmqfixed", *words, *repeated).sums[-1]["subscriber"]["max_rss_bytes"]
