"""The word for each answer with which a stream rejects a message."""

from __future__ import annotations

import pytest

from hydra.natstest.refusal_reasons import refusal


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b'{"stream":"s","seq":3}', None),
        (b"", ("no_destination", "no responders: no stream takes messages of this subject")),
        (b'{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}',
         ("stream_full", "maximum bytes exceeded")),
        (b'{"error":{"code":503,"err_code":10077,"description":"no space left on device"}}',
         ("no_space", "no space left on device")),
        (b'{"error":{"code":400,"err_code":10054,"description":"too large"}}', ("message_too_large", "too large")),
        (b'{"error":{"code":500,"err_code":1,"description":"unusual"}}', ("other", "unusual")),
    ],
)  # fmt: skip
def test_answers_of_a_stream(answer: bytes, found: tuple[str, str] | None) -> None:
    assert refusal(answer) == found
