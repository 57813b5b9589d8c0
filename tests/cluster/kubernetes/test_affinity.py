"""Marathon's constraints as rules for Kubernetes' scheduler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hydra.engine.placement import parse_constraint
from hydra.kubernetes.affinity import AffinityRules, alternatives, rules, uneven
from hydra.model import Agent, Demand, Group, Launch, Resources
from tests.cluster.kubernetes.objects import Json

UNIQUE, ALONE = ["hostname", "UNIQUE"], ["hostname", "MAX_PER", "1"]
MATCH = {"hydra/run": "r", "hydra/role": "publisher"}
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ON_N1 = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
PREFERS_N1 = {PREFERRED: [{"weight": 100, "preference": ON_N1}]}
PINNED = AffinityRules({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ON_N1]}}}, [])


def ruled(*constraints: list[str], decided: bool = False) -> AffinityRules:
    return rules([parse_constraint(c) for c in constraints], on("n1", "r1"), MATCH, decided=decided)


def on(node: str, rack: str = "") -> Agent:
    return Agent(node, node, {"rack": rack} if rack else {}, Resources())


def nodes_with(*expressions: Json) -> Json:
    return {**PREFERS_N1, REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}}


def exists(key: str) -> Json:
    return {"key": key, "operator": "Exists"}


def among(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def others(key: str) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": MATCH}}


def test_without_constraints_the_node_is_only_preferred() -> None:
    assert ruled() == AffinityRules({"nodeAffinity": PREFERS_N1}, [])


APART = {"podAntiAffinity": {REQUIRED: [others(HOST)]}}


@pytest.mark.parametrize(
    ("constraint", "expression", "more"),
    [
        (["rack", "CLUSTER", "r1"], among("rack", "r1"), {}),
        (["rack", "LIKE", "r1"], among("rack", "r1"), {}),
        (["rack", "LIKE", "r2|r1"], among("rack", "r1", "r2"), {}),
        (["rack", "UNLIKE", "(r1|r2)"], among("rack", "r1", "r2", operator="NotIn"), {}),
        (["rack", "LIKE", ".*"], exists("rack"), {}),
        (["hostname", "LIKE", r"a\.example|b"], among(HOST, "a.example", "b"), {}),
        (["topology.kubernetes.io/zone", "CLUSTER", "eu-1a"], among("topology.kubernetes.io/zone", "eu-1a"), {}),
        *((parts, exists(HOST), APART) for parts in (["@hostname", "UNIQUE"], UNIQUE, ALONE)),
        (["rack", "CLUSTER"], exists("rack"), {"podAffinity": {REQUIRED: [others("rack")]}}),
    ],
)
def test_constraints_become_affinity_to_nodes_and_pods(constraint: list[str], expression: Json, more: Json) -> None:
    assert ruled(constraint) == AffinityRules({"nodeAffinity": nodes_with(expression), **more}, [])


@pytest.mark.parametrize(("value", "more"), [([], {}), (["3"], {"minDomains": 3})])
def test_group_by_becomes_a_spread(value: list[str], more: Json) -> None:
    found = ruled(["rack", "GROUP_BY", *value])
    assert found.affinity == {"nodeAffinity": nodes_with(exists("rack"))}
    assert found.spread == [
        {"maxSkew": 1, **others("rack"), "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor", **more}
    ]


@pytest.mark.parametrize(
    ("constraint", "expression"),
    [(["rack", "GROUP_BY", "3"], among("rack", "r1")), (["hostname", "GROUP_BY"], among(HOST, "n1"))],
)
def test_where_placement_decides_the_pod_is_kept_at_the_value(constraint: list[str], expression: Json) -> None:
    """And it prefers the node."""
    found = ruled(constraint, ["zone", "LIKE", ".*"], decided=True)
    assert found == AffinityRules({"nodeAffinity": nodes_with(expression, exists("zone"))}, [])
    assert ruled(constraint, ["zone", "GROUP_BY"], decided=True).spread == []


@pytest.mark.parametrize(
    ("nodes", "groups", "constraints", "is_uneven"),
    [
        # racks of the nodes, racks of the groups
        ("r1 r2 r3", "", [["rack", "GROUP_BY"]], False),
        ("r1 r2 r3", "r1 r2", [["rack", "GROUP_BY"]], False),
        ("r1 r2 r3", "r1 r2 r3 r1", [["rack", "GROUP_BY"]], False),
        ("r1 r2 r3", "r1 r2 r1", [["rack", "GROUP_BY"]], True),
        ("r1 r2 r3", "r1 r2 r1", [["rack", "GROUP_BY"], ["rack", "UNLIKE", "r3"]], False),
        ("r1 r2", "r1 r2 r1 r2", [["rack", "GROUP_BY", "2"]], False),
        ("r1 r2", "r1 r2 r1 r2", [["rack", "GROUP_BY", "3"]], True),
        ("r1 r2", "r1 r1", [["rack", "LIKE", ".*"]], False),
        ("r1 r2", "r1 r1 r3", [["rack", "GROUP_BY"]], True),
        ("r1 r2", "r1 r2 r2 cordoned", [["rack", "GROUP_BY"]], False),
    ],
)
def test_an_uneven_spread_is_found(nodes: str, groups: str, constraints: list[list[str]], is_uneven: bool) -> None:
    """Where the scheduler would refuse a Pod."""
    parsed = tuple(parse_constraint(c) for c in constraints)
    group = Group("g", "subscriber", 0, 1, (), {}, Demand(), parsed)
    publisher = replace(group, role="publisher", constraints=(parse_constraint(["rack", "GROUP_BY"]),))
    # A cordoned node of the second rack is not counted.
    launches = [Launch(group, on(f"n-{rack}", "r2" if rack == "cordoned" else rack)) for rack in groups.split()]
    others = [Launch(publisher, on("n-r1", "r1"))]
    found = uneven([*launches, *others], [on(f"n-{rack}", rack) for rack in nodes.split()])
    assert found == ({"subscriber"} if is_uneven else set())


@pytest.mark.parametrize(("on_a", "is_uneven"), [(3, True), (2, False)])
def test_one_uneven_spread_has_placement_decide_all_of_its_role(on_a: int, is_uneven: bool) -> None:
    """Of racks 3 + 1 and 2 groups; where r1 is required, zone A has 3 and B has 1, though all of B has 3."""
    places = [("a", "r1", "A"), ("b", "r1", "B"), ("c", "r2", "B")]
    a, b, c = (Agent(node, node, {"rack": rack, "zone": zone}, Resources()) for node, rack, zone in places)
    constraints = (parse_constraint(["rack", "GROUP_BY"]), parse_constraint(["zone", "GROUP_BY"]))
    group = Group("g", "subscriber", 0, 1, (), {}, Demand(), constraints)
    launches = [Launch(group, agent) for agent in [a] * on_a + [b, c, c]]
    decided = group.role in uneven(launches, [a, b, c])
    assert decided is is_uneven
    found = rules(constraints, a, MATCH, decided=decided)
    requests = found.affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"][0]["matchExpressions"]
    if is_uneven:
        assert (requests, found.spread) == ([among("rack", "r1"), among("zone", "A")], [])
    else:
        assert [spread["topologyKey"] for spread in found.spread] == ["rack", "zone"]


def test_constraints_add_up_and_repeated_ones_count_once() -> None:
    found = ruled(["rack", "LIKE", "r1|r2"], UNIQUE, ALONE, ["rack", "UNLIKE", "r2"]).affinity
    expressions = (among("rack", "r1", "r2"), exists(HOST), among("rack", "r2", operator="NotIn"))
    assert found["nodeAffinity"] == nodes_with(*expressions)
    assert found["podAntiAffinity"] == APART["podAntiAffinity"]


@pytest.mark.parametrize(
    "constraint",
    [
        ["rack", "LIKE", "r[12]"],
        ["rack", "LIKE", "r.1"],
        ["rack", "UNLIKE", "r.*"],
        ["rack", "LIKE", "r1|(r2|r3)"],
        ["rack", "LIKE", r"\d"],
        ["rack", "LIKE", "-r1"],
        ["rack", "LIKE", "r" * 64],
        ["rack", "MAX_PER", "2"],
        ["rack", "CLUSTER", "no label"],
        ["no label", "UNIQUE"],
        ["Upper.Example/zone", "UNIQUE"],
    ],
)
def test_what_has_no_translation_pins_the_pod(constraint: list[str]) -> None:
    assert ruled(UNIQUE, constraint) == PINNED


def test_two_spreads_over_one_label_pin_the_pod() -> None:
    assert ruled(["rack", "GROUP_BY"], ["rack", "GROUP_BY", "3"]) == PINNED


@pytest.mark.parametrize(
    ("expression", "values"),
    [("a", "a"), ("b|a|b", "a b"), ("(?:a|b)", "a b"), (r"a\-b", "a-b"), ("a.b", ""), ("(a)(b)", ""), ("a+", "")],
)
def test_alternatives(expression: str, values: str) -> None:
    assert alternatives(expression) == values.split()
    assert alternatives("a|") == ["", "a"]
