"""The subscribers of a step by the publishers that they listen to."""

from __future__ import annotations

from collections.abc import Sequence

from pyroaring import BitMap

from hydra.control.ids import array, bitmap
from hydra.wire.audience import publisher_of

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
