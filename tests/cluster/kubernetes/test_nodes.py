"""What is free on nodes, and which nodes take Pods."""

from __future__ import annotations

import math
from typing import Any

import pytest

from hydra.cluster.kubernetes import nodes as k8s
from hydra.model import Resources
from tests.cluster.kubernetes.objects import container, node, pod

Json = dict[str, Any]

PORTS = ((31000, 31009),)
OURS = {"app.kubernetes.io/managed-by": "hydra"}
GPU = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", 2),
        ("0", 0),
        ("100m", 0.1),
        ("1930m", 1.93),
        ("1.5Gi", 1.5 * 2**30),
        ("128974848", 128974848),
        ("129e6", 129e6),
        ("129E6", 129e6),
        ("1e-3", 0.001),
        ("129M", 129e6),
        ("1Ki", 1024),
        ("1k", 1000),
        ("2E", 2e18),
        ("1Ei", 2**60),
        (".5", 0.5),
        ("5.", 5),
        ("250u", 0.00025),
        ("7n", 7e-9),
        ("-1", -1),
        ("+3", 3),
    ],
)
def test_quantities(text: str, number: float) -> None:
    assert math.isclose(k8s.quantity(text), number)


@pytest.mark.parametrize("text", ["", "Gi", "1 Gi", "1gi", "1K", "1mi", "1e", "0x10", "1,5", "1Gii", "NaN", "٣"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a quantity is a number with a suffix"):
        k8s.quantity(text)


def test_a_node_becomes_an_agent() -> None:
    (agent,) = k8s.agents([node("n1", labels={"rack": "r1", "kubernetes.io/hostname": "host1"})], [], PORTS)
    assert (agent.id, agent.hostname, agent.attributes["rack"]) == ("n1", "host1", "r1")
    assert agent.resources == Resources(cpus=4, mem=16384, disk=102400, ports=PORTS)


def test_a_node_without_a_hostname_label_is_called_by_its_name() -> None:
    bare = node("n1")
    del bare["metadata"]["labels"]
    (agent,) = k8s.agents([bare], [], PORTS)
    assert (agent.hostname, agent.attributes) == ("n1", {})


@pytest.mark.parametrize(
    ("taken", "cpus", "mem"),
    [
        pytest.param([pod("n1", container("100m", "70Mi")), pod("n1", container("200m"))], 3.7, 16314, id="sum"),
        pytest.param([pod("n2", container("1", "1Gi"))], 4, 16384, id="another node"),
        pytest.param([pod("", container("1", "1Gi"), phase="Pending")], 4, 16384, id="not bound"),
        pytest.param([pod("n1", container("1"), phase="Succeeded")], 4, 16384, id="finished"),
        pytest.param([pod("n1", container("1"), phase="Failed")], 4, 16384, id="failed"),
        pytest.param([pod("n1", container("1"), phase="Pending")], 3, 16384, id="bound and not started"),
        pytest.param([pod("n1", container())], 4, 16384, id="best effort"),
        pytest.param([pod("n1", container("500m"), init=[container("2", "1Gi")])], 2, 15360, id="init is more"),
        pytest.param([pod("n1", container("2"), init=[container("500m")])], 2, 16384, id="init is less"),
        pytest.param([pod("n1", container("1"), init=[container("1"), container("1")])], 3, 16384, id="one by one"),
        pytest.param(
            [pod("n1", container("1"), init=[container("500m", restartPolicy="Always")])], 2.5, 16384, id="sidecar"
        ),
        pytest.param(
            [pod("n1", container("1"), init=[container("1", restartPolicy="Always"), container("2")])],
            1,
            16384,
            id="init beside a sidecar",
        ),
        pytest.param(
            [pod("n1", container("1"), init=[container("2"), container("1", restartPolicy="Always")])],
            2,
            16384,
            id="init before a sidecar",
        ),
        pytest.param(
            [pod("n1", container("1"), overhead={"cpu": "250m", "memory": "120Mi"})], 2.75, 16264, id="overhead"
        ),
        pytest.param(
            [pod("n1", container("1"), resources={"requests": {"cpu": "2"}})], 2, 16384, id="of the whole Pod"
        ),
        pytest.param([pod("n1", container("9", "99Gi"))], 0, 0, id="overcommitted"),
        pytest.param([pod("n1", container("1100u", "1"))], 3.998, 16383, id="rounded down"),
        pytest.param([pod("n1", container("100m"))] * 3, 3.7, 16384, id="no error of floats"),
    ],
)
def test_what_pods_request_is_not_free(taken: list[Json], cpus: float, mem: float) -> None:
    (agent,) = k8s.agents([node("n1")], taken, PORTS)
    assert (agent.resources.cpus, agent.resources.mem) == (cpus, mem)


@pytest.mark.parametrize(
    ("taken", "ports"),
    [
        ([pod("n1", container(ports=[{"containerPort": 31000}, {"containerPort": 31004}]), labels=OURS)],
         ((31001, 31003), (31005, 31009))),
        ([pod("n1", container(ports=[{"containerPort": 31000}]))], PORTS),
        ([pod("n1", container(ports=[{"containerPort": 80, "hostPort": 31009}]))], ((31000, 31008),)),
        ([pod("n1", container(ports=[{"containerPort": 31000}]), labels=OURS, phase="Failed")], PORTS),
        ([pod("n1", container(ports=[{"containerPort": 8080}]), labels=OURS)], PORTS),
        ([pod("n1", container(ports=[{"containerPort": p} for p in range(31000, 31010)]), labels=OURS)], ()),
    ],
)  # fmt: skip
def test_ports_of_groups_and_of_hosts_are_not_free(taken: list[Json], ports: k8s.Ports) -> None:
    (agent,) = k8s.agents([node("n1")], taken, PORTS)
    assert agent.resources.ports == ports


@pytest.mark.parametrize(
    ("it", "reason"),
    [
        (node("n1"), ""),
        (node("n1", ready="False"), "not ready"),
        (node("n1", ready="Unknown"), "does not answer any more"),
        ({**node("n1"), "status": {}}, "not ready"),
        (node("n1", cordoned=True), "cordoned"),
        (node("n1", taints=[{**GPU, "effect": "PreferNoSchedule"}]), ""),
        (
            node("n1", taints=[GPU]),
            "taint dedicated=gpu:NoSchedule"
            ' (to use it: tolerations = [{key = "dedicated", operator = "Exists"}] in [kubernetes])',
        ),
        (
            node("n1", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]),
            "taint node-role.kubernetes.io/control-plane:NoSchedule"
            ' (to use it: tolerations = [{key = "node-role.kubernetes.io/control-plane", operator = "Exists"}]'
            " in [kubernetes])",
        ),
        (
            node("n1", taints=[{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]),
            "taint node.kubernetes.io/disk-pressure:NoSchedule",
        ),
        (node("n1", labels={"kubernetes.io/os": "windows"}), "runs windows, and the image is for Linux"),
        (node("n1", pods="1"), "all of its 1 Pod slots are taken"),
    ],
)
def test_nodes_that_take_no_pods_are_left_out_with_the_reason(it: Json, reason: str) -> None:
    there = [pod("n1", container())]
    assert [agent.id for agent in k8s.agents([it], there, PORTS)] == ([] if reason else ["n1"])
    assert k8s.left_out([it], there) == ([f"n1: {reason}"] if reason else [])


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "dedicated", "value": "gpu"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "gpu"}, True),
        ({"key": "dedicated", "value": "cpu"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({}, False),
    ],
)
def test_a_toleration_opens_a_tainted_node(toleration: dict[str, object], tolerated: bool) -> None:
    found = k8s.agents([node("n1", taints=[GPU])], [], PORTS, [toleration])
    assert [agent.id for agent in found] == (["n1"] if tolerated else [])


def test_slots_are_counted_without_pods_that_have_ended() -> None:
    there = [pod("n1"), pod("n1", phase="Succeeded"), pod("n1", phase="Pending"), pod("n2"), pod("")]
    assert k8s.slots(node("n1", pods="110"), there) == 108
    assert k8s.slots(node("n1", pods="1"), there) == 0
