"""Ladders of preferred numbers (ISO 3), on whose rungs rates are tried, so two runs try the same rates. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from math import floor, log10
from typing import Final, Literal

RungsPerDecade = Literal[5, 10, 20, 40]

_R40: Final = (
    *(100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300),
    *(315, 335, 355, 375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950),
)
"""A decade of the series R40, in hundredths; the series R20, R10 and R5 are every second, fourth and eighth of it."""


@dataclass(frozen=True, slots=True)
class Ladder:
    """A series of preferred numbers, continued in all decades; rung 0 is 1.

    Attributes:
        rungs: rungs of a decade: 5, 10, 20 or 40.
    """

    rungs: RungsPerDecade

    def rate(self, rung: int) -> float:
        """The rate of a rung, exactly as the standard writes it."""
        decade, place = divmod(rung, self.rungs)
        return float(f"{self._decade[place]}e{decade - 2}")

    def at_most(self, rate: float) -> int:
        """The highest rung whose rate is at most this one."""
        decade, hundredths = _split(rate)
        return decade * self.rungs + bisect_right(self._decade, hundredths) - 1

    def at_least(self, rate: float) -> int:
        """The lowest rung whose rate is at least this one."""
        decade, hundredths = _split(rate)
        return decade * self.rungs + bisect_left(self._decade, hundredths)

    @property
    def _decade(self) -> tuple[int, ...]:
        return _R40[:: len(_R40) // self.rungs]


def _split(rate: float) -> tuple[int, float]:
    """The decade of a rate, and the rate as hundredths of that decade; rounding does not move it off its rung."""
    decade = floor(log10(rate) + 1e-12)
    return decade, round(rate / 10.0**decade * 100, 9)
