"""Whether the seconds of a step are alike: tests for a slow beginning, a change, and single outliers. Pure.

Stops are found by ``measure/stops.py``, because they are known from what was due.

Another test finds a slow first step among several equal ones, such as a cold start.

A figure of a row is a mean over its window, which means little if the halves of the window differ. Two things are
searched for in the messages received in each whole second:

- *Outliers*: seconds that differ from the median by more than ``_APART`` times the spread (the median distance from the
  median, scaled as for a normal distribution), and by more than ``LEAST`` of the median. If they are many, a change
  comes first: they are reported if there is none.
- *A change*: the moment with the largest difference between the means before and after it, without the outliers.
  Student's test with the spread on both sides, widened by the first autocorrelation of the residuals, at ``ALPHA`` over
  all moments (Bonferroni). A change counts only if the means differ by ``LEAST``. A change in the first third, with
  less before it, is a slow beginning. A ramp is a change, too.

``tests/measure/test_steadiness.py`` measures how often steady steps are reported and unsteady ones found.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.measure.column import Unsteadiness
from hydra.measure.stops import DueTraffic, Found, find
from hydra.model import TimeSeriesFacts, TimeSeriesInterval

LEAST: Final = 0.05
"""The least relative difference that counts."""
ALPHA: Final = 0.01
"""The highest probability with which a change is reported in a step that is steady."""
_RISE: Final = 12.0
"""The least rise of a ramp, in standard deviations; Student's test would need far more seconds to find a ramp."""
SECONDS: Final = 8
"""The least number of whole seconds that a step needs for these tests."""
_APART: Final = 6.0
_LEAST_SIDE: Final = 2
_BEGINNING: Final = 1 / 3
_FEWEST_STEPS: Final = 3
"""The least number of equal steps from which the spread of those after the first is known."""
_MAD_TO_SIGMA: Final = 1.4826


def received_of(facts: TimeSeriesFacts, course: Sequence[TimeSeriesInterval]) -> list[int]:
    """The messages received in each whole interval of the window; empty if the time series is not complete."""
    if not facts.complete:
        return []
    ends = facts.duration_s - facts.interval_s
    return [interval.received for interval in course if interval.begin_s <= ends]


def settled(received: Sequence[int]) -> bool:
    """Whether the last two parts of a warm-up received alike, so the warm-up can end."""
    return len(received) > 1 and abs(received[-1] - received[-2]) <= LEAST * max(received[-2:])


def unsteady(received: Sequence[float], interval_s: int = 1, found: Found | None = None) -> list[Unsteadiness] | None:
    """The differences between the seconds of a step: stops, a change, outliers; None: there are too few seconds.

    Args:
        received: messages in each whole interval of the window; empty if only ``found`` is wanted.
        interval_s: the length of the interval in seconds.
        found: the stops and shortages, which are known from what was due; None: what the other intervals received was
            due.
    """
    if found is None:
        course = [TimeSeriesInterval(n * interval_s, 0, received=round(count)) for n, count in enumerate(received)]
        found = find(course, len(course), DueTraffic(None), interval_s)
    stops = [Unsteadiness("stop", each.at_s, -1.0, each.for_s) for each in found.stops]
    seconds = _differences(received, interval_s, found) if len(received) >= SECONDS and any(received) else None
    known = {each.at_s for each in seconds or () if each.kind == "second"}
    short = [Unsteadiness("short", each.at_s, each.by) for each in found.shortages if each.at_s not in known]
    return [*stops, *(seconds or ()), *short] or seconds


