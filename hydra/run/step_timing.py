"""What a step took its time for."""

from __future__ import annotations

import time


class Phases:
    """Times the parts of a step.

    Attributes:
        took_s: the name of each and its seconds, in the order of their ends.
    """

    def __init__(self) -> None:
        self.took_s: list[tuple[str, float]] = []
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """Ends a phase, which began when the one before it ended."""
        now = time.monotonic()
        self.took_s.append((name, now - self._began))
        self._began = now
