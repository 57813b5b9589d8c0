"""Whole runs on a Kubernetes with the rights of conf/kubernetes: what they measure, and that nothing of them stays."""

from __future__ import annotations

import json
import os

import pytest

from hydra.events.group_events import GroupExit, Launched
from tests.integration.command import assert_all_arrived, events, table
from tests.kubernetes import images
from tests.kubernetes.labs import Lab, printed_line

pytestmark = pytest.mark.tier("all")


def test_a_run_measures_and_its_keys_are_nowhere_but_in_secrets(lab: Lab) -> None:
    with lab.measuring("zmqfixed", "--clients", "2,3", "--rate", 100, "--duration", 2, "--client", "pyzmq") as command:
        lab.await_window()
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
        pytest.param(
            ("kafka-batch", "--client", "confluent-kafka", "--msg-batch", 100, "--rate", 200),
            id="kafka",
            marks=pytest.mark.skipif("HYDRA_SOAK_SEEDS" not in os.environ, reason="takes a minute: make soak"),
        ),
        pytest.param(("nats-fixed", "--rate", 200), id="nats"),
    ],
)
def test_a_broker_is_a_pod(lab: Lab, words: tuple[object, ...]) -> None:
    lab.measure(*words, "--clients", 2, "--duration", 1, "--set", "server.demand.base_cpus=0.5")
    (row,) = table(lab.run)
    assert float(row["total_rx"]) > 0
    assert float(row["client_loss_pct"]) == 0
    assert any(e.startswith("servers-1: a server on node2") for e in events(lab.run, Launched))


def test_a_server_in_a_pod_is_restarted(lab: Lab) -> None:
    event = 'events=[{at_s=0.5,kind="restart_server",for_s=0.3}]'
    words = ("mqtt-fixed", "--client", "native", "--rate", 50, "--clients", 2, "--duration", 5, "--set", event)
    lab.measure(*words, "--set", "server.demand.base_cpus=0.5")
    (row,) = table(lab.run)
    # The server keeps nothing: what the publisher sends before a subscriber is back is lost to that subscriber.
    assert (row["failed_dead"], row["failed_silent"]) == ("0", "0")
    assert (int(row["disconnections"]), int(row["never_back"])) == (2, 0)


def test_a_workload_is_judged_and_a_group_that_dies_within_counts(lab: Lab) -> None:
    requests = ("slo", "zmqfixed", "--clients", 4, "--rate", 100, "--duration", "4s", "--p99", "10s", "--loss", 0)
    with lab.measuring(*requests, "--client", "native", "--json") as command:
        lab.await_clients()
        name = lab.a_subscriber()
        lab.await_window()
        lab.delete_pod(name)
        assert command.wait() == 3, command.output()
    answer = json.loads((lab.run / "slo.json").read_text())
    assert (answer["holds"], answer["complete"]) == (False, True)
    assert len(events(lab.run, GroupExit)) == 1
    (row,) = table(lab.run)
    assert row["failed_clients"] == "2"


def test_commands_tell_of_the_cluster_and_end_a_run_from_outside(lab: Lab) -> None:
    agents = lab.hydra("agents").stdout
    assert "node1" in agents
    assert "cpu16-mem60" in agents
    assert "node2" in lab.hydra("agents", "--for", "zmqfixed").stdout
    checked = lab.hydra("check", "zmqfixed", "--clients", 2).stdout
    assert f"reached this machine at {lab.rig.place.gateway}" in checked
    assert "you may not" not in checked
    with lab.measuring("zmqfixed", "--clients", "2,3,4,5,6,7", "--rate", 100, "--duration", 3) as command:
        lab.await_window(2)
        listed = lab.hydra("ps").stdout
        assert "run" in listed
        name = json.loads(lab.hydra("ps", "--json").stdout)[0]["run"]
        lab.hydra("kill", name)
        assert command.wait() == 1, command.output()
        assert "was removed from namespace" in printed_line(command.output())
    assert len(table(lab.run)) >= 1
