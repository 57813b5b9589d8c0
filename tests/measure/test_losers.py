"""Who lost when."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.measure.loss_pattern import LossySubscriber, edges, shares
from hydra.model import Rate, Settings, StepPlan

GROUPS = [range(1, 3), range(3, 5)]
NAN = float("nan")
EDGES = np.array([0.0, 100.0, 200.0])


@pytest.mark.parametrize(
    ("lossy", "expected"),
    [
        ([], [[0, 0], [0, 0]]),
        # 20 of the 200 that two subscribers should have got in that half.
        ([LossySubscriber(1, 200, 20, {0: [(80, 99)]})], [[0.1, 0], [0, 0]]),
        ([LossySubscriber(1, 200, 20, {0: [(90, 109)]})], [[0.05, 0.05], [0, 0]]),
        (
            [LossySubscriber(3, 200, 200, {0: [(0, 199)]}), LossySubscriber(4, 200, 100, {0: [(100, 199)]})],
            [[0, 0], [0.5, 1.0]],
        ),
        # Ten are listed, and the list had no room for 50 more: these are somewhere behind.
        ([LossySubscriber(2, 200, 60, {0: [(90, 99)]})], [[0.05, NAN], [0, 0]]),
        ([LossySubscriber(2, 200, 60, {0: [(80, 89)]})], [[NAN, NAN], [0, 0]]),
        ([LossySubscriber(2, 200, 40, {}), LossySubscriber(3, 200, 10, {0: [(0, 9)]})], [[NAN, NAN], [0.05, 0]]),
        # Two publishers: their sequences are counted apart.
        ([LossySubscriber(4, 400, 20, {0: [(0, 9)], 7: [(190, 199)]})], [[0, 0], [0.05, 0.05]]),
    ],
)
def test_gaps_become_shares_of_what_was_due(lossy: list[LossySubscriber], expected: list[list[float]]) -> None:
    assert shares(lossy, GROUPS, [400, 400], EDGES) == pytest.approx(np.array(expected), nan_ok=True)
    assert not shares([LossySubscriber(1, 0, 5, {0: [(0, 4)]})], GROUPS, [0, 0], EDGES).any(), "nothing was due"


@pytest.mark.parametrize(
    ("rate", "load", "expected"),
    [
        (10.0, (), [0, 20, 40]),
        ("max", (), [0, 500, 1000]),  # where a message stands among those that were sent
        (10.0, ((0.0, 0.0), (4.0, 20.0)), [0, 10, 40]),  # a ramp: N(t) = 2.5 t²
    ],
)
def test_messages_belong_to_the_part_in_which_they_were_due(
    rate: Rate, load: tuple[tuple[float, float], ...], expected: list[float]
) -> None:
    seconds, sequences = edges(StepPlan(2, Settings(rate=rate), 4.0, load=load), 1000, 2)
    assert seconds.tolist() == [0.0, 2.0, 4.0]
    assert sequences == pytest.approx(np.array(expected), abs=1)
