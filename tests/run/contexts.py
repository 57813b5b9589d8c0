"""A run's context of whatever a test puts together."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from hydra.engine.interface import GroupEvents
from hydra.run.context import RunContext


def context(**parts: Any) -> RunContext:
    """One with these parts, by their names; the others are mocks.

    Args:
        parts: ``note`` takes the place of a journal.
    """
    made = RunContext(Mock(), Mock(), Mock(), Mock(), Mock(), Mock())
    if note := parts.pop("note", None):
        parts["journal"] = Mock(note=note)
    for name, part in parts.items():
        setattr(made, name, part)
    made.events = GroupEvents(made.engine)
    return made
