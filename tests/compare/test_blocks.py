"""The order in which alternatives take turns."""

from __future__ import annotations

from collections import Counter

import pytest

from hydra.analysis.compared_runs import orders


@pytest.mark.parametrize("alternatives", [2, 3, 4])
def test_each_stands_in_each_place_equally_often(alternatives: int) -> None:
    found = orders(alternatives, 3 * alternatives, seed=7)
    assert all(sorted(order) == list(range(alternatives)) for order in found)
    places = Counter((place, who) for order in found for place, who in enumerate(order))
    assert set(places.values()) == {3}


def test_the_order_is_that_of_the_seed_and_follows_no_rhythm() -> None:
    found = orders(2, 20, seed=1)
    assert found == orders(2, 20, seed=1) != orders(2, 20, seed=2)
    assert found not in (found[:1] * 20, (found[:2] * 10))
    # A command that continues has the order that it was begun with.
    assert orders(3, 10, seed=5)[:4] == orders(3, 4, seed=5)
