"""After which steps of a search the next one waits, and for how long."""

from __future__ import annotations

import pytest

from hydra.model import Settings
from hydra.sweep.estimate import RateObservation
from hydra.sweep.findings import Findings
from hydra.sweep.threshold_search import ThresholdSearch

TARGET = 0.005


def lost(rate: float, share: float) -> RateObservation:
    return RateObservation(rate, 5.0, (5.0 * share,) if share else (), copies=30 * 5 * rate)


LEVEL = [lost(rate, 0.02) for rate in (100.0, 200.0, 400.0)]


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ([], False),
        ([lost(1e4, 0.0)], False),
        ([lost(1e4, 0.004)], False),
        ([lost(1e4, 0.3)], True),
        ([lost(1e4, 0.3), lost(5e3, 0.0)], False),
        # As much is lost at much lower rates: it was no overload. More is one.
        ([*LEVEL, lost(1e4, 0.021)], False),
        ([*LEVEL, lost(1e4, 0.1)], True),
    ],
)
def test_a_step_waits_after_one_that_ended_in_an_overload(steps: list[RateObservation], waits: bool) -> None:
    search = ThresholdSearch(Settings(), "loss", findings=Findings(TARGET, evidence=steps))
    assert (9.0 <= search.pause_s(5.0) <= 12.0) == waits
    assert (1.8 <= search.pause_s(0.2) <= 2.4) == waits
