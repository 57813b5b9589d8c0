"""SplitMix64: whole numbers of 64 bits, the same in all languages (``native/src/common/split_mix.h``). Pure.

Source: G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Final

import numpy as np
import numpy.typing as npt

GAMMA: Final = 0x9E3779B97F4A7C15
"""The generator adds this to its state to get the next state."""
WORD: Final = 2**64 - 1
"""The highest number; all sums and products are cut to it."""
_AT_ONCE: Final = 4096


def mix(z: int) -> int:
    """Computes the random number that the generator gives in state ``z``."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def mix_each(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Computes the random number of each state."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


class SplitMix64:
    """A stream of numbers, from a seed and a stream number."""

    def __init__(self, seed: int, stream: int) -> None:
        self._start = mix_each(np.array([(2 * seed + stream) % 2**64], np.uint64))
        self._taken = 0

    def take(self, number: int) -> npt.NDArray[np.uint64]:
        """Returns the next ``number`` random numbers of the stream."""
        places = np.arange(self._taken + 1, self._taken + 1 + number, dtype=np.uint64)
        self._taken += number
        return mix_each(self._start + places * np.uint64(GAMMA))

    def each(self) -> Iterator[int]:
        """An endless iterator over the stream; it and :meth:`take` never give the same number twice."""
        return chain.from_iterable(self.take(_AT_ONCE).tolist() for _ in count())
