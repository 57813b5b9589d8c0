"""The host resource that ends first when clients are added, from the hosts' use in measured steps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Final

import numpy as np

from hydra.analysis.costs import BudgetFit, CostBudget, CostTerm, HostUse, StepUsage, fit_budget, second_of
from hydra.analysis.scaling_models import FARTHEST, LEAST, ThroughputInterval, ThroughputLaw, throughputs_of
from hydra.measure.verdict import BUSY_HOST_PCT, BUSY_NETWORK

HOST_CPU: Final = "CPU"
HOST_MEMORY: Final = "memory"
HOST_NETWORK: Final = "network"
UNRECORDED: Final = "open files, local ports and process ids"
"""Resources whose use no run records."""

_FARTHEST_END: Final = 1000
"""An end is searched up to this many times the largest measured count."""
_DRAWN: Final = 60
"""The number of subscriber counts at which the use is computed; ends between them are interpolated."""


@dataclass(frozen=True, slots=True)
class HostResource:
    """A resource of hosts: it ends at the share ``ends_at`` (0 to 1) of what a host has, measured in ``unit``."""

    name: str
    unit: str
    ends_at: float
    budget: CostBudget


def _share_seconds(name: str) -> Callable[[StepUsage], float | None]:
    return lambda step: step.hosts[name].share * step.seconds if name in step.hosts else None


_TIMED: Final = (
    CostTerm("a host's second without clients", "", lambda step: step.seconds),
    CostTerm("a message that a subscriber receives", "", lambda step: step.received),
    CostTerm("a subscriber's second", "", lambda step: step.client_seconds),
)
RESOURCES: Final = (
    HostResource(HOST_CPU, "cores", BUSY_HOST_PCT / 100, CostBudget(HOST_CPU, "", _share_seconds(HOST_CPU), _TIMED)),
    HostResource(
        HOST_MEMORY,
        "bytes",
        1.0,
        CostBudget(
            HOST_MEMORY,
            "",
            lambda step: step.hosts[HOST_MEMORY].share if HOST_MEMORY in step.hosts else None,
            (
                CostTerm("a host without clients", "", lambda _: 1.0),
                CostTerm("a subscriber", "", lambda step: float(step.clients)),
            ),
        ),
    ),
    HostResource(
        HOST_NETWORK, "bytes/s", BUSY_NETWORK, CostBudget(HOST_NETWORK, "", _share_seconds(HOST_NETWORK), _TIMED)
    ),
)


@dataclass(frozen=True, slots=True)
class ResourceEnd:
    """Where a resource of hosts ends.

    Attributes:
        resource: the resource.
        use: its use in a measured step with the most clients.
        ends: the subscriber count at which it ends; no estimate: it does not end up to ``low`` clients.
        shares: the used share (0 to 1) at each requested count.
        largest: the largest measured count.
    """

    resource: HostResource
    use: HostUse
    ends: ThroughputInterval
    shares: Mapping[int, ThroughputInterval]
    largest: int

    @property
    def beyond(self) -> float:
        """The end as a multiple of the largest measured count; 0: it has no end."""
        return (self.ends.estimate or 0.0) / self.largest

    @property
    def extrapolated(self) -> bool:
        """Whether the end is more than twice the largest measured count."""
        return self.beyond > FARTHEST


@dataclass(frozen=True, slots=True)
class HostEnds:
    """The resources that end, the first one first, and the reasons why others are unknown, by their names."""

    known: tuple[ResourceEnd, ...]
    unknown: Mapping[str, str]

    @property
    def first(self) -> ResourceEnd | None:
        """The resource that ends first of those that are known; None: none of them ends."""
        return next((end for end in self.known if end.ends.estimate is not None), None)

    @property
    def perhaps_first(self) -> tuple[ResourceEnd, ...]:
        """The other resources whose interval begins before that of the first one ends."""
        if self.first is None:
            return ()
        last = self.first.ends.high
        return tuple(e for e in self.known if e is not self.first and (last is None or e.ends.low < last))


def host_ends(steps: Sequence[StepUsage], law: ThroughputLaw, unknown: Mapping[str, str]) -> HostEnds:
    """Fits the use of each resource of the hosts, and finds the subscriber count at which it ends.

    The use is that of the host that used most of what it has. It is predicted for the throughput that the law
    estimates, as the budgets are.

    Args:
        steps: the measured steps of the law.
        law: the fitted throughput, with the predictions for the requested counts.
        unknown: the reasons why the use of a resource is not known, by its name.
    """
    found: list[ResourceEnd] = []
    reasons = dict(unknown)
    for resource in RESOURCES:
        if resource.name in reasons:
            continue
        fitted = fit_budget(resource.budget, steps)
        if fitted is None:
            reasons[resource.name] = f"fewer than {LEAST} subscriber counts show its use"
        else:
            found.append(_end(resource, fitted, steps, law))
    reasons[UNRECORDED] = "a run does not record how many it used"
    ordered = sorted(found, key=lambda end: (end.ends.estimate is None, end.ends.estimate or 0.0, end.ends.low))
    return HostEnds(tuple(ordered), reasons)


def _end(resource: HostResource, fitted: BudgetFit, steps: Sequence[StepUsage], law: ThroughputLaw) -> ResourceEnd:
    most = max((step for step in steps if resource.name in step.hosts), key=lambda step: step.clients)
    wide = np.unique(np.geomspace(law.counts[0], _FARTHEST_END * law.largest, _DRAWN).round()).astype(int).tolist()
    counts = [prediction.clients for prediction in law.predictions]
    everywhere = [*law.predictions, *throughputs_of(law, wide)]
    used = fitted.at_all([second_of(steps[-1], p.clients, p.throughput.estimate or 0.0) for p in everywhere])
    drawn = used[len(counts) :]
    low = _crossing(wide, [interval.high for interval in drawn], resource.ends_at)
    ends = ThroughputInterval(
        _crossing(wide, [interval.estimate for interval in drawn], resource.ends_at),
        float(wide[-1]) if low is None else low,
        _crossing(wide, [interval.low for interval in drawn], resource.ends_at),
    )
    shares = dict(zip(counts, used[: len(counts)], strict=True))
    return ResourceEnd(resource, most.hosts[resource.name], ends, shares, law.largest)


def _crossing(counts: Sequence[int], shares: Sequence[float | None], limit: float) -> float | None:
    """The count at which shares (None: no limit) first reach a limit, between counts on logarithmic scales."""
    for n, share in enumerate(shares):
        if share is not None and share < limit:
            continue
        before = shares[n - 1] if n else None
        if before is None or share is None or before <= 0:
            return float(counts[n - 1] if n else counts[n])
        part = log(limit / before) / log(share / before)
        return exp(log(counts[n - 1]) + part * log(counts[n] / counts[n - 1]))
    return None
