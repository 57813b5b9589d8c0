"""The words for what a step's messages consisted of."""

from __future__ import annotations

import pytest

from hydra.model import Settings
from hydra.wire.data_message import compression, payload


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(), None),
        (Settings(message_size=100, message_size_min=100, payload_seed=5), None),
        (Settings(message_size=100, message_size_min=50), "zeros, 50–100 bytes"),
        (Settings(message_size=100, payload="random", payload_seed=7), "random, seed 7, 100 bytes"),
        (Settings(message_size=2500, message_size_min=2000, payload="json"), "json ×4.0, 2000–2500 bytes"),
        (Settings(message_size=90, payload="lines", payload_file="a", payload_seed=3), "lines of a, at most 90 bytes"),
        (Settings(message_size=90, message_size_min=30, payload="lines", payload_file="b"), "lines of b, 30–90 bytes"),
    ],
)
def test_words(settings: Settings, words: str | None) -> None:
    assert payload(settings) == words


def test_a_ratio_that_cannot_be_reached_is_said_as_it_is() -> None:
    settings = Settings(message_size=300, payload="json", payload_ratio=100)
    assert payload(settings) == f"json ×{compression(settings).ratio:.1f} (100.0 asked for), 300 bytes"
