"""The nodes of a run: as they were told last, what is free on each, and when to have them told anew. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from hydra.engine.resources import need_of
from hydra.kubernetes import names, nodes
from hydra.kubernetes.nodes import Json
from hydra.kubernetes.pods import Family
from hydra.model import Agent, Launch

REFRESH_S: Final = 5.0
TOLD_WITHIN_S: Final = 2.0
"""How long a placement waits to be told of the nodes as they are now."""


class Inventory:
    """The nodes; times are seconds of one clock.

    Attributes:
        partial: whether only our own Pods are known, so that others' requests are not.
        answering: the names of nodes whose Pods go on, whether they take more or not.
        spread_over: the nodes over which the scheduler spreads Pods.
    """

    def __init__(self, family: Family, ports: nodes.Ports) -> None:
        """Begins without nodes.

        Args:
            family: whose Pods are ours.
            ports: those that servers are given.
        """
        self.partial = False
        self.answering: set[str] = set()
        self.spread_over: list[Agent] = []
        self._family = family
        self._ports = ports
        self._agents: list[Agent] = []
        self._asked: float | None = None
        self._told: float | None = None

    def less(self, launches: Iterable[Launch]) -> list[Agent]:
        """The nodes that take Pods, with what is free on each beside these launches."""
        free = {agent.id: agent.resources for agent in self._agents}
        for launch in launches:
            if (node := launch.agent.id) in free:
                need = need_of(launch.group.demand, launch.group.count)
                free[node] = nodes.less(free[node], need, launch.ports)
        return [replace(agent, resources=free[agent.id]) for agent in self._agents]

    def named(self, node: str, like: Agent) -> Agent:
        """The node of this name; where it is not known, one like another."""
        known = next((agent for agent in self._agents if agent.id == node), None)
        return known or replace(like, id=node, hostname=node)

    def is_fresh(self, now: float) -> bool:
        """Whether they were told just now."""
        return self._told is not None and now - self._told < REFRESH_S

    def is_awaited(self, now: float) -> bool:
        """Whether they were asked for just now, and are worth waiting for."""
        return self._asked is not None and now - self._asked < TOLD_WITHIN_S

    def ask(self, now: float) -> bool:
        """Whether to have them told anew, which is noted; not where that was done just now."""
        if self._asked is not None and now - self._asked < REFRESH_S:
            return False
        self._asked = now
        return True

    def refused(self, now: float) -> None:
        """Nobody tells of them: placement goes by what is known."""
        self._told = now

    def take(self, message: Mapping[str, Any], now: float) -> None:
        """Takes note of the nodes, and of what their Pods hold."""
        self._told = now
        self.partial = message["partial"]
        others = [pod for pod in message["pods"] if not self._is_ours(pod)]
        found, tolerations = message["nodes"], self._family.settings.tolerations
        self._agents = nodes.agents(found, others, self._ports, tolerations)
        self.answering = nodes.answering(found)
        self.spread_over = nodes.spread_over(found, tolerations)

    def _is_ours(self, pod: Json) -> bool:
        """Whether what it holds is taken off by :meth:`less`, or is about to be free: an earlier opening's."""
        labels = pod["metadata"].get("labels") or {}
        in_run = labels.get(names.RUN) == names.slug(self._family.run) and labels.get(names.PART) == "group"
        return in_run and pod["metadata"]["namespace"] == self._family.namespace
