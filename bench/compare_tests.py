#!/usr/bin/env python3
"""How often tests of paired repeats show a difference: where there is none, and where there is one of 10 %.

What `hydra compare` uses was chosen by this table (docs/compare.md): Student's t of the pairs' log ratios, the exact
permutation of their signs, and Wilcoxon's signed ranks, for spreads of several shapes. No clock, no sockets: it may run
beside anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.stats import rankdata

from hydra.analysis.statistics import ALPHA, paired

Floats = NDArray[np.float64]
Shape = Callable[[Generator, tuple[int, ...]], Floats]

TIMES = 20_000
SPREAD = 0.05
"""Standard deviation of a repeat's logarithm."""

SHAPES: Mapping[str, Shape] = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "heavy tails (t, 3 degrees)": lambda rng, size: rng.standard_t(3, size) / np.sqrt(3),
    "skewed (exponential)": lambda rng, size: rng.exponential(1.0, size) - 1,
    "one in ten slow by 4 sd": lambda rng, size: rng.standard_normal(size) + 4 * (rng.random(size) < 0.1),
}


def sign_flips(d: Floats) -> Floats:
    """p of the exact permutation of signs."""
    return _flipped(d)


def signed_ranks(d: Floats) -> Floats:
    """p of Wilcoxon's signed-rank test, exact."""
    return _flipped(rankdata(np.abs(d), axis=-1) * np.sign(d))


def _flipped(d: Floats) -> Floats:
    signs = np.array(list(product((-1.0, 1.0), repeat=d.shape[-1])))
    sums = np.abs(d @ signs.T)
    at_least: Floats = (sums >= np.abs(d.sum(axis=-1))[:, None] - 1e-12).mean(axis=-1)
    return at_least


TESTS: Mapping[str, Callable[[Floats], Floats]] = {
    "t": lambda d: paired(d).p,
    "sign flips": sign_flips,
    "signed ranks": signed_ranks,
}


def main() -> None:
    rng = np.random.default_rng(1)
    print("| pairs | spread | " + " | ".join(f"{test}: false, found" for test in TESTS) + " |")
    print("|" + "---|" * (2 + len(TESTS)))
    for pairs, (name, shape) in product((5, 6, 8, 10), SHAPES.items()):
        a, b = (SPREAD * shape(rng, (TIMES, pairs)) for _ in range(2))
        cells = []
        for test in TESTS.values():
            false, found = (np.mean(test(d) <= ALPHA) for d in (b - a, b - a + np.log(1.1)))
            cells.append(f"{100 * false:.1f} %, {100 * found:.0f} %")
        print(f"| {pairs} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
