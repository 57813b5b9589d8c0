"""Which fixtures start something: each conftest lists its own."""

from __future__ import annotations

from typing import Final

STARTING: Final[set[str]] = set()
"""Names of fixtures; a test that asks for one is not quick (tests/suite/tiers.py)."""


def starts(*fixtures: str) -> None:
    """These fixtures start a process or open a socket."""
    STARTING.update(fixtures)
