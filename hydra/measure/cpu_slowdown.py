"""Whether the CPU was slowed down: its frequency under load, and the counters of heat and of used up quotas. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from hydra.measure.machine_texts import CPUS, POLICIES, Texts, whole_number

FREQUENCY_FILES: Final = (f"{POLICIES}/scaling_cur_freq", "/proc/stat")
"""The files with the present frequency of the cores, in kHz, and with the time that each core was busy."""
FREQUENCY_BYTES: Final = 16_384
"""The most bytes of each of these files: the lines of the first 200 cores or more."""
HEAT_FILES: Final = (
    f"{CPUS}/cpu[0-9]*/thermal_throttle/core_throttle_count",
    f"{CPUS}/cpu[0-9]*/thermal_throttle/package_throttle_count",
)
"""The files that count how often the CPU was slowed down because it was too hot."""
LOADED_PCT: Final = 80.0
"""The least use of the busiest core at which a frequency counts as one under load.

From this use on, the governors that follow the load (``ondemand``, ``conservative``, ``schedutil``) select the highest
frequency; below it, the frequency falls and rises with the load of the run itself.
"""
FREQUENCY_FALL: Final = 0.1
"""The least relative fall of the fastest core's frequency under load that is a slowdown."""

_CORE: Final = re.compile(r"^(cpu\d+)((?: \d+){8})(?=[ \n])", re.MULTILINE)
"""A core's ticks: user, nice, system, idle, iowait, irq, softirq, steal; user and nice contain those of guests."""


class FrequencySeries:
    """The frequency of a host's CPU, from one reading of :data:`FREQUENCY_FILES` after the other.

    Attributes:
        mhz: the frequency of the fastest core at each reading.
        busiest_pct: the use of the busiest core between the reading before and this one, in %; 0 for the first one.
    """

    def __init__(self) -> None:
        self.mhz: list[float] = []
        self.busiest_pct: list[float] = []
        self._before: Mapping[str, tuple[int, int]] = {}

    def add(self, texts: Texts) -> None:
        """Adds a reading, unless the kernel shows no frequency."""
        if (mhz := fastest_mhz(texts)) is None:
            return
        now = _core_ticks(texts.get("/proc/stat", ""))
        self.mhz.append(round(mhz, 1))
        self.busiest_pct.append(round(_busiest_pct(self._before, now), 1))
        self._before = now


def fastest_mhz(texts: Texts) -> float | None:
    """The present frequency of the fastest core; None if the kernel does not show it."""
    found = [whole_number(text) for path, text in texts.items() if path.endswith("/scaling_cur_freq")]
    return max((khz / 1000 for khz in found if khz is not None), default=None)


def throttle_count(texts: Texts) -> int | None:
    """How often the CPU was slowed down since boot, by heat or by the quota of a control group; None: not known."""
    heat = [whole_number(text) for path, text in texts.items() if path.endswith("_throttle_count")]
    quota = [
        int(found[1])
        for path, text in texts.items()
        if path.endswith("/cpu.stat") and (found := re.search(r"^nr_throttled (\d+)$", text, re.MULTILINE))
    ]
    known = [*(count for count in heat if count is not None), *quota]
    return sum(known) if known else None


def fall_under_load(mhz: Sequence[float], busiest_pct: Sequence[float]) -> tuple[float, float] | None:
    """The largest fall of the frequency under load: the lower and the higher frequency; None if there was none.

    The rise from the frequency of an idle machine is no fall, and neither is the fall after the load.

    Args:
        mhz: the frequency of the fastest core at each reading.
        busiest_pct: the use of the busiest core before each reading, in %; a reading without it has no load.
    """
    highest, worst = 0.0, None
    for now, used_pct in zip(mhz, busiest_pct, strict=False):
        if used_pct < LOADED_PCT:
            continue
        highest = max(highest, now)
        if now < (1 - FREQUENCY_FALL) * highest and (worst is None or now / highest < worst[0] / worst[1]):
            worst = now, highest
    return worst


def _core_ticks(stat: str) -> dict[str, tuple[int, int]]:
    """The ticks in which each core was busy, and all its ticks, by its name; a line that is cut off is left out."""
    found = {}
    for name, words in _CORE.findall(stat):
        ticks = [int(word) for word in words.split()]
        idle, waiting = ticks[3:5]
        found[name] = sum(ticks) - idle - waiting, sum(ticks)
    return found


def _busiest_pct(before: Mapping[str, tuple[int, int]], now: Mapping[str, tuple[int, int]]) -> float:
    """The use of the busiest core between two readings, in %; 0 if no core is in both."""
    grown = [(busy - before[core][0], all_ - before[core][1]) for core, (busy, all_) in now.items() if core in before]
    return max((100 * busy / all_ for busy, all_ in grown if all_ > 0), default=0.0)
