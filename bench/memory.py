"""Section 5, memory of a client: beside a bare process of its library, and what messages, reports and steps add."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import psutil

from bench import limits, programs
from bench.clients.channel import Sides, Workload
from bench.clients.forks import pss_bytes
from bench.clients.pyzmq_start import COMMAND as BARE_PYZMQ
from bench.hours import kinds
from bench.hydra_command import run_hydra

_RATE: Final = 20_000
CLIENTS: Final = 100
"""Processes share the pages of their parent and of libraries, so the memory of one depends on their number."""
PACKED: Final = 1000
"""Clients of one process."""
_SHORT_S: Final = 0.1


def ours(scenario: str, client: str, clients: int = CLIENTS) -> float:
    """Mean PSS (MB) of the processes of Hydra's subscribers behind a first step of 2 s at 10 messages/s."""
    found: list[float] = []

    def look(pid: int) -> None:
        processes = [process for kind, process in kinds(psutil.Process(pid)) if kind == "subscribers"]
        if processes and not found:
            found.append(_mean_mb(processes))

    flags = ["--client", client, "--clients", str(clients), "--rate", "10", "--duration", "2", "--repeat", "3"]
    run_hydra(scenario, *flags, watch=look)
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


def bare_libzmq() -> float:
    """Mean PSS (MB) of forked processes with a socket of libzmq each."""
    return limits.connected("zmq", CLIENTS)[1]


def bare_python(library: str, sides: Sides) -> float:
    """Mean PSS (MB) of forked processes with a connection of a Python library to the server of a system each."""
    return bare_python_at(library, sides.where)


def bare_python_at(library: str, *where: str) -> float:
    """The same at an address; for Kafka with a topic."""
    words = [sys.executable, "-m", "bench.clients.connected", library, str(CLIENTS), *where]
    return programs.numbers(*words)[-1] / 1e6


def bare_native(sides: Sides, load: Workload) -> float:
    """Mean PSS (MB) of the processes of a bare loop in C++ before its first message."""
    return sides.bare(replace(load, seconds=_SHORT_S)).pss_bytes / 1e6


def _mean_mb(processes: Sequence[psutil.Process]) -> float:
    return sum(pss_bytes(process.pid) for process in processes) / len(processes) / 1e6


def after(client: str, messages: int, rows: int = 1) -> float:
    """The largest memory (bytes) of a subscriber of ZMQ behind rows with this number of messages each."""
    words = ["--client", client, "--clients", "10", "--rate", str(_RATE), "--duration", f"{messages / _RATE:g}"]
    return _largest_bytes(*words, rows=rows)[-1]


# --- what is added ---------------------------------------------------------------------------------------------------

_FEW_MESSAGES, _MANY_MESSAGES = 100, 1000
"""Messages of a step, below the number from which a histogram is an array (``kMostListed``, histogram.h)."""
_FURTHER_STEPS: Final = 8


def added() -> tuple[float, float, float]:
    """Bytes that a message of a step, the first report, and each further step add to one subscriber of a process.

    A report is measured by the step behind it: what a client reports as its largest memory is known before it writes.
    """
    words = ["--client", "zmtp", "--clients", str(PACKED), "--clients-per-process", str(PACKED), "--set", "warmup_s=0"]
    paced = [*words, "--rate", str(_FEW_MESSAGES), "--duration"]
    rows = _largest_bytes(*paced, "1", rows=2 + _FURTHER_STEPS)
    (many,) = _largest_bytes(*paced, f"{_MANY_MESSAGES / _FEW_MESSAGES:g}")
    return (
        (many - rows[0]) / (_MANY_MESSAGES - _FEW_MESSAGES) / PACKED,
        (rows[1] - rows[0]) / PACKED,
        (rows[-1] - rows[1]) / _FURTHER_STEPS / PACKED,
    )


def _largest_bytes(*words: str, rows: int = 1) -> list[float]:
    """The largest memory of a subscriber's process when it wrote the report of each row, bytes."""
    repeated = ["--repeat", str(rows)] if rows > 1 else []
    return [sums["subscriber"]["max_rss_bytes"] for sums in run_hydra("zmqfixed", *words, *repeated).sums]
