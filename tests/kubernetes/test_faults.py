"""Faults that are really made while a run continues: every measured row is kept, and nothing of the run stays."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest

from hydra.events.group_events import GroupExit, Launched
from hydra.kubernetes import object_names
from tests.integration.command import Background, assert_all_arrived, events, hydra, steps, table
from tests.kubernetes import nodes
from tests.kubernetes.labs import Lab, printed_line
from tests.kubernetes.labs import lab as opened
from tests.kubernetes.rig import Rig
from tests.suite.waiting import LONG_S, TIME_FACTOR, wait_until

pytestmark = pytest.mark.tier("all")


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Iterator[Lab]:
    with opened(rig, tmp_path) as it:
        yield it


def driver(command: Background) -> psutil.Process:
    return next(each for each in command.family() if "hydra.kubernetes.driver" in each.cmdline())


def parent_of_subscribers(lab: Lab) -> int:
    """The parent process of a group: of this lab's, as others run on the same nodes."""
    own = [pod["metadata"]["uid"] for pod in lab.pods() if pod["metadata"]["labels"][object_names.ROLE] == "subscriber"]
    found = []
    for pid in nodes.contained(lab.rig.place):
        with suppress(psutil.Error, OSError):
            inside = Path(f"/proc/{pid}/cgroup").read_text()
            named = any(re.fullmatch(r"subscribers-\d+", word) for word in psutil.Process(pid).cmdline())
            if named and any(uid in inside for uid in own):
                found.append(pid)
    return min(found)


soak = pytest.mark.skipif("HYDRA_SOAK_SEEDS" not in os.environ, reason="takes more than a minute: make soak")
FIXED = ("zmqfixed", "--rate", 100, "--client", "native")


@pytest.mark.parametrize("whom", [pytest.param("controller", marks=soak), "both"])
def test_nothing_stays_of_a_run_whose_processes_are_killed(lab: Lab, whom: str) -> None:
    with lab.measuring(*FIXED, "--clients", "2,3", "--duration", 2) as command:
        lab.await_window()
        victims = [command.process, driver(command)] if whom == "both" else [command.process]
        lab.await_window(2)
        for victim in victims:
            victim.send_signal(signal.SIGSTOP)
        for victim in victims:
            victim.kill()
        command.wait()
        lab.becomes_empty()
    assert [status for _, status in steps(lab.run)] == ["ok"]
    again = lab.hydra("zmqfixed", "--resume", lab.run)
    assert "step 2" in again.stderr
    assert len(table(lab.run)) == 2
    assert lab.left() == []


def test_a_group_that_is_killed_is_told_in_its_row_and_the_next_row_has_all(lab: Lab) -> None:
    with lab.measuring(*FIXED, "--clients", "2,4", "--duration", 3) as command:
        lab.await_clients()
        parent = parent_of_subscribers(lab)
        lab.await_window()
        os.kill(parent, signal.SIGKILL)
        assert command.wait() in (0, 3), command.output()
    two, four = table(lab.run)
    assert two["failed_clients"] == "2"
    assert four["failed_clients"] == "0"
    assert_all_arrived(four, 300)
    (end,) = events(lab.run, GroupExit)
    assert "killed by SIGKILL" in end
    assert lab.left() == []


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(lab: Lab) -> None:
    with lab.measuring(*FIXED, "--clients", "2,3", "--duration", 2) as command:
        lab.await_window(2)
        command.process.send_signal(signal.SIGINT)
        assert command.wait() == 130, command.output()
        assert lab.left() == []
    assert len(table(lab.run)) >= 1


def test_a_namespace_that_is_deleted_ends_the_run_with_one_line(lab: Lab) -> None:
    with lab.measuring(*FIXED, "--clients", "2,3,4", "--duration", 2) as command:
        lab.await_window(2)
        lab.rig.api().delete(f"/api/v1/namespaces/{lab.space}")
        assert command.wait() == 1, command.output()
    assert f"namespace {lab.space}" in printed_line(command.output(), "hydra:")
    assert len(table(lab.run)) >= 1


def test_tokens_that_expire_are_renewed_by_a_plugin_and_nobody_notices(lab: Lab) -> None:
    with (
        lab.account.renewing(lab.folder, 8) as requests,  # accepted for 18 s at most: the rows last longer
        lab.measuring(*FIXED, "--clients", "2,3,4", "--duration", 7) as command,
    ):
        assert command.wait() == 0, command.output()
        assert lab.left() == []
    assert len(requests.read_text()) > 1, "no token has expired"
    assert "who asks" not in command.output()
    assert [row["failed_clients"] for row in table(lab.run)] == ["0", "0", "0"]


