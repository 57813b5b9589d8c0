"""How well the loss of a step is known, in worlds whose truth is known."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from hydra.measure.column import LossEvidence
from hydra.measure.loss_columns import LOSS_CI_HIGH, LOSS_CI_LOW, LOSS_EVIDENCE
from hydra.measure.loss_interval import design_effect, evidence, interval
from hydra.measure.step_result import StepFigures
from hydra.measure.traffic_columns import LOSS
from hydra.model import LedgerCounts, SequenceRange, StepPlan
from hydra.report import tables
from hydra.sweep.repetition import merge_repeats
from hydra.wire.subscriber_table import table_of
from tests.jupyter.runs import FIXED
from tests.measure.observations import observed
from tests.measure.reports import received
from tests.suite.figures import figures

Lost = npt.NDArray[np.float64]
World = Callable[[np.random.Generator, float, int], Lost]

WIDTH_S: Final = 0.05
SIMULATED: Final = int(os.environ.get("HYDRA_SIMULATIONS", "25"))
"""Rows of each world and shape."""


def bursts(dice: np.random.Generator, length_s: float, a_second: float, lasting_s: float, share: float) -> Lost:
    """The share that is lost in each slice: bursts by chance in time, which last for exponential times."""
    edges = np.arange(round(length_s / WIDTH_S) + 1) * WIDTH_S
    lost = np.zeros(len(edges) - 1)
    before_s = 8 * lasting_s
    for begin in dice.uniform(-before_s, length_s, dice.poisson(a_second * (length_s + before_s))):
        inside = np.clip(edges, begin, begin + dice.exponential(lasting_s))
        lost += np.diff(inside) / WIDTH_S * share * dice.uniform(0.5, 1.5)
    return np.minimum(lost, 1.0)


def shared(a_second: float, lasting_s: float, share: float) -> World:
    return lambda dice, s, n: np.tile(bursts(dice, s, a_second, lasting_s, share), (n, 1))


def own(a_second: float, lasting_s: float, share: float) -> World:
    return lambda dice, s, n: np.array([bursts(dice, s, a_second, lasting_s, share) for _ in range(n)])


def overload(dice: np.random.Generator, length_s: float, subscribers: int) -> Lost:
    slices = round(length_s / WIDTH_S)
    together = 0.4 + 0.05 * dice.standard_normal(slices)
    return np.clip(together + 0.05 * dice.standard_normal((subscribers, slices)), 0, 1)


def single_messages(dice: np.random.Generator, length_s: float, subscribers: int) -> Lost:
    """One in a thousand, of a thousand a second."""
    return np.asarray(dice.binomial(50, 0.001, (subscribers, round(length_s / WIDTH_S))) / 50)


WORLDS: Final[Mapping[str, tuple[World, float]]] = {
    "short, together": (shared(0.5, 0.2, 0.5), 0.05),
    "of 2 s, together": (shared(0.1, 2.0, 0.3), 0.06),
    "of 5 s, together": (shared(0.05, 5.0, 0.3), 0.075),
    "short, alone": (own(0.1, 0.2, 0.5), 0.01),
    "of 2 s, alone": (own(0.05, 2.0, 0.3), 0.03),
    "overload": (overload, 0.4),
    "single messages": (single_messages, 0.001),
}
"""What subscribers lose, in bursts of all or of one or all the time, and the share of it in the long run."""
SHAPES: Final = ((10.0, 1), (30.0, 1), (10.0, 3), (5.0, 5))
"""Length of a step, and repeats of a row."""


@pytest.mark.tier("test" if SIMULATED <= 25 else "all")
@pytest.mark.parametrize("world", WORLDS)
def test_the_interval_holds_the_truth(world: str) -> None:
    """Rows without any loss have no interval, and are not counted."""
    dice, (lose, truth) = np.random.default_rng(7), WORLDS[world]
    for length_s, repeats in SHAPES:
        rows = [[lose(dice, length_s, 10) for _ in range(repeats)] for _ in range(SIMULATED)]
        found = [limits for row in rows if (limits := interval([evidence(lost, length_s) for lost in row]))]
        held = sum(limits.low <= truth <= limits.high for limits in found)
        assert held >= 0.8 * len(found), (length_s, repeats, held, len(found))
        if world in ("overload", "single messages"):
            # Where there is nothing to count, the interval is as narrow as that of the mean.
            assert np.median([limits.high - limits.low for limits in found]) < 0.5 * truth


def test_the_design_effect_tells_who_loses_together() -> None:
    dice = np.random.default_rng(3)
    assert design_effect(WORLDS["short, together"][0](dice, 30.0, 10)) == pytest.approx(10)
    assert design_effect(WORLDS["short, alone"][0](dice, 30.0, 10)) == pytest.approx(1, abs=0.4)
    assert design_effect(np.full((3, 5), 0.1)) == 3.0


@pytest.mark.parametrize(("subscribers", "repeats"), [(1, 1), (10, 1), (1, 3), (10, 3)])
def test_a_constant_loss_is_known_as_well_as_its_copies_are_counted(subscribers: int, repeats: int) -> None:
    """Of 1000 messages 1 % are lost, each by all or none, for all that is known."""
    step = evidence(np.full((subscribers, 200), 0.01), 10.0, messages=1000)
    limits = interval([step] * repeats)
    assert limits is not None
    error = sqrt(10 * repeats) / (1000 * repeats)
    assert 1.9 * error < limits.high - 0.01 < 2.6 * error


def test_without_a_loss_nothing_tells_but_what_one_would_cost() -> None:
    clean = evidence(np.zeros((2, 50)), 10.0)
    assert interval([clean] * 3) is None
    limits = interval([clean] * 3, 0.1)
    assert limits is not None
    assert limits == pytest.approx((0.0, 3.689 * 0.1 / 30), rel=0.001)


def losing(*ranges: SequenceRange) -> StepFigures:
    """The figures of a step of 10 s with 1000 messages, of which both subscribers miss these."""
    missing = sum(last - first + 1 for first, last in ranges)
    report = received(1000 - missing)
    ledger = LedgerCounts(0, 1000 - missing, 1000 - missing, missing, list(ranges))
    table = table_of({client: replace(report, ledgers=[ledger]) for client in (1, 2)})
    plan = StepPlan(2, replace(observed().plan.settings, rate=100.0), 10.0)
    return figures(replace(observed(), plan=plan, subscriber_reports=table))


def test_a_row_has_the_interval_of_the_bursts_that_it_lost() -> None:
    f = losing((100, 109), (500, 529))
    low, lost, high = (f[name] for name in (LOSS_CI_LOW, LOSS, LOSS_CI_HIGH))
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert lost == 4.0
    assert 0 < low < 1.5
    assert 20 < high < 45
    found = f[LOSS_EVIDENCE]
    assert isinstance(found, LossEvidence)
    assert found.count == 2


def test_repeats_have_the_interval_of_all_their_bursts_and_never_0_plus_or_minus_0() -> None:
    repeats = [dict(losing(), status="ok"), dict(losing(), status="ok"), dict(losing((100, 129)), status="ok")]
    row = merge_repeats(repeats)
    assert row[LOSS] == pytest.approx(1.0)
    assert row["client_loss_pct_ci95"] is None
    alone = losing((100, 129))
    # Three times as long, with one burst.
    assert row[LOSS_CI_HIGH] == pytest.approx(float(str(alone[LOSS_CI_HIGH] or 0)) / 3)
    clean = merge_repeats(repeats[:2])
    assert (clean[LOSS], clean[LOSS_CI_HIGH], clean["client_loss_pct_ci95"]) == (0.0, None, None)
    text = tables.RunTables(FIXED, [{**row, "clients": 2}, {**clean, "clients": 2}]).markdown
    assert f"{row[LOSS]:g} [0.025 – {row[LOSS_CI_HIGH]:.1f}]" in text
    # The cost of one more burst is that of the neighbouring row.
    assert "0 [0 – 5.5]" in text
    assert "In brackets: the 95 % confidence interval of the mean loss" in text
