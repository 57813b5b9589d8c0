"""What a master has offered: the offers at hand, and how much is free on each agent as far as is known. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hydra.engine.resources import add, subtract, without
from hydra.mesos.translate import AgentOffer
from hydra.model import Agent, Resources


@dataclass(slots=True)
class KnownAgent:
    """An agent, and what is free on it as far as is known: the last offers, less what was launched since."""

    agent: Agent
    address: str
    ip: str
    benched_until: float = 0.0


class FrameworkOffers:
    """The offers of a framework, and its agents.

    What is known to be free on an agent becomes less by offers only where it is told (:meth:`believe`): the master may
    split what is free over several offers.

    Attributes:
        offers: those at hand, by id.
        known: every agent that was offered and is not lost, by id.
    """

    def __init__(self) -> None:
        self.offers: dict[str, AgentOffer] = {}
        self.known: dict[str, KnownAgent] = {}

    def of(self, agent: str) -> list[AgentOffer]:
        """The offers of an agent."""
        return [offer for offer in self.offers.values() if offer.agent.id == agent]

    def held(self, agent: str) -> Resources:
        """What the offers of an agent hold together."""
        held = Resources()
        for offer in self.of(agent):
            held = add(held, offer.agent.resources)
        return held

    def take(self, offers: Sequence[AgentOffer]) -> None:
        """Notes new offers, and the agents that they are of."""
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
        """Offers that hold more than was known to be free are believed at once.

        Args:
            agent: its id.
            waiting: what will be launched there of what the offers hold.
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
        """From now on this is what is free on an agent."""
        if agent in self.known:
            known = self.known[agent]
            known.agent = replace(known.agent, resources=free)

    def add_free(self, agent: str, resources: Resources) -> None:
        """More is free on an agent, as something has ended there."""
        if agent in self.known:
            self.set_free(agent, add(self.known[agent].agent.resources, resources))

    def subtract_free(self, agent: str, resources: Resources) -> None:
        """Less is free on an agent, as something will be launched there."""
        if agent in self.known:
            self.set_free(agent, _less(self.known[agent].agent.resources, resources))


def _less(left: Resources, right: Resources) -> Resources:
    """The first without the second, as far as it goes."""
    bare = Resources(cpus=min(left.cpus, right.cpus), mem=min(left.mem, right.mem), disk=min(left.disk, right.disk))
    return replace(subtract(replace(left, ports=()), bare), ports=without(left.ports, right.ports))
