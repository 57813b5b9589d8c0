"""Losses that do not come of the rate: who stands out, and what is lost as a step starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hydra.measure.loss import MessageOutcomes
from hydra.measure.loss_pattern import lone_loser, start_lost_s
from hydra.wire.subscriber_table import table_of
from tests.measure.shortfalls import account, observed, slices
from tests.suite.figures import figures


@pytest.mark.parametrize(
    ("lost", "lossy"),
    [
        ([0, 50, 0, 0], 11),
        ([1, 50, 12, 0], 11),
        # Not four times as much as the next; too few for more than chance; none at all; no other subscriber.
        ([1, 50, 13, 0], None),
        ([0, 9, 0, 0], None),
        ([0, 0, 0, 0], None),
        ([500], None),
        # The last one is of the cohort: it does not count.
        ([0, 0, 40, 0, 900], 12),
    ],
)
def test_a_subscriber_stands_out_that_lost_far_more_than_every_other_one(lost: list[int], lossy: int | None) -> None:
    ids, nothing = np.arange(10, 10 + len(lost)), np.zeros(len(lost), np.int64)
    fates = MessageOutcomes(nothing + 1000, nothing, nothing, nothing, nothing, np.array(lost), nothing)
    found = lone_loser(ids, ids < 14, fates)
    assert (found and found.client) == lossy
    assert found is None or found.loss == lost[lossy - 10] / 1000  # type: ignore[operator]


@pytest.mark.parametrize(
    ("lost", "seconds", "start_s"),
    [
        (slices(1, s0=0.1), 1, 0.002),
        (slices(5, s0_9=0.5), 5, 0.05),
        (slices(1, s5=1.0), 1, 0.0),
        (np.ones(1), 0.02, 0.02),
    ],
)
def test_what_is_lost_within_a_tenth_of_a_second_is_lost_at_the_start(
    lost: np.ndarray, seconds: float, start_s: float
) -> None:
    assert start_lost_s(lost, seconds) == pytest.approx(start_s)


def test_the_figures_tell_of_both() -> None:
    lossy, other = account([(0, 3), (500, 799)]), account([(0, 3)])
    three = table_of({1: other, 2: lossy, 3: other})
    found = figures(observed(other, subscribers={1, 2, 3}, subscriber_reports=three))
    assert found["lone_loser"] == 2
    assert found["lone_loser_loss_pct"] == pytest.approx(15.2)
    assert found["start_lost_ms"] == pytest.approx(4.0)
    assert (str(found["rest_bursts_s"]), str(found["bursts_s"])) == ("0.004", "0.004 0.1")
    two = replace(observed(other, subscribers={1, 2, 3}, subscriber_reports=three), group="readers")
    assert "lone_loser" not in figures(two)
