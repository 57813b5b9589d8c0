"""Who listens to whom, and when they begin."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.run.audiences import audiences, turns


@pytest.mark.parametrize(("publishers", "one"), [([0, 1, 2], False), ([0], True), ([0], False)])
def test_all_publishers_have_one_audience(publishers: list[int], one: bool) -> None:
    everybody = BitMap(range(5, 12))
    assert audiences(everybody, publishers, one=one) == [(publishers, everybody)]
    assert audiences(BitMap(), publishers, one=one) == []


def test_each_subscriber_is_in_the_audience_of_one_publisher_whoever_else_is_asked() -> None:
    everybody = BitMap(range(3, 13))
    found = dict(audiences(everybody, range(3), one=True))
    assert found == {(0,): BitMap([3, 6, 9, 12]), (1,): BitMap([4, 7, 10]), (2,): BitMap([5, 8, 11])}
    assert dict(audiences(BitMap([4, 9, 10]), range(3), one=True)) == {(0,): BitMap([9]), (1,): BitMap([4, 10])}
    assert BitMap().union(*found.values()) == everybody


def test_publishers_with_listeners_of_their_own_take_turns_within_the_time_between_two_messages() -> None:
    assert turns(range(4), 2.0, 1000, one=True) == [
        ((0,), 1000), ((1,), 125_001_000), ((2,), 250_001_000), ((3,), 375_001_000),
    ]  # fmt: skip
    assert turns(range(4), 2.0, 1000, one=False) == [(range(4), 1000)]
    assert turns(range(4), "max", 1000, one=True) == [(range(4), 1000)]
