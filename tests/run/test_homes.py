"""Which group and agent each client is in."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.run.homes import Agents, Homes


def homes() -> Homes:
    made = Homes()
    made.settle("a", range(3))
    made.settle("b", range(3, 5))
    return made


def test_who_leaves_is_in_no_group_and_the_group_stays() -> None:
    there = homes()
    there.leave(BitMap([1, 3, 4, 99]))
    assert there.everyone == BitMap([0, 2])
    assert list(there.groups()) == [("a", BitMap([0, 2])), ("b", BitMap())]


def test_a_group_that_ends_takes_its_clients_along() -> None:
    there = homes()
    assert there.end("a") == BitMap(range(3))
    assert there.end("a") == BitMap()
    assert there.everyone == BitMap([3, 4])
    assert there.of("a") == BitMap()


def test_clients_are_found_by_group() -> None:
    assert homes().parts(BitMap([2, 3, 77])) == [("a", BitMap([2])), ("b", BitMap([3]))]
    assert homes().parts(BitMap([77])) == []


def test_agents_are_those_of_the_clients_that_are_there() -> None:
    agents = Agents([(BitMap([5, 6]), "left"), (BitMap([1]), "right"), (BitMap(), "nobody's"), (BitMap([9]), "left")])
    assert dict(agents) == {1: "right", 5: "left", 6: "left", 9: "left"}
    assert len(agents) == 4
    for absent in (-1, 0, 7, 10):
        assert absent not in agents
        with pytest.raises(KeyError):
            agents[absent]
    assert dict(Agents([])) == {}
