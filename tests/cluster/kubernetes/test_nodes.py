"""What is free on nodes, and which nodes take Pods: agents never have more than there is."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.engine.resources import fits, need_of, port_count
from hydra.kubernetes import nodes as k8s
from hydra.kubernetes.pods import requested_resources, resources
from hydra.kubernetes.settings import KubernetesSettings
from hydra.model import Demand, Resources
from tests.cluster.kubernetes.objects import Json, container, node, pod

PORTS = ((31000, 31009),)
OWN_LABELS = {"app.kubernetes.io/managed-by": "hydra"}
GPU = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
SIDECAR = container("1", restartPolicy="Always")
OVERHEAD = {"cpu": "250m", "memory": "120Mi"}


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5Ki", 1536), ("129E6", 129e6), ("1e-3", 0.001), ("2E", 2e18), (".5", 0.5), ("5.", 5), ("-1", -1), ("+3", 3)],
)
def test_quantities(text: str, number: float) -> None:
    assert math.isclose(k8s.quantity(text), number)


def with_ports(*ports: int) -> Json:
    return container(ports=[{"containerPort": port} for port in ports])


def to_use(key: str) -> str:
    return f' (to use it: tolerations = [{{key = "{key}", operator = "Exists"}}] in [kubernetes])'


CONTROL, DISK = "node-role.kubernetes.io/control-plane", "node.kubernetes.io/disk-pressure"


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
        pytest.param([pod("n1", container("1"), init=[SIDECAR])], 2, 16384, id="sidecar"),
        pytest.param([pod("n1", container("1"), init=[SIDECAR, container("2")])], 1, 16384, id="beside a sidecar"),
        pytest.param([pod("n1", container("1"), init=[container("2"), SIDECAR])], 2, 16384, id="before a sidecar"),
        pytest.param([pod("n1", container("1"), overhead=OVERHEAD)], 2.75, 16264, id="overhead"),
        pytest.param([pod("n1", container("1"), resources={"requests": {"cpu": "2"}})], 2, 16384, id="of the Pod"),
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
        (pod("n1", with_ports(31000, 31004), labels=OWN_LABELS), ((31001, 31003), (31005, 31009))),
        (pod("n1", with_ports(31000)), PORTS),
        (pod("n1", container(ports=[{"containerPort": 80, "hostPort": 31009}])), ((31000, 31008),)),
        (pod("n1", with_ports(31000), labels=OWN_LABELS, phase="Failed"), PORTS),
        (pod("n1", with_ports(8080), labels=OWN_LABELS), PORTS),
        (pod("n1", with_ports(*range(31000, 31010)), labels=OWN_LABELS), ()),
    ],
)
def test_ports_of_groups_and_of_hosts_are_not_free(taken: Json, ports: k8s.Ports) -> None:
    (agent,) = k8s.agents([node("n1")], [taken], PORTS)
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
        (node("n1", taints=[GPU]), f"taint dedicated=gpu:NoSchedule{to_use('dedicated')}"),
        (node("n1", taints=[{"key": CONTROL, "effect": "NoSchedule"}]), f"taint {CONTROL}:NoSchedule{to_use(CONTROL)}"),
        (node("n1", taints=[{"key": DISK, "effect": "NoSchedule"}]), f"taint {DISK}:NoSchedule"),
        (node("n1", labels={"kubernetes.io/os": "windows"}), "runs windows, and the image is for Linux"),
        (node("n1", pods="1"), "all of its 1 Pod slots are taken"),
    ],
)
def test_nodes_that_take_no_pods_are_left_out_with_the_reason(it: Json, reason: str) -> None:
    names = [pod("n1", container())]
    assert [agent.id for agent in k8s.agents([it], names, PORTS)] == ([] if reason else ["n1"])
    assert k8s.left_out([it], names) == ([f"n1: {reason}"] if reason else [])


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
    names = [pod("n1"), pod("n1", phase="Succeeded"), pod("n1", phase="Pending"), pod("n2"), pod("")]
    assert k8s.slots(node("n1", pods="110"), names) == 108
    assert k8s.slots(node("n1", pods="1"), names) == 0


# --- any quantities ---------------------------------------------------------------------------------------------------


FEW = settings(max_examples=15)
TENS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "e3": 3, "E-3": -3}
SUFFIXES = {suffix: Decimal(10) ** power for suffix, power in TENS.items()}
SUFFIXES |= {f"{letter}i": Decimal(2) ** (10 * n) for n, letter in enumerate("KMGTPE", 1)}
cpus = st.one_of(st.integers(0, 64).map(str), st.integers(0, 64_000).map("{}m".format))
memory = st.one_of(
    st.integers(0, 2**36).map(str),
    st.integers(0, 2**16).map("{}Mi".format),
    st.integers(0, 64).map("{}Gi".format),
    st.integers(0, 64_000).map("{}M".format),
)
containers = st.builds(container, cpus, memory)
sidecars = st.builds(lambda cpu, mem: container(cpu, mem, restartPolicy="Always"), cpus, memory)
pods = st.builds(
    lambda where, own, init, phase: pod(where, *own, init=init, phase=phase),
    st.sampled_from(["n1", "n2", ""]),
    st.lists(containers, max_size=3),
    st.lists(st.one_of(containers, sidecars), max_size=3),
    st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]),
)


@FEW
@given(st.decimals(0, 10**9, places=3))
def test_a_quantity_is_its_number_times_its_suffix(number: Decimal) -> None:
    for suffix, scale in SUFFIXES.items():
        assert k8s.quantity(f"{number}{suffix}") == float(number * scale)


@FEW
@given(st.text("0159.eEkKMGinu+- ", max_size=6))
def test_a_text_is_a_number_or_refused(text: str) -> None:
    try:
        number = k8s.quantity(text)
    except ValueError:
        return
    assert k8s.quantity(f" {text}".strip()) == number
    assert text[-1] in "0159.eEkKMGinu"


@FEW
@given(cpus, memory, st.lists(pods, max_size=6))
def test_agents_never_have_more_than_the_node(cpu: str, mem: str, there: list[Json]) -> None:
    (agent,) = k8s.agents([node("n1", cpu=cpu, memory=mem)], there, PORTS)
    here = [p for p in there if p["spec"].get("nodeName") == "n1"]
    bound = [p for p in here if p["status"]["phase"] not in ("Succeeded", "Failed")]
    requests = [c["resources"].get("requests", {}) for p in bound for c in p["spec"]["containers"]]
    least = [sum(k8s.quantity(each.get(name, "0")) for each in requests) for name in ("cpu", "memory")]
    free = agent.resources
    assert 0 <= free.cpus <= max(0.0, k8s.quantity(cpu) - least[0]) + 1e-9
    assert 0 <= free.mem * 2**20 <= max(0.0, k8s.quantity(mem) - least[1]) + 1e-3
    assert k8s.slots(node("n1"), there) == 110 - len(bound)


@FEW
@given(cpus, memory, st.lists(st.tuples(st.floats(0, 4), st.floats(0, 4000), st.integers(1, 50)), max_size=8))
def test_the_groups_that_fit_fit_the_node(cpu: str, mem: str, wanted: list[tuple[float, float, int]]) -> None:
    """What placement takes from an agent, Kubernetes takes from its node: by requests that are written as text."""
    (agent,) = k8s.agents([node("n1", cpu=cpu, memory=mem)], [], PORTS)
    names: list[Json] = []
    for per_cpu, per_mem, count in wanted:
        demand = requested_resources(Demand(cpus_per_client=per_cpu, mem_per_client=per_mem), count)
        (now,) = k8s.agents([node("n1", cpu=cpu, memory=mem)], names, PORTS)
        if fits(need_of(demand, count), now.resources):
            requests = resources(KubernetesSettings(), need_of(demand, count))["requests"]
            assert k8s.quantity(requests["cpu"]) >= per_cpu * count - 1e-6
            assert k8s.quantity(requests["memory"]) >= (per_mem * count - 1e-6) * 2**20
            names.append(pod("n1", container(requests["cpu"], requests["memory"])))
    for name, have in (("cpu", cpu), ("memory", mem)):
        taken = sum(k8s.quantity(p["spec"]["containers"][0]["resources"]["requests"][name]) for p in names)
        assert taken <= k8s.quantity(have) + 1e-6
    assert agent.resources.ports == PORTS


@FEW
@given(st.lists(st.integers(30990, 31020)))
def test_ports_are_taken_one_by_one(taken: list[int]) -> None:
    left = k8s.without(PORTS, taken)
    free = [port for port in range(31000, 31010) if port not in taken]
    assert [port for first, last in left for port in range(first, last + 1)] == free
    assert port_count(Resources(ports=left)) == len(free)
