"""Whether a step was steady: what its seconds tell of a slow beginning, a change, and single seconds apart. Pure.

And whether the first of several steps of the same was slow: one that starts cold.

A figure of a row is a mean over its window, and says little where the window has two halves that differ. Two things are
looked for in what was received in each whole second:

- *Seconds apart*: further from the median than ``_APART`` times the spread (the median distance from the median, as of
  a normal distribution), and by ``LEAST`` of it.
- *A change*: the moment before and after which the means differ most, of the other seconds; Student's test with the
  spread on both sides, made wider by the first autocorrelation of the residuals, at ``ALPHA`` over all moments
  (Bonferroni). It counts only if the means differ by ``LEAST``. One in the first third, with less before it, is a slow
  beginning.

``tests/measure/test_steadiness.py`` has how often steady steps are called otherwise, and unsteady ones found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from hydra.model import TimeSeriesFacts, TimeSeriesInterval

LEAST: Final = 0.05
"""Part of the mean by which seconds have to differ."""
ALPHA: Final = 0.01
"""The highest probability with which a change is reported in a step that is steady."""
SECONDS: Final = 8
"""A step with fewer whole seconds tells nothing."""
_APART: Final = 6.0
_LEAST_SIDE: Final = 2
_BEGINNING: Final = 1 / 3
_FEWEST_STEPS: Final = 3
"""So many steps of the same, and the spread of those after the first is known."""
_MAD_TO_SIGMA: Final = 1.4826

Kind = Literal["beginning", "change", "second", "first"]
KINDS: Final[Sequence[Kind]] = ("beginning", "change", "second", "first")


@dataclass(frozen=True, slots=True)
class Unsteadiness:
    """Something that was not steady.

    Attributes:
        kind: a slow beginning, a change, or a second apart; a slow first step.
        at_s: when the beginning ends, the change is, or the second begins; 0 of a step.
        by: how much less (below zero) or more was received than in the rest, as a fraction: before the end of the
            beginning, after the change, in the second, or in the first step.
    """

    kind: Kind
    at_s: int
    by: float


def received_of(facts: TimeSeriesFacts, course: Sequence[TimeSeriesInterval]) -> list[int]:
    """What was received in each whole interval of the window; nothing where the seconds are not complete."""
    if not facts.complete:
        return []
    ends = facts.duration_s - facts.interval_s
    return [interval.received for interval in course if interval.begin_s <= ends]


def settled(received: Sequence[int]) -> bool:
    """Whether the last two parts of a warm-up are alike: there is nothing to be seen of warming up any more."""
    return len(received) > 1 and abs(received[-1] - received[-2]) <= LEAST * max(received[-2:])


def unsteady(received: Sequence[float], interval_s: int = 1) -> list[Unsteadiness] | None:
    """What was not steady in a step, a change before single seconds; None where there are too few to tell.

    Args:
        received: messages in each whole interval of the window.
        interval_s: its length.
    """
    if len(received) < SECONDS or not any(received):
        return None
    values = np.asarray(received, np.float64)
    apart = _apart(values)
    rest = np.flatnonzero(~apart)
    change = _change(values[rest]) if len(rest) >= SECONDS else None
    found = []
    if change is not None:
        at, before, after = change
        at_s = int(rest[at]) * interval_s
        if after > before and at <= _BEGINNING * len(rest):
            found.append(Unsteadiness("beginning", at_s, before / after - 1))
        else:
            found.append(Unsteadiness("change", at_s, (after - before) / (before or 1.0)))
    middle = float(np.median(values))
    found += [
        Unsteadiness("second", int(at) * interval_s, float(values[at]) / middle - 1) for at in np.flatnonzero(apart)
    ]
    return found


def slow_first(received: Sequence[float]) -> Unsteadiness | None:
    """What the first of several steps of the same lacks: ``LEAST``, and more than chance, of what the others received.

    Student's test of one value against a sample, at ``ALPHA``.

    Args:
        received: messages/s of each step, in the order in which they were measured.
    """
    if len(received) < _FEWEST_STEPS:
        return None
    first, *later = received
    usual = fmean(later)
    if first >= (1 - LEAST) * usual:
        return None
    error = stdev(later) * sqrt(1 + 1 / len(later))
    if error > 0:
        from scipy.special import stdtr  # as below

        if float(stdtr(len(later) - 1, (first - usual) / error)) >= ALPHA:
            return None
    return Unsteadiness("first", 0, first / usual - 1)


def _apart(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    middle = float(np.median(values))
    distance = np.abs(values - middle)
    spread = _MAD_TO_SIGMA * float(np.median(distance))
    found: npt.NDArray[np.bool_] = distance > max(_APART * spread, LEAST * middle)
    # More than a few are no exceptions; where most seconds received nothing, none differs by a part of that.
    return found if middle and found.sum() <= len(values) / 8 else np.zeros(len(values), np.bool_)


def _change(values: npt.NDArray[np.float64]) -> tuple[int, float, float] | None:
    """Before which value the mean changes, from what and to what; None where it does not."""
    n = len(values)
    moments = np.arange(_LEAST_SIDE, n - _LEAST_SIDE + 1)
    sums = np.cumsum(values)
    first, last = sums[moments - 1] / moments, (sums[-1] - sums[moments - 1]) / (n - moments)
    # The moment that leaves the least between the values and the means of their sides.
    best = int(np.argmax((last - first) ** 2 * moments * (n - moments)))
    at, before, after = int(moments[best]), float(first[best]), float(last[best])
    if abs(after - before) <= LEAST * max(before, after):
        return None
    residuals = values - np.where(np.arange(n) < at, before, after)
    squares = float((residuals * residuals).sum())
    if squares <= 0:
        return at, before, after
    r = autocorrelation(residuals, 2, 0.9)
    error = sqrt(squares / (n - 2) * (1 / at + 1 / (n - at)) * (1 + r) / (1 - r))
    from scipy.special import stdtr  # it takes half a second, which only a step with a difference waits for

    freedom = max((n - 2) * (1 - r) / (1 + r), 1.0)
    p = 2 * float(stdtr(freedom, -abs(after - before) / error)) * len(moments)
    return (at, before, after) if p < ALPHA else None


def encode_unsteadiness(found: Sequence[Unsteadiness]) -> str:
    """What was not steady as a figure holds it: kind, seconds and fraction of each."""
    return "; ".join(f"{each.kind} {each.at_s} {each.by:.3g}" for each in found)


def decode_unsteadiness(text: str) -> list[Unsteadiness]:
    """What :func:`encode_unsteadiness` wrote."""
    parts = (part.split() for part in text.split("; ") if part)
    return [Unsteadiness(KINDS[KINDS.index(kind)], int(at_s), float(by)) for kind, at_s, by in parts]


def autocorrelation(residuals: npt.NDArray[np.float64], fitted: int, most: float) -> float:
    """The first autocorrelation, 0 to ``most``, of values that differ.

    Residuals from their own mean show it too low by (1 + 4 r) / n on average (M. G. Kendall, Biometrika 41, 1954), and
    by 1/n more for every further parameter (N. P. A. van Giersbergen, Economics Letters 89, 2005).

    Args:
        residuals: the values less what was fitted to them.
        fitted: its parameters: 1 for a mean, 2 for two of them.
        most: what so many values can tell at most.
    """
    r = float(residuals[1:] @ residuals[:-1]) / float(residuals @ residuals)
    return min(max(r + (fitted + 4 * r) / len(residuals), 0.0), most)
