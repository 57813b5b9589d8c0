"""What is free in a run's cluster: nodes as they were told last, and Pods of the run that are going. Pure."""

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
TOLD_WITHIN_S: Final = 2.0
"""How long a placement waits to be told of the nodes as they are now."""


class Inventory:
    """The nodes; times are seconds of one clock.

    Attributes:
        partial: whether only our own Pods are known, so that others' requests are not.
        answering: the names of nodes whose Pods go on, whether they take more or not.
        spread_over: the nodes over which the scheduler spreads Pods.
    """

    def __init__(self, family: RunObjects, ports: nodes.Ports) -> None:
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
        in_run = (
            labels.get(object_names.RUN) == object_names.slug(self._family.run)
            and labels.get(object_names.PART) == "group"
        )
        return in_run and pod["metadata"]["namespace"] == self._family.namespace


BOOKED_S: Final = 1.0
"""How long after a Pod's end a quota may still count it; some 50 ms were measured. Nothing is tried more often."""


class TerminatingPods:
    """What is still going, and when something of it has gone. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._gone: float | None = None
        self._booked: deque[float] = deque()
        self._free: float | None = None

    def begin(self, name: str) -> None:
        """A Pod was asked to end, or has ended and is about to be deleted."""
        self._names.add(name)

    def gone(self, name: str, now: float) -> None:
        """A Pod is no longer there, whether it was asked to end or not."""
        self._names.discard(name)
        self._gone = now
        self._booked.append(now)
        self._settle(now)

    def only(self, there: Collection[str], now: float) -> None:
        """Which Pods of the run are there; of the others nobody else tells."""
        for name in self._names.difference(there):
            self.gone(name, now)

    def may_have_room(self, sent: float) -> bool:
        """Whether a quota may have more room, now or soon, than for what was sent at that time."""
        return bool(self._names) or _unknown(self._gone, sent)

    def has_room(self, sent: float, now: float) -> bool:
        """Whether a quota has more room than it may have known for what was sent at that time, and knows it."""
        self._settle(now)
        return now - sent >= BOOKED_S and _unknown(self._free, sent)

    def _settle(self, now: float) -> None:
        while self._booked and now - self._booked[0] >= BOOKED_S:
            self._free = self._booked.popleft()


def _unknown(gone: float | None, sent: float) -> bool:
    """Whether a quota may have counted what went then, as it judged what was sent."""
    return gone is not None and sent - gone < BOOKED_S
