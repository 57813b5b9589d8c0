"""The 95 % confidence interval of the loss of a step, from the times and the subscribers of its losses. Pure.

Losses occur in bursts. Before events can be counted, the independent ones have to be found:

- *Together or alone.* If subscribers lose together (a stall of the publisher, of a server, of the host), a burst of all
  of them is one event, whatever their number, and time is sampled. If each loses alone, every subscriber is a sample,
  and a burst of one is an event. The design effect decides (L. Kish, Survey Sampling, 1965): n times the variance over
  time of the mean over n subscribers, divided by the mean of their own variances, is 1 if they are independent, and n
  if they lose together.
- *One burst or several.* Losses less than ``GAP_S`` apart are one burst, however long it is.
- *Bursts or everywhere.* Bursts are a Poisson process, with the interval of :func:`of_bursts`. If losses last
  throughout the step, as in an overload, there are no events to count. The interval is then Student's interval of the
  mean of parts of the step, whose number is reduced by their autocorrelation (``measure/steadiness.py``), or of the
  subscribers if these are independent. The interval is not narrower than the count of lost copies allows; copies lost
  together count as one.

The bursts of several equal steps are pooled, because a step without a burst is evidence of how rare bursts are, but not
of their size. ``tests/measure/test_loss_interval.py`` measures how often the interval contains the truth.

A step is a sample in time. Bursts are modelled as in searches (``sweep/estimate.py``): a Poisson process in time, each
burst with a loss of some seconds of traffic. The shortfall is then a weighted sum of Poisson counts, and its interval
is that of M. P. Fay and E. J. Feuer, *Confidence intervals for directly standardized rates: a method based on the gamma
distribution*, Statistics in Medicine 16, 1997: quantiles of gamma distributions with the mean and the variance of the
sum; the upper limit adds one burst of the largest size. In their case the largest size is known; here it is estimated
as (1 + 4/n) times the largest of n observed bursts. In simulations with 1 to 16 bursts on average the interval
contained the truth in 96 to 98 % of the steps with bursts of one size, in 94 to 97 % with exponential sizes, and in 87
to 96 % with sizes as unequal as log-normal ones with σ = 1.4. Bursts have to be independent. The bursts stored for
searches (``measure/loss_pattern.py``) last a second at most, so a longer one counts as several; their interval is
too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hydra.measure.column import LossEvidence
from hydra.measure.loss_pattern import SLICE_S, edges, lost_before, sending_s
from hydra.measure.steadiness import autocorrelation
from hydra.model import StepPlan
from hydra.wire.subscriber_table import SubscriberTable

Floats = npt.NDArray[np.float64]

GAP_S: Final = 0.5
"""A burst ends after this many seconds without a loss."""
MOST_SUBSCRIBERS: Final = 1000
"""The most subscribers that are evaluated; of more, an even selection."""
_EVERYWHERE: Final = 0.95
"""Losses in at least this share of a step, or of its subscribers, are not counted as single events."""
_ALONE: Final = 1.5
"""The highest design effect of independent subscribers; it is 2 for two that lose together."""
_PARTS: Final = (8, 64)
"""The least and the largest number of parts of a step whose means are compared."""
_SLICES: Final = (20, 1500)
"""Losses are counted in slices of a step: the least and the largest number of them."""
_TAIL: Final = 0.025


def evidence(lost: Floats, length_s: float, messages: float = inf) -> LossEvidence:
    """The evidence of a step for its loss.

    Args:
        lost: the share of the due messages that each subscriber lost in each of equal slices of the step, shape
            (subscribers, slices).
        length_s: the length of the step in seconds.
        messages: the number of messages due to each subscriber.
    """
    mean = lost.mean(axis=0)
    width_s = length_s / len(mean)
    if not mean.any():
        return LossEvidence(length_s)
    effect = max(design_effect(lost), 1.0)
    alone = len(lost) > 1 and effect <= _ALONE
    found = _alone(lost, width_s, length_s, effect) if alone else _together(mean, width_s, length_s)
    if not found.everywhere:
        return found
    # Even if the parts are alike, the number of lost copies limits how exactly the loss is known.
    share, copies = float(mean.mean()), messages * (len(lost) / effect if alone else 1)
    error = length_s * sqrt(share / copies)
    return found if found.error >= error else replace(found, error=error, freedom=max(share * copies, 1.0))


def of_reports(reports: SubscriberTable, plan: StepPlan, sent: int) -> LossEvidence:
    """The evidence for the loss of a step in the reports of its subscribers.

    Args:
        reports: the reports of the subscribers that count.
        plan: the plan of the step.
        sent: the number of messages of the publisher that sent most.
    """
    length_s = sending_s(plan)
    if not bool((reports.missing > 0).any()):
        return LossEvidence(length_s)
    some = reports.take(np.arange(0, len(reports), -(-len(reports) // MOST_SUBSCRIBERS)))
    slices = int(np.clip(round(length_s / SLICE_S), *_SLICES))
    _, sequences = edges(plan, sent, slices)
    width = np.diff(sequences) / max(float(sequences[-1]), 1.0)
    lost, due = np.zeros((len(some), slices)), 0.0
    for row, one in enumerate(some.parts(1)):
        expected = float((one.received + one.missing).sum())
        due += expected
        if expected and bool((one.missing > 0).any()):
            missed = np.diff(lost_before(one, float(sequences[-1]), sequences))
            np.divide(missed, expected * width, out=lost[row], where=width > 0)
    return evidence(np.clip(lost, 0.0, 1.0), length_s, due / len(some))


def around(
    lost_pct: float, steps: Sequence[LossEvidence], next_burst: float | None = None
) -> ConfidenceInterval | None:
    """The interval of a loss in percent from the evidence of its steps; other arguments as for :func:`interval`."""
    limits, total = interval(steps, next_burst), sum(each.total for each in steps)
    if limits is None:
        return None
    # The loss itself is exact; the evidence, from some of the subscribers, gives the distance of the limits from it.
    scale = lost_pct * sum(each.length_s for each in steps) / total if total else 100.0
    return ConfidenceInterval(min(limits.low * scale, lost_pct), min(max(limits.high * scale, lost_pct), 100.0))


def pooled(steps: Sequence[LossEvidence]) -> LossEvidence:
    """The evidence of several equal steps together; it omits how steps with losses throughout differ."""
    sums = (sum(getattr(each, name) for each in steps) for name in ("length_s", "count", "total", "squares"))
    length_s, count, total, squares = sums
    return LossEvidence(length_s, int(count), total, squares, max((each.largest for each in steps), default=0.0))


def design_effect(lost: Floats) -> float:
    """1 if subscribers lose independently of each other, their number if they lose together; ``lost`` as above.

    A constant loss decides nothing and counts as lost together.
    """
    own = float(lost.var(axis=1).mean())
    return len(lost) * (float(lost.mean(axis=0).var()) / own if own > 0 else 1.0)


def _together(mean: Floats, width_s: float, length_s: float) -> LossEvidence:
    sizes, covered = bursts(mean, width_s)
    found = _of(sizes * width_s, length_s)
    if covered < _EVERYWHERE:
        return found
    count = int(np.clip(round(length_s), *_PARTS))
    parts = np.array([part.mean() for part in np.array_split(mean, min(count, len(mean)))])
    error, freedom = _mean_error(parts)
    return replace(found, error=error * length_s, freedom=max(freedom, 1.0))


def _alone(lost: Floats, width_s: float, length_s: float, effect: float) -> LossEvidence:
    lossy = np.flatnonzero(lost.any(axis=1))
    sizes = np.concatenate([bursts(lost[row], width_s)[0] for row in lossy]) * width_s / len(lost)
    # Partly shared losses are fewer independent events.
    found = _of(sizes * effect, length_s, scale=1 / effect)
    if len(lossy) < _EVERYWHERE * len(lost):
        return found
    totals = lost.mean(axis=1)
    error = float(totals.std(ddof=1)) * sqrt(effect / len(totals))
    return replace(found, error=error * length_s, freedom=len(totals) - 1.0)


def _of(sizes: Floats, length_s: float, scale: float = 1.0) -> LossEvidence:
    """The evidence of bursts of these sizes, whose number counts ``scale`` times as independent ones."""
    squares, largest = float((sizes * sizes).sum()) * scale, float(sizes.max())
    return LossEvidence(length_s, len(sizes), float(sizes.sum()) * scale, squares, largest)


def bursts(lost: Floats, width_s: float) -> tuple[Floats, float]:
    """The loss in each burst, summed over its slices, and the share of the time in bursts."""
    at = np.flatnonzero(lost > 0)
    if not len(at):
        return np.zeros(0), 0.0
    ends = np.flatnonzero(np.diff(at) > max(round(GAP_S / width_s), 1))
    firsts, lasts = at[np.append(0, ends + 1)], at[np.append(ends, len(at) - 1)]
    sums = np.append(0.0, np.cumsum(lost))
    return np.asarray(sums[lasts + 1] - sums[firsts]), float((lasts - firsts + 1).sum()) / len(lost)


def _mean_error(parts: Floats) -> tuple[float, float]:
    """The standard error of the mean of successive parts, and its degrees of freedom, by their autocorrelation."""
    count, around = len(parts), parts - parts.mean()
    variance = float((around * around).sum())
    if variance <= 0:
        return 0.0, count - 1.0
    r = autocorrelation(around, 1, 0.95)
    effective = max(count * (1 - r) / (1 + r), 2.0)
    return sqrt(variance / count * effective / (effective - 1) / effective), effective - 1


def interval(steps: Sequence[LossEvidence], next_burst: float | None = None) -> ConfidenceInterval | None:
    """The interval of the lost share, from one step or from several equal ones.

    Args:
        steps: the evidence of each step.
        next_burst: the assumed size of a burst (seconds of traffic) if there was none.

    Returns None if nothing was lost and no size of a burst is assumed.
    """
    length_s = sum(each.length_s for each in steps)
    if length_s <= 0:
        return None
    if steps and all(each.everywhere for each in steps):
        return _around(steps, length_s)
    total, squares = sum(each.total for each in steps), sum(each.squares for each in steps)
    largest = max((each.largest for each in steps), default=0.0)
    return of_sums(sum(each.count for each in steps), total, squares, largest, length_s, next_burst)


def _around(steps: Sequence[LossEvidence], length_s: float) -> ConfidenceInterval:
    """Student's interval if all steps have losses throughout: the wider of those within steps and between them."""
    from scipy.special import stdtrit  # takes half a second to import, which only an interval needs

    shares = [each.total / each.length_s for each in steps]
    mean = fmean(shares)
    errors = [(sqrt(sum(each.error**2 for each in steps)) / length_s, sum(each.freedom for each in steps))]
    if len(steps) > 1:
        errors.append((stdev(shares) / sqrt(len(shares)), len(shares) - 1.0))
    half = max(float(stdtrit(freedom, 1 - _TAIL)) * error for error, freedom in errors)
    return ConfidenceInterval(max(mean - half, 0.0), min(mean + half, 1.0))


