"""Runs of the `hydra` command as a user starts them: what a run took, read from its output and its database."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.failure import complaint
from hydra.store.database import RunStore

HYDRA: Final = (sys.executable, "-m", "hydra.cli.main")
HEADER_ONLY: Final = ("--message-size", "24")
"""The size of the messages of all lines and of the bare programs beside them: a header without a payload."""
_ROW: Final = "step "
"""The line of a row on standard error begins with it."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What a run took.

    Attributes:
        wall_s: seconds from its start to its end.
        cpu_s: CPU seconds of the command and of all processes that it started.
        connected_s: seconds from the launch until all clients had connected.
        phases_s: the seconds of each phase of each step by name; warm-ups are steps, too.
        stored_s: the seconds in which the figures of each row were computed and stored.
        printed_s: the seconds from the end of each row's window until its line was printed.
        controller_bytes: the highest resident memory of the command when it printed the last row.
        rows: the figures of each row.
        sums: the sums over the clients of each row, by role (:meth:`RunStore.role_sums`).
        database_bytes: the size of run.db.
    """

    wall_s: float
    cpu_s: float
    connected_s: float
    phases_s: Sequence[dict[str, float]]
    stored_s: Sequence[float]
    printed_s: Sequence[float]
    controller_bytes: int
    rows: Sequence[dict[str, Any]]
    sums: Sequence[dict[str, dict[str, float]]]
    database_bytes: int

    @property
    def ready_s(self) -> float:
        """Seconds from the launch until every subscriber had received a probe."""
        first = self.phases_s[0]
        return self.connected_s + sum(s for name, s in first.items() if name in ("bind", "settings", "readiness"))


def run_hydra(
    *words: str, watch: Callable[[int], None] = lambda _: None, environment: Mapping[str, str] | None = None
) -> FinishedRun:
    """Runs a command that measures, in a folder that is deleted afterwards.

    Args:
        words: the command line without ``hydra`` and ``--out``.
        watch: called with the process id whenever a row was printed.
        environment: further variables of the environment.

    Raises:
        RuntimeError: the run failed; the text has its error.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        cpu_before_s, began = children_cpu_s(), time.perf_counter()
        printed_ns, said, memory = [], [], 0
        with subprocess.Popen(
            [*HYDRA, *words, *HEADER_ONLY, "--out", str(out)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=compiled(environment),
        ) as process:
            for line in process.stderr or ():
                said.append(line)
                if line.startswith(_ROW):
                    printed_ns.append(time.time_ns())
                    memory = peak_bytes(process.pid)
                    watch(process.pid)
        wall_s, cpu_s = time.perf_counter() - began, children_cpu_s() - cpu_before_s
        if process.returncode:
            raise RuntimeError(complaint("".join(said)) or f"hydra {words[0]}: exit code {process.returncode}")
        with RunStore.open(out) as store:
            events = [event.data for event in store.events()]
            results = store.results()
            ended_ns = [store.window_ns(result.epoch)[1] for result in results]
            sums = [store.role_sums(result.epoch) for result in results]
        phases = [dict(data.fields["took_s"]) for data in events if data.kind == "phases"]
        return FinishedRun(
            wall_s,
            cpu_s,
            sum(data.fields["took_s"] for data in events if data.kind == "present"),
            phases,
            [data.fields["took_s"] for data in events if data.kind == "stored"],
            [(at - end) / 1e9 for at, end in zip(printed_ns, ended_ns, strict=True)],
            memory,
            [dict(result.figures) for result in results],
            sums,
            (out / "run.db").stat().st_size,
        )


def compiled(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a command that stores compiled modules, as those of an installed Hydra are."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | dict(more or {})


def children_cpu_s() -> float:
    """CPU seconds of all processes that this process has started and waited for, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak_bytes(pid: int) -> int:
    """The highest resident memory of a process so far; 0 if the process has ended."""
    return _status_bytes(pid, "VmHWM")


def _status_bytes(pid: int, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(name)), 0)


def cpu_of(command: Sequence[str], starts: int = 5) -> float:
    """CPU seconds of one start of a command, the mean of several starts."""
    before = children_cpu_s()
    for _ in range(starts):
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=compiled())
    return (children_cpu_s() - before) / starts


@contextmanager
def started(*command: str, environment: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process whose standard output can be read; it is killed at the end if it is still running."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=compiled(environment)
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
