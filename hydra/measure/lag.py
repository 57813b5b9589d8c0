"""Whether the subscribers' backlog grows: the trend of their lag in the window. Pure.

The lag is the age of the newest message that was read. If it grows by x seconds per second, the backlog grows by the
share x of the rate. The lags of one window are few, autocorrelated and shared, since a delay of the publisher or the
host delays all subscribers. So there are two tests, each at ``LEVEL``:

1. of the pooled lag, the median over subscribers: does it grow for all?
2. of each subscriber's lag minus the pooled lag, in which shared disturbances cancel, by Holm's procedure over all of
   them: does it grow for some?

A trend counts only if it is significant *and* large. Large means that Theil and Sen's slope, which a few disturbed
parts of the window do not change, is above ``LEAST_SHARE``. Significance is a t-test of the least-squares slope with
its standard error adjusted for autocorrelation; a rank test of 20 values cannot reach the small p-values that 10,000
subscribers need.

Sources: P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, J. Am. Stat. Assoc. 63 (1968);
B. D. Santer et al., Statistical significance of trends and trend differences in layer-average atmospheric temperature
time series, J. Geophys. Res. 105 (2000), the adjusted standard error; N. P. A. van Giersbergen, On the effect of
deterministic terms on the bias in stable AR models, Economics Letters 89 (2005); S. Holm, A simple sequentially
rejective multiple test procedure, Scand. J. Statistics 6 (1979).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hydra.model import LAG_BINS
from hydra.wire.report_batch import NULL

LEAST_SHARE: Final = 0.005
"""Growth of the backlog, as a share of the rate, below which it does not matter."""
LEVEL: Final = 0.01
"""Probability with which each of the two tests finds a trend if there is none."""
LEAST_BINS: Final = 8
"""The least number of parts of the window with a lag, of one subscriber or of any, that a trend needs."""
_MOST_AUTOCORRELATION: Final = 0.9
"""The highest autocorrelation that one window can show: above it, noise and trend look alike."""

_AT_ONCE: Final = 16_384
"""Rows that are compared at once, so intermediate results stay in the CPU's caches."""

Lags = NDArray[np.float64]
"""Seconds: a row for each subscriber, a column for each part of the window; NaN: nothing was read."""


@dataclass(frozen=True, slots=True)
class BacklogGrowth:
    """The growth of the backlog that follows from the lag.

    Attributes:
        share: mean over subscribers of the backlog's growth as a share of the rate; 0 if no test finds any, None if
            too few lags are known.
        falling_behind: the number of subscribers whose backlog grows.
        pooled: whether the backlog of all of them grows together.
    """

    share: float | None
    falling_behind: int = 0
    pooled: bool = False


def growth(bins_us: NDArray[np.int64], window_s: float) -> BacklogGrowth:
    """The growth of the backlog in a step.

    Args:
        bins_us: the column ``lag_bins_us`` of a table: each subscriber's mean lag in equal parts of the window, µs.
        window_s: the length of the window in seconds.
    """
    bins = bins_us.reshape(-1, LAG_BINS)
    known = bins != NULL
    some = known.any(axis=1)
    if not bool(some.any()):
        return BacklogGrowth(None)
    lags = bins[some] / 1e6
    lags[~known[some]] = np.nan
    return growth_of(lags, window_s)


def growth_of(lags: Lags, window_s: float) -> BacklogGrowth:
    """The growth from lags in seconds; every row has at least one lag."""
    times = (np.arange(lags.shape[1]) + 0.5) * (window_s / lags.shape[1])
    heard = ~np.isnan(lags).all(axis=0)
    if heard.sum() < LEAST_BINS:
        return BacklogGrowth(None)
    if not heard.all():
        lags, times = lags[:, heard], times[heard]
    points = (~np.isnan(lags)).sum(axis=1)
    pooled = _median(lags, axis=0)
    together = bool(_growing(pooled[np.newaxis], times)[0])
    alone = np.zeros(len(lags), np.bool_)
    enough = points >= LEAST_BINS
    alone[enough] = _growing(lags if enough.all() else lags[enough], times, pooled)
    if together:
        sloping = points >= 2
        if not sloping.any():
            return BacklogGrowth(None)
        slopes = sen_slopes(lags[sloping], times)
        behind = alone[sloping] | (slopes > LEAST_SHARE)
        return BacklogGrowth(max(float(slopes.mean()), 0.0), int(behind.sum()), pooled=True)
    if not alone.any():
        return BacklogGrowth(0.0)
    slopes = np.maximum(sen_slopes(lags[alone], times), 0.0)
    return BacklogGrowth(float(slopes.sum()) / len(lags), int(alone.sum()))


