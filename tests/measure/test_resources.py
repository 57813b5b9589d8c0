"""What hosts and threads did in a window, from counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.measure.resources import BUSIEST, HostSummary, InterfaceUse, busiest, summarise
from hydra.model import BusyThread, CoreTimes, HostCounters, HostSample, InterfaceCounts, TcpCounts, ThreadSample

SECOND = 1_000_000_000
MB = 10**6
WINDOW = (SECOND, 3 * SECOND)


def counters(second: int, busy_s: float = 0.0, available: int = 90, counted: int = 0) -> HostCounters:
    """Of two cores, the first of which did nothing; ``counted`` is what all else has counted."""
    cores = [CoreTimes(5, 0, 100 + second), CoreTimes(7 + busy_s, second / 10, 100 + second)]
    eth0 = InterfaceCounts(1000 + counted, 2 * counted, counted, 1, 1000)
    return HostCounters(
        cores, {"cpu": 500_000 * second, "io": 7}, 100, available,
        {"eth0": eth0, "eth1": InterfaceCounts(0, 0, 0, 0, None)},
        TcpCounts(900 + 99 * counted, 3 + counted), 10 * second,
    )  # fmt: skip


def sample(second: int, *figures: float) -> HostSample:
    return HostSample(second * SECOND, counters(second, *figures))  # type: ignore[arg-type]  # whole numbers


def between(*ends: HostCounters) -> HostSummary:
    """Counters of the first and of the last second."""
    summary = summarise([HostSample((1 + n) * SECOND, each) for n, each in enumerate(ends)], WINDOW)
    assert summary is not None
    return summary


def test_the_summary_is_of_the_samples_inside_the_window() -> None:
    samples = [
        sample(0, 0, 1, 99 * MB),
        sample(3, 1.5, 90, 100 * MB),  # another relay's came first
        sample(1, 0.5, 80, 50 * MB),
        sample(2, 0.5, 70, 60 * MB),
        sample(9, 90, 0, 1000 * MB),
    ]
    summary = summarise(samples, WINDOW)
    assert summary is not None
    cpu = (*summary.cores_pct, summary.cpu_mean_pct, summary.cpu_busiest_core_pct, summary.steal_pct)
    assert cpu == pytest.approx((0, 60, 30, 60, 5))
    assert (summary.pressure, summary.context_switches_s) == ({"cpu": 0.5, "io": 0}, 10)
    assert (summary.memory_used_max_bytes, summary.memory_available_min_bytes) == (30, 70)
    eth0, eth1 = InterfaceUse(25 * MB, 50 * MB, 50 * MB, 0.4), InterfaceUse(0, 0, 0, None)
    assert summary.interfaces == {"eth0": eth0, "eth1": eth1}
    assert (summary.network_share, summary.drops, summary.segments_retransmitted) == (0.4, 50 * MB, 0.01)


@pytest.mark.parametrize("seconds", [(0, 1), (2, 2)])
def test_one_sample_in_the_window_says_nothing(seconds: tuple[int, int]) -> None:
    assert summarise([sample(second) for second in seconds], WINDOW) is None


def test_what_only_one_end_knows_and_what_began_anew_is_no_figure() -> None:
    first, last = counters(1, 0.5, 80, 50), counters(2)
    others = {"eth1": first.interfaces["eth1"], "new": InterfaceCounts(9, 9, 9, 9, 10)}
    last = replace(last, cores=last.cores[:1], pressure_us={"memory": 3}, interfaces={**last.interfaces, **others})
    summary = between(first, last)
    assert (summary.cores_pct, summary.pressure, summary.segments_retransmitted) == ((0,), {}, None)
    assert summary.interfaces == {"eth0": InterfaceUse(0, 0, 0, 0), "eth1": InterfaceUse(0, 0, 0, None)}


def test_a_host_without_cores_or_interfaces_has_no_load() -> None:
    bare = replace(counters(1), cores=[], interfaces={}, pressure_us={})
    summary = between(bare, bare)
    assert (summary.cpu_mean_pct, summary.cpu_busiest_core_pct, summary.network_share, summary.drops) == (0, 0, None, 0)


def told(second: float, *threads: BusyThread, group: str = "g") -> ThreadSample:
    return ThreadSample(int(second * SECOND), group, list(threads))


def test_the_busiest_threads_have_their_mean_over_the_window() -> None:
    io, main, rare = BusyThread(1, "io", 80), BusyThread(1, "main", 40), BusyThread(2, "main", 10)
    samples = [
        told(0.5, rare),
        told(1, BusyThread(9, "before", 100)),
        told(2, main, io),
        told(3, replace(main, cpu_pct=60)),
        told(1, group="h"),
        told(1.5, replace(rare, cpu_pct=90), group="h"),  # its relay died then
        told(2, BusyThread(3, "alone", 100), group="i"),
        told(4, rare),
    ]
    assert busiest(samples, WINDOW) == [BusyThread(2, "main", 90), BusyThread(1, "main", 50), BusyThread(1, "io", 40)]


def test_threads_of_one_name_are_one_line_idle_ones_none_and_only_so_many_are_named() -> None:
    samples = [told(1), told(2, BusyThread(1, "io", 80), BusyThread(1, "io", 70), BusyThread(1, "idle", 0))]
    assert busiest(samples, WINDOW) == [BusyThread(1, "io", 150)]
    samples = [told(1), told(2, *(BusyThread(n, "t", n) for n in range(1, 20)))]
    assert [thread.pid for thread in busiest(samples, WINDOW)] == list(range(19, 19 - BUSIEST, -1))
