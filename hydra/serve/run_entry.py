"""What the list tells of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hydra.jupyter.summary import Number

Kind = Literal["run", "experiment", "together", "unreadable"]
"""A run, an experiment of several, runs that were measured together, or what cannot be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is told of a run.

    Attributes:
        name: its path in the folder.
        kind: what it is.
        scenario, system, client: what was measured; "" where that is not one thing.
        counts: the subscriber counts, such as ``30 to 120``.
        steps, bad: how many there are (parts of an experiment, turns), and how many of these were not measured.
        numbers: the figures that its report begins with.
        began: when, as it was recorded.
        ended: ``finished``, ``interrupted``, ``failed``, ``unfinished`` or ``unreadable``.
        why: the reason, where there is one.
    """

    name: str
    kind: Kind
    scenario: str
    system: str
    client: str
    counts: str
    steps: str
    bad: str
    numbers: tuple[Number, ...]
    began: str
    ended: str
    why: str

    @property
    def is_comparable(self) -> bool:
        """Whether it can be chosen for a comparison: a form cannot send a name back that is no UTF-8."""
        return self.kind in ("run", "together") and self.name.isprintable()
