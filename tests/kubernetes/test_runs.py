"""Whole runs on a Kubernetes with the rights of conf/kubernetes: what they measure, and that nothing of them stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.cluster.kubernetes import names
from hydra.events.clients import GroupExit, Launched
from hydra.events.steps import WindowOpened
from tests.integration.command import assert_all_arrived, events, table, wait_until
from tests.kubernetes import images
from tests.kubernetes.labs import Lab, deleted
from tests.kubernetes.labs import lab as opened
from tests.kubernetes.rig import Rig

pytestmark = pytest.mark.processes


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Iterator[Lab]:
    with opened(rig, tmp_path) as it:
        yield it
        assert it.left() == []


def test_a_run_measures_and_its_keys_are_nowhere_but_in_secrets(lab: Lab) -> None:
    with lab.measuring("zmqfixed", "--clients", "2,3", "--rate", 100, "--duration", 2, "--client", "pyzmq") as command:
        wait_until(lambda: events(lab.run, WindowOpened), 60, "the first window")
        secrets, shown = lab.secrets(), lab.seen()
        assert len(secrets) >= 1
        assert command.wait() == 0, command.output()
    two, three = table(lab.run)
    assert_all_arrived(two, 200)
    assert_all_arrived(three, 200)
    assert three["failed_clients"] == "0"
    placed = events(lab.run, Launched)
    assert sum("publisher" in e and "node1" in e for e in placed) == 1
    assert all("node2" in e for e in placed if "subscriber" in e), "as conf/zmq.toml's constraints have it"
    kept = [shown, command.output(), lab.rig.place.audit.read_text()]
    kept += [path.read_bytes().decode(errors="replace") for path in lab.run.rglob("*") if path.is_file()]
    assert not [secret for secret in secrets for text in kept if secret in text]


def test_an_image_with_python_only_gets_hydra_from_the_archive(lab: Lab) -> None:
    words = ("zmqfixed", "--clients", "3", "--rate", 100, "--duration", 1, "--client", "pyzmq")
    lab.measure(*words, "--image", images.PYTHON)
    (row,) = table(lab.run)
    assert_all_arrived(row, 100)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("kafka-batch", "--client", "confluent-kafka", "--msg-batch", 100, "--rate", 200), id="kafka"),
        pytest.param(("nats-fixed", "--rate", 200), id="nats"),
    ],
)
def test_a_broker_is_a_pod(lab: Lab, words: tuple[object, ...]) -> None:
    lab.measure(*words, "--clients", 2, "--duration", 1, "--set", "server.demand.base_cpus=0.5")
    (row,) = table(lab.run)
    assert float(row["total_rx"]) > 0
    assert float(row["client_loss_pct"]) == 0
    assert any(e.startswith("servers-1: a server on node2") for e in events(lab.run, Launched))


def test_a_workload_is_judged_and_a_group_that_dies_within_counts(lab: Lab) -> None:
    asked = ("slo", "zmqfixed", "--clients", 4, "--rate", 100, "--duration", "4s", "--p99", "10s", "--loss", 0)
    with lab.measuring(*asked, "--client", "native", "--json") as command:
        wait_until(lambda: events(lab.run, WindowOpened), 60, "the window")
        victim = next(pod for pod in lab.pods() if pod["metadata"]["labels"][names.ROLE] == "subscriber")
        deleted(lab, "pods", victim["metadata"]["name"])
        assert command.wait() == 3, command.output()
    answer = json.loads((lab.run / "slo.json").read_text())
    assert (answer["holds"], answer["complete"]) == (False, True)
    assert len(events(lab.run, GroupExit)) == 1
    (row,) = table(lab.run)
    assert row["failed_clients"] == "2"


def test_commands_tell_of_the_cluster_and_end_a_run_from_outside(lab: Lab) -> None:
    told = lab.hydra("agents").stdout
    assert "node1" in told
    assert "cpu16-mem60" in told
    assert "node2" in lab.hydra("agents", "--for", "zmqfixed").stdout
    told = lab.hydra("check", "zmqfixed", "--clients", 2).stdout
    assert f"reached this machine at {lab.rig.place.gateway}" in told
    assert "you may not" not in told
    with lab.measuring("zmqfixed", "--clients", "2,3,4,5,6,7", "--rate", 100, "--duration", 3) as command:
        wait_until(lambda: len(events(lab.run, WindowOpened)) >= 2, 60, "the second window")
        listed = lab.hydra("ps").stdout
        assert "run" in listed
        name = json.loads(lab.hydra("ps", "--json").stdout)[0]["run"]
        lab.hydra("kill", name)
        assert command.wait() == 1, command.output()
        (line,) = [line for line in command.output().splitlines() if line.startswith(("hydra:", "warning:"))]
        assert "was removed from namespace" in line
        assert "Traceback" not in command.output()
    assert len(table(lab.run)) >= 1
