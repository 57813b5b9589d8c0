"""What a cluster has become since the row before: nodes that are there now, and room that is about to be free."""

from __future__ import annotations

import pytest

from hydra.events.group_events import Launched
from tests.integration.command import events, table
from tests.kubernetes.labs import Lab

pytestmark = pytest.mark.tier("all")

SHRINKS_AND_GROWS = """
system = "zmq"
client = "native"
table = "fixed"
settings.rate = 100
publisher.constraints = [["group", "CLUSTER", "cpu16-mem60"]]
subscriber.constraints = [["group", "CLUSTER", "cpu16-mem60"]]
[sweep]
duration_s = 1.0
points = [
  {name = "five publishers", publishers = 5, clients = 2},
  {name = "one publisher", publishers = 1, clients = 4},
]
"""


def labelled(lab: Lab, **labels: str | None) -> None:
    """Has a label of the lab's own on these nodes; None: no longer."""
    for node, value in labels.items():
        body = {"metadata": {"labels": {lab.space: value}}}
        lab.rig.api().call("PATCH", f"/api/v1/nodes/{node}", body, "application/merge-patch+json")


def test_each_row_is_placed_on_the_nodes_as_they_are_then(lab: Lab) -> None:
    words = ("zmqfixed", "--client", "native", "--rate", 100, "--clients", "2,4", "--duration", 4)
    present = f'subscriber.constraints=[["{lab.space}","CLUSTER","yes"]]'
    try:
        labelled(lab, node1="yes")
        with lab.measuring(*words, "--set", present) as command:
            lab.await_window()
            labelled(lab, node1=None, node2="yes")
            assert command.wait() == 0, command.output()
    finally:
        labelled(lab, node1=None, node2=None)
    first, second = (reported for reported in events(lab.run, Launched) if "subscriber" in reported)
    assert "node1" in first
    assert "node2" in second


def test_a_quota_that_the_row_before_still_holds_is_waited_for(lab: Lab) -> None:
    quotas = f"/api/v1/namespaces/{lab.space}/resourcequotas"
    # The keeper, and groups of two at most: three of publishers and one of subscribers, then one and two.
    lab.rig.api().create(quotas, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "5"}}})
    (lab.folder / "rows.toml").write_text(SHRINKS_AND_GROWS)
    lab.measure("run", lab.folder / "rows.toml")
    assert [(row["clients"], row["failed_clients"]) for row in table(lab.run)] == [("2", "0"), ("4", "0")]
