"""Computes how many agents, publishers and servers a number of clients needs, and what runs out first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

from hydra.analysis.declared_costs import FARTHEST, Cost

SHARE: Final = 2 / 3
"""The usable share of an agent's cores and network; above it latencies grow, and bursts are delayed."""


@dataclass(frozen=True, slots=True)
class AgentSize:
    """The resources of an agent; ``network_bytes_s`` is None if the speed of its link is unknown."""

    cores: float
    memory_bytes: float
    network_bytes_s: float | None
    open_files: int
    tasks: int
    ports: int


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """The clients' use of one resource of an agent, a publisher, a server or the controller.

    Attributes:
        name: name of the resource.
        unit: unit of the amounts.
        a_client: the amount that each client needs; None: it was never measured, or the measurement has no upper limit.
        has: the usable amount of one agent, publisher, server or controller; None: unknown.
        cost: the source of ``a_client``.
    """

    name: str
    unit: str
    a_client: float | None
    has: float | None
    cost: Cost

    def total(self, clients: int) -> float | None:
        """The amount that this many clients need; None: unknown."""
        return None if self.a_client is None else self.a_client * clients

    @property
    def ends_at(self) -> int | None:
        """The number of clients for which one unit is enough; None: unknown, or there is no limit."""
        if self.a_client is None or self.has is None or self.a_client <= 0:
            return None
        return floor(self.has / self.a_client * (1 + 1e-9))

    def needed(self, clients: int) -> int | None:
        """The number of units that this many clients need; None: unknown."""
        if self.a_client is None or self.has is None:
            return None
        return max(ceil(self.a_client * clients / self.has * (1 - 1e-9)), 1) if self.has > 0 else None

    def beyond(self, clients: int) -> float:
        """The number of clients as a multiple of the largest measured count."""
        return clients / max(self.cost.clients, 1)


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One kind of unit that clients need (agents, publishers, servers, the controller), with its resources.

    ``one`` is the singular for texts. ``at_most`` is the possible number of units; None: there is no limit.
    """

    name: str
    one: str
    uses: tuple[ResourceUse, ...]
    at_most: int | None = None

    def needed(self, clients: int) -> int | None:
        """The number of units needed for the scarcest resource; None: no resource is known, or a cost has no limit."""
        if any(use.cost.unlimited for use in self.uses):
            return None
        return max((n for use in self.uses if (n := use.needed(clients)) is not None), default=None)

    @property
    def first(self) -> ResourceUse | None:
        """The resource that runs out first; None if a cost has no upper limit, because that one may be the first."""
        if any(use.cost.unlimited for use in self.uses):
            return None
        known = [use for use in self.uses if use.ends_at is not None]
        return min(known, key=lambda use: use.ends_at or 0, default=None)

    def unknown(self) -> list[str]:
        """The names of resources that were never measured, or are unknown for the agents."""
        return [use.name for use in self.uses if use.a_client is None or use.has is None]


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """What ``clients`` subscribers need that receive ``rate`` messages/s each."""

    clients: int
    rate: float
    parts: tuple[PlanItem, ...]

    @property
    def evidence(self) -> int:
        """The client count at which the evidence ends: the least of the largest measured counts of all costs."""
        return min(use.cost.clients for part in self.parts for use in part.uses if use.a_client is not None)

    @property
    def first(self) -> tuple[PlanItem, ResourceUse] | None:
        """The resource of one agent, publisher, server or controller that runs out first."""
        found = [(part, use) for part in self.parts if (use := part.first) is not None]
        return min(found, key=lambda pair: pair[1].ends_at or 0, default=None)

    @property
    def endless(self) -> list[tuple[PlanItem, ResourceUse]]:
        """The resources whose cost, fitted from runs, is an interval without an upper limit."""
        return [(part, use) for part in self.parts for use in part.uses if use.cost.unlimited]

    @property
    def fits(self) -> bool:
        """Whether no kind of unit is needed in a larger number than possible."""
        return all(part.at_most is None or (part.needed(self.clients) or 0) <= part.at_most for part in self.parts)


def extrapolated(use: ResourceUse, clients: int) -> bool:
    """Whether a count is more than twice the largest at which a cost was measured."""
    return use.beyond(clients) > FARTHEST


def together(costs: Sequence[Cost | None]) -> Cost | None:
    """The sum of several roles' costs; None if one is unknown.

    The sum's evidence is that of the least measured cost.
    """
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
