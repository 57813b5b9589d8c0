"""Pods of a run that are going: what a quota counts for them is free when they have gone. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

BOOKED_S: Final = 1.0
"""How long after a Pod's end a quota may still count it; some 50 ms were measured."""


class Ending:
    """What is still going, and when something of it has gone. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._gone: float | None = None

    def begin(self, name: str) -> None:
        """A Pod was asked to end, or has ended and is about to be deleted."""
        self._names.add(name)

    def gone(self, name: str, now: float) -> None:
        """A Pod is no longer there, whether it was asked to end or not."""
        self._names.discard(name)
        if self._gone is None:
            self._gone = now

    def only(self, there: Collection[str], now: float) -> None:
        """Which Pods of the run are there; of the others nobody else tells."""
        for name in self._names.difference(there):
            self.gone(name, now)

    @property
    def goes_on(self) -> bool:
        """Whether a quota may have more room soon."""
        return bool(self._names) or self._gone is not None

    def take_room(self, now: float) -> bool:
        """Whether a quota has more room than when this was asked last, and knows it."""
        if self._gone is None or now - self._gone < BOOKED_S:
            return False
        self._gone = None
        return True