_UNSEEN: Final = 4.0
"""A burst may be 1 + this / n times as large as the largest of n observed ones."""


class ConfidenceInterval(NamedTuple):
    """The limits of a 95 % confidence interval, in the unit of its figure."""

    low: float
    high: float


def of_bursts(bursts: Sequence[float], length: float, next_burst: float | None = None) -> ConfidenceInterval | None:
    """The interval of a step's shortfall, as a fraction of its traffic.

    Args:
        bursts: the size of each burst, in seconds of traffic.
        length: the length of the step in seconds.
        next_burst: the assumed size of a burst (seconds) if there was none, which a step itself does not show.

    Returns None if there was no burst and no size of a burst is assumed.
    """
    sizes = [size for size in bursts if size > 0]
    total, squares = sum(sizes), sum(size * size for size in sizes)
    return of_sums(len(sizes), total, squares, max(sizes, default=0.0), length, next_burst)


def of_sums(
    count: int, total: float, squares: float, largest: float, length: float, next_burst: float | None = None
) -> ConfidenceInterval | None:
    """The interval of :func:`of_bursts` from the number, sum, sum of squares and maximum of the bursts' sizes."""
    beyond = largest * (1 + _UNSEEN / count) if count else next_burst
    if beyond is None or length <= 0:
        return None
    low = _gamma_quantile(_TAIL, total, squares) if count else 0.0
    high = _gamma_quantile(1 - _TAIL, total + beyond, squares + beyond * beyond)
    return ConfidenceInterval(low / length, min(high / length, 1.0))


def _gamma_quantile(p: float, mean: float, variance: float) -> float:
    from scipy.special import gammaincinv  # takes half a second to import, which only an interval needs

    return float(gammaincinv(mean * mean / variance, p)) * variance / mean
