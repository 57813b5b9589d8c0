"""The interface of engines, which run groups on a cluster."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from hydra.model import Agent, Group, GroupEvent, GroupState, Launch
from hydra.system import Waiting

ENDED_STATES: Final[frozenset[GroupState]] = frozenset({"finished", "failed", "killed", "lost"})
"""The states of a group that has ended."""


class Engine(Protocol):
    """Runs groups on agents.

    No call blocks except ``confirm`` and ``close``, and between rows ``agents`` and ``launch``, which may wait at most
    2 s for the cluster's nodes.
    """

    @property
    def address(self) -> str:
        """The address of this machine at which groups reach it."""

    @property
    def is_local(self) -> bool:
        """Whether groups run on this machine, so its limits apply to them."""

    def agents(self) -> list[Agent]:
        """The agents of the cluster with their free resources."""

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups (:mod:`hydra.engine.placement`) and starts them; either all of them or none.

        An engine whose agents start groups later returns at once; ``events`` then reports the state of each group.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: a group was placed but cannot be started.
        """

    def kill(self, groups: Iterable[str]) -> None:
        """Ends all processes of the groups with these ids; ignores unknown and ended groups."""

    def events(self) -> list[GroupEvent]:
        """The events since the last call, oldest first."""

    def confirm(self, wait: Waiting) -> None:
        """Checks that the cluster still has the run, so a user's ``hydra kill`` does not count as a failed step.

        A run calls it once for a step that has failed, and for a step with dead or silent subscribers.

        Args:
            wait: waits for the cluster's answer, a few seconds at most.

        Raises:
            ClusterError: the run was ended from outside; the text describes how.
        """

    def close(self) -> None:
        """Ends all groups that this engine launched and frees its resources; may be called twice."""


def with_real_agent(launch: Launch, event: GroupEvent) -> Launch:
    """The launch of a running group with its real agent, as the cluster's own scheduler may have chosen another one."""
    if event.agent in ("", launch.agent.id):
        return launch
    return replace(launch, agent=replace(launch.agent, id=event.agent, hostname=event.agent))


class GroupEvents:
    """The events of one engine, divided among several callers: each takes those of its own groups."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: list[GroupEvent] = []
        self._ignored: set[str] = set()

    def ignore(self, group: str) -> None:
        """Drops this group's events from now on."""
        if not any(event.group == group and event.state in ENDED_STATES for event in self._waiting):
            self._ignored.add(group)
        self._waiting = [event for event in self._waiting if event.group != group]

    def take(self, groups: Container[str]) -> list[GroupEvent]:
        """The new events of these groups, oldest first; events of other groups are kept."""
        for event in self._engine.events():
            if event.group not in self._ignored:
                self._waiting.append(event)
            elif event.state in ENDED_STATES:
                self._ignored.remove(event.group)  # this was its last event
        taken = [event for event in self._waiting if event.group in groups]
        if taken:
            self._waiting = [event for event in self._waiting if event.group not in groups]
        return taken
