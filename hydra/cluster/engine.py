"""The one interface behind which a cluster runs groups; nothing above it knows which engine that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from hydra.model import Agent, Group, GroupEvent, Launch


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
