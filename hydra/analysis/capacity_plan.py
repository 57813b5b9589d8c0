"""How many agents, publishers and servers a number of clients takes, and what runs out first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from hydra.analysis.declared_costs import FARTHEST, Cost

SHARE: Final = 2 / 3
"""Of an agent's cores and network: above that latencies grow, and a burst has no room."""


@dataclass(frozen=True, slots=True)
class AgentSize:
    """An agent's size. ``network_bytes_s`` None: the speed of its link is not known."""

    cores: float
    memory_bytes: float
    network_bytes_s: float | None
    open_files: int
    tasks: int
    ports: int


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What all clients take of something that agents, publishers, servers or the controller have so much of each.

    Attributes:
        name: of what.
        unit: of the amounts.
        a_client: what each client takes; None: nobody has measured it, or what was measured sets no limit to it.
        has: how much each has that may be used; None: it is not known.
        cost: how ``a_client`` is known.
    """

    name: str
    unit: str
    a_client: float | None
    has: float | None
    cost: Cost

    def total(self, clients: int) -> float | None:
        """What so many clients take of it."""
        return None if self.a_client is None else self.a_client * clients

    @property
    def ends_at(self) -> int | None:
        """How many clients one has enough for; None: it is not known, or there is no end."""
        if self.a_client is None or self.has is None or self.a_client <= 0:
            return None
        return floor(self.has / self.a_client * (1 + 1e-9))

    def needed(self, clients: int) -> int | None:
        """How many of them so many clients take; None: it is not known."""
        if self.a_client is None or self.has is None:
            return None
        return max(ceil(self.a_client * clients / self.has * (1 - 1e-9)), 1) if self.has > 0 else None

    def beyond(self, clients: int) -> float:
        """How many times the largest measured count that is."""
        return clients / max(self.cost.clients, 1)


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One kind of thing that clients take, and how many of them there have to be.

    ``one`` names one of them. ``at_most`` is how many there can be; None: as many as it takes.
    """

    name: str
    one: str
    uses: tuple[ResourceUse, ...]
    at_most: int | None = None

    def needed(self, clients: int) -> int | None:
        """How many: as the scarcest of its resources has it; None: nothing is known of it, or a cost has no limit."""
        if any(use.cost.unlimited for use in self.uses):
            return None
        return max((n for use in self.uses if (n := use.needed(clients)) is not None), default=None)

    @property
    def first(self) -> ResourceUse | None:
        """What runs out first; None where a cost has no limit, as that may."""
        if any(use.cost.unlimited for use in self.uses):
            return None
        known = [use for use in self.uses if use.ends_at is not None]
        return min(known, key=lambda use: use.ends_at or 0, default=None)

    def unknown(self) -> list[str]:
        """What nobody has measured, or what is not known of the agents."""
        return [use.name for use in self.uses if use.a_client is None or use.has is None]


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """What ``clients`` subscribers at ``rate`` messages/s each take."""

    clients: int
    rate: float
    parts: tuple[PlanItem, ...]

    @property
    def evidence(self) -> int:
        """The least of the largest measured counts of all that was used: where the evidence ends."""
        return min(use.cost.clients for part in self.parts for use in part.uses if use.a_client is not None)

    @property
    def first(self) -> tuple[PlanItem, ResourceUse] | None:
        """What breaks first, of one agent, one publisher, one server or the controller."""
        found = [(part, use) for part in self.parts if (use := part.first) is not None]
        return min(found, key=lambda pair: pair[1].ends_at or 0, default=None)

    @property
    def endless(self) -> list[tuple[PlanItem, ResourceUse]]:
        """What runs were asked for and do not tell: its cost is an interval without a limit."""
        return [(part, use) for part in self.parts for use in part.uses if use.cost.unlimited]

    @property
    def fits(self) -> bool:
        """Whether nothing is needed more often than there can be of it."""
        return all(part.at_most is None or (part.needed(self.clients) or 0) <= part.at_most for part in self.parts)


def extrapolated(use: ResourceUse, clients: int) -> bool:
    """Whether a count is more than twice the largest at which a cost was measured."""
    return use.beyond(clients) > FARTHEST


def together(costs: Sequence[Cost | None]) -> Cost | None:
    """The sum of what several roles cost; None if one of them is not known. The evidence is that of the weakest."""
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs):
        return None
    rates = [cost.rates for cost in known if cost.rates is not None]
    endless = any(cost.unlimited for cost in known)
    limits = None if any(cost.low is None for cost in known) and not endless else known
    return Cost(
        sum(cost.value for cost in known),
        "; ".join(dict.fromkeys(cost.source for cost in known)),
        min(cost.clients for cost in known),
        None if limits is None else sum(cost.value if cost.low is None else cost.low for cost in limits),
        None if limits is None or endless else sum(cost.high or 0.0 for cost in limits),
        (max(low for low, _ in rates), min(high for _, high in rates)) if rates else None,
    )
