"""Costs of clients: linear budgets of CPU, memory and bandwidth, fitted to measured steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from hydra.analysis.nonnegative_fit import Array, agreeing, fit_terms, predict, terms_within
from hydra.analysis.scaling_models import LEAST, ThroughputInterval


@dataclass(frozen=True, slots=True)
class HostUse:
    """The use of a resource on the host that used most of what it has.

    Attributes:
        host: the name of the host.
        share: the used share (0 to 1).
        has: all that the host has: cores, bytes of memory, or bytes/s of a link.
    """

    host: str
    share: float
    has: float


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The resources that a step used, as a budget needs them.

    Attributes:
        clients, publishers, servers: numbers of each.
        direct: whether publishers send to subscribers directly, without servers.
        seconds: length of the window in seconds.
        rate: requested messages/s of each publisher; None: as fast as possible.
        held: whether the rate was held and everything arrived in the window, so nothing was overloaded.
        throughput: messages/s that all subscribers together received in the window.
        sent: messages sent by all publishers.
        received: messages received by all subscribers.
        received_bytes: bytes of these messages, headers included.
        subscriber_cpu_s, publisher_cpu_s: CPU time of all subscribers, and of all publishers.
        publisher_memory_bytes: the largest resident memory of a publisher.
        server_cpu_s: CPU time of all servers; None: unknown.
        network_bytes: bytes sent by all interfaces of all hosts; None if everything was on one host.
        hosts: of each resource of a host, by its name, the use of the host that used most of what it has.
    """

    clients: int
    publishers: int
    servers: int
    direct: bool
    seconds: float
    rate: float | None
    held: bool
    throughput: float
    sent: float
    received: float
    received_bytes: float
    subscriber_cpu_s: float
    publisher_cpu_s: float
    publisher_memory_bytes: float
    server_cpu_s: float | None
    network_bytes: float | None
    hosts: Mapping[str, HostUse] = field(default_factory=dict)

    @property
    def client_seconds(self) -> float:
        """The sum of the seconds of all subscribers."""
        return self.clients * self.seconds

    @property
    def listeners(self) -> float:
        """The number of subscribers per publisher."""
        return self.clients / max(self.publishers, 1)


@dataclass(frozen=True, slots=True)
class CostTerm:
    """One cause of a cost: the unit of its cost per occurrence, and how often it occurs in a step."""

    name: str
    unit: str
    of: Callable[[StepUsage], float]


@dataclass(frozen=True, slots=True)
class CostBudget:
    """A cost as a sum of terms, with the measured figure of a step."""

    name: str
    unit: str
    figure: Callable[[StepUsage], float | None]
    terms: tuple[CostTerm, ...]


_RECEIVED: Final = CostTerm("a message that a subscriber receives", "s", lambda step: step.received)
_CONNECTED: Final = CostTerm("a subscriber's second", "s/s", lambda step: step.client_seconds)
_RECEIVED_BYTES: Final = CostTerm("a message that a subscriber receives", "bytes", lambda step: step.received)
_CONNECTED_BYTES: Final = CostTerm("a subscriber's second", "bytes/s", lambda step: step.client_seconds)

SUBSCRIBER_CPU: Final = "CPU of subscribers"
PUBLISHER_CPU: Final = "CPU of publishers"
SERVER_CPU: Final = "CPU of servers"
PUBLISHER_MEMORY: Final = "memory of a publisher"
BANDWIDTH: Final = "bandwidth"

BUDGETS: Final = (
    CostBudget(SUBSCRIBER_CPU, "s", lambda step: step.subscriber_cpu_s, (_RECEIVED, _CONNECTED)),
    CostBudget(
        PUBLISHER_CPU,
        "s",
        lambda step: step.publisher_cpu_s,
        (
            CostTerm(
                "a message that leaves the publisher", "s", lambda step: step.received if step.direct else step.sent
            ),
            CostTerm(
                "a second of a connection",
                "s/s",
                lambda step: step.client_seconds if step.direct else step.publishers * step.seconds,
            ),
        ),
    ),
    CostBudget(SERVER_CPU, "s", lambda step: step.server_cpu_s, (_RECEIVED, _CONNECTED)),
    CostBudget(
        PUBLISHER_MEMORY,
        "bytes",
        lambda step: step.publisher_memory_bytes,
        (
            CostTerm("a publisher without listeners", "bytes", lambda _: 1.0),
            CostTerm("a listener", "bytes", lambda step: step.listeners),
        ),
    ),
    CostBudget(
        BANDWIDTH,
        "bytes",
        lambda step: step.received_bytes if step.network_bytes is None else step.network_bytes,
        (_RECEIVED_BYTES, _CONNECTED_BYTES),
    ),
)


@dataclass(frozen=True, slots=True)
class BudgetFit:
    """A fitted budget.

    Attributes:
        budget: the budget.
        terms: the cost of each of its terms.
        counts: the measured client counts, each once, ascending.
        steps: number of measured steps.
    """

    budget: CostBudget
    terms: tuple[ThroughputInterval, ...]
    counts: tuple[int, ...]
    steps: int
    design: Array
    y: Array

    def at(self, like: StepUsage) -> ThroughputInterval:
        """The predicted cost of a new measurement of a step like this one."""
        return self.at_all([like])[0]

    def at_all(self, steps: Sequence[StepUsage]) -> list[ThroughputInterval]:
        """The predicted costs of new measurements of steps like these, computed at once."""
        rows = np.array([[term.of(step) for term in self.budget.terms] for step in steps])
        design = np.concatenate([np.tile(self.design, (len(rows), 1, 1)), rows[:, None]], axis=1)
        found = predict([design], np.tile(self.y, (len(rows), 1)), [rows.shape[1]])
        limits = zip(found.estimate.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
        return [ThroughputInterval(value, low, high if np.isfinite(high) else None) for value, low, high in limits]


def fit_budget(budget: CostBudget, steps: Sequence[StepUsage]) -> BudgetFit | None:
    """Fits a budget; None if fewer than six client counts have this figure, or it was 0 in a step."""
    known = [(step, value) for step in steps if (value := budget.figure(step)) is not None]
    counts = tuple(sorted({step.clients for step, _ in known}))
    if len(counts) < LEAST or any(value <= 0 for _, value in known):
        return None
    design = np.array([[term.of(step) for term in budget.terms] for step, _ in known])
    y = np.array([value for _, value in known])
    if not (design.sum(axis=1) > 0).all():
        return None
    found = fit_terms(design[None], y[None])
    allowed = float(agreeing(found.squares, np.array([len(y) - len(budget.terms)]))[0])
    terms = tuple(
        ThroughputInterval(float(found.terms[0, k]), *terms_within(design, y, k, allowed))
        for k in range(len(budget.terms))
    )
    return BudgetFit(budget, terms, counts, len(known), design, y)


def second_of(like: StepUsage, clients: int, throughput: float) -> StepUsage:
    """A step of one second with this many clients, and this throughput of all of them (messages/s)."""
    return replace(like, clients=clients, seconds=1.0, received=throughput, sent=throughput / clients)
