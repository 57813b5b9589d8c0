"""Section 6: runs of an hour at half of what the machine carries, and whether anything grows in them.

    python -m bench.hours [--minutes 60] [--share 0.5] [--together] [--json FILE] [NAME[=RATE] …]

With ``--together`` all workloads run in one hour, and each gets an equal part of that share. A message of a paced
publisher costs each subscriber a wake-up, and at rate ``max`` many share one: a machine carries fewer paced messages
than this command finds, so give the rates where that matters. ``python -m bench.page --hours FILE`` writes the results
into docs/speed.md.

A run is one step of `hydra slo`. Once a second the resident memory, the open files and the threads of its processes are
read, added up for each kind of process. A slope is that of a line through the means of the minutes behind the first
third; its 95 % interval allows for the correlation of neighbouring minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
import psutil
from scipy.special import stdtrit

from bench.failure import FAILURES, reason
from bench.hydra_command import HYDRA, run_hydra
from bench.machine import CpuTimes
from bench.result import now
from hydra.analysis.statistics import ALPHA, Floats
from hydra.errors import UsageError
from hydra.store.database import DATABASE, RunStore
from hydra.wire.buckets import percentiles_us

MOST_MB_AN_HOUR: Final = 1.0
MOST_DATABASE_MB: Final = 30.0
_MINUTE_S: Final = 60.0
_WARM_UP: Final = 1 / 3
"""The share of a run whose minutes do not count: memory is still being filled for the first time."""


class Hour(NamedTuple):
    """A workload.

    Attributes:
        words: the scenario, and the flags that select clients and settings.
        is_lossless: whether nothing may be lost; otherwise bursts are longer than the queues.
    """

    words: tuple[str, ...]
    is_lossless: bool = True


HOURS: Final[Mapping[str, Hour]] = {
    "native ZMQ, nodrop": Hour(("zmqfixed", "--client", "native", "--clients", "20", "--nodrop")),
    "JetStream on file": Hour(
        ("nats-fixed", "--client", "native", "--clients", "20", "--mode", "jetstream", "--storage", "file")
    ),
    "Kafka": Hour(("kafka-fixed", "--client", "native", "--clients", "20")),
    "native ZMQ, losses": Hour(("zmqfixed", "--client", "native", "--clients", "20", "--sndhwm", "100"), False),
}


class ProcessSums(NamedTuple):
    """What all processes of a kind use together."""

    memory_mb: float
    files: int
    threads: int


Samples = Mapping[str, Sequence[tuple[float, ProcessSums]]]
"""For each kind of process, seconds since the first sample with the sums then."""


# --- the processes of a run ------------------------------------------------------------------------------------------


def kinds(command: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """Each process of a run with its kind."""
    yield "controller", command
    found: list[tuple[psutil.Process, int, list[str]]] = []
    for process in command.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found.append((process, process.ppid(), process.cmdline()))
    words_of = {process.pid: words for process, _, words in found}
    # A group forks its relay first.
    firsts = {parent: process.pid for process, parent, _ in sorted(found, key=lambda each: each[0].pid, reverse=True)}
    for process, parent, words in found:
        role = next((role for role in ("pub", "sub") if any(word.endswith(f"-{role}") for word in words)), "")
        if not role:
            yield "servers", process
        elif words_of.get(parent) != words:
            yield "groups", process
        else:
            whose = "subscribers" if role == "sub" else "publishers"
            yield f"{whose}' relay" if process.pid == firsts[parent] else whose, process


def watch(command: psutil.Process, seconds: float) -> Samples:
    """Samples a run from its first subscriber until the length of its step is over."""
    samples: dict[str, list[tuple[float, ProcessSums]]] = defaultdict(list)
    began_s: float | None = None
    while command.is_running() and command.status() != psutil.STATUS_ZOMBIE:
        now_s = time.monotonic()
        sums: dict[str, ProcessSums] = defaultdict(lambda: ProcessSums(0.0, 0, 0))
        for kind, process in kinds(command):
            with contextlib.suppress(psutil.Error), process.oneshot():
                before = sums[kind]
                sums[kind] = ProcessSums(
                    before.memory_mb + process.memory_info().rss / 1e6,
                    before.files + process.num_fds(),
                    before.threads + process.num_threads(),
                )
        if began_s is None and "subscribers" in sums:
            began_s = now_s
        if began_s is not None:
            if now_s - began_s > seconds:
                break
            for kind, its in sums.items():
                samples[kind].append((now_s - began_s, its))
        time.sleep(max(0.0, 1.0 - (time.monotonic() - now_s)))
    return samples


# --- judgements ------------------------------------------------------------------------------------------------------


class Slope(NamedTuple):
    """A slope with its 95 % interval."""

    value: float
    low: float
    high: float


def slope_of(minutes: Sequence[float]) -> Slope:
    """The slope of values of consecutive minutes, an hour; at least four values.

    The standard error of an independent sample is multiplied by √((1 + r) / (1 − r)), where r is the correlation of
    neighbouring residuals, if that is positive.
    """
    y = np.asarray(minutes, dtype=np.float64)
    n = len(y)
    hours = np.arange(n) / 60
    value, at_zero = np.polyfit(hours, y, 1)
    rest = y - value * hours - at_zero
    spread = float((rest**2).sum())
    r = min(max(float((rest[1:] * rest[:-1]).sum()) / spread, 0.0), 0.95) if spread > 0 else 0.0
    error = math.sqrt(spread / (n - 2) / float(((hours - hours.mean()) ** 2).sum()) * (1 + r) / (1 - r))
    half = float(stdtrit(n - 2, 1 - ALPHA / 2)) * error
    return Slope(float(value), float(value) - half, float(value) + half)


def of_minutes(
    samples: Sequence[tuple[float, float]], middle: Callable[[Floats], np.floating] = np.mean
) -> list[float]:
    """The means, or other middles, of the whole minutes behind the first third."""
    at, values = np.array(samples).T
    last = int(at[-1] // _MINUTE_S)
    minutes = range(int(last * _WARM_UP), last)
    return [float(middle(values[(at >= m * _MINUTE_S) & (at < (m + 1) * _MINUTE_S)])) for m in minutes]


@dataclass(frozen=True, slots=True)
class Finding:
    """A figure of an hour, and whether it is as it has to be; None: nothing is asked.

    ``minutes`` has its values by the minute, if the figure is a slope: one jump makes a slope, too.
    """

    hour: str
    figure: str
    value: str
    goal: str
    holds: bool | None
    minutes: tuple[float, ...] = ()

    @property
    def verdict(self) -> str:
        """``holds`` or ``misses``; "" if nothing is asked."""
        return "" if self.holds is None else "holds" if self.holds else "misses"


RATE: Final = "rate"
"""The figure with the messages/s of a workload, which has no goal."""


@dataclass(frozen=True, slots=True)
class HourResults:
    """What one call of this command has found, and how; None or "": unknown.

    Attributes:
        findings: those of all workloads.
        began: when the runs began, UTC.
        minutes: length of each run.
        share: rate of all workloads of one time together, as a share of what the machine carries.
        together: whether all ran at the same time.
        others: the share of the CPU that other processes used.
    """

    findings: Sequence[Finding]
    began: str = ""
    minutes: float | None = None
    share: float | None = None
    together: bool | None = None
    others: float | None = None


def load_hours(file: Path) -> HourResults:
    """Reads what this command has stored; an older file has the findings only.

    Raises:
        UsageError: the file has no such results.
    """
    try:
        found = msgspec.json.decode(file.read_bytes(), type=HourResults | list[Finding])
    except (OSError, msgspec.MsgspecError) as e:
        raise UsageError(f"{file} has no results: {e}.", "Measure with python -m bench.hours --json FILE.") from e
    return found if isinstance(found, HourResults) else HourResults(found)


def of_processes(hour: str, samples: Samples) -> Iterator[Finding]:
    """What became of memory, open files and threads of each kind of process."""
    for kind, its in sorted(samples.items()):
        if kind == "servers":
            continue
        minutes = of_minutes([(at, sums.memory_mb) for at, sums in its])
        found = slope_of(minutes)
        text = (
            f"{minutes[0]:.1f} → {minutes[-1]:.1f} MB, {found.value:+.2f} [{found.low:+.2f} – {found.high:+.2f}] MB/h"
        )
        goal, holds = f"< {MOST_MB_AN_HOUR:g} MB/h", found.high < MOST_MB_AN_HOUR
        yield Finding(hour, f"memory, {kind}", text, goal, holds, tuple(round(mean, 2) for mean in minutes))
        for name, counts in (
            ("open files", [(at, sums.files) for at, sums in its]),
            ("threads", [(at, sums.threads) for at, sums in its]),
        ):
            # A file that is read is open for a moment, and some samples see it.
            usual = of_minutes(counts, np.median)
            text = f"{min(usual):g} – {max(usual):g}"
            yield Finding(hour, f"{name}, {kind}", text, "constant", min(usual) == max(usual))


def of_the_run(hour: str, run: Path, *, is_lossless: bool) -> Iterator[Finding]:
    """What the database shows: its size, losses, and the p99 of each minute."""
    size_mb = (run / DATABASE).stat().st_size / 1e6
    yield Finding(hour, "run.db", f"{size_mb:.1f} MB", f"≤ {MOST_DATABASE_MB:g} MB", size_mb <= MOST_DATABASE_MB)
    with RunStore.open(run) as store:
        if not (results := store.results()):
            yield Finding(hour, "run", "interrupted", "finished", holds=False)
            return
        result = results[-1]
        course = store.course(result.epoch)
    lost = result.figures.get("client_loss_pct")
    text = "unknown" if lost is None else f"{lost:.3g} %"
    yield Finding(hour, "loss", text, "0 %" if is_lossless else "above 0 %", (lost == 0) == is_lossless)
    seconds = [] if course is None else course[2]
    late = [(s.begin_s, us) for s in seconds if (us := percentiles_us(s.latency, [99.0])[0]) is not None]
    if len(minutes := of_minutes(late) if late else []) > 3:
        found = slope_of(np.log(minutes).tolist())
        low, high = (100 * math.expm1(limit) for limit in found[1:])
        text = f"{min(minutes):.0f} – {max(minutes):.0f} µs, [{low:+.1f} – {high:+.1f}] % an hour"
        yield Finding(
            hour, "p99 of a minute", text, "no trend", low <= 0 <= high, tuple(round(each) for each in minutes)
        )


# --- the command -----------------------------------------------------------------------------------------------------


def carried(hour: Hour) -> float:
    """The messages/s that a publisher of this workload carries, from a short step at rate ``max``."""
    run = run_hydra(*hour.words, "--rate", "max", "--duration", "10")
    return float(run.rows[-1]["avg_rx_rate_pps"])


def measured(name: str, rate: float, minutes: float) -> list[Finding]:
    """Runs one workload at ``rate`` messages/s."""
    hour = HOURS[name]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        pacing = "smooth" if hour.is_lossless else "bursty"
        words = [
            *hour.words,
            "--pacing",
            pacing,
            "--rate",
            f"{rate:.0f}",
            "--p99",
            "10s",
            "--duration",
            f"{minutes:g}min",
            *("--set", "settings.message_size=24"),
        ]
        with subprocess.Popen([*HYDRA, "slo", *words, "--out", str(out), "--quiet"]) as command:
            samples = watch(psutil.Process(command.pid), minutes * _MINUTE_S)
        return [
            Finding(name, RATE, f"{rate:,.0f}/s", "", None),
            *of_processes(name, samples),
            *of_the_run(name, out, is_lossless=hour.is_lossless),
        ]


def main() -> None:
    """Runs, prints and stores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names_help = f"of {', '.join(HOURS)} (default: all), with messages/s in place of a share"
    parser.add_argument("names", nargs="*", metavar="NAME[=RATE]", help=names_help)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--share", type=float, default=0.5, help="rate as a share of what the machine carries")
    parser.add_argument("--together", action="store_true", help="run all at the same time")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    given = dict(word.partition("=")[::2] for word in options.names or HOURS)
    if unknown := given.keys() - HOURS.keys():
        parser.error(f"no workload {min(unknown)}")
    at_once = len(given) if options.together else 1
    rates = [float(rate or carried(HOURS[name]) * options.share / at_once) for name, rate in given.items()]
    share = None if any(given.values()) else options.share
    results = HourResults([], now(), options.minutes, share, options.together)
    before = CpuTimes.now()
    with ThreadPoolExecutor(at_once) as pool:
        for its in pool.map(_found, given, rates, repeat(options.minutes)):
            for finding in its:
                cells = f"{finding.hour:20} {finding.figure:30} {finding.value:50} {finding.goal:12}"
                print(cells, finding.verdict, flush=True)
            others = before.others_until(CpuTimes.now())
            results = replace(results, findings=[*results.findings, *its], others=others)
            if options.json:
                options.json.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")


def _found(name: str, rate: float, minutes: float) -> list[Finding]:
    """The findings of a workload; a run that fails does not end the others."""
    try:
        return measured(name, rate, minutes)
    except FAILURES as e:
        return [Finding(name, "run", reason(e), "finished", holds=False)]


if __name__ == "__main__":
    main()
