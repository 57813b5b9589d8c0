"""Which group and agent each client is in, who listens to whom, and when they begin."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.run.client_sets import AgentOfClient, GroupClients, subscription_map, turns


def homes() -> GroupClients:
    made = GroupClients()
    made.settle("a", range(3))
    made.settle("b", range(3, 5))
    return made


def test_who_leaves_is_in_no_group_and_the_group_stays() -> None:
    present = homes()
    present.leave(BitMap([1, 3, 4, 99]))
    assert present.everyone == BitMap([0, 2])
    assert list(present.groups()) == [("a", BitMap([0, 2])), ("b", BitMap())]


def test_a_group_that_ends_takes_its_clients_along() -> None:
    present = homes()
    assert present.end("a") == BitMap(range(3))
    assert present.end("a") == BitMap()
    assert present.everyone == BitMap([3, 4])
    assert present.of("a") == BitMap()


def test_clients_are_found_by_group() -> None:
    assert homes().parts(BitMap([2, 3, 77])) == [("a", BitMap([2])), ("b", BitMap([3]))]
    assert homes().parts(BitMap([77])) == []


def test_agents_are_those_of_the_clients_that_are_there() -> None:
    agents = AgentOfClient(
        [(BitMap([5, 6]), "left"), (BitMap([1]), "right"), (BitMap(), "nobody's"), (BitMap([9]), "left")]
    )
    assert dict(agents) == {1: "right", 5: "left", 6: "left", 9: "left"}
    assert len(agents) == 4
    for absent in (-1, 0, 7, 10):
        assert absent not in agents
        with pytest.raises(KeyError):
            agents[absent]
    assert dict(AgentOfClient([])) == {}


@pytest.mark.parametrize(("publishers", "one"), [([0, 1, 2], False), ([0], True), ([0], False)])
def test_all_publishers_have_one_audience(publishers: list[int], one: bool) -> None:
    all_clients = BitMap(range(5, 12))
    assert subscription_map(all_clients, publishers, one=one) == [(publishers, all_clients)]
    assert subscription_map(BitMap(), publishers, one=one) == []


def test_each_subscriber_is_in_the_audience_of_one_publisher_whoever_else_is_asked() -> None:
    all_clients = BitMap(range(3, 13))
    found = dict(subscription_map(all_clients, range(3), one=True))
    assert found == {(0,): BitMap([3, 6, 9, 12]), (1,): BitMap([4, 7, 10]), (2,): BitMap([5, 8, 11])}
    assert dict(subscription_map(BitMap([4, 9, 10]), range(3), one=True)) == {(0,): BitMap([9]), (1,): BitMap([4, 10])}
    assert BitMap().union(*found.values()) == all_clients


def test_publishers_with_listeners_of_their_own_take_turns_within_the_time_between_two_messages() -> None:
    apart = [((0,), 1000), ((1,), 125_001_000), ((2,), 250_001_000), ((3,), 375_001_000)]
    assert turns(range(4), 2.0, 1000, one=True) == apart
    assert turns(range(4), 2.0, 1000, one=False) == [(range(4), 1000)]
    assert turns(range(4), "max", 1000, one=True) == [(range(4), 1000)]
