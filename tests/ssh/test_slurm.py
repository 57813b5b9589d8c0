"""Whole commands in an allocation of a real Slurm, and what Slurm may do to a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.events.group_events import GroupExit, Launched
from tests.integration.command import assert_all_arrived, await_clients, await_window, background, events, hydra, table
from tests.ssh.daemons import left_in
from tests.ssh.slurm_nodes import Slurm, slurm
from tests.suite.native_client import needs_native
from tests.suite.waiting import SOON_S, wait_until

pytestmark = [pytest.mark.tier("all"), needs_native]

_NODES = 4
_RUN = (
    *("zmqfixed", "--rate", 200, "--set", "warmup_s=0", "--master", "slurm"),
    *("--set", 'publisher.constraints=[["hostname", "CLUSTER", "n1"]]'),
    *("--set", 'subscriber.constraints=[["hostname", "UNLIKE", "n1"]]'),
)
"""A publisher on n1, and subscribers on the three other nodes."""
_NATIVE = (*_RUN, "--implementation", "native")


@pytest.fixture(scope="module")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with slurm(tmp_path_factory.mktemp("slurm"), _NODES) as cluster:
        cluster.environment["XDG_CACHE_HOME"] = str(tmp_path_factory.getbasetemp() / "cache")
        yield cluster


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / f"run-{os.getpid()}-{tmp_path.name}"


def nothing_is_left(allocation: Slurm) -> None:
    folder = [allocation.tmp]
    wait_until(lambda: not left_in(folder), "nodes on which nothing is left", saw=lambda: left_in(folder))


def test_a_run_is_measured_on_the_nodes_of_an_allocation(allocation: Slurm, run: Path) -> None:
    hydra(*_RUN, "--implementation", "pyzmq", "--clients", 6, "--duration", 1, "--out", run, **allocation.environment)
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 200)
    launched = " ".join(events(run, Launched))
    assert [node for node in allocation.slurmd if f" on {node}" in launched] == ["n1", "n2", "n3", "n4"]
    nothing_is_left(allocation)


def test_nothing_is_left_if_the_controller_is_killed(allocation: Slurm, run: Path) -> None:
    with background(*_NATIVE, "--clients", 6, "--duration", 600, "--out", run, env=allocation.environment) as command:
        await_window(run)
        command.process.kill()
        nothing_is_left(allocation)


def test_a_slurmd_that_dies_costs_nothing_as_its_steps_live_on(allocation: Slurm, run: Path) -> None:
    with background(*_NATIVE, "--clients", 6, "--duration", 2, "--out", run, env=allocation.environment) as command:
        await_window(run)
        allocation.slurmd["n2"].kill()
        allocation.slurmd["n2"].wait(SOON_S)
        assert command.wait() == 0, command.output()
    (row,) = table(run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 400)
    nothing_is_left(allocation)
    allocation.start("n2")


def test_a_step_that_is_cancelled_costs_its_clients(allocation: Slurm, run: Path) -> None:
    """The run counts them, and uses the other nodes; Slurm kills the watcher, too, so the node's folder stays."""
    words = (*_NATIVE, "--clients", "6,7", "--duration", 8, "--out", run)
    with background(*words, env=allocation.environment) as command:
        await_clients(run)
        step = allocation.step_on("n2")
        await_window(run)
        allocation.ask("scancel", step)
        assert command.wait() == 3, command.output()
    before, after = table(run)
    assert (before["failed_dead"], after["failed_clients"]) == ("2", "0")
    assert any("its host is lost: Slurm ended its step there (Killed)" in text for text in events(run, GroupExit))
    assert "folders on n" in hydra("kill", run.name, "--master", "slurm", **allocation.environment).stdout
    nothing_is_left(allocation)
