"""The evidence of a step for its loss and its steadiness, as rows have it. Pure.

``loss_pattern``, ``loss_interval`` and ``steadiness`` find it. A row with repeats is computed from that of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hydra.model import Evidence


@dataclass(frozen=True, slots=True)
class LossBursts(Evidence):
    """The size of each burst of lost messages in a step, in seconds of traffic."""

    sizes_s: tuple[float, ...] = ()

    def __str__(self) -> str:
        return " ".join(f"{size:.4g}" for size in self.sizes_s)

    @property
    def total_s(self) -> float:
        """The size of all bursts together."""
        return sum(self.sizes_s)


@dataclass(frozen=True, slots=True)
class LossEvidence(Evidence):
    """The evidence of a step for its loss.

    Attributes:
        length_s: the length of the step in seconds.
        count: the number of independent bursts.
        total, squares, largest: the sum, the sum of squares and the maximum of their sizes, in seconds of traffic as a
            mean over the subscribers.
        error: the standard error of ``total`` if losses last throughout the step; otherwise 0.
        freedom: the degrees of freedom of ``error``.
    """

    length_s: float
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    error: float = 0.0
    freedom: float = 0.0

    def __str__(self) -> str:
        numbers = (self.length_s, self.count, self.total, self.squares, self.largest, self.error, self.freedom)
        return " ".join(f"{value:.6g}" for value in numbers)

    @property
    def everywhere(self) -> bool:
        """Whether losses last throughout the step."""
        return self.freedom > 0


@dataclass(frozen=True, slots=True)
class UnlistedMessages(Evidence):
    """The clients that could not list single messages: publishers of one step, members of a consumer group, or both."""

    by: tuple[Literal["publisher", "members"], ...]

    def __str__(self) -> str:
        return ", ".join(self.by)


@dataclass(frozen=True, slots=True)
class Unsteadiness:
    """A difference between the seconds of a step, or between steps.

    Attributes:
        kind: a slow beginning, a change, an outlier (``second``), a second that received less than was due (``short``),
            a stop, or a slow first step (``first``).
        at_s: the second at which the beginning ends, the change occurs, or the outlier or stop begins; 0 for a first
            step.
        by: how much less (below zero) or more was received than otherwise, as a fraction: in the beginning, after the
            change, in the outlier, in the stop, or in the first step.
        for_s: about how many seconds a stop lasted.
    """

    kind: Literal["beginning", "change", "second", "short", "stop", "first"]
    at_s: int
    by: float
    for_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} {self.at_s} {self.for_s if self.kind == 'stop' else self.by:.3g}"


@dataclass(frozen=True, slots=True)
class Differences(Evidence):
    """How the seconds of a step differ; of a repeated row how its first repeat differs, and the text of each repeat."""

    found: tuple[Unsteadiness, ...]
    repeats: str = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (*map(str, self.found), self.repeats)))
