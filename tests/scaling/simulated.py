"""Systems whose throughput is known, measured with noise: what `hydra fit` would be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from hydra.analysis.nonnegative_fit import Array

COUNTS: Final = {
    "doubling from 1": [2.0**i for i in range(9)],
    "doubling from 30": [30 * 2.0**i for i in range(8)],
    "by half from 10": [10 * 1.5**i for i in range(9)],
    "twelve": [1.0, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
}
"""Client counts of a run; the last is held out."""


@dataclass(frozen=True, slots=True)
class Cases:
    """``counts`` (points,) and measured ``throughputs`` (cases, points)."""

    counts: Array
    throughputs: Array


def cases(kind: str, counts: list[float], many: int, seed: int = 7) -> Cases:
    """Many runs over systems of a kind, with 2 to 10 % of noise (log-uniform).

    Args:
        kind: "law", "plateau", "saturating", "falls to a level", "power", "slow fall" or "late fall".
        counts: client counts.
        many: how many.
        seed: of the parameters and the noise.
    """
    rng = np.random.default_rng(seed)
    n = np.array(counts)
    true = _throughput(kind, n, counts[-2], many, rng)
    noise = 10 ** rng.uniform(np.log10(0.02), np.log10(0.1), many)
    return Cases(n, true * np.exp(noise[:, None] * rng.standard_normal(true.shape)))


def _throughput(kind: str, n: Array, largest: float, many: int, rng: np.random.Generator) -> Array:
    """(cases, points). What saturates does so where fits can see it, at a tenth of the largest count or later."""
    capacity = largest * 10 ** rng.uniform(-1, -0.15, many)[:, None]
    level = rng.uniform(0.3, 0.7, many)[:, None]
    if kind == "law":
        contention = np.where(rng.random(many) < 0.2, 0, 10 ** rng.uniform(-4, -0.3, many))[:, None]
        peak = largest * 10 ** rng.uniform(-0.7, 1, many)[:, None]
        coherency = np.where(rng.random((many, 1)) < 0.25, 0, (1 - contention) / peak**2)
        true: Array = n / (1 + contention * (n - 1) + coherency * n * (n - 1))
    elif kind == "plateau":
        true = np.minimum(n, capacity)
    elif kind == "saturating":
        true = capacity * (1 - np.exp(-n / capacity))
    elif kind == "power":
        true = n ** rng.uniform(0.3, 0.95, many)[:, None]
    elif kind in ("slow fall", "late fall"):
        # From the knee on, or from where the evidence ends: what no run shows no model knows.
        begins = capacity if kind == "slow fall" else np.full_like(capacity, largest)
        true = np.minimum(n, capacity) * np.maximum(n / begins, 1) ** -rng.uniform(0.1, 0.4, many)[:, None]
    else:
        true = np.minimum(n, capacity) * (level + (1 - level) / (1 + n / capacity))
    return true
