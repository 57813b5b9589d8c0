"""What a search concludes: a figure, that no rate holds, or that it cannot tell, and why. Data, and no words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple


class Interval(NamedTuple):
    """A value with its 95 % interval: messages/s of a rate, a fraction of a share."""

    low: float
    figure: float
    high: float

    @property
    def width(self) -> float:
        """The upper limit over the lower."""
        return self.high / self.low


class Why(Enum):
    """Why a search cannot tell."""

    CHANGING = "changing"
    """The rate that holds moved during the search."""
    TOO_SHORT = "too short"
    """More seconds of measuring would tell: the interval is too wide, or whether any rate holds is open."""
    BELOW_LOWEST = "below lowest"
    """The answer is below the lowest rate that is tried."""
    ABOVE_HIGHEST = "above highest"
    """Nothing fell short up to the highest rate that is tried."""
    CONTRADICTED = "contradicted"
    """A step lost what has less than 1 % probability under the interval: the last, long one, or an earlier one."""
    GIVEN_UP = "given up"
    """The steps could not be measured."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Rates between which more than the target is lost, although less is lost above them.

    Attributes:
        low, high: messages/s.
    """

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one search.

    Attributes:
        kind: ``figure``, ``none`` (no rate holds) or ``unknown`` (the search cannot tell).
        interval: messages/s; the figure with its 95 % interval. Of ``unknown`` what is known so far, where it is.
        loss: the share (a fraction) that is lost at any rate, of ``none``; and of a floor below the target.
        why: of ``unknown`` only.
        needed_s: seconds of measuring, those that were spent among them, that would tell, if that is known.
        holes: rates that are left out of the figure.
        form: whether the figure rests on the form of the curve more than on what was seen near it.
    """

    kind: Literal["figure", "none", "unknown"]
    interval: Interval | None = None
    loss: Interval | None = None
    why: Why | None = None
    needed_s: float | None = None
    holes: tuple[Hole, ...] = ()
    form: bool = False
