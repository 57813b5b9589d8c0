"""A framework's unused offers, and the known free resources of each agent. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hydra.engine.resources import add, subtract, without
from hydra.mesos.translate import AgentOffer
from hydra.model import Agent, Resources


@dataclass(slots=True)
class KnownAgent:
    """An agent with its known free resources: the last offers, less the resources of groups launched since."""

    agent: Agent
    address: str
    ip: str
    benched_until: float = 0.0


class FrameworkOffers:
    """The offers of a framework, and its agents.

    New offers can raise the known free resources of an agent (:meth:`raise_free`) but not lower them, as the master may
    split free resources over several offers.

    Attributes:
        offers: the unused offers, by id.
        known: every agent that was offered and is not lost, by id.
    """

    def __init__(self) -> None:
        self.offers: dict[str, AgentOffer] = {}
        self.known: dict[str, KnownAgent] = {}

    def of(self, agent: str) -> list[AgentOffer]:
        """The offers of an agent."""
        return [offer for offer in self.offers.values() if offer.agent.id == agent]

    def held(self, agent: str) -> Resources:
        """The sum of the resources in an agent's offers."""
        held = Resources()
        for offer in self.of(agent):
            held = add(held, offer.agent.resources)
        return held

    def take(self, offers: Sequence[AgentOffer]) -> None:
        """Records new offers and their agents."""
        for offer in offers:
            self.offers[offer.id] = offer
            known = self.known.get(offer.agent.id)
            if known is None:
                self.known[offer.agent.id] = KnownAgent(offer.agent, offer.address, offer.ip)
            else:
                known.address, known.ip = offer.address, offer.ip
                known.agent = replace(offer.agent, resources=known.agent.resources)

    def drop(self, offers: Iterable[AgentOffer]) -> None:
        """Forgets offers that were used."""
        for offer in offers:
            del self.offers[offer.id]

    def forget_agent(self, agent: str) -> None:
        """Forgets an agent and its offers."""
        self.known.pop(agent, None)
        self.drop(self.of(agent))

    def raise_free(self, agent: str, waiting: Iterable[Resources]) -> None:
        """Raises the known free resources of an agent to those in its offers if these contain more.

        Args:
            agent: the agent's id.
            waiting: the resources of groups that wait for these offers.
        """
        known, held = self.known[agent], self.held(agent)
        for taken in waiting:
            held = _less(held, taken)
        free = known.agent.resources
        more = Resources(
            cpus=max(free.cpus, held.cpus),
            mem=max(free.mem, held.mem),
            disk=max(free.disk, held.disk),
            ports=add(Resources(ports=free.ports), Resources(ports=held.ports)).ports,
        )
        known.agent = replace(known.agent, resources=more)

    def set_free(self, agent: str, free: Resources) -> None:
        """Sets the known free resources of an agent."""
        if agent in self.known:
            known = self.known[agent]
            known.agent = replace(known.agent, resources=free)

    def add_free(self, agent: str, resources: Resources) -> None:
        """Adds the resources of a group that has ended on an agent."""
        if agent in self.known:
            self.set_free(agent, add(self.known[agent].agent.resources, resources))

    def subtract_free(self, agent: str, resources: Resources) -> None:
        """Subtracts the resources of a group that will be launched on an agent."""
        if agent in self.known:
            self.set_free(agent, _less(self.known[agent].agent.resources, resources))


def _less(left: Resources, right: Resources) -> Resources:
    """The first without the second; amounts stop at 0, and ports outside the first are ignored."""
    bare = Resources(cpus=min(left.cpus, right.cpus), mem=min(left.mem, right.mem), disk=min(left.disk, right.disk))
    return replace(subtract(replace(left, ports=()), bare), ports=without(left.ports, right.ports))
