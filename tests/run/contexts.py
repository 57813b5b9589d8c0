"""A run's context of whatever a test puts together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from unittest.mock import Mock

from hydra.engine.interface import GroupEvents
from hydra.model import Agent, Group, GroupEvent, GroupState, Launch, Resources
from hydra.run.context import RunContext
from hydra.system import Waiting


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


class ReportedEvents:
    """An engine of which only the events matter; what is launched ends at once in the state ``fate``."""

    address, is_local = "", True

    def __init__(self, outcome: GroupState = "running") -> None:
        self.data: list[GroupEvent] = []
        self.launched: list[str] = []
        self.killed: list[str] = []
        self._state = outcome

    def events(self) -> list[GroupEvent]:
        reported, self.data = self.data, []
        return reported

    def agents(self) -> list[Agent]:
        return []

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        self.launched += [group.id for group in groups]
        # The first ends by itself, the others when they are killed.
        self.data.append(GroupEvent(groups[0].id, self._state, "a", "exit status 1: no java"))
        return [Launch(group, Agent("a", "host-a", {}, Resources())) for group in groups]

    def kill(self, groups: Iterable[str]) -> None:
        for group in groups:
            self.killed.append(group)
            self.data.append(GroupEvent(group, "killed", "a"))

    def confirm(self, wait: Waiting) -> None: ...

    def close(self) -> None: ...
