"""What other processes used between two readings, what disturbs a row, and how the row names it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hydra.client.linux_process import process_cpu_ns
from hydra.config.scenario import load_scenario
from hydra.measure.column import Values
from hydra.measure.disturbance import (
    Disturbance,
    Disturbances,
    ProcessTimes,
    descendants,
    disturbances,
    processes_of,
    used_by_others,
)
from hydra.model import FactChange, Figure, MachineActivity
from hydra.report.host_warnings import HostShared, RowDisturbed
from hydra.report.row_warnings import warnings_of
from hydra.run.own_machine import OwnMachine, ProcessTable
from tests.machine.trees import stat, write


def test_a_process_is_read_whatever_its_name_contains() -> None:
    found = processes_of({**stat(7, 1, "a) S (b", 150, ended=25), "/proc/8/stat": "", "/proc/self/stat": "7 (x) S"})
    assert found == {7: ProcessTimes(1, "a) S (b", 5, 1.5, 0.25)}


def test_those_who_descend_from_a_process_belong_to_it() -> None:
    tree = processes_of(stat(1, 0, "init", 0) | stat(5, 1, "hydra", 0) | stat(6, 5, "g", 0) | stat(7, 6, "c", 0))
    assert descendants(tree, [5]) == {5, 6, 7}
    assert descendants(tree, [9]) == {9}


@pytest.mark.parametrize(
    ("before", "after", "used"),
    [
        (stat(9, 1, "busy", 100), stat(9, 1, "busy", 180), {"busy": 0.8}),
        ({}, stat(9, 1, "new", 30), {"new": 0.3}),
        # Another process with the same id has done all of its work since then.
        (stat(9, 1, "old", 500), stat(9, 1, "other", 40, start=6), {"other": 0.4}),
        # What an ended child had used before counts for nothing, the rest for the parent that waited for it.
        (stat(3, 1, "make", 0) | stat(4, 3, "cc", 100), stat(3, 1, "make", 0, ended=170), {"make": 0.7}),
        (
            stat(3, 1, "make", 0) | stat(4, 3, "sh", 2) | stat(6, 4, "cc", 100) | stat(7, 4, "as", 9),
            stat(3, 1, "make", 0, ended=171),
            {"make": 0.6},
        ),
        (stat(3, 1, "make", 0, ended=50), stat(3, 1, "make", 1, ended=60), {"make": 0.11}),
        # Threads of the kernel work for all processes, and the run's own processes are no others.
        (stat(2, 0, "kthreadd", 0), stat(2, 0, "kthreadd", 9) | stat(8, 2, "ksoftirqd/0", 90), {}),
        ({}, stat(5, 1, "hydra", 90) | stat(16, 5, "client", 90), {}),
        # An own process that is not read again has not ended.
        (stat(3, 1, "sh", 0) | stat(5, 3, "hydra", 500), stat(3, 1, "sh", 0, ended=40), {"sh": 0.4}),
        (stat(9, 1, "a", 0) | stat(10, 1, "a", 0), stat(9, 1, "a", 10) | stat(10, 1, "a", 20), {"a": 0.3}),
    ],
)
def test_what_others_used(before: dict[str, str], after: dict[str, str], used: dict[str, float]) -> None:
    found = used_by_others(processes_of(before), processes_of(after), {5, 16})
    assert found == pytest.approx(used)


def test_own_processes_are_read_once_and_their_new_children_are_own(tmp_path: Path) -> None:
    write(tmp_path, stat(1, 0, "init", 0) | stat(5, 1, "hydra", 10) | stat(6, 5, "group", 10))
    machine = OwnMachine(tmp_path, pid=5)
    first = machine.read(())
    assert first.own == {5, 6}
    write(tmp_path, stat(7, 6, "client", 70) | stat(8, 1, "busy", 40))
    last = machine.read(())
    assert last.own == {5, 6, 7}
    assert first.processes is not None
    assert last.processes is not None
    assert 6 not in last.processes
    assert used_by_others(first.processes, last.processes, first.own | last.own) == {"busy": 0.4}


def test_groups_that_an_engine_started_on_this_host_are_own(tmp_path: Path) -> None:
    """By the ids that their relays and servers report, unless those are ids of a container."""
    write(tmp_path, stat(1, 0, "init", 0) | stat(5, 1, "hydra", 10) | stat(20, 1, "mesos-agent", 0))
    write(tmp_path, stat(30, 20, "python", 0) | stat(31, 30, "relay", 0) | stat(32, 30, "client", 0))
    write(tmp_path, stat(40, 20, "mosquitto", 0) | stat(50, 1, "bash", 0))
    lines = {30: "python -m x --group g-1", 31: "python -m x --group g-1", 40: "server --group g-2", 50: "bash"}
    write(tmp_path, {f"/proc/{pid}/cmdline": line.replace(" ", "\0") + "\0" for pid, line in lines.items()})
    machine = OwnMachine(tmp_path, pid=5)
    assert machine.read((), {31: "g-1", 40: "g-2", 50: "g-3", 99: "g-4"}).own == {5, 30, 31, 32, 40}


def test_the_clock_of_a_process_counts_its_cpu_time() -> None:
    before_ns = time.process_time_ns()
    assert before_ns <= (process_cpu_ns(os.getpid()) or 0) <= time.process_time_ns()
    above_all_ids = 2**22 + 1
    assert process_cpu_ns(above_all_ids) is None


@pytest.mark.parametrize(
    ("own", "clock_ns", "present", "is_read"),
    [
        (True, 5, {1, 3, 7}, False),
        (True, 6, {1, 3, 7}, True),
        # Its parent has ended, so it has another one.
        (True, 5, {1, 7}, True),
        # The kernel has no such clocks, or the folder shows the ids of another namespace.
        (True, None, {1, 3, 7}, True),
        (False, 5, {1, 3, 7}, True),
    ],
)
def test_a_process_is_read_again_only_if_it_has_run(
    own: bool, clock_ns: int | None, present: set[int], is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks: dict[int, int | None] = {7: clock_ns and 5}
    monkeypatch.setattr("hydra.run.own_machine.process_cpu_ns", clocks.get)
    write(tmp_path, stat(7, 3, "sleeper", 1))
    (tmp_path / "proc/self").symlink_to(str(os.getpid() if own else 1))
    table = ProcessTable(tmp_path)
    (first,) = table.read({1, 3, 7}, {7}).values()
    clocks[7] = clock_ns
    write(tmp_path, stat(7, 3, "sleeper", 2))
    (again,) = table.read(present, {7}).values()
    assert (again is first) is not is_read
    assert (again.own_s > first.own_s) is is_read
    assert table.read(set(), set()) == {}


QUIET = MachineActivity(seconds=10.0, cpus=4, others={"sshd": 1.9})


@pytest.mark.parametrize(
    ("activity", "found"),
    [
        (QUIET, None),
        (MachineActivity(10.0, 4, others=None), None),
        (
            MachineActivity(10.0, 4, others={"stress": 10.0, "sshd": 0.1}),
            Disturbance("h", 25.2, (("stress", 25.0), ("sshd", 0.2))),
        ),
        (MachineActivity(10.0, 4, {}, throttled=3), Disturbance("h", throttled=3)),
        (
            MachineActivity(10.0, 4, {}, frequencies_mhz=(4000.0, 3000.4), busiest_core_pct=(99.0, 99.0)),
            Disturbance("h", frequencies_mhz=(3000, 4000)),
        ),
        (MachineActivity(10.0, 4, {}, swapped_bytes=1_000_000), Disturbance("h", swapped_bytes=1_000_000)),
        (
            MachineActivity(10.0, 4, {}, changed=(FactChange("governor", "a", "b"),)),
            Disturbance("h", changed=(FactChange("governor", "a", "b"),)),
        ),
    ],
)
def test_what_disturbs_a_step(activity: MachineActivity, found: Disturbance | None) -> None:
    known = disturbances({"h": activity, "quiet": QUIET}, {"h": 0, "elsewhere": 0})
    assert known == (Disturbances((found,)) if found else None)


@pytest.mark.parametrize(
    ("jumps", "output"),
    [
        ({"h": 1}, "on h, the CPU was slowed down 3 times, the clock jumped 1 time; cool"),
        ({"silent": 2, "quiet": 0}, "on h, the CPU was slowed down 3 times; on silent, the clock jumped 2 times; cool"),
    ],
)
def test_a_host_whose_clock_jumps_is_named(jumps: dict[str, int], output: str) -> None:
    hot = MachineActivity(10.0, 4, {}, throttled=3)
    (text,) = disturbed(disturbances({"h": hot, "quiet": QUIET}, jumps))
    assert output in text
    assert text.endswith("; measure when the host is not suspended, nor moved to other hardware")


def disturbed(*repeats: Disturbances | None, **figures: float) -> list[str]:
    row: dict[str, Figure] = {"status": "ok", "disturbed": Values(repeats) if repeats else None, **figures}
    found = [w for w in warnings_of(row, load_scenario("zmqrate")) if isinstance(w, HostShared | RowDisturbed)]
    return [str(warning) for warning in found]


def test_a_row_names_the_processes_in_place_of_a_share_and_stays_clean() -> None:
    busy = Disturbances((Disturbance("h", 25.2, (("stress", 25.0),), throttled=1),))
    (text,) = disturbed(busy, host_others_pct=30.0, host_cpu_mean_pct=60.0)
    assert text.startswith(
        "disturbed: on h, processes outside the run used 25 % of the CPU (stress 25 %), the CPU was slowed down 1 time"
        "; end the other processes"
    )
    assert RowDisturbed.level == "note"
    assert disturbed(host_others_pct=30.0, host_cpu_mean_pct=60.0) != [text]


def test_a_row_with_repeats_names_the_worst_of_them() -> None:
    repeats = [Disturbances((Disturbance("h", pct, ((f"p{pct:.0f}", pct),)),)) for pct in (7.0, 9.0)]
    (text,) = disturbed(*repeats)
    assert "used at most 9 % of the CPU (p9 9 %)" in text
    falls = [Disturbances((Disturbance("h", frequencies_mhz=fall),)) for fall in ((900, 1000), (3000, 4000))]
    (text,) = disturbed(*falls)
    assert "on h, the frequency of the fastest core fell at most from 4000 to 3000 MHz under load; look at" in text
    swapped = [Disturbances((Disturbance("h", swapped_bytes=grown),)) for grown in (1_000_000, 52_428_800)]
    (text,) = disturbed(*swapped)
    assert "on h, the used swap space grew at most by 52.4 MB; end what uses the memory" in text
    changed = Disturbances((Disturbance("h", changed=(FactChange("governor", "a", "b"),)),))
    assert "on h, governor was a and is b; change the machine only between runs" in disturbed(changed, changed)[0]
