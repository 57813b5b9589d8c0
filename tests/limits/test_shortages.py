"""What is needed against what a machine has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.client.linux_process import raise_open_files
from hydra.config.cluster import load_cluster
from hydra.config.resource_needs import MachineNeeds, needs
from hydra.config.scenario import resolve
from hydra.config.shortages import check_all, check_row, read_limits, shortages
from hydra.run.placement_preview import unfit_rows
from tests.limits.machines import AMPLE, GB

NEEDS = MachineNeeds(
    processes=2000, threads=6000, files=2100, all_files=40_000, ports=2000, backlog=400, memory_bytes=16 * GB,
    disk_bytes=3 * GB,
)  # fmt: skip


def test_an_ample_machine_lacks_nothing() -> None:
    assert shortages(AMPLE, NEEDS) == []


@pytest.mark.parametrize(
    ("change", "what", "remedy", "severe"),
    [
        ({"nofile_hard": 1024, "nofile_soft": 1024}, "hard limit", "hard nofile 2100", True),
        ({"nofile_soft": 1024}, "soft limit", "ulimit -n 2100", False),
        ({"nproc_soft": 1000}, "processes of one user", "ulimit -u 2000", True),
        ({"file_max": 30_000}, "open files of the host", "sysctl -w fs.file-max=40000", True),
        ({"pid_max": 6000}, "process ids", "sysctl -w kernel.pid_max=6200", True),
        ({"threads_max": 6000}, "threads", "sysctl -w kernel.threads-max=6200", True),
        ({"cgroup_pids_max": 3000}, "control group", "echo 6200 > /sys/fs/cgroup/pids.max", True),
        ({"ports_last": 33767}, "local ports", 'sysctl -w net.ipv4.ip_local_port_range="1024 65535"', True),
        ({"somaxconn": 128}, "listen queue", "sysctl -w net.core.somaxconn=400", False),
        ({"memory_available_bytes": 8 * GB}, "memory", "this process cannot raise the available memory", True),
        ({"disk_available_bytes": 2 * GB}, "disk for the servers' logs", "on another disk with --out", True),
        ({"clock_source": "hpet"}, "clock source", "less exact", False),
        ({"pid_max": 6000, "privileged": False}, "process ids", "cannot be raised by this process", True),
    ],
)
def test_each_shortage_names_the_command_that_removes_it(
    change: dict[str, object], what: str, remedy: str, severe: bool
) -> None:
    (found,) = shortages(replace(AMPLE, **change), NEEDS)  # type: ignore[arg-type]
    assert what in found.what
    assert remedy in found.remedy
    assert found.severe is severe


@pytest.mark.parametrize("name", ["zmqrate", "kafka-batch", "kafka-fixed", "kafka-rate"])
def test_more_clients_need_more_of_everything(name: str) -> None:
    scenario = resolve(name)
    small, large = (needs(scenario, clients, 4, 128) for clients in (100, 1000))
    for resource in ("processes", "threads", "files", "memory_bytes"):
        assert getattr(small, resource) < getattr(large, resource), resource
    assert small.processes > 100


def test_rows_that_do_not_fit_are_told_from_those_that_do() -> None:
    checks = check_all(
        resolve("zmqrate", {"published": True}), load_cluster(), replace(AMPLE, memory_available_bytes=20 * GB)
    )
    fitting = [check.clients for check in checks if check.fits]
    assert fitting
    assert fitting == sorted(fitting)
    assert max(fitting) < 7680


def test_the_rows_that_do_not_fit_are_named_with_what_they_lack_and_the_largest_count_that_fits() -> None:
    resolved, cluster = resolve("zmqrate", {"published": True}), load_cluster()
    machine = replace(AMPLE, memory_available_bytes=20 * GB)
    found = unfit_rows(resolved, cluster, cluster.agents, machine)
    assert found is not None
    assert found.clients == [3840, 7680]
    assert found.lack.startswith("memory: 20.0 GB available, needs ")
    assert 1920 < found.largest < 3840
    assert check_row(resolved, cluster, machine, (1, found.largest)).fits
    assert not check_row(resolved, cluster, machine, (1, found.largest + 1)).fits
    assert unfit_rows(resolve("zmqrate"), cluster, cluster.agents, machine) is None
    # Elsewhere the agents decide.
    small = replace(cluster.agents[1], resources=replace(cluster.agents[1].resources, mem=2000.0))
    elsewhere = unfit_rows(resolved, cluster, [cluster.agents[0], small], None)
    assert elsewhere is not None
    assert elsewhere.clients[-1] == 7680
    assert 0 < elsewhere.largest < elsewhere.clients[0]
    assert "do not fit" in elsewhere.lack


def test_what_runs_already_is_not_needed_once_more() -> None:
    """A machine that fits a count when it is asked at once fits it also after the counts before it."""
    scenario, cluster = resolve("zmqrate", {"published": True}), load_cluster()
    small, large = (check_row(scenario, cluster, AMPLE, (1, clients)).needs for clients in (3840, 7680))
    most = AMPLE.threads + large.threads
    fresh = replace(AMPLE, memory_available_bytes=large.memory_bytes, threads_max=most, cgroup_pids_max=most)
    assert check_row(scenario, cluster, fresh, (1, 7680)).fits
    left = large.memory_bytes - small.memory_bytes
    taken = replace(fresh, memory_available_bytes=left, threads=fresh.threads + small.threads)
    assert check_row(scenario, cluster, taken, (1, 7680), running=(1, 3840)).fits
    for short in (replace(taken, memory_available_bytes=left - 1), replace(taken, threads=taken.threads + 1)):
        assert not check_row(scenario, cluster, short, (1, 7680), running=(1, 3840)).fits


def test_what_the_brokers_keep_already_makes_room_for_the_next_steps() -> None:
    scenario, cluster = resolve("kafka-fixed", {"settings.rate": 1000}), load_cluster()
    required = check_row(scenario, cluster, AMPLE, (1, 10)).needs.disk_bytes
    assert required > 0
    # The step before has filled half of what was free.
    half = replace(AMPLE, disk_available_bytes=required - required // 2)
    assert check_row(scenario, cluster, half, (1, 10), running=(1, 5), stored_bytes=required // 2).fits
    assert not check_row(scenario, cluster, half, (1, 10), running=(1, 5), stored_bytes=required // 2 - 1).fits


def test_this_machine_can_be_read() -> None:
    raise_open_files()
    machine = read_limits()
    assert machine.nofile_soft == machine.nofile_hard > 0
    assert machine.memory_available_bytes > 0
    assert 0 < machine.ports_first < machine.ports_last
    assert machine.threads > 1
