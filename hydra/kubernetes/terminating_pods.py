"""Pods of a run that are going: what a quota counts for them is free when they have gone. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Final

BOOKED_S: Final = 1.0
"""How long after a Pod's end a quota may still count it; some 50 ms were measured. Nothing is tried more often."""


class Ending:
    """What is still going, and when something of it has gone. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._gone: float | None = None
        self._booked: deque[float] = deque()
        self._free: float | None = None

    def begin(self, name: str) -> None:
        """A Pod was asked to end, or has ended and is about to be deleted."""
        self._names.add(name)

    def gone(self, name: str, now: float) -> None:
        """A Pod is no longer there, whether it was asked to end or not."""
        self._names.discard(name)
        self._gone = now
        self._booked.append(now)
        self._settle(now)

    def only(self, there: Collection[str], now: float) -> None:
        """Which Pods of the run are there; of the others nobody else tells."""
        for name in self._names.difference(there):
            self.gone(name, now)

    def goes_on(self, sent: float) -> bool:
        """Whether a quota may have more room, now or soon, than for what was sent at that time."""
        return bool(self._names) or _unknown(self._gone, sent)

    def has_room(self, sent: float, now: float) -> bool:
        """Whether a quota has more room than it may have known for what was sent at that time, and knows it."""
        self._settle(now)
        return now - sent >= BOOKED_S and _unknown(self._free, sent)

    def _settle(self, now: float) -> None:
        while self._booked and now - self._booked[0] >= BOOKED_S:
            self._free = self._booked.popleft()


def _unknown(gone: float | None, sent: float) -> bool:
    """Whether a quota may have counted what went then, as it judged what was sent."""
    return gone is not None and sent - gone < BOOKED_S
