"""The interval of the share of late or lost copies, from the seconds of a step. Pure.

Messages of one stall are late together, and copies of one message are lost together, so not copies but seconds are
the samples. The question is whether the share in the long run is above a target, or, with z = bad − target · due for
each second, whether the mean of z is above 0. Each second gets a random weight; the weights are uniform over all that
add up to 1 (D. B. Rubin, Annals of Statistics 9(1):130, 1981). The doubt is the probability that the weighted mean is
on the wrong side. One unseen second is added, the worst possible one: for a yes a second with a stall, for a no one
without bad copies. This is the bound of N. Gaffke (Three Test Statistics for a Nonparametric One-Sided Hypothesis on
the Mean of a Nonnegative Variable, Mathematical Methods of Statistics 14, 2005), which E. Learned-Miller and P. S.
Thomas conjecture to hold for every distribution that the added second bounds, at any number of seconds
(arXiv:1905.06208); ``tests/measure/slo_worlds.py`` has the distributions with which it was tested. If each second is
bad or good as a whole, it is the limit of Clopper and Pearson.

Correlated seconds count for fewer: if the sums of blocks of √n seconds vary f times as much as those of independent
seconds would, f seconds count as one (the design effect of L. Kish, Survey Sampling, 1965; the variance by overlapping
batch means, M. S. Meketon, B. Schmeiser, Winter Simulation Conference 1984).

Uniform weights are exponential variables divided by their sum, so the probability is that of a sum of gamma
variables being above 0. The probability is computed by the saddlepoint approximation (R. Lugannani, S. Rice, Advances
in Applied Probability 12, 1980), to 1 %.

A copy is one message at one subscriber. A late copy counts in the second in which it arrived, so the copies delayed by
one stall stay together; a lost copy counts in the second in which it was due. Copies that arrived after the window (in
the drain) count in the last second of the window. Copies whose second is unknown count as one stall in the last second,
which is the weakest evidence.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.measure.step_result import StepFigures
from hydra.model import Histogram, TimeSeriesFacts, TimeSeriesInterval
from hydra.wire.buckets import highest_of
from hydra.wire.histogram import coarse_lowest

DOUBT: Final = 0.05
"""The highest probability that an answer is wrong."""
_MOST_TIMES: Final = 1e6
"""The longest step that is proposed, as a multiple of the measured one."""
_TURNS: Final = 60

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BadCopies:
    """The number of bad copies in each second of a step, or in each longer interval.

    Attributes:
        bad: bad copies in each; may be more than were due, because late copies count when they arrive.
        due: expected copies in each.
        stall: copies that an unseen stall may make bad; at least those of one message.
    """

    bad: Floats
    due: Floats
    stall: float

    @property
    def share(self) -> float:
        """The measured share of bad copies, 0 to 1; NaN if nothing was due."""
        due = float(self.due.sum())
        return float(self.bad.sum()) / due if due else math.nan

    @cached_property
    def together(self) -> float:
        """How many seconds count as one, at least 1."""
        n, share = len(self.bad), self.share
        apart = self.bad - share * self.due
        variance = float(apart.var())
        if n < 4 or not variance > 0:
            return 1.0
        size = round(math.sqrt(n))
        sums = np.convolve(apart, np.ones(size), "valid")
        # The sums vary less around a mean that is computed from the same seconds.
        of_blocks = float((sums**2).mean()) / size * n / (n - size + 1)
        return max(1.0, of_blocks / variance)

    def above(self, target: float, times: float = 1.0) -> float:
        """The doubt in "the share is at most this": the probability that it is above.

        Args:
            target: the share, 0 to 1.
            times: the factor by which the number of measured seconds is assumed to be larger.
        """
        worst = max(self.stall, self.together * float(self.bad.max()))
        return self._chance(target, worst * (1 - target), times)

    def within(self, target: float, times: float = 1.0) -> float:
        """The doubt in "the share is above this"; arguments as for :meth:`above`."""
        copies = max(float(self.due.mean()) * self.together, self.stall)
        return 1 - self._chance(target, -copies * target, times)

    def _chance(self, target: float, added: float, times: float) -> float:
        values, counts = np.unique(self.bad - target * self.due, return_counts=True)
        together = self.together
        return _positive(np.append(values * together, added), np.append(counts * (times / together), 1.0))

    def upper(self) -> float:
        """The upper 95 % limit of the share, 0 to 1."""
        return _edge(lambda share: self.above(share) <= DOUBT, 1.0, self.share)

    def lower(self) -> float:
        """The lower 95 % limit of the share, 0 to 1."""
        return _edge(lambda share: self.within(share) <= DOUBT, 0.0, self.share)

    def times_needed(self, target: float) -> float | None:
        """How many times as long a step needs for an answer, if its seconds stay alike; None: no feasible length."""
        doubt = self.above if self.share < target else self.within

        def decides(times: float) -> bool:
            return doubt(target, times) <= DOUBT

        return _edge(decides, _MOST_TIMES, 1.0) if decides(_MOST_TIMES) else None


def least_s(target: float, stall_s: float) -> float:
    """The seconds without bad copies that show a share of at most ``target``.

    Args:
        target: the share, 0 to 1.
        stall_s: the assumed size of one stall, in seconds of traffic.
    """
    return -math.log(DOUBT) / math.log1p(target / (stall_s * (1 - target)))


def _edge(holds: Callable[[float], bool], inside: float, outside: float) -> float:
    """The farthest value on the way from ``inside``, at which ``holds``, to ``outside`` up to which it holds."""
    if holds(outside):
        return outside
    for _ in range(_TURNS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
        if abs(inside - outside) <= 1e-4 * max(inside, outside):
            break
    return inside


def _positive(values: Floats, shapes: Floats) -> float:
    """The probability that Σ value · G is above 0, where each G is a gamma variable of its shape and scale 1."""
    lowest, highest = float(values.min()), float(values.max())
    if highest <= 0 or lowest >= 0:
        return 1.0 if highest > 0 else 0.0
    at = _saddlepoint(values, shapes)
    rest = 1 - at * values
    exponent = float((shapes * np.log(rest)).sum())  # −K, at least 0
    deviation = math.copysign(math.sqrt(max(2 * exponent, 0.0)), at)
    second = float((shapes * (values / rest) ** 2).sum())
    if abs(deviation) < 1e-3:
        third = 2 * float((shapes * (values / rest) ** 3).sum())
        return 0.5 - third / (6 * second * math.sqrt(2 * math.pi * second))
    slope = at * math.sqrt(second)
    density = math.exp(-deviation * deviation / 2) / math.sqrt(2 * math.pi)
    return math.erfc(deviation / math.sqrt(2)) / 2 - density * (1 / deviation - 1 / slope)


def _saddlepoint(values: Floats, shapes: Floats) -> float:
    """The zero of the derivative of the cumulant generating function, −Σ shape · ln(1 − s · value); it rises."""
    low, high = 1 / float(values.min()), 1 / float(values.max())
    at = 0.0
    for _ in range(_TURNS):
        terms = values / (1 - at * values)
        first = float((shapes * terms).sum())
        low, high = (at, high) if first < 0 else (low, at)
        step = at - first / float((shapes * terms**2).sum())
        # Newton's step, or bisection if it would leave the bracket.
        after = step if low < step < high else (low + high) / 2
        if abs(after - at) <= 1e-12 * max(abs(after), 1e-300):
            return after
        at = after
    return at


@dataclass(frozen=True, slots=True)
class CopyOutcomes:
    """The outcomes of the copies that a step's subscribers outside the cohort should receive.

    ``missing`` is the least number of copies that did not arrive (lost or undrained) and the largest one (unknown ones
    included); None: the largest number is not known.
    """

    expected: int
    arrived: int
    missing: tuple[int, int | None]


def copies_of(
    figures: StepFigures, latency: Histogram, facts: TimeSeriesFacts, course: Sequence[TimeSeriesInterval]
) -> CopyOutcomes:
    """The outcomes of a step's copies, from its columns and the latencies of those that arrived."""
    arrived = sum(latency.counts[1::2])
    lost, loss = figures.totals.client_loss_pct, figures.loss
    low, high = (loss.client_loss_low_pct, loss.client_loss_high_pct) if lost is None else (lost, lost)
    least = [float(part) for part in (low, loss.undrained_pct) if part is not None]
    most = [float(part) for part in (high, loss.undrained_pct, loss.unknown_pct) if part is not None]
    due = round(sum(interval.due for interval in course) * facts.copies)
    # Messages that the system did not accept count as lost, and no share of those expected contains them.
    refused = figures.accepted.unaccepted_pct or 0.0
    if len(most) < 3 and refused < 100:
        return CopyOutcomes(max(due, arrived), arrived, (0, None))
    least = [refused, *(part * (1 - refused / 100) for part in least)]
    most = [refused, *(part * (1 - refused / 100) for part in most)]
    expected = due if sum(most) >= 100 else max(round(arrived / (1 - sum(most) / 100)), arrived)
    # A positive share counts as at least one copy.
    missing = max(expected - arrived, 1 if sum(most) else 0)
    return CopyOutcomes(
        max(expected, arrived + missing), arrived, (ceil(missing * sum(least) / sum(most)) if missing else 0, missing)
    )


