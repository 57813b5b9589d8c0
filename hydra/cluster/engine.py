"""The one interface behind which a cluster runs groups; nothing above it knows which engine that is."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final, Protocol

from hydra.model import Agent, Group, GroupEvent, GroupState, Launch

GONE: Final[frozenset[GroupState]] = frozenset({"finished", "failed", "killed", "lost"})
"""The states of a group that has ended."""


class Engine(Protocol):
    """Runs groups on agents. No call blocks for more than a moment."""

    @property
    def address(self) -> str:
        """The address of this machine at which groups reach it."""

    @property
    def here(self) -> bool:
        """Whether groups run on this machine, so that its limits are theirs."""

    def agents(self) -> list[Agent]:
        """The agents of the cluster with the resources that are free on each now."""

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups (``cluster.placement``) and starts them; either all of them or none.

        An engine whose agents start groups later returns at once, and tells by ``events`` what became of each.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: a group could be placed and not started.
        """

    def kill(self, groups: Iterable[str]) -> None:
        """Ends these groups by id, all their processes with them; an unknown or ended one is ignored."""

    def events(self) -> list[GroupEvent]:
        """What happened since the last call, oldest first."""

    def close(self) -> None:
        """Ends everything that this engine launched and frees what it holds; may be called twice."""


class GroupEvents:
    """The events of one engine for several who launch groups on it: each takes those of its own groups."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[GroupEvent] = []
        self._ignored: set[str] = set()

    def ignore(self, group: str) -> None:
        """Nobody asks for this group's events any more."""
        if not any(event.group == group and event.state in GONE for event in self._waiting):
            self._ignored.add(group)
        self._waiting = [event for event in self._waiting if event.group != group]

    def take(self, groups: Container[str]) -> list[GroupEvent]:
        """What happened to these groups since they were asked about last, oldest first; the rest waits."""
        for event in self._engine.events():
            if event.group not in self._ignored:
                self._waiting.append(event)
            elif event.state in GONE:
                self._ignored.remove(event.group)  # its last one
        taken = [event for event in self._waiting if event.group in groups]
        if taken:
            self._waiting = [event for event in self._waiting if event.group not in groups]
        return taken
