"""How many random characters JSON payloads need to be compressible by what was asked for. Pure."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from hydra.model import HEADER_BYTES, SharedSettings
from hydra.wire.header import pack
from hydra.wire.payload_content import SHARE_OF, contents

BATCH_BYTES: Final = 64 * 1024
"""How long the batch is that is compressed to find out; a message counts as this long at most."""
_START_NS: Final = 1_767_225_600 * 10**9
_APART_NS: Final = 100_003


@dataclass(frozen=True, slots=True)
class Compression:
    """A share of random characters (parts of ``SHARE_OF``), and how many times smaller zlib makes a batch with it."""

    share: int
    ratio: float


def compression(settings: SharedSettings) -> Compression:
    """The smallest share with which a batch is not compressed by more than ``payload_ratio``.

    Where even text without random characters is not so compressible, or random ones alone are more so, it is the share
    that comes closest.
    """
    return _compression(
        SharedSettings(
            message_size=settings.message_size,
            message_size_min=settings.message_size_min,
            payload="json",
            payload_ratio=settings.payload_ratio,
            payload_seed=settings.payload_seed,
        )
    )


@lru_cache(maxsize=64)
def _compression(settings: SharedSettings) -> Compression:
    low, high = 0, SHARE_OF
    if ratio(settings, low) <= settings.payload_ratio:
        high = low
    while low < high:
        middle = (low + high) // 2
        if ratio(settings, middle) > settings.payload_ratio:
            low = middle + 1
        else:
            high = middle
    return Compression(low, ratio(settings, low))


def ratio(settings: SharedSettings, share: int) -> float:
    """How many times smaller zlib's default level makes a batch of messages, headers included."""
    given = batch(settings, share)
    return len(given) / len(zlib.compress(given, 6))


def batch(settings: SharedSettings, share: int, most_bytes: int = BATCH_BYTES) -> bytes:
    """The first messages of a publisher that sends one every tenth of a millisecond, at least one."""
    largest, smallest = settings.message_size, settings.message_size_min or settings.message_size
    shorter = replace(settings, message_size=min(largest, most_bytes), message_size_min=min(smallest, most_bytes))
    messages: list[bytes] = []
    taken = 0
    for sequence, payload in enumerate(contents(shorter, share)):
        taken += HEADER_BYTES + len(payload)
        if messages and taken > most_bytes:
            break
        messages.append(pack(1, 0, sequence, _START_NS + sequence * _APART_NS) + payload)
    return b"".join(messages)
