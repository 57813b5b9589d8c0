"""Which rows are clean, and the warnings of the others."""

from __future__ import annotations

import pytest

from hydra.measure.column import Values
from hydra.model import Scenario, Settings, SloSpec
from hydra.sweep import Row
from hydra.sweep.cleanness import flaws, in_short, judged, why_not_clean
from hydra.sweep.grid import GridSweep
from tests.sweep.clean_row import CLEAN

AT_MAX: Row = {"requested_rate": "max", "rate_held": None}
MISSED: Row = {"requested_rate": 30_000.0, "rate_held": False, "avg_tx_rate_pps": 14_223.0}


@pytest.mark.parametrize(
    "more",
    [
        {},
        AT_MAX,
        {"client_loss_pct": 0.4, "late_pct": 3.0},  # within the target: the row passed
        {"clients": 0, "passed": None},  # the log shows what arrived
        {"host_cpu_mean_pct": 100.0, "generator_limited": True, "steady": False, "stopped_s": 0.0},
        {"reason": "measured at the second try"},
    ],
)
def test_a_row_is_clean_that_carried_what_was_requested(more: Row) -> None:
    assert flaws({**CLEAN, **more}) == ()
    assert judged({**CLEAN, **more}).items() >= {"clean": True, "why": None}.items()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (MISSED, "rate not held: 14,223 of 30,000/s sent"),
        ({"passed": False, "client_loss_pct": 12.0}, "12 % lost (loss target 0.5 %)"),
        ({**AT_MAX, "passed": False, "late_pct": 67.0, "undrained_pct": 3.0, "undrained": 9},
         "67 % late, 3 % still waiting (undrained) (loss target 0.5 %)"),
        ({"passed": False, "client_loss_pct": None, "client_loss_low_pct": 1.0, "client_loss_high_pct": 2.5},
         "1 to 2.5 % lost (loss target 0.5 %)"),
        # Within the target, and still not known.
        ({"unknown": 4, "unknown_pct": 0.01}, "0.01 % unknown"),
        ({"undrained": 4}, "4 messages still waiting (undrained)"),
        ({"failed_dead": 2, "died_by": "SIGKILL", "failed_silent": 1},
         "subscribers: 2 died (SIGKILL), 1 never answered"),
        ({"stopped_s": 4.0, "steady": False}, "nothing arrived for 4 s although messages were due"),
        ({"stopped_s": 0.75, "repeats": 4}, "nothing arrived for 0.75 s in a repeat although messages were due"),
        ({**AT_MAX, "tx_progress": False, "tx_unanswered": 3, "tx_stalled_s": 0.4}, "3 messages never acknowledged"),
        ({**AT_MAX, "tx_progress": False, "tx_unanswered": 0, "tx_stalled_s": 3.0, "repeats": 3},
         "nothing accepted of a publisher for 3 s in a repeat"),
        ({"passed": False, "stopped_s": 4.0}, "nothing arrived for 4 s although messages were due"),
        ({"passed": None}, "unknown whether messages were lost or late"),
        ({"passed": None, "rate_held": None},
         "unknown whether the rate was held and whether messages were lost or late"),
        ({**MISSED, "passed": False, "late_pct": 67.0},
         "rate not held: 14,223 of 30,000/s sent; 67 % late (loss target 0.5 %)"),
        ({"status": "failed", "reason": "it broke"}, "failed: it broke"),
        ({"status": "partial"}, "partial"),
    ],
)  # fmt: skip
def test_a_row_that_is_not_clean_says_why(more: Row, why: str) -> None:
    row = {**CLEAN, **more}
    assert why_not_clean(row) == why
    assert judged(row).items() >= {"clean": False, "why": why}.items()


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ({"loss_answer": "figure", "slow_answer": "figure"}, ""),
        ({"loss_answer": "none"}, "loss: no rate passes"),
        ({"loss_answer": "figure", "slow_answer": "unknown", "slow_why": "too_short"},
         "slow: no answer (too short)"),
        ({"loss_answer": Values(("figure", "unknown")), "repeats": 2}, "loss: no answer in some repeats"),
    ],
)  # fmt: skip
def test_a_search_is_clean_that_found_every_rate(answers: Row, why: str) -> None:
    assert why_not_clean({"clients": 30, "max_rate_with_drop_pps": 5e4, "status": "ok", **answers}) == why


def test_a_list_names_the_first_row_that_is_not_clean() -> None:
    assert in_short([CLEAN, CLEAN]) == ""
    assert in_short([{**CLEAN, **MISSED}]) == "not clean: rate not held: 14,223 of 30,000/s sent"
    rows = [CLEAN, {**CLEAN, "clients": 60, "unknown": 1}, {**CLEAN, "point": "b", "unknown": 1}]
    assert in_short(rows) == "2 of 3 rows not clean: 60 subscribers: 1 message unknown"


@pytest.mark.parametrize(("slo", "target"), [(SloSpec(), 0.005), (SloSpec(loss_pct=0.0), 0.0)])
def test_a_step_passes_within_the_published_target_unless_another_is_given(slo: SloSpec, target: float) -> None:
    sweep = GridSweep(10.0, clients=(30,))
    assert Scenario("s", "zmq", "pyzmq", "fixed", sweep, Settings(), slo=slo).loss_target == target