@soak
@pytest.mark.timeout(400 * TIME_FACTOR)
def test_a_token_that_expires_and_is_not_renewed_ends_the_run_with_one_line(lab: Lab) -> None:
    with ExitStack() as given:
        given.enter_context(lab.account.renewing(lab.folder, 6))
        with lab.measuring(*FIXED, "--clients", "2,3,4,5,6", "--duration", 6) as command:
            lab.await_window()
            given.close()  # no process renews it any more
            wait_until(lambda: steps(lab.run), "the first row", LONG_S)
            administrator = ("--namespace", lab.space, "--master", "k8s://")
            listed = hydra("ps", *administrator, KUBECONFIG=str(lab.rig.kubeconfig())).stdout
            assert re.search(r"\brun +1 +\d+ +2\b", listed), listed
            assert command.wait(2 * LONG_S) == 1, command.output()
            lab.becomes_empty()
    line = printed_line(command.output())
    for text in (lab.space, "the API server does not know who asks", "log in to the cluster again", "--resume"):
        assert text in line
    measured = steps(lab.run)
    assert {status for _, status in measured} == {"ok"}
    assert 1 <= len(measured) < 5
    (refused,) = lab.hydra("ps", expect=1).stderr.splitlines()
    assert "log in to the cluster again" in refused
    lab.account.renew()
    lab.hydra("zmqfixed", "--resume", lab.run)
    assert [row["failed_clients"] for row in table(lab.run)] == ["0"] * 5
    assert lab.left() == []


@soak
@pytest.mark.timeout(400 * TIME_FACTOR)
@pytest.mark.parametrize(
    ("lost", "expected"), [("pod", "the Pod of run was deleted"), ("node", "in the cluster is lost")]
)
def test_where_a_command_in_the_cluster_is_lost_nothing_of_its_run_stays(
    own_rig: Rig, tmp_path: Path, lost: str, expected: str
) -> None:
    with opened(own_rig, tmp_path) as lab:
        lab.settings('service_account = "person"\nnode_lost_s = 3\ncontroller_cpus = 0.2')
        words = ("--in-cluster", "--clients", "2,3,4", "--duration", 6, "--set", "subscriber.constraints=[]")
        with lab.measuring(*FIXED, *words) as command:
            wait_until(lambda: "step 1 of 3" in command.output(), "the first row", LONG_S)
            (pod,) = lab.pods("controller")
            if lost == "pod":
                lab.delete_pod(pod["metadata"]["name"])
            else:
                own_rig.fail_node(pod["spec"]["nodeName"])
            assert command.wait(2 * LONG_S) == 1, command.output()
            lab.becomes_empty()
        assert expected in printed_line(command.output())


def an_apiserver_is_away_for_ten_seconds_of_a_window(lab: Lab) -> None:
    with lab.measuring(*FIXED, "--clients", "4", "--duration", 25) as command:
        lab.await_window()
        lab.rig.kill("apiserver")
        killed = time.monotonic()
        assert not lab.rig.answers()
        wait_until(lambda: time.monotonic() - killed >= 10, "the end of the fault")
        lab.rig.start("apiserver")
        assert steps(lab.run) == [], "the window was too short"
        assert command.wait() == 0, command.output()
    (row,) = table(lab.run)
    assert row["failed_clients"] == "0"
    assert_all_arrived(row, 2500)
    lab.becomes_empty()  # on a slow machine the apiserver is back too late for hydra, and the keeper's end does it
    (lab.folder / "run").rename(lab.folder / "first")


@pytest.mark.timeout(400 * TIME_FACTOR)
@soak
@pytest.mark.parametrize("lost", ["node", "kubelet"])
def test_what_an_apiserver_an_etcd_and_a_node_do_to_a_run(own_rig: Rig, tmp_path: Path, lost: str) -> None:
    """A cluster of its own, broken in each way in turn."""
    with opened(own_rig, tmp_path) as lab:
        an_apiserver_is_away_for_ten_seconds_of_a_window(lab)
    # The API server takes a node for lost for a moment, as it has missed its heartbeats.
    wait_until(lambda: own_rig.ready() == own_rig.nodes, "all nodes to be ready", LONG_S, saw=own_rig.ready)
    with opened(own_rig, tmp_path) as lab:
        lab.settings("node_lost_s = 3")
        words = ("--clients", "4,5,6,7", "--duration", 6, "--set", "subscriber.constraints=[]")
        with lab.measuring(*FIXED, *words) as command:
            lab.await_window()
            own_rig.kill("etcd")
            own_rig.start("etcd")
            lab.await_window(2)
            assert any("subscriber" in e and "on node2" in e for e in events(lab.run, Launched))
            if lost == "node":
                own_rig.fail_node("node2")
            else:
                own_rig.kill("kubelet2")
            wait_until(lambda: own_rig.ready() == ["node1"], "a node that is not ready", LONG_S, saw=own_rig.ready)
            wait_until(lambda: events(lab.run, GroupExit), "the loss", LONG_S)
            before = len(events(lab.run, Launched))
            code = command.wait(2 * LONG_S)
        rows = table(lab.run)
        assert rows[0]["failed_clients"] == "0", command.output()
        assert_all_arrived(rows[0], 600)
        # The groups of the lost node were there until its Pods were given up: in that row, or in the next.
        assert any(int(row["failed_clients"] or 1) for row in rows[1:3]), command.output()
        assert rows[-1]["failed_clients"] == "0", command.output()
        assert_all_arrived(rows[-1], 600)
        after = events(lab.run, Launched)[before:]
        assert any("on node1" in e for e in after)
        assert code in (0, 3)
        assert lab.left() == []
