"""The word for each error with which a message is rejected."""

from __future__ import annotations

import pytest

from hydra.kafkatest import refusal_reasons


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