def _differences(received: Sequence[float], interval_s: int, stops: Found) -> list[Unsteadiness]:
    """A change, then outliers, in the intervals without stops."""
    values = np.asarray(received, np.float64)
    running = np.array([n for n in range(len(values)) if n not in stops.stopped], np.int64)
    if not len(running):
        return []
    middle = float(np.median(values[running]))
    apart = running[_apart(values[running], middle)]
    # If many seconds are far from the median, a change may be why; only what no change explains is an outlier.
    many = len(apart) > len(values) / 8
    rest = running if many else np.setdiff1d(running, apart)
    change = _change(values[rest]) if len(rest) >= SECONDS else None
    found = []
    if change is not None:
        at, before, after = change
        at_s = int(rest[at]) * interval_s
        if after > before and at <= _BEGINNING * len(rest):
            found.append(Unsteadiness("beginning", at_s, before / after - 1))
        else:
            found.append(Unsteadiness("change", at_s, (after - before) / (before or 1.0)))
    if change is None or not many:
        found += [Unsteadiness("second", int(at) * interval_s, float(values[at]) / middle - 1) for at in apart]
    return found


def slow_first(received: Sequence[float]) -> Unsteadiness | None:
    """A slow first step of several equal ones: it received less than the others by ``LEAST`` and more than chance.

    The test is Student's test of one value against a sample, at ``ALPHA``. None: the first step is not slow.

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
        from scipy.special import stdtr  # slow to import, as below

        if float(stdtr(len(later) - 1, (first - usual) / error)) >= ALPHA:
            return None
    return Unsteadiness("first", 0, first / usual - 1)


def _apart(values: npt.NDArray[np.float64], middle: float) -> npt.NDArray[np.bool_]:
    distance = np.abs(values - middle)
    spread = _MAD_TO_SIGMA * float(np.median(distance))
    found: npt.NDArray[np.bool_] = distance > max(_APART * spread, LEAST * middle)
    # If most seconds received nothing, the median is 0 and has no relative distance.
    return found if middle else np.zeros(len(values), np.bool_)


def _change(values: npt.NDArray[np.float64]) -> tuple[int, float, float] | None:
    """The position at which the mean changes, with the means before and after it; None if it does not change.

    A ramp is a change at its middle.
    """
    n = len(values)
    moments = np.arange(_LEAST_SIDE, n - _LEAST_SIDE + 1)
    sums = np.cumsum(values)
    first, last = sums[moments - 1] / moments, (sums[-1] - sums[moments - 1]) / (n - moments)
    # The moment with the least squared distance of the values from the means of their sides.
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
    from scipy.special import stdtr  # takes half a second to import, which only a step with a difference needs

    freedom = max((n - 2) * (1 - r) / (1 + r), 1.0)
    p = 2 * float(stdtr(freedom, -abs(after - before) / error)) * len(moments)
    if p < ALPHA:
        return at, before, after
    half = n // 2
    return (half, float(values[:half].mean()), float(values[half:].mean())) if _is_ramp(values) else None


def _is_ramp(values: npt.NDArray[np.float64]) -> bool:
    """Whether a line fits, which rises by more than ``_RISE`` times the distance of the values from it."""
    times = np.arange(len(values)) - (len(values) - 1) / 2
    slope = float(times @ values / (times @ times))
    residuals = values - values.mean() - slope * times
    return abs(slope) * len(values) > _RISE * sqrt(float(residuals @ residuals) / (len(values) - 2))


def autocorrelation(residuals: npt.NDArray[np.float64], fitted: int, most: float) -> float:
    """The first autocorrelation of residuals, corrected for bias and limited to 0 … ``most``.

    Residuals from their own mean show it too low by (1 + 4 r) / n on average (M. G. Kendall, Biometrika 41, 1954), and
    by 1/n more for every further parameter (N. P. A. van Giersbergen, Economics Letters 89, 2005).

    Args:
        residuals: the values minus the fitted means; not all of them 0.
        fitted: the number of fitted parameters: 1 for a mean, 2 for two means.
        most: the highest autocorrelation that this number of values can show.
    """
    r = float(residuals[1:] @ residuals[:-1]) / float(residuals @ residuals)
    return min(max(r + (fitted + 4 * r) / len(residuals), 0.0), most)
