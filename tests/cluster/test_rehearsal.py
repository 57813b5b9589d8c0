"""Where the groups of a run would go, stage by stage."""

from __future__ import annotations

from collections import Counter

import pytest

from hydra.cluster.rehearsal import Wanted, rehearse
from hydra.cluster.resources import need_of
from hydra.errors import PlacementError
from hydra.model import Agent, Demand, Resources, RoleSpec

AGENTS = [Agent(name, name, {}, Resources(cpus=4, mem=1000, ports=((1, 2),))) for name in ("a", "b")]
ONE_CPU = RoleSpec(constraints=(), demand=Demand(cpus_per_client=1))
A_PORT = RoleSpec(constraints=(), demand=Demand(ports=1))


@pytest.mark.parametrize(
    ("stages", "sizes"),
    [
        ([], {}),
        ([Wanted("subscriber", 0, ONE_CPU, 10)], {}),
        ([Wanted("subscriber", 3, ONE_CPU, 10)], {"a": [2], "b": [1]}),
        # What is there already is not launched again; what is missing gets groups of its own.
        ([Wanted("subscriber", 2, ONE_CPU, 10), Wanted("subscriber", 6, ONE_CPU, 10)], {"a": [1, 2], "b": [1, 2]}),
        ([Wanted("subscriber", 2, ONE_CPU, 10), Wanted("subscriber", 2, ONE_CPU, 10)], {"a": [1], "b": [1]}),
        ([Wanted("publisher", 4, ONE_CPU, 1), Wanted("subscriber", 4, ONE_CPU, 2)], {"a": [1, 1, 2], "b": [1, 1, 2]}),
        ([Wanted("server", 4, A_PORT, 1)], {"a": [1, 1], "b": [1, 1]}),
    ],
)
def test_each_stage_takes_its_place_beside_those_before(stages: list[Wanted], sizes: dict[str, list[int]]) -> None:
    found: dict[str, list[int]] = {}
    for launch in rehearse(AGENTS, stages):
        found.setdefault(launch.agent.id, []).append(launch.group.count)
    assert found == sizes


def test_never_more_is_taken_than_is_free() -> None:
    taken: Counter[str] = Counter()
    for launch in rehearse(AGENTS, [Wanted("publisher", 3, ONE_CPU, 1), Wanted("subscriber", 5, ONE_CPU, 3)]):
        taken[launch.agent.id] += int(need_of(launch.group.demand, launch.group.count).cpus)
    assert taken == {"a": 4, "b": 4}


@pytest.mark.parametrize(
    ("stages", "says"),
    [
        ([Wanted("subscriber", 9, ONE_CPU, 10)], "9 subscriber clients do not fit: the 2 agents have room for 8"),
        (
            # Each for itself would fit.
            [Wanted("publisher", 5, ONE_CPU, 1), Wanted("subscriber", 5, ONE_CPU, 5)],
            "5 subscriber clients do not fit: the 2 agents have room for 3",
        ),
        ([Wanted("server", 5, A_PORT, 1)], "5 servers do not fit: the 2 agents have room for 4"),
    ],
)
def test_what_does_not_fit_is_named_with_the_room_there_is(stages: list[Wanted], says: str) -> None:
    with pytest.raises(PlacementError, match=says):
        rehearse(AGENTS, stages)
