"""What a step took its time for."""

from __future__ import annotations

import time


class Phases:
    """How long each part of a step took, in the order of their ends."""

    def __init__(self) -> None:
        self._took: list[str] = []
        self._began = time.monotonic()

    def end(self, name: str) -> None:
        """What has gone on since the phase before is called this."""
        now = time.monotonic()
        self._took.append(f"{name} {now - self._began:.3f} s")
        self._began = now

    def __str__(self) -> str:
        return ", ".join(self._took)
