"""The word for each error with which a message is rejected."""

from __future__ import annotations

import pytest

from hydra.kafkatest import refusal_reasons
from hydra.model.system_reports import FirstReason


@pytest.mark.parametrize(
    ("code", "throttled", "word"),
    [
        (10, False, "message_too_large"),
        (29, True, "not_authorized"),
        (56, False, "no_space"),
        (-192, False, "timeout"),
        (-192, True, "quota"),
        (42, False, "other"),
    ],
)
def test_errors_of_kafka(code: int, throttled: bool, word: str) -> None:
    assert refusal_reasons.reason(code, throttled=throttled) == word


@pytest.mark.parametrize(
    ("rejected", "throttled_ms", "found"),
    [
        ([], 0, ("", "", 0)),
        ([], 250, ("quota", "a broker delayed an answer by 250 ms because of a quota", 7)),
        (["message_too_large"], 250, ("message_too_large", "said", 1)),
    ],
)
def test_a_quota_that_only_delays_is_the_reason_unless_a_message_was_rejected(
    rejected: list[str], throttled_ms: int, found: tuple[str, str, int]
) -> None:
    first = FirstReason()
    for word in rejected:
        first.add(word, "said")
    it = refusal_reasons.first_reason(first, 7, throttled_ms)
    assert (it.reason, it.text, it.messages) == found
