"""What a step's messages consisted of, in words. Pure."""

from __future__ import annotations

from typing import Final

from hydra.model import Settings, SharedSettings
from hydra.wire.compression import compression

_NEAR: Final = 0.05
"""A ratio that is so near to the one that was asked for is not told apart from it."""
_USUAL_SEED: Final = SharedSettings().payload_seed


def payload(settings: Settings) -> str | None:
    """Kind, sizes, and what tells such payloads apart; None for zeros of one size, which need no words."""
    largest, smallest = settings.message_size, settings.message_size_min or settings.message_size
    if settings.payload == "zeros" and smallest == largest:
        return None
    sizes = f"{largest} bytes" if smallest == largest else f"{smallest}–{largest} bytes"
    if settings.payload == "lines":
        return f"lines of {settings.payload_file}, {sizes if smallest < largest else f'at most {sizes}'}"
    words = _ratio(settings) if settings.payload == "json" else settings.payload
    seed = "" if settings.payload_seed == _USUAL_SEED else f"seed {settings.payload_seed}"
    return ", ".join(filter(None, [words, seed, sizes]))


def _ratio(settings: Settings) -> str:
    asked, found = settings.payload_ratio, compression(settings).ratio
    near = abs(found / asked - 1) <= _NEAR
    return f"json ×{asked:.1f}" if near else f"json ×{found:.1f} ({asked:.1f} asked for)"
