"""Which group runs where, why one cannot, and how a role is split into groups."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.cluster import placement
from hydra.cluster.constraints import parse_constraint, permits, value_of
from hydra.cluster.placement import place
from hydra.cluster.resources import fits, need_of, take
from hydra.cluster.splitting import split
from hydra.errors import PlacementError
from hydra.model import Agent, Constraint, Demand, Group, Launch, Resources, RoleSpec


def agent(name: str, group: str = "large", cpus: float = 16, mem: float = 60000, **attributes: str) -> Agent:
    resources = Resources(cpus=cpus, mem=mem, ports=((31000, 31009),))
    return Agent(name, name, {"group": group, **attributes}, resources)


def group(
    name: str, *constraints: Sequence[str], role: str = "subscriber", count: int = 10, demand: Demand | None = None
) -> Group:
    return Group(
        id=name,
        role=role,
        first_client=0,
        count=count,
        command=("true",),
        environment={},
        demand=demand or Demand(base_cpus=0.1, base_mem=64, cpus_per_client=0.002, mem_per_client=16),
        constraints=tuple(parse_constraint(c) for c in constraints),
    )


CLUSTER = [agent("pub", "small", 4, 15000), agent("sub-1"), agent("sub-2"), agent("sub-3")]
LARGE = ("group", "CLUSTER", "large")


def where(launches: Sequence[Launch]) -> dict[str, str]:
    return {launch.group.id: launch.agent.id for launch in launches}


def test_groups_go_to_the_agents_that_match() -> None:
    launches, unplaced = place(
        CLUSTER, [group("p", ("group", "CLUSTER", "small"), role="publisher"), group("s", LARGE)]
    )
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
    looked: list[Mapping[str | None, int]] = []

    def permitted(constraint: Constraint, on: Agent, tally: Mapping[str | None, int]) -> bool:
        looked.append(tally)
        return permits(constraint, on, tally)

    monkeypatch.setattr(placement, "permits", permitted)
    spread = group("g", ("rack", "GROUP_BY"))
    running = [Launch(spread, agent("a", rack=rack)) for rack in ("r1", "r2", "gone")]
    place([agent("b", rack="r1"), agent("c", rack="r2")], [spread] * 4, running)
    tallies = [tally for tally in looked if tally]
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
    ("agents", "asked", "reason"),
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
            [agent("agent-sub-1", cpus=1, mem=2000), agent("agent-sub-2", cpus=0.5, mem=2000)],
            group("g", demand=Demand(base_cpus=3.2, base_mem=5000)),
            "needs cpus 3.2, mem 5000 MB: the most that is free on a matching agent is cpus 1, mem 2000 MB "
            "(agent-sub-1)",
        ),
    ],
)
def test_a_group_that_cannot_be_placed_says_why(agents: Sequence[Agent], asked: Group, reason: str) -> None:
    launches, unplaced = place(agents, [asked])
    assert launches == []
    assert [(u.group, u.reason) for u in unplaced] == [(asked, reason)]


def test_a_refusal_by_what_runs_names_the_constraint_and_the_agents() -> None:
    unique = ("hostname", "UNIQUE")
    _, unplaced = place(CLUSTER[1:3], [group(f"g{n}", unique) for n in range(3)])
    assert unplaced[0].reason == (
        "hostname UNIQUE refuses 2 of 2 matching agents; subscriber clients by agent: sub-1 (10), sub-2 (10)"
    )
    _, mixed = place([agent("a"), agent("b", cpus=0)], [group("g0", unique), group("g1", unique)])
    assert "the most that is free on a matching agent is cpus 0" in mixed[0].reason
    assert "hostname UNIQUE refuses 1 of 2 matching agents" in mixed[0].reason


CONSTRAINT = st.sampled_from(
    [
        Constraint("group", "CLUSTER", "large"),
        Constraint("rack", "CLUSTER"),
        Constraint("hostname", "UNIQUE"),
        Constraint("rack", "UNIQUE"),
        Constraint("rack", "GROUP_BY"),
        Constraint("rack", "GROUP_BY", "2"),
        Constraint("hostname", "MAX_PER", "2"),
        Constraint("rack", "LIKE", "[ab]"),
        Constraint("rack", "UNLIKE", "a"),
    ]
)
CONSTRAINTS = st.lists(CONSTRAINT, max_size=2).map(tuple)
DEMAND = st.builds(
    Demand,
    base_cpus=st.integers(0, 20).map(lambda n: n / 10),
    base_mem=st.integers(0, 400).map(float),
    cpus_per_client=st.integers(0, 20).map(lambda n: n / 1000),
    mem_per_client=st.integers(0, 16).map(float),
    ports=st.integers(0, 2),
)


@st.composite
def clusters(draw: st.DrawFn) -> list[Agent]:
    return [
        Agent(
            f"agent-{n}",
            f"host-{n}",
            {
                "group": draw(st.sampled_from(["large", "small"])),
                **draw(st.sampled_from([{"rack": "a"}, {"rack": "b"}, {}])),
            },
            Resources(
                cpus=draw(st.integers(0, 80)) / 10, mem=float(draw(st.integers(0, 4000))), ports=((31000, 31002),)
            ),
        )
        for n in range(draw(st.integers(0, 6)))
    ]


@st.composite
def demanded(draw: st.DrawFn) -> list[Group]:
    return [
        Group(
            id=f"g{n}",
            role=draw(st.sampled_from(["publisher", "subscriber"])),
            first_client=0,
            count=draw(st.integers(1, 60)),
            command=("true",),
            environment={},
            demand=draw(DEMAND),
            constraints=draw(CONSTRAINTS),
        )
        for n in range(draw(st.integers(0, 12)))
    ]


@settings(max_examples=150)
@given(clusters(), demanded(), demanded())
def test_placement_never_overcommits_nor_breaks_a_constraint_and_explains_the_rest(
    agents: list[Agent], before: list[Group], groups: list[Group]
) -> None:
    running, _ = place(agents, before)
    free = {a.id: a.resources for a in agents}
    for launch in running:
        free[launch.agent.id], _ports = take(free[launch.agent.id], need_of(launch.group.demand, launch.group.count))
    now = [Agent(a.id, a.hostname, a.attributes, free[a.id]) for a in agents]

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
            values = Counter(value_of(x.agent, constraint.field) for x in others)
            # Whether the others were there before is not known here, only for operators where it does not matter.
            if constraint.operator in ("UNIQUE", "MAX_PER") and all(constraint in x.group.constraints for x in others):
                assert permits(constraint, launch.agent, values)
    for refused in unplaced:  # nothing was refused that a look at every agent would have placed
        same_role = [x.agent for x in everywhere if x.group.role == refused.group.role]
        for a in agents:
            need = need_of(refused.group.demand, refused.group.count)
            open_now = fits(need, free[a.id]) and all(
                permits(c, a, Counter(value_of(other, c.field) for other in same_role))
                for c in refused.group.constraints
            )
            # GROUP_BY and CLUSTER look at the others, which may have come later.
            assert not open_now or any(c.operator == "GROUP_BY" for c in refused.group.constraints)


@settings(max_examples=50)
@given(clusters(), demanded())
def test_placement_is_deterministic(agents: list[Agent], groups: list[Group]) -> None:
    assert place(agents, groups) == place(agents, groups)


def test_two_thousand_groups_over_five_hundred_agents_are_placed_quickly() -> None:
    agents = [agent(f"a{n}") for n in range(500)]
    groups = [group(f"g{n}", LARGE, ("hostname", "MAX_PER", "4"), count=10 + n % 7) for n in range(2000)]
    start = time.perf_counter()
    launches, _ = place(agents, groups)
    took_s = time.perf_counter() - start
    assert len(launches) == 2000
    assert took_s < 2.0  # bench/placement.py has the figure to reach; this only catches a quadratic mistake


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
    ("count", "agents", "spec", "says"),
    [
        (100_000, CLUSTER, ROLE, "the 3 agents that match group CLUSTER large have room for"),
        (1, CLUSTER, RoleSpec((Constraint("group", "CLUSTER", "huge"),)), "0 of 4 agents match group CLUSTER huge"),
        (1, [], ROLE, "the cluster has no agents"),
        (2001, CLUSTER, RoleSpec((Constraint("group", "UNIQUE"),)), "group UNIQUE refuses"),
    ],
)
def test_a_role_that_does_not_fit_is_refused_with_the_reason(
    count: int, agents: Sequence[Agent], spec: RoleSpec, says: str
) -> None:
    with pytest.raises(PlacementError, match=says):
        split(count, agents, spec, 1000)


@settings(max_examples=150)
@given(clusters(), st.integers(1, 300), st.integers(1, 100), st.builds(RoleSpec, CONSTRAINTS, DEMAND))
def test_what_split_returns_can_be_placed(agents: list[Agent], count: int, max_group: int, spec: RoleSpec) -> None:
    try:
        sizes = split(count, agents, spec, max_group)
    except PlacementError:
        return
    assert sum(sizes) == count
    assert max(sizes) <= max_group
    assert min(sizes) >= 1
    groups = [
        Group(f"g{n}", "subscriber", 0, size, (), {}, spec.demand, spec.constraints) for n, size in enumerate(sizes)
    ]
    assert place(agents, groups).unplaced == []