def _median(values: Lags, axis: int) -> Lags:
    """The median without NaN; numpy's NaN-aware median is slow, and only used if there are NaN."""
    result: Lags = (np.nanmedian if np.isnan(values).any() else np.median)(values, axis=axis)
    return result


def _growing(lags: Lags, times: Lags, pooled: Lags | float = 0.0) -> NDArray[np.bool_]:
    """Whether each row minus the pooled lag grows significantly and enough; all rows are one family of tests."""
    # The median slope exceeds the least share if most slopes do, so the 190 slopes of a row need no sorting.
    p_values = np.ones(len(lags))
    for first in range(0, len(lags), _AT_ONCE):
        part = lags[first : first + _AT_ONCE] - pooled
        large = np.flatnonzero(_rises(part - LEAST_SHARE * times) > 0)
        if len(large):
            p_values[first + large] = trend_p_values(part[large], times)
    return holm(p_values, LEVEL)


def _rises(values: Lags) -> NDArray[np.int16]:
    """The number of rising pairs minus falling pairs of each row; pairs with NaN count as neither."""
    rises = np.zeros(len(values), np.int16)
    columns = np.ascontiguousarray(values.T)  # sums along the rows take ten times as long
    for apart in range(1, len(columns)):
        earlier, later = columns[:-apart], columns[apart:]
        rises += (later > earlier).sum(axis=0, dtype=np.int16) - (later < earlier).sum(axis=0, dtype=np.int16)
    return rises


def sen_slopes(lags: Lags, times: Lags) -> Lags:
    """Theil and Sen's slope of each row, the median slope between all pairs of its points; each row has two points."""
    parts = [lags[first : first + _AT_ONCE] for first in range(0, len(lags), _AT_ONCE)]
    return np.concatenate([_sen_slopes(part, times) for part in parts]) if parts else np.zeros(0)


def _sen_slopes(lags: Lags, times: Lags) -> Lags:
    points = len(times)
    slopes = np.empty((len(lags), points * (points - 1) // 2))
    at = 0
    for apart in range(1, points):
        pairs = slopes[:, at : at + points - apart]
        np.subtract(lags[:, apart:], lags[:, :-apart], out=pairs)
        pairs /= times[apart:] - times[:-apart]
        at += points - apart
    slopes.sort(axis=1)  # NaN last
    known = slopes.shape[1] - np.isnan(slopes).sum(axis=1)
    rows = np.arange(len(slopes))
    result: Lags = (slopes[rows, (known - 1) // 2] + slopes[rows, known // 2]) / 2
    return result


def trend_p_values(lags: Lags, times: Lags) -> Lags:
    """One-sided p-values of a rising line through each row; each row has at least three points.

    t = b / sqrt(Σe² / (n − 2) / Sxx · (1 + ρ) / (1 − ρ)) with n − 2 degrees of freedom: b the least-squares slope, e
    the residuals, ρ their first autocorrelation r corrected for the bias by the fitted line, (n·r + 2) / (n − 4), at
    least 0.
    """
    from scipy.special import stdtr  # takes half a second to import, which only a measurement needs

    known = ~np.isnan(lags)
    n = known.sum(axis=1)
    x, y = _centred(np.broadcast_to(times, lags.shape), known), _centred(lags, known)
    sxx = (x**2).sum(axis=1)
    slope = (x * y).sum(axis=1) / sxx
    e = y - slope[:, np.newaxis] * x
    squares = np.maximum((e**2).sum(axis=1), np.finfo(np.float64).tiny)
    r = (e[:, 1:] * e[:, :-1]).sum(axis=1) / squares
    rho = np.clip((n * r + 2) / (n - 4), 0.0, _MOST_AUTOCORRELATION)
    error = np.sqrt(squares / (n - 2) / sxx * (1 + rho) / (1 - rho))
    result: Lags = stdtr(n - 2, -slope / error)
    return result


def _centred(values: Lags, known: NDArray[np.bool_]) -> Lags:
    """Each row minus its mean; 0 for unknown values."""
    kept = np.where(known, values, 0.0)
    mean = kept.sum(axis=1, keepdims=True) / known.sum(axis=1, keepdims=True)
    return np.where(known, values - mean, 0.0)


def holm(p_values: Lags, level: float) -> NDArray[np.bool_]:
    """Which hypotheses are rejected with a family-wise error of at most ``level``."""
    order = np.argsort(p_values)
    passed = p_values[order] <= level / (len(p_values) - np.arange(len(p_values)))
    result = np.zeros(len(p_values), np.bool_)
    result[order[: len(passed) if passed.all() else int(passed.argmin())]] = True
    return result