class Lateness:
    """The late copies of a step, by its intervals.

    Args:
        facts: the constants of the step's time series.
        course: its intervals, oldest first, those of the drain included.
        latency: the latency of the whole step.
        copies: the outcomes of its copies.
        stall_s: the assumed size of an unseen stall, in seconds of traffic.
    """

    def __init__(
        self,
        facts: TimeSeriesFacts,
        course: Sequence[TimeSeriesInterval],
        latency: Histogram,
        copies: CopyOutcomes,
        stall_s: float,
    ) -> None:
        self._whole = latency
        self._copies = copies
        count = max(ceil(facts.duration_s / facts.interval_s), 1)
        self._at = [min(interval.begin_s // facts.interval_s, count - 1) for interval in course]
        self._intervals = course
        due = self._summed([interval.due for interval in course], count)
        scale = copies.expected / due.sum() if due.any() else 0.0
        self._due: Floats = due * scale
        # One stall delays at least one message, for all of its subscribers.
        self._stall = max(stall_s * copies.expected / facts.duration_s, facts.copies, 1.0)
        self._lost = self._summed([interval.lost or 0 for interval in course], count)
        self._sums = [list(accumulate(interval.latency.counts[1::2])) for interval in course]

    def _summed(self, values: Sequence[int], count: int) -> Floats:
        return np.asarray(np.bincount(self._at, values, count) if values else np.zeros(count), np.float64)

    @cached_property
    def _in_no_interval(self) -> int:
        """Copies that arrived but are in no interval, because reports of clients were lost."""
        return max(self._copies.arrived - sum(sums[-1] for sums in self._sums if sums), 0)

    def missing(self, count: int) -> BadCopies:
        """The seconds in which the copies that did not arrive were due."""
        return BadCopies(self._missing_by_second(count), self._due, self._stall)

    def _missing_by_second(self, count: int) -> Floats:
        bad = self._lost.copy()
        bad[-1] += max(count - bad.sum(), 0.0)
        return bad

    def at_most(self, above_us: float, missing: int) -> BadCopies:
        """The seconds with all copies that may have taken longer, and with those that did not arrive."""
        bad = self._late([bisect_right(edges, above_us) for edges in self._highest]) + self._missing_by_second(missing)
        indices, counts = self._whole.counts[::2], self._whole.counts[1::2]
        late = sum(count for index, count in zip(indices, counts, strict=True) if highest_of(index) > above_us)
        bad[-1] += min(self._in_no_interval, late)
        return BadCopies(bad, self._due, self._stall)

    def at_least(self, above_us: float, missing: int) -> BadCopies:
        """The seconds with the copies that certainly took longer, and with those that did not arrive."""
        bad = self._late([bisect_right(edges, above_us) for edges in self._lowest]) + self._missing_by_second(missing)
        return BadCopies(bad, self._due, self._stall)

    def _late(self, first: Sequence[int]) -> Floats:
        """The copies of each interval in its histogram from a bucket upwards."""
        late = [
            sums[-1] - (sums[at - 1] if at else 0) if sums else 0 for sums, at in zip(self._sums, first, strict=True)
        ]
        return self._summed(late, len(self._due))

    @cached_property
    def _highest(self) -> list[list[int]]:
        return [[highest_of(index) for index in interval.latency.counts[::2]] for interval in self._intervals]

    @cached_property
    def _lowest(self) -> list[list[int]]:
        return [[coarse_lowest(index) for index in interval.latency.counts[::2]] for interval in self._intervals]

    def highest_us(self) -> list[int]:
        """The highest value in µs of each bucket with copies, rising."""
        return sorted({value for edges in self._highest for value in edges})

    def lowest_us(self) -> list[int]:
        """The lowest value in µs of each bucket with copies, rising."""
        return sorted({value for edges in self._lowest for value in edges})
