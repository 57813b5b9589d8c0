"""How well the loss of a step is known: its 95 % interval, from when it was lost and by whom. Pure.

What is lost comes in bursts, and what is independent of each other has to be found before it can be counted:

- *Together or alone.* Where subscribers lose together (a stall of the publisher, of a server, of the host), a burst of
  all of them is one event, however many they are, and time is what is sampled. Where each loses by itself, every
  subscriber is a sample, and a burst of one is an event. The design effect tells which (L. Kish, Survey Sampling,
  1965): n times the variance over time of the mean over n subscribers, over the mean of their own variances, is 1 where
  they are independent and n where they lose together.
- *One burst or several.* Losses less than ``GAP_S`` apart are one burst, however long it lasts.
- *Bursts or everywhere.* Bursts are a Poisson process, with the interval of :func:`of_bursts`. Where all
  through the step something is lost, as in an overload, there is nothing to count: then it is Student's interval of the
  mean of parts of the step, whose number is reduced by their autocorrelation (``measure/steadiness.py``), or of
  the subscribers where these are independent; and not narrower than the count of the lost copies allows, of which those
  that are lost together are one.

Several steps of the same have their bursts together, since a step without a burst says something of how rare they are
and nothing of how large. ``tests/measure/test_loss_interval.py`` has how often the interval holds the truth.

A step is a sample in time. What is lost comes in bursts, as in the model of searches (``sweep/estimate.py``): a Poisson
process in time, of which each burst costs some seconds of traffic. The shortfall is then a weighted sum of Poisson
counts, and its interval that of M. P. Fay and E. J. Feuer, *Confidence intervals for directly standardized rates: a
method based on the gamma distribution*, Statistics in Medicine 16, 1997: quantiles of gamma distributions with the mean
and the variance of the sum, above with one more burst of the largest size. They know the largest size; here it is the
largest of n that were seen, and stands for one (1 + 4/n) times as large. In simulations with 1 to 16 bursts on average
the interval held the truth in 96 to 98 % of the steps where bursts are of one size, in 94 to 97 % where sizes are
exponential, and in 87 to 96 % where they are as unequal as log-normal ones with σ = 1.4. Bursts have to be independent.
Those that are stored for searches (``measure/loss_pattern.py``) are a second long
at most, so that one that lasts longer is several; the interval is too narrow there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hydra.measure.loss_pattern import SLICE_S, asked_s, edges, lost_before
from hydra.measure.steadiness import autocorrelation
from hydra.model import StepPlan
from hydra.wire.subscriber_table import SubscriberTable

Floats = npt.NDArray[np.float64]

GAP_S: Final = 0.5
"""So long without a loss ends a burst."""
MOST_SUBSCRIBERS: Final = 1000
"""Of more, so many are looked at, evenly."""
_EVERYWHERE: Final = 0.95
"""The part of a step, or of its subscribers, from which on losses are no single events."""
_ALONE: Final = 1.5
"""The design effect up to which subscribers are taken for independent: of two that lose together it is 2."""
_PARTS: Final = (8, 64)
"""Parts of a step at least and at most whose means are looked at."""
_SLICES: Final = (20, 1500)
"""Losses are counted in slices of a step: the least and the largest number of them."""
_TAIL: Final = 0.025


@dataclass(frozen=True, slots=True)
class LossEvidence:
    """What a step tells of its loss.

    Attributes:
        length_s: of the step.
        count: independent bursts.
        total, squares, largest: of what they cost, the sum, the sum of squares and the largest; seconds of traffic, as
            a mean over the subscribers.
        error: where all through the step something was lost, the standard error of ``total``; otherwise 0.
        freedom: its degrees of freedom.
    """

    length_s: float
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    largest: float = 0.0
    error: float = 0.0
    freedom: float = 0.0

    @property
    def everywhere(self) -> bool:
        """Whether it was lost all through the step."""
        return self.freedom > 0


def encode_evidence(evidence: LossEvidence) -> str:
    """Evidence as a figure holds it: its numbers with a space between them."""
    e = evidence
    numbers = (e.length_s, e.count, e.total, e.squares, e.largest, e.error, e.freedom)
    return " ".join(f"{value:.6g}" for value in numbers)


def decode_evidence(text: str) -> LossEvidence:
    """What :func:`encode_evidence` wrote."""
    length_s, count, *others = map(float, text.split())
    return LossEvidence(length_s, int(count), *others)


def evidence(lost: Floats, length_s: float, messages: float = inf) -> LossEvidence:
    """What a step tells of its loss.

    Args:
        lost: the share of what was due that each subscriber lost in each of equal slices of the step, shape
            (subscribers, slices).
        length_s: of the step.
        messages: that were due to a subscriber.
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
    # However alike the parts are, the loss is known no better than the number of copies that make it up.
    share, copies = float(mean.mean()), messages * (len(lost) / effect if alone else 1)
    error = length_s * sqrt(share / copies)
    return found if found.error >= error else replace(found, error=error, freedom=max(share * copies, 1.0))


