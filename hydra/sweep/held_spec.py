"""The table ``[sweep.held]``: how the highest rate that was held is found on a ladder of rates."""

from __future__ import annotations

from dataclasses import dataclass

from hydra.model import Bounded, setting
from hydra.model.base import DAY_S
from hydra.sweep.ladder import RungsPerDecade


@dataclass(frozen=True, slots=True)
class HeldSpec(Bounded):
    """How each series of ``[sweep.search]`` is measured; ``sweep.duration_s`` is for how long a rate has to be held.

    Attributes:
        ladder: rungs of the ladder in a decade: the series R5, R10, R20 or R40 of ISO 3.
        short_s: the length in seconds of the steps that look for the rung, at most ``sweep.duration_s``; every step is
            long enough for 20 messages.
        within_s: the most seconds, connecting included, that each series of a client count takes. A duration of more
            than 10 s, or steps of more than 2 s, raise it by what up to three and up to four such steps take more.
        saturation: whether each client count begins with a step at rate ``max``, bounded in bytes, which shows the
            highest rate received if messages may be lost.
        interval: whether the search with a confidence interval begins where the ladder ends: see docs/measurements.md.
    """

    ladder: RungsPerDecade = setting(10, "Rungs of the ladder of rates in a decade (ISO 3): 5, 10, 20 or 40.")
    short_s: float = setting(2.0, unit="s", least=0.001, most=DAY_S)
    within_s: float = setting(
        60.0, "Most time of a client count, such as 60s.", flag=("--within",), unit="s", least=1, most=DAY_S
    )
    saturation: bool = setting(True, "Begin with a step at full speed, which servers of others may not like.")
    interval: bool = setting(
        False, "Search for the highest rate within the loss target, with its 95 % interval: takes longer."
    )
