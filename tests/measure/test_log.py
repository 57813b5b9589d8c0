"""The account of the servers' log, and what servers counted."""

from __future__ import annotations

import pytest

from hydra.measure.loss_pattern import sending_s
from hydra.measure.message_accounting import account
from hydra.model import Rate, Settings, StepPlan


@pytest.mark.parametrize(
    ("grown", "acknowledged", "sent", "more", "text"),
    [
        (10, 10, None, {}, "exact"),
        (12, 10, None, {}, "log 2 more than acknowledged"),
        (9, 10, None, {"missing": 3}, "log 1 fewer than acknowledged; 3 acknowledged not received"),
        (8, 8, 10, {"missing": -2}, "log 2 fewer than sent; 2 received beyond what was acknowledged"),
        (9, 9, 10, {}, "log 1 fewer than sent"),
        (10, 10, 10, {}, "exact"),
        (11, 10, None, {"duplicates": 1}, "log 1 more than acknowledged; 1 received more than once"),
        (10, 10, None, {"duplicates": 4, "shared": True}, "4 received more than once by the group"),
        (11, 10, None, {"extra": 1}, "log 1 more than acknowledged; 1 received without acknowledgement"),
    ],
)
def test_the_account_says_what_differs_and_by_how_many(
    grown: int, acknowledged: int, sent: int | None, more: dict[str, int], text: str
) -> None:
    assert account(grown, acknowledged, sent, **more) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rate", "messages", "seconds"), [("max", 100, 10.0), (100.0, None, 10.0), (100.0, 500, 5.0), (100.0, 5000, 10.0)]
)
def test_a_step_that_holds_its_rate_sends_as_long_as_its_messages_last(
    rate: Rate, messages: int | None, seconds: float
) -> None:
    assert sending_s(StepPlan(1, Settings(rate=rate, messages=messages), 10.0)) == seconds
