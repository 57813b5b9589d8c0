"""Which group runs where and why one cannot, how a role is split, where stages go, and what an operator permits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.engine import placement
from hydra.engine.group_sizing import RoleDemand, dry_run, split
from hydra.engine.placement import describe, parse_constraint, permits, place, value_of
from hydra.engine.resources import fits, need_of, take
from hydra.errors import PlacementError
from hydra.model import Agent, Constraint, Demand, Group, Launch, Resources, RoleSpec
from tests.cluster.stated import calls_made


def agent(name: str, group: str = "large", cpus: float = 16, mem: float = 60000, **attributes: str) -> Agent:
    resources = Resources(cpus=cpus, mem=mem, ports=((31000, 31009),))
    return Agent(name, name, {"group": group, **attributes}, resources)


OF_A_CLIENT = Demand(base_cpus=0.1, base_mem=64, cpus_per_client=0.002, mem_per_client=16)


def group(
    name: str, *constraints: Sequence[str], role: str = "subscriber", count: int = 10, demand: Demand = OF_A_CLIENT
) -> Group:
    return Group(name, role, 0, count, ("true",), {}, demand, tuple(parse_constraint(each) for each in constraints))


CLUSTER = [agent("pub", "small", 4, 15000), agent("sub-1"), agent("sub-2"), agent("sub-3")]
LARGE = ("group", "CLUSTER", "large")


def where(launches: Sequence[Launch]) -> dict[str, str]:
    return {launch.group.id: launch.agent.id for launch in launches}


def test_groups_go_to_the_agents_that_match() -> None:
    small = group("p", ("group", "CLUSTER", "small"), role="publisher")
    launches, unplaced = place(CLUSTER, [small, group("s", LARGE)])
    assert where(launches) == {"p": "pub", "s": "sub-1"}
    assert unplaced == []


def test_the_clients_of_a_role_spread_evenly_over_the_agents() -> None:
    launches, _ = place(CLUSTER, [group(f"s{n}", LARGE) for n in range(7)])
    assert Counter(where(launches).values()) == {"sub-1": 3, "sub-2": 2, "sub-3": 2}


def test_what_runs_already_counts_by_its_clients() -> None:
    running, _ = place(CLUSTER[1:2], [group("old", count=50)])
    launches, _ = place(CLUSTER[1:3], [group("a", count=20), group("b", count=20), group("c", count=20)], running)
    assert set(where(launches).values()) == {"sub-2"}


def test_a_group_that_can_run_anywhere_leaves_the_only_place_of_another() -> None:
    need = Demand(base_cpus=4)
    tight = [agent("only", "small", 4), agent("other", "large", 4)]
    launches, unplaced = place(tight, [group("any", demand=need), group("p", ("group", "LIKE", "sm.*"), demand=need)])
    assert where(launches) == {"any": "other", "p": "only"}
    assert unplaced == []


def test_several_offers_of_one_agent_are_one_agent() -> None:
    need = Demand(base_cpus=6, ports=2)
    first, second = agent("a", cpus=4), Agent("a", "a", {}, Resources(cpus=4, mem=10, ports=((40000, 40001),)))
    launches, unplaced = place([first, second], [group("g", demand=need)])
    assert unplaced == []
    assert launches[0].ports == (31000, 31001)


def test_no_port_is_given_twice() -> None:
    launches, unplaced = place([agent("a")], [group(f"g{n}", demand=Demand(ports=3)) for n in range(4)])
    ports = [port for launch in launches for port in launch.ports]
    assert len(ports) == len(set(ports)) == 9
    assert "ports 3" in unplaced[0].reason
    assert "ports 1 (a)" in unplaced[0].reason


def test_groups_at_a_value_that_no_agent_has_any_more_keep_nobody_from_being_spread() -> None:
    spread, together = group("g", ("rack", "GROUP_BY")), group("h", ("rack", "CLUSTER"))
    running = [Launch(spread, agent("a", rack=rack)) for rack in ("r1", "r1", "r2", "r2", "gone")]
    launches, _ = place([agent("b", rack="r1"), agent("c", rack="r2")], [spread, spread], running)
    assert [launch.agent.id for launch in launches] == ["b", "c"]
    _, unplaced = place([agent("b", rack="r1")], [spread], running, [agent("d", rack="gone"), agent("c", rack="r2")])
    assert unplaced, "it is there, and takes nothing now"
    _, unplaced = place([agent("b", rack="r1")], [together], [Launch(together, agent("a", rack="gone"))])
    assert unplaced, "it cannot be with the others"


def test_a_look_at_an_agent_does_not_copy_what_runs_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = Mock(side_effect=permits)
    monkeypatch.setattr(placement, "permits", looked)
    spread = group("g", ("rack", "GROUP_BY"))
    running = [Launch(spread, agent("a", rack=rack)) for rack in ("r1", "r2", "gone")]
    place([agent("b", rack="r1"), agent("c", rack="r2")], [spread] * 4, running)
    tallies = [tally for (_, _, tally), _ in looked.call_args_list if tally]
    assert len(tallies) >= 4
    assert len({id(tally) for tally in tallies}) == 1
    assert tallies[0] == {"r1": 3, "r2": 3}


def test_group_by_spreads_over_the_values_and_not_the_agents() -> None:
    racks = [*(agent(f"a{n}", rack="a") for n in range(4)), agent("b", rack="b")]
    launches, unplaced = place(racks, [group(f"g{n}", ("rack", "GROUP_BY", "2")) for n in range(6)])
    assert unplaced == []
    assert Counter(launch.agent.attributes["rack"] for launch in launches) == {"a": 3, "b": 3}


def test_cluster_without_a_value_keeps_a_role_together() -> None:
    racks = [agent("a", rack="a"), agent("b1", rack="b"), agent("b2", rack="b")]
    launches, _ = place(racks, [group(f"g{n}", ("rack", "CLUSTER")) for n in range(3)])
    assert {launch.agent.attributes["rack"] for launch in launches} == {"a"}


@pytest.mark.parametrize(
    ("agents", "requests", "reason"),
    [
        ([], group("g"), "the cluster has no agents"),
        (
            [agent("a", "cpu4-mem16"), *(agent(f"b{n}", "cpu8-mem30") for n in range(3))],
            group("g", ("group", "CLUSTER", "cpu16-mem60")),
            "0 of 4 agents match group CLUSTER cpu16-mem60; seen: cpu4-mem16 x1, cpu8-mem30 x3",
        ),
        (
            CLUSTER,
            group("g", LARGE, ("rack", "LIKE", "r1")),
            "0 of 3 agents that match group CLUSTER large match rack LIKE r1; seen: no such attribute x3",
        ),
        (
            [agent("a1", cpus=1, mem=2000), agent("a2", cpus=0.5, mem=2000)],
            group("g", demand=Demand(base_cpus=3.2, base_mem=5000)),
            "needs cpus 3.2, mem 5000 MiB: the most that is free on a matching agent is cpus 1, mem 2000 MiB (a1)",
        ),
    ],
)
def test_a_group_that_cannot_be_placed_says_why(agents: Sequence[Agent], requests: Group, reason: str) -> None:
    launches, unplaced = place(agents, [requests])
    assert launches == []
    assert [(u.group, u.reason) for u in unplaced] == [(requests, reason)]


def test_a_refusal_by_what_runs_names_the_constraint_and_the_agents() -> None:
    unique = ("hostname", "UNIQUE")
    _, unplaced = place(CLUSTER[1:3], [group(f"g{n}", unique) for n in range(3)])
    assert unplaced[0].reason == (
        "hostname UNIQUE refuses 2 of 2 matching agents; subscriber clients by agent: sub-1 (10), sub-2 (10)"
    )
    _, mixed = place([agent("a"), agent("b", cpus=0)], [group("g0", unique), group("g1", unique)])
    assert "the most that is free on a matching agent is cpus 0" in mixed[0].reason
    assert "hostname UNIQUE refuses 1 of 2 matching agents" in mixed[0].reason


CONSTRAINTS = st.lists(
    st.sampled_from(
        [
            *("group CLUSTER large", "rack CLUSTER", "hostname UNIQUE", "rack UNIQUE", "rack GROUP_BY"),
            *("rack GROUP_BY 2", "hostname MAX_PER 2", "rack LIKE [ab]", "rack UNLIKE a"),
        ]
    ).map(lambda text: parse_constraint(text.split())),
    max_size=2,
).map(tuple)
DEMAND = st.builds(
    Demand,
    base_cpus=st.integers(0, 20).map(lambda n: n / 10),
    base_mem=st.integers(0, 400).map(float),
    cpus_per_client=st.integers(0, 20).map(lambda n: n / 1000),
    mem_per_client=st.integers(0, 16).map(float),
    ports=st.integers(0, 2),
)
AGENT = st.builds(
    lambda group, rack, cpus, mem: agent("", group, cpus / 10, mem, **rack),
    st.sampled_from(["large", "small"]),
    st.sampled_from([{"rack": "a"}, {"rack": "b"}, {}]),
    st.integers(0, 80),
    st.integers(0, 4000).map(float),
)
GROUP = st.builds(
    lambda role, count, demand, constraints: Group("", role, 0, count, ("true",), {}, demand, constraints),
    st.sampled_from(["publisher", "subscriber"]),
    st.integers(1, 60),
    DEMAND,
    CONSTRAINTS,
)
CLUSTERS = st.lists(AGENT, max_size=6).map(
    lambda agents: [replace(each, id=f"agent-{n}", hostname=f"host-{n}") for n, each in enumerate(agents)]
)
DEMANDED = st.lists(GROUP, max_size=12).map(lambda groups: [replace(each, id=f"g{n}") for n, each in enumerate(groups)])


def tally(constraint: Constraint, agents: Iterable[Agent]) -> Counter[str | None]:
    return Counter(value_of(each, constraint.field) for each in agents)


@pytest.mark.tier("test")
@settings(max_examples=50)
@given(CLUSTERS, DEMANDED, DEMANDED)
def test_placement_never_overcommits_nor_breaks_a_constraint_and_explains_the_rest(
    agents: list[Agent], before: list[Group], groups: list[Group]
) -> None:
    running, _ = place(agents, before)
    free = {a.id: a.resources for a in agents}
    for launch in running:
        free[launch.agent.id], _ports = take(free[launch.agent.id], need_of(launch.group.demand, launch.group.count))
    now = [replace(each, resources=free[each.id]) for each in agents]

    launches, unplaced = place(now, groups, running)

    assert sorted([x.group.id for x in launches] + [u.group.id for u in unplaced]) == sorted(g.id for g in groups)
    assert all(u.reason for u in unplaced)
    for launch in launches:  # take() refuses what does not fit
        left, ports = take(free[launch.agent.id], need_of(launch.group.demand, launch.group.count))
        assert len(ports) == len(launch.ports)
        free[launch.agent.id] = left
    assert len({(x.agent.id, port) for x in launches for port in x.ports}) == sum(len(x.ports) for x in launches)
    everywhere = [*running, *launches]
    for launch in launches:
        others = [x for x in everywhere if x.group.role == launch.group.role and x is not launch]
        for constraint in launch.group.constraints:
            assert permits(constraint, launch.agent, {})
            values = tally(constraint, (x.agent for x in others))
            # Whether the others were there before is not known here, only for operators where it does not matter.
            if constraint.operator in ("UNIQUE", "MAX_PER") and all(constraint in x.group.constraints for x in others):
                assert permits(constraint, launch.agent, values)
    for refused in unplaced:  # nothing was refused that a look at every agent would have placed
        same_role = [x.agent for x in everywhere if x.group.role == refused.group.role]
        for a in agents:
            allowed = all(permits(c, a, tally(c, same_role)) for c in refused.group.constraints)
            # GROUP_BY and CLUSTER look at the others, which may have come later.
            open_now = allowed and fits(need_of(refused.group.demand, refused.group.count), free[a.id])
            assert not open_now or any(c.operator == "GROUP_BY" for c in refused.group.constraints)


@settings(max_examples=10)
@given(CLUSTERS, DEMANDED)
def test_placement_is_deterministic(agents: list[Agent], groups: list[Group]) -> None:
    assert place(agents, groups) == place(agents, groups)


def test_twice_as_many_groups_and_agents_cost_twice_as_much() -> None:
    def cost(many: int) -> int:
        agents = [agent(f"a{n}") for n in range(many)]
        groups = [group(f"g{n}", LARGE, ("hostname", "MAX_PER", "4"), count=10 + n % 7) for n in range(4 * many)]
        return calls_made(lambda: launched.extend(place(agents, groups).launches))

    launched: list[Launch] = []
    assert cost(40) < 2.5 * cost(20)
    assert len(launched) == 240


# --- split ---------------------------------------------------------------------------------------------------------

ROLE = RoleSpec((parse_constraint(LARGE),), group("x").demand)


@pytest.mark.parametrize(
    ("count", "max_group", "sizes"),
    [
        (0, 1000, []),
        (1, 1000, [1]),
        (30, 1000, [10, 10, 10]),
        (31, 1000, [11, 10, 10]),
        (30, 4, [4, 4, 4, 3, 3, 3, 3, 3, 3]),
        (7680, 1000, [854, 853, 853] * 3),
    ],
)
def test_a_role_is_split_evenly_over_the_matching_agents(count: int, max_group: int, sizes: list[int]) -> None:
    assert split(count, CLUSTER, ROLE, max_group) == sorted(sizes, reverse=True)


def test_a_small_agent_gets_fewer_clients() -> None:
    agents = [agent("tiny", mem=64 + 16 * 5), agent("a"), agent("b")]
    assert split(105, agents, ROLE, 1000) == [50, 50, 5]


def test_a_growing_role_fills_the_emptier_agents_first() -> None:
    running, _ = place(CLUSTER[1:2], [group("old", count=20)])
    assert split(10, CLUSTER, ROLE, 1000, running=running) == [5, 5]


def test_a_constraint_that_allows_fewer_groups_gets_fewer() -> None:
    agents = [agent(f"a{n}", rack="ab"[n % 2]) for n in range(6)]
    spec = RoleSpec((Constraint("rack", "UNIQUE"),), ROLE.demand)
    assert split(30, agents, spec, 1000) == [15, 15]


@pytest.mark.parametrize(
    ("count", "agents", "spec", "expected"),
    [
        (100_000, CLUSTER, ROLE, "the 3 agents that match group CLUSTER large"),
        (1, CLUSTER, RoleSpec((Constraint("group", "CLUSTER", "huge"),)), "0 of 4 agents match group CLUSTER huge"),
        (1, [], ROLE, "the cluster has no agents"),
        (2001, CLUSTER, RoleSpec((Constraint("group", "UNIQUE"),)), "group UNIQUE refuses"),
    ],
)
def test_a_role_that_does_not_fit_says_why(count: int, agents: Sequence[Agent], spec: RoleSpec, expected: str) -> None:
    with pytest.raises(PlacementError, match=expected):
        split(count, agents, spec, 1000)


@pytest.mark.tier("test")
@settings(max_examples=50)
@given(CLUSTERS, st.integers(1, 300), st.integers(1, 100), st.builds(RoleSpec, CONSTRAINTS, DEMAND))
def test_what_split_returns_can_be_placed(agents: list[Agent], count: int, max_group: int, spec: RoleSpec) -> None:
    try:
        sizes = split(count, agents, spec, max_group)
    except PlacementError:
        return
    assert sum(sizes) == count
    assert max(sizes) <= max_group
    assert min(sizes) >= 1
    one = Group("", "subscriber", 0, 1, (), {}, spec.demand, spec.constraints)
    assert place(agents, [replace(one, id=f"g{n}", count=size) for n, size in enumerate(sizes)]).unplaced == []


# --- stage by stage ---------------------------------------------------------------------------------------------------

AGENTS = [Agent(name, name, {}, Resources(cpus=4, mem=1000, ports=((1, 2),))) for name in ("a", "b")]
ONE_CPU = RoleSpec(constraints=(), demand=Demand(cpus_per_client=1))
A_PORT = RoleSpec(constraints=(), demand=Demand(ports=1))


@pytest.mark.parametrize(
    ("stages", "sizes"),
    [
        ([], {}),
        ([RoleDemand("subscriber", 0, ONE_CPU, 10)], {}),
        ([RoleDemand("subscriber", 3, ONE_CPU, 10)], {"a": [2], "b": [1]}),
        # What is there already is not launched again; what is missing gets groups of its own.
        (
            [RoleDemand("subscriber", 2, ONE_CPU, 10), RoleDemand("subscriber", 6, ONE_CPU, 10)],
            {"a": [1, 2], "b": [1, 2]},
        ),
        ([RoleDemand("subscriber", 2, ONE_CPU, 10), RoleDemand("subscriber", 2, ONE_CPU, 10)], {"a": [1], "b": [1]}),
        (
            [RoleDemand("publisher", 4, ONE_CPU, 1), RoleDemand("subscriber", 4, ONE_CPU, 2)],
            {"a": [1, 1, 2], "b": [1, 1, 2]},
        ),
        ([RoleDemand("server", 4, A_PORT, 1)], {"a": [1, 1], "b": [1, 1]}),
    ],
)
def test_each_stage_takes_its_place_beside_those_before(stages: list[RoleDemand], sizes: dict[str, list[int]]) -> None:
    found: dict[str, list[int]] = {}
    for launch in dry_run(AGENTS, stages):
        found.setdefault(launch.agent.id, []).append(launch.group.count)
    assert found == sizes


def test_never_more_is_taken_than_is_free() -> None:
    taken: Counter[str] = Counter()
    for launch in dry_run(AGENTS, [RoleDemand("publisher", 3, ONE_CPU, 1), RoleDemand("subscriber", 5, ONE_CPU, 3)]):
        taken[launch.agent.id] += int(need_of(launch.group.demand, launch.group.count).cpus)
    assert taken == {"a": 4, "b": 4}


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        ([RoleDemand("subscriber", 9, ONE_CPU, 10)], "9 subscriber clients do not fit: the 2 agents have room for 8"),
        # Each for itself would fit.
        (
            [RoleDemand("publisher", 5, ONE_CPU, 1), RoleDemand("subscriber", 5, ONE_CPU, 5)],
            "5 subscriber clients do not fit: the 2 agents have room for 3",
        ),
        ([RoleDemand("server", 5, A_PORT, 1)], "5 servers do not fit: the 2 agents have room for 4"),
    ],
)
def test_what_does_not_fit_is_named_with_the_room_there_is(stages: list[RoleDemand], expected: str) -> None:
    with pytest.raises(PlacementError, match=expected):
        dry_run(AGENTS, stages)


# --- Marathon's operators ---------------------------------------------------------------------------------------------


A1, A2, B1, BARE = agent("a1", rack="a"), agent("a2", rack="a"), agent("b1", rack="b"), agent("bare")


@pytest.mark.parametrize(
    ("parts", "where", "running", "allowed"),
    [
        # Of the agent alone
        (("rack", "CLUSTER", "a"), A1, (), True),
        (("rack", "CLUSTER", "a"), B1, (), False),
        (("rack", "LIKE", "a|b"), B1, (), True),
        (("hostname", "LIKE", "a"), A1, (), False),  # the whole value has to match
        (("@hostname", "LIKE", "a."), A1, (), True),
        (("rack", "UNLIKE", "a"), A1, (), False),
        (("rack", "UNLIKE", "a"), B1, (), True),
        (("hostname", "UNLIKE", "a"), A1, (), True),
        # No such attribute: only UNLIKE accepts
        (("rack", "UNLIKE", "a"), BARE, (), True),
        (("rack", "LIKE", ".*"), BARE, (), False),
        (("rack", "UNIQUE"), BARE, (), False),
        (("rack", "CLUSTER"), BARE, (), False),
        (("rack", "GROUP_BY"), BARE, (), False),
        (("rack", "MAX_PER", "3"), BARE, (), False),
        # Beside what runs
        (("hostname", "UNIQUE"), A1, (A2, B1), True),
        (("hostname", "UNIQUE"), A1, (A1,), False),
        (("rack", "UNIQUE"), A1, (A2,), False),
        (("rack", "CLUSTER"), A1, (), True),
        (("rack", "CLUSTER"), A1, (A2,), True),
        (("rack", "CLUSTER"), B1, (A2,), False),
        (("hostname", "MAX_PER", "2"), A1, (A1, B1), True),
        (("hostname", "MAX_PER", "2"), A1, (A1, A1), False),
        (("rack", "MAX_PER", "2"), A1, (A1, A2), False),
        (("rack", "GROUP_BY"), A1, (A2,), True),  # no other rack is known yet
        (("rack", "GROUP_BY"), B1, (A2,), True),
        (("rack", "GROUP_BY"), A1, (A2, B1), True),
        (("rack", "GROUP_BY"), A1, (A1, A2, B1), False),
        (("rack", "GROUP_BY"), B1, (A1, A2, B1), True),
        (("rack", "GROUP_BY", "2"), A1, (A2,), False),  # a second rack is waited for
        (("rack", "GROUP_BY", "2"), B1, (A2,), True),
        (("rack", "GROUP_BY", "2"), A1, (A2, B1), True),
    ],
)
def test_operators_are_marathons(parts: Sequence[str], where: Agent, running: Sequence[Agent], allowed: bool) -> None:
    constraint = parse_constraint(parts)
    assert permits(constraint, where, Counter(value_of(a, constraint.field) for a in running)) is allowed


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("group",), "a constraint is"),
        (("group", "CLUSTER", "a", "b"), "a constraint is"),
        (("group", "CLUSTER", 3), "a constraint is"),
        ("group:CLUSTER:a", "a constraint is"),
        (("group", "IS", "a"), "unknown operator 'IS': known are UNIQUE"),
        (("", "UNIQUE"), "field must be"),
        (("@region", "UNIQUE"), "field must be"),
        (("hostname", "UNIQUE", "x"), "takes no value"),
        (("hostname", "MAX_PER"), "needs a number"),
        (("hostname", "MAX_PER", "two"), "needs a number"),
        (("hostname", "MAX_PER", "0"), "needs a number"),
        (("rack", "GROUP_BY", "-1"), "number of groups"),
        (("rack", "LIKE"), "needs a regular expression"),
        (("rack", "UNLIKE", ""), "needs a regular expression"),
        (("rack", "LIKE", "a("), "not a regular expression"),
    ],
)
def test_a_value_that_its_operator_cannot_use_is_refused(parts: Sequence[str], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse_constraint(parts)


def test_a_constraint_is_described_as_it_was_written() -> None:
    assert describe(Constraint("group", "CLUSTER", "x")) == "group CLUSTER x"
    assert describe(Constraint("hostname", "UNIQUE")) == "hostname UNIQUE"
