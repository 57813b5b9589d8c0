"""How much successive values depend on each other. Pure."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


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
