"""The subscribers of a step by the publishers that they listen to, and when each of those begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyroaring import BitMap

from hydra.control.ids import array, bitmap
from hydra.wire.subscription import publisher_of

Audience = tuple[Sequence[int], BitMap]
"""Publishers, and who listens to all of them and to no other."""


def audiences(subscribers: BitMap, publishers: Sequence[int], *, one: bool) -> list[Audience]:
    """Everybody once, with their publishers; nobody's are left out.

    Args:
        subscribers: of the step.
        publishers: of the step.
        one: whether each listens to one publisher only.
    """
    if not one or len(publishers) == 1:
        return [(publishers, subscribers)] if subscribers else []
    ids = array(subscribers)
    theirs = publisher_of(ids, publishers)
    found = (((publisher,), bitmap(ids[theirs == publisher].tolist())) for publisher in publishers)
    return [(publisher, listeners) for publisher, listeners in found if listeners]


def turns(
    publishers: Sequence[int], rate: float | Literal["max"], start_ns: int, *, one: bool
) -> list[tuple[Sequence[int], int]]:
    """When the publishers of a step begin.

    Where each subscriber has one of P publishers, number k sends k/P of the time between two messages later than the
    first. Otherwise all would send to everybody at the same moments.

    Args:
        publishers: of the step.
        rate: messages/s of each, or as fast as it can.
        start_ns: when the first one begins.
        one: whether each subscriber listens to one publisher only.
    """
    if rate == "max" or not one:
        return [(publishers, start_ns)]
    return [((p,), start_ns + round(k * 1e9 / (rate * len(publishers)))) for k, p in enumerate(publishers)]