def of_reports(reports: SubscriberTable, plan: StepPlan, sent: int) -> LossEvidence:
    """What the reports of a step's subscribers tell of its loss.

    Args:
        reports: of those that count.
        plan: of the step.
        sent: messages of the publisher that sent most.
    """
    length_s = asked_s(plan)
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
    """The interval of a loss (%) that the bursts of these steps have made; as for :func:`interval`."""
    limits, total = interval(steps, next_burst), sum(each.total for each in steps)
    if limits is None:
        return None
    # What was lost is known exactly: the evidence, of some of the subscribers, says how wide around it the limits are.
    scale = lost_pct * sum(each.length_s for each in steps) / total if total else 100.0
    return ConfidenceInterval(min(limits.low * scale, lost_pct), min(max(limits.high * scale, lost_pct), 100.0))


def pooled(steps: Sequence[LossEvidence]) -> LossEvidence:
    """What several steps of the same tell together. Where it was lost all the time, how they differ is not in it."""
    sums = (sum(getattr(each, name) for each in steps) for name in ("length_s", "count", "total", "squares"))
    length_s, count, total, squares = sums
    return LossEvidence(length_s, int(count), total, squares, max((each.largest for each in steps), default=0.0))


def design_effect(lost: Floats) -> float:
    """1 where subscribers lose independently of each other, their number where they lose together; lost as above.

    What is constant does not tell, and is taken for lost together.
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
    # A little that they share makes fewer events of them.
    found = _of(sizes * effect, length_s, scale=1 / effect)
    if len(lossy) < _EVERYWHERE * len(lost):
        return found
    totals = lost.mean(axis=1)
    error = float(totals.std(ddof=1)) * sqrt(effect / len(totals))
    return replace(found, error=error * length_s, freedom=len(totals) - 1.0)


def _of(sizes: Floats, length_s: float, scale: float = 1.0) -> LossEvidence:
    """Of bursts of these sizes, ``scale`` times as many of which would be independent."""
    squares, largest = float((sizes * sizes).sum()) * scale, float(sizes.max())
    return LossEvidence(length_s, len(sizes), float(sizes.sum()) * scale, squares, largest)


def bursts(lost: Floats, width_s: float) -> tuple[Floats, float]:
    """What was lost in each burst, summed over its slices, and the part of the time that bursts take."""
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
    """The interval of the share that is lost, from one step or from several of the same.

    Args:
        steps: what each tells.
        next_burst: what one more burst would cost (seconds of traffic) where there was none.

    Returns None where nothing was lost and nothing is known of what a burst would cost.
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
    """Student's interval where every step lost all the time: the wider one of that within steps and between them."""
    from scipy.special import stdtrit  # it takes half a second, which only who asks for an interval waits

    shares = [each.total / each.length_s for each in steps]
    mean = fmean(shares)
    errors = [(sqrt(sum(each.error**2 for each in steps)) / length_s, sum(each.freedom for each in steps))]
    if len(steps) > 1:
        errors.append((stdev(shares) / sqrt(len(shares)), len(shares) - 1.0))
    half = max(float(stdtrit(freedom, 1 - _TAIL)) * error for error, freedom in errors)
    return ConfidenceInterval(max(mean - half, 0.0), min(mean + half, 1.0))


_UNSEEN: Final = 4.0
"""How much larger a burst may be than the largest of n that were seen: this over n, and one."""


class ConfidenceInterval(NamedTuple):
    """A 95 % interval, in the unit of what it is of."""

    low: float
    high: float


def of_bursts(bursts: Sequence[float], length: float, next_burst: float | None = None) -> ConfidenceInterval | None:
    """The interval of the share of a step's traffic that fell short, as a fraction.

    Args:
        bursts: what each cost, in seconds of traffic.
        length: of the step, in seconds.
        next_burst: what one more would cost (seconds) where there was none: a step does not tell that by itself.

    Returns None where there was no burst and nothing is known of what one would cost.
    """
    sizes = [size for size in bursts if size > 0]
    total, squares = sum(sizes), sum(size * size for size in sizes)
    return of_sums(len(sizes), total, squares, max(sizes, default=0.0), length, next_burst)


def of_sums(
    count: int, total: float, squares: float, largest: float, length: float, next_burst: float | None = None
) -> ConfidenceInterval | None:
    """The same of bursts by their number and the sum, the sum of squares and the largest of their costs."""
    beyond = largest * (1 + _UNSEEN / count) if count else next_burst
    if beyond is None or length <= 0:
        return None
    low = _gamma_quantile(_TAIL, total, squares) if count else 0.0
    high = _gamma_quantile(1 - _TAIL, total + beyond, squares + beyond * beyond)
    return ConfidenceInterval(low / length, min(high / length, 1.0))


def _gamma_quantile(p: float, mean: float, variance: float) -> float:
    from scipy.special import gammaincinv  # it takes half a second, which only who asks for an interval waits

    return float(gammaincinv(mean * mean / variance, p)) * variance / mean
