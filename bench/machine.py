"""The machine: what it is, and how much of its CPU other processes use while a line is measured."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil
import zmq

from hydra.errors import HydraError

BUSY: Final = 0.05
"""The share of all cores that other processes may use."""
_LOOK_S: Final = 0.5
_FIRST_LOOK_S: Final = 2.0
_PACKAGES: Final = ("confluent-kafka", "kafka-python", "nats-py", "paho-mqtt", "pyzmq")
_LIBRARIES: Final = {"libzmq": "libzmq", "librdkafka": "rdkafka", "libnats": "libnats", "libmosquitto": "libmosquitto"}
"""Libraries of the native clients → their names for pkg-config."""


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """What all processes of the machine, and those of this command, have used of the CPU so far, in seconds.

    Attributes:
        own_s: CPU seconds of this process and of its descendants.
        busy_s: CPU seconds of all processes.
        passed_s: seconds of all cores, idle or busy.
    """

    own_s: float
    busy_s: float
    passed_s: float

    @classmethod
    def now(cls) -> CpuTimes:
        """The times now."""
        own_s, times = _own_s(), psutil.cpu_times()
        passed_s = _sum_s(times)
        return cls(own_s, passed_s - _idle_s(times), passed_s)

    def others_until(self, later: CpuTimes) -> float:
        """The share of the CPU that other processes used between these times and later ones."""
        passed_s = later.passed_s - self.passed_s
        others_s = later.busy_s - self.busy_s - max(0.0, later.own_s - self.own_s)
        return max(0.0, others_s) / passed_s if passed_s > 0 else 0.0


class OtherProcesses:
    """The share of the CPU that processes other than this one and its descendants use, one sample for each pair."""

    def __init__(self) -> None:
        self._shares: list[float] = []

    def look(self, seconds: float = _LOOK_S) -> float:
        """Waits so long, while this process measures nothing; returns the share, which it keeps as a sample."""
        before = CpuTimes.now()
        time.sleep(seconds)
        share = before.others_until(CpuTimes.now())
        self._shares.append(share)
        return share

    def mean(self) -> float:
        """The mean of the samples, which it forgets."""
        shares, self._shares = self._shares, []
        return sum(shares) / len(shares) if shares else 0.0

    def reject_if_busy(self) -> None:
        """Looks at the machine before the first line.

        Raises:
            HydraError: other processes use more than 5 % of the CPU.
        """
        self.look(_FIRST_LOOK_S)
        if (share := self.mean()) > BUSY:
            most = ", ".join(_busiest())
            remedy = f"stop them ({most}), or measure with --busy, which marks each line that they disturbed"
            raise HydraError(f"Other processes use {share:.0%} of the CPU; at most {BUSY:.0%} is quiet.", remedy)


def _own_s() -> float:
    """CPU seconds of this process, of its descendants, and of those of them that have ended."""
    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue  # it has ended, and is in the times of its parent
    return total


def _sum_s(times: psutil._pslinux.scputimes) -> float:
    # Guests are in the times of user processes, too.
    return float(sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0))


def _idle_s(times: psutil._pslinux.scputimes) -> float:
    return float(times.idle + getattr(times, "iowait", 0.0))


def _busiest() -> list[str]:
    """The three other processes with the most CPU so far, as NAME (PID)."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    others = [p for p in psutil.process_iter(["name", "pid", "cpu_percent"]) if p.pid not in own]
    time.sleep(_LOOK_S)
    used: list[tuple[float, str]] = []
    for process in others:
        try:
            used.append((process.cpu_percent(), f"{process.name()} ({process.pid})"))
        except psutil.Error:
            continue
    return [name for _, name in sorted(used, reverse=True)[:3]]


def facts() -> Mapping[str, str]:
    """Processor, cores, memory, kernel, and the versions of what is measured."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(len(models)),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "kernel": platform.release(),
        "Hydra": version("hydra-scale"),
        "Python": sys.version.split()[0],
        **{name: version(name) for name in _PACKAGES},
        **{name: _library(its) for name, its in _LIBRARIES.items()},
        "libzmq of pyzmq": zmq.zmq_version(),
        "system": _distribution(),
    }


def _library(name: str) -> str:
    """The version of a library; "" if pkg-config does not know it."""
    try:
        done = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _distribution() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def load() -> float:
    """The load average of the last minute."""
    return float(Path("/proc/loadavg").read_text().split()[0])
