"""The frequency of the CPU under load, and the counters of heat and of used up quotas."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from hydra.measure.disturbance import FrequencySeries, fall_under_load, fastest_mhz, throttle_count
from tests.machine.trees import texts_of, unpacked

MACHINES = ("bare-metal-intel", "bare-metal-amd", "virtual-machine", "container")
IDLE, HALF, BUSY = 3, 50, 99


@pytest.mark.parametrize(
    ("mhz", "used_pct", "fall"),
    {
        "idle machine, then load": ((800, 2500, 4000, 4000), (0, IDLE, BUSY, BUSY), None),
        "load that follows other load": ((800, 1200, 4000), (BUSY, BUSY, BUSY), None),
        "load, then none": ((4000, 4000, 800), (BUSY, BUSY, IDLE), None),
        "low rates under a governor that follows them": ((1200, 3000, 900, 2600), (0, HALF, HALF, HALF), None),
        "turbo of few busy cores": ((4000, 3650, 3650), (BUSY, BUSY, BUSY), None),
        "heat": ((800, 4000, 3900, 3000, 3900), (0, BUSY, BUSY, BUSY, BUSY), (3000, 4000)),
        "the largest of two falls": ((4000, 3500, 4400, 3000), (BUSY, BUSY, BUSY, BUSY), (3000, 4400)),
        "a fall that begins before a pause": ((4000, 900, 3000), (BUSY, IDLE, BUSY), (3000, 4000)),
        "no frequency": ((), (), None),
    }.values(),
)
def test_only_a_fall_under_load_slows_the_cpu_down(
    mhz: tuple[float, ...], used_pct: tuple[float, ...], fall: tuple[float, float] | None
) -> None:
    assert fall_under_load(mhz, used_pct) == fall


def test_the_use_of_the_busiest_core_belongs_to_each_frequency() -> None:
    series = FrequencySeries()
    frequency = "/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq"
    # Of each second: idle ticks of two cores, whose other ticks the system uses; then no core is in both readings.
    for idle, other in accumulate([(100, 100), (80, 5), (100, 90)], lambda a, b: (a[0] + b[0], a[1] + b[1])):
        whole = 100 * len(series.mhz) + 100
        cores = [f"cpu{n} 0 0 {whole - ticks} {ticks} 0 0 0 0 0 0\n" for n, ticks in enumerate((idle, other))]
        series.add({frequency: "2000000\n", "/proc/stat": f"cpu  1 2 3\n{''.join(cores)}cpu2 0 0 {whole} 0 0 0 0 0"})
    series.add({"/proc/stat": "cpu0 1 1 1 1 1 1 1 1\n"})
    series.add({frequency: "2100000\n", "/proc/stat": "cpu3 0 0 700 1 0 0 0 0 0 0\n"})
    assert series.mhz == [2000, 2000, 2000, 2100]
    assert series.busiest_pct == [0, 95, 10, 0]


def test_heat_and_used_up_quotas_are_counted_where_the_kernel_shows_them(tmp_path: Path) -> None:
    texts = [texts_of(unpacked(name, tmp_path / name)) for name in MACHINES]
    assert [throttle_count(each) for each in texts] == [9, None, 0, 41]
    assert [fastest_mhz(each) for each in texts] == [4100, None, None, None]
