"""The free resources of a run's cluster, by the latest list of nodes, and the run's ending Pods. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from hydra.engine.resources import need_of
from hydra.kubernetes import nodes, object_names
from hydra.kubernetes.nodes import Json
from hydra.kubernetes.pods import RunObjects
from hydra.model import Agent, Launch

REFRESH_S: Final = 5.0
LISTED_WITHIN_S: Final = 2.0
"""How long a placement waits for the list of nodes as they are now."""


class Inventory:
    """The nodes; times are seconds of one clock.

    Attributes:
        partial: whether only the Pods of the run's namespace are known, so the requests of others are missing.
        answering: the names of the nodes that are ready, whether they take more Pods or not.
        spread_over: the nodes over which the scheduler spreads Pods.
    """

    def __init__(self, family: RunObjects, ports: nodes.Ports) -> None:
        """Begins without nodes.

        Args:
            family: what the run's objects have in common.
            ports: the ranges of ports for servers.
        """
        self.partial = False
        self.answering: set[str] = set()
        self.spread_over: list[Agent] = []
        self._family = family
        self._ports = ports
        self._agents: list[Agent] = []
        self._requested_s: float | None = None
        self._listed_s: float | None = None

    def less(self, launches: Iterable[Launch]) -> list[Agent]:
        """The nodes that take Pods, with the free resources of each less those of these launches."""
        free = {agent.id: agent.resources for agent in self._agents}
        for launch in launches:
            if (node := launch.agent.id) in free:
                need = need_of(launch.group.demand, launch.group.count)
                free[node] = nodes.less(free[node], need, launch.ports)
        return [replace(agent, resources=free[agent.id]) for agent in self._agents]

    def named(self, node: str, like: Agent) -> Agent:
        """The node of this name; a copy of ``like`` with this name if the node is unknown."""
        known = next((agent for agent in self._agents if agent.id == node), None)
        return known or replace(like, id=node, hostname=node)

    def is_fresh(self, now: float) -> bool:
        """Whether the list of nodes is younger than 5 s."""
        return self._listed_s is not None and now - self._listed_s < REFRESH_S

    def is_awaited(self, now: float) -> bool:
        """Whether the list was requested in the last 2 s, so a placement waits for it."""
        return self._requested_s is not None and now - self._requested_s < LISTED_WITHIN_S

    def ask(self, now: float) -> bool:
        """Whether to request the list again: not within 5 s of the last request; records the request."""
        if self._requested_s is not None and now - self._requested_s < REFRESH_S:
            return False
        self._requested_s = now
        return True

    def refused(self, now: float) -> None:
        """Records that the API server rejected the request: placement uses the old list."""
        self._listed_s = now

    def take(self, message: Mapping[str, Any], now: float) -> None:
        """Records the nodes and the resources that their Pods request."""
        self._listed_s = now
        self.partial = message["partial"]
        others = [pod for pod in message["pods"] if not self._is_own(pod)]
        found, tolerations = message["nodes"], self._family.settings.tolerations
        self._agents = nodes.agents(found, others, self._ports, tolerations)
        self.answering = nodes.answering(found)
        self.spread_over = nodes.spread_over(found, tolerations)

    def _is_own(self, pod: Json) -> bool:
        """Whether it is a group of this run: :meth:`less` subtracts it, or an earlier opening's, which is ending."""
        labels = pod["metadata"].get("labels") or {}
        in_run = (
            labels.get(object_names.RUN) == object_names.slug(self._family.run)
            and labels.get(object_names.PART) == "group"
        )
        return in_run and pod["metadata"]["namespace"] == self._family.namespace


BOOKED_S: Final = 1.0
"""How long after a Pod's end a quota may count it (measured: about 50 ms), and the shortest pause between tries."""


class TerminatingPods:
    """The Pods that are ending, and when Pods were last deleted; times are seconds of one clock."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._deleted_s: float | None = None
        self._booked: deque[float] = deque()
        self._free: float | None = None

    def begin(self, name: str) -> None:
        """Records that a Pod was asked to end, or has ended and is about to be deleted."""
        self._names.add(name)

    def deleted(self, name: str, now: float) -> None:
        """Records that a Pod is deleted, whether it was asked to end or not."""
        self._names.discard(name)
        self._deleted_s = now
        self._booked.append(now)
        self._settle(now)

    def only(self, names: Collection[str], now: float) -> None:
        """Takes the names of all Pods of the run, after a broken watch: the other Pods are deleted."""
        for name in self._names.difference(names):
            self.deleted(name, now)

    def may_have_room(self, sent: float) -> bool:
        """Whether a quota may have more room, now or soon, than for the request of that time."""
        return bool(self._names) or _unknown(self._deleted_s, sent)

    def has_room(self, sent: float, now: float) -> bool:
        """Whether the quota may have counted a Pod for the request of that time that it counts no more."""
        self._settle(now)
        return now - sent >= BOOKED_S and _unknown(self._free, sent)

    def _settle(self, now: float) -> None:
        while self._booked and now - self._booked[0] >= BOOKED_S:
            self._free = self._booked.popleft()


def _unknown(deleted: float | None, sent: float) -> bool:
    """Whether a quota may have counted a Pod, deleted at ``deleted``, when it judged the request sent at ``sent``."""
    return deleted is not None and sent - deleted < BOOKED_S
