"""Whatever quantities stand in nodes and Pods: agents never have more than there is."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydra.cluster.kubernetes.nodes import agents, quantity, slots, without
from hydra.cluster.kubernetes.pods import resources, whole
from hydra.cluster.kubernetes.settings import KubernetesSettings
from hydra.cluster.resources import fits, need_of, port_count
from hydra.model import Demand, Resources
from tests.cluster.kubernetes.objects import container, node, pod

Json = dict[str, Any]

SUFFIXES = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1), "k": Decimal("1e3"),
    "M": Decimal("1e6"), "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"), "E": Decimal("1e18"),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50),
    "Ei": Decimal(2**60), "e3": Decimal(1000), "E-3": Decimal("0.001"), "e+0": Decimal(1),
}  # fmt: skip
PORTS = ((31000, 31019),)

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


@given(st.decimals(0, 10**9, places=3), st.sampled_from(sorted(SUFFIXES)))
def test_a_quantity_is_its_number_times_its_suffix(number: Decimal, suffix: str) -> None:
    assert quantity(f"{number}{suffix}") == float(number * SUFFIXES[suffix])


@given(st.text("0159.eEkKMGinu+- ", max_size=6))
def test_a_text_is_a_number_or_refused(text: str) -> None:
    try:
        number = quantity(text)
    except ValueError:
        return
    assert quantity(f" {text}".strip()) == number
    assert text[-1] in "0159.eEkKMGinu"


@given(cpus, memory, st.lists(pods, max_size=6))
def test_agents_never_have_more_than_the_node(cpu: str, mem: str, there: list[Json]) -> None:
    (agent,) = agents([node("n1", cpu=cpu, memory=mem)], there, PORTS)
    bound = [
        p
        for p in there
        if p["spec"].get("nodeName") == "n1" and p["status"]["phase"] in ("Pending", "Running", "Unknown")
    ]
    least = [
        sum(quantity(c["resources"].get("requests", {}).get(name, "0")) for p in bound for c in p["spec"]["containers"])
        for name in ("cpu", "memory")
    ]
    free = agent.resources
    assert 0 <= free.cpus <= max(0.0, quantity(cpu) - least[0]) + 1e-9
    assert 0 <= free.mem * 2**20 <= max(0.0, quantity(mem) - least[1]) + 1e-3
    assert slots(node("n1"), there) == 110 - len(bound)


@given(cpus, memory, st.lists(st.tuples(st.floats(0, 4), st.floats(0, 4000), st.integers(1, 50)), max_size=8))
def test_the_groups_that_fit_fit_the_node(cpu: str, mem: str, wanted: list[tuple[float, float, int]]) -> None:
    """What placement takes from an agent, Kubernetes takes from its node: by requests that are written as text."""
    (agent,) = agents([node("n1", cpu=cpu, memory=mem)], [], PORTS)
    there: list[Json] = []
    for per_cpu, per_mem, count in wanted:
        demand = whole(Demand(cpus_per_client=per_cpu, mem_per_client=per_mem), count)
        (now,) = agents([node("n1", cpu=cpu, memory=mem)], there, PORTS)
        if fits(need_of(demand, count), now.resources):
            requests = resources(KubernetesSettings(), need_of(demand, count))["requests"]
            assert quantity(requests["cpu"]) >= per_cpu * count - 1e-6
            assert quantity(requests["memory"]) >= (per_mem * count - 1e-6) * 2**20
            there.append(pod("n1", container(requests["cpu"], requests["memory"])))
    for name, have in (("cpu", cpu), ("memory", mem)):
        taken = sum(quantity(p["spec"]["containers"][0]["resources"]["requests"][name]) for p in there)
        assert taken <= quantity(have) + 1e-6
    assert agent.resources.ports == PORTS


@given(st.lists(st.integers(30990, 31030)))
def test_ports_are_taken_one_by_one(taken: list[int]) -> None:
    left = without(PORTS, taken)
    assert [port for first, last in left for port in range(first, last + 1)] == [
        port for port in range(31000, 31020) if port not in taken
    ]
    assert port_count(Resources(ports=left)) == 20 - len({p for p in taken if 31000 <= p < 31020})


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_a_group_without_demand_requests_nothing(count: int) -> None:
    assert resources(KubernetesSettings(), need_of(whole(Demand(), count), count)) == {
        "requests": {"cpu": "0m", "memory": "0Mi"}
    }
