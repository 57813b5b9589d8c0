"""The partitions that a target rate needs: max(T/P, T/C), by the measured rates of one publisher and one subscriber."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MeanRate:
    """A mean rate of several runs, and half the width of its 95 % confidence interval (Student's), records/s."""

    mean: float
    half: float | None

    def needed(self, target: float) -> tuple[float, float, float]:
        """Partitions for a target rate, and the limits of their interval (inf if it has no upper limit)."""
        half = math.inf if self.half is None else self.half
        low = target / (self.mean + half)
        return target / self.mean, low, target / (self.mean - half) if half < self.mean else math.inf


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The measured rates, and the partitions that follow: ``planned`` are needed, ``run`` are measured."""

    publisher: MeanRate
    subscriber: MeanRate
    target: float
    most: int

    @property
    def needed(self) -> tuple[float, float, float]:
        """max(T/P, T/C), and the limits of its interval."""
        pairs = zip(self.publisher.needed(self.target), self.subscriber.needed(self.target), strict=True)
        figure, low, high = (max(pair) for pair in pairs)
        return figure, low, high

    @property
    def planned(self) -> int:
        """The whole number of partitions that the target needs."""
        return math.ceil(self.needed[0])

    @property
    def run(self) -> int:
        """The number of partitions of the second run."""
        return min(self.planned, self.most)


def partition_plan(
    publisher: Sequence[float], subscriber: Sequence[float], target: float, most: int
) -> PartitionPlan | None:
    """The plan by the rates of the runs, records/s; None until both are measured."""
    if not publisher or not subscriber:
        return None
    # Imported late, as it loads numpy.
    from hydra.sweep.repetition import mean_and_interval

    return PartitionPlan(
        MeanRate(*mean_and_interval(publisher)), MeanRate(*mean_and_interval(subscriber)), target, most
    )


def needed(rate: MeanRate, target: float) -> tuple[float, float, float]:
    """See :meth:`MeanRate.needed`."""
    return rate.needed(target)


def finite(value: float) -> float | None:
    """The number; None if it is infinite."""
    return value if math.isfinite(value) else None
