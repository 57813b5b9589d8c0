"""Costs of clients: linear budgets of CPU, memory and bandwidth, fitted to measured steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final

import numpy as np

from hydra.analysis.declared_costs import Cost
from hydra.analysis.nonnegative_fit import Array, agreeing, fit_terms, predict, terms_within
from hydra.analysis.scaling_models import LEAST, ThroughputInterval
from hydra.events.value_formatting import counted


@dataclass(frozen=True, slots=True)
class StepUsage:
    """The resources that a step used, as a budget needs them.

    Attributes:
        clients, publishers, servers: numbers of each.
        direct: whether publishers send to subscribers directly, without servers.
        seconds: length of the window in seconds.
        rate: requested messages/s of each publisher; None: as fast as possible.
        held: whether the rate was held and everything arrived in the window, so nothing was overloaded.
        limit: what limited the step: the row's verdict.
        throughput: messages/s that all subscribers together received in the window.
        sent: messages sent by all publishers.
        received: messages received by all subscribers.
        received_bytes: bytes of these messages, headers included.
        subscriber_cpu_s, publisher_cpu_s: CPU time of all subscribers, and of all publishers.
        publisher_memory_bytes: the largest resident memory of a publisher.
        server_cpu_s: CPU time of all servers; None: unknown.
        network_bytes: bytes sent by all interfaces of all hosts; None if everything was on one host.
        swing: the highest rate divided by the mean rate, for a load that changes during the step; 1 for a constant
            load.
    """

    clients: int
    publishers: int
    servers: int
    direct: bool
    seconds: float
    rate: float | None
    held: bool
    limit: str
    throughput: float
    sent: float
    received: float
    received_bytes: float
    subscriber_cpu_s: float
    publisher_cpu_s: float
    publisher_memory_bytes: float
    server_cpu_s: float | None
    network_bytes: float | None
    swing: float = 1.0

    @property
    def message_bytes(self) -> float:
        """Mean size in bytes of a received message, its header included."""
        return self.received_bytes / self.received if self.received else 0.0

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
        row = np.array([term.of(like) for term in self.budget.terms])
        found = predict([np.vstack([self.design, row])[None]], self.y[None], [len(row)])
        high = float(found.high[0])
        return ThroughputInterval(float(found.estimate[0]), float(found.low[0]), high if np.isfinite(high) else None)


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


def measured_cost(name: str, steps: Sequence[StepUsage], rate: float, source: str) -> Cost | None:
    """The cost of a subscriber per second (CPU time of a role) at a rate, from steps; None: unknown.

    Overloaded steps are left out if there are others, because late messages are handled in batches, which is cheaper.
    With fewer than six client counts it is the median cost of a message, with the smallest and the largest as limits.
    """
    budget = next(budget for budget in BUDGETS if budget.name == name)
    steps = [step for step in steps if step.received > 0 and (budget.figure(step) or 0) > 0]
    steps = [step for step in steps if step.held] or steps
    if not steps:
        return None
    largest, rates = max(step.clients for step in steps), [step.received / step.client_seconds for step in steps]
    sizes = [step.message_bytes for step in steps]
    found = fit_budget(budget, steps)
    if found is not None:
        each = found.at(one_client(steps[0], rate))
        whole = Cost(each.estimate or 0.0, f"{source}, {counted(found.steps, 'step')}", largest, each.low, each.high)
    else:
        costs = [float(budget.figure(step) or 0) / step.received * rate for step in steps]
        few = f"{source}, {counted(len(steps), 'step')}: too few for a fit, so the range of the steps' figures"
        whole = Cost(median(costs), few, largest, min(costs), max(costs))
    return replace(
        whole,
        rates=(min(rates), max(rates)),
        sizes=(min(sizes), max(sizes)) if all(sizes) else None,
        swing=max(step.swing for step in steps),
    )


def per_listener(steps: Sequence[StepUsage], source: str) -> Cost | None:
    """Memory of a publisher per subscriber; None if the steps have too few client counts."""
    found = fit_budget(next(budget for budget in BUDGETS if budget.name == PUBLISHER_MEMORY), steps)
    if found is None:
        return None
    each, largest = found.terms[1], max(step.clients for step in steps)
    return Cost(each.estimate or 0.0, f"{source}, {counted(found.steps, 'step')}", largest, each.low, each.high)


def one_client(like: StepUsage, rate: float) -> StepUsage:
    """A step of one second with one subscriber at a rate."""
    return replace(like, clients=1, publishers=1, seconds=1.0, sent=rate, received=rate, received_bytes=0.0)
