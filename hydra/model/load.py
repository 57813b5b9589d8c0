"""What a workload is over time: its load, what happens in the middle of it, and what has to hold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final, Literal

from hydra.model.base import require, setting

Points = Sequence[tuple[float, float]]
"""Seconds since the start, rising, and the rate (messages/s) there; two at one time are a jump."""

MAX_POINTS: Final = 8192

BURST: Final = "burst"
IMPAIRMENTS: Final = ("slow", "gone")
"""The kinds of events that a part of the subscribers goes through."""
MAX_IMPAIRMENTS: Final = 64
"""Spells of one subscriber in a step."""
EVENT_KINDS: Final = (BURST, *IMPAIRMENTS)
"""The kinds of events of every system."""

LoadShape = Literal["constant", "ramp", "steps", "daily", "recorded"]


def check_points(points: Points) -> None:
    """Refuses what is no load.

    Raises:
        ValueError: the text says why.
    """
    require(len(points) <= MAX_POINTS, f"a load of {len(points)} points, above the limit of {MAX_POINTS}")
    require(not points or points[0][0] == 0, "a load begins at 0 s")
    require(all(b[0] >= a[0] for a, b in pairwise(points)), "the times of a load rise")
    require(
        all(math.isfinite(t) and 0 <= r <= 1e9 and t <= 1e9 for t, r in points),
        "the rates of a load are 0 to 1e9 messages/s, and its times end at 1e9 s",
    )


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """How the rate of each publisher changes during a step; parts are those of ``settings.rate``.

    ``constant``: it does not. ``ramp``: from the part ``low`` to the part ``high`` in a line. ``steps``: each of
    ``parts`` for as long as the others. ``daily``: a sine that begins at its lowest, ``low``, and is back after
    ``period_s``. ``recorded``: what ``file`` says; its highest rate becomes ``settings.rate``, unless that is "max".
    ``points`` is what was read from that file: seconds and messages/s.
    """

    shape: LoadShape = setting(
        "constant", "Shape of the rate over time; the table [load] of a scenario has the details.", flag=("--load",)
    )
    low: float = 0.1
    high: float = 1.0
    parts: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
    period_s: float = 86_400.0
    file: str = setting("", unit="path")
    points: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        require(0 <= self.low <= 1, f"low is a part of the rate, 0 to 1, not {self.low:g}")
        require(0 < self.high <= 1, f"high is a part of the rate, above 0 and at most 1, not {self.high:g}")
        require(self.shape != "daily" or self.low <= self.high, "low must not be above high")
        require(0 < len(self.parts) <= MAX_POINTS // 2, f"parts are 1 to {MAX_POINTS // 2} parts of the rate")
        require(all(0 <= part <= 1 for part in self.parts), f"each of parts is 0 to 1, not {list(self.parts)}")
        require(any(self.parts), "one of parts must be above 0")
        require(self.period_s > 0, f"period_s must be above 0, not {self.period_s:g}")
        require(
            self.shape != "recorded" or bool(self.file or self.points),
            "shape 'recorded' needs file, a CSV of times or rates",
        )
        check_points(self.points)


@dataclass(frozen=True, slots=True)
class EventSpec:
    """What happens in the middle of a step.

    ``at_s`` is when, in seconds since its start, and ``for_s`` how long it goes on. ``burst``: the rate is ``factor``
    times what it would be. ``slow``: the part ``fraction`` of the subscribers reads at most ``rate`` messages/s; None:
    half of the step's mean rate. ``gone``: they have no connection. Other kinds are those of the system
    (``SystemSpec.events``), and happen at once.
    """

    at_s: float
    kind: str
    for_s: float = 10.0
    factor: float = 5.0
    fraction: float = 0.1
    rate: float | None = None

    def __post_init__(self) -> None:
        require(0 <= self.at_s <= 86_400, f"at_s must be 0 to 86400, not {self.at_s:g}")
        require(0 < self.for_s <= 86_400, f"for_s must be above 0 and at most 86400, not {self.for_s:g}")
        require(0 < self.factor <= 1000, f"factor must be above 0 and at most 1000, not {self.factor:g}")
        require(0 < self.fraction < 1, f"fraction must lie between 0 and 1, not {self.fraction:g}")
        require(self.rate is None or self.rate > 0, f"rate must be above 0 messages/s, not {self.rate}")


def _latency(flag: str, what: str) -> Any:
    """The field of an objective of latency."""
    return setting(None, f"Limit for the {what} latency, such as 20ms.", flag=(flag,), unit="ms")


@dataclass(frozen=True, slots=True)
class SloSpec:
    """What has to hold of a step: latency from the due time, loss, and how soon it holds again after each event.

    None asks for nothing. ``loss_pct`` is a percentage of what every subscriber should get. ``stall_s`` is not an
    objective: it is what one stall or burst of losses that was not seen may cost at most, in seconds of traffic.
    """

    p50_ms: float | None = _latency("--p50", "median")
    p90_ms: float | None = _latency("--p90", "90th percentile of the")
    p99_ms: float | None = _latency("--p99", "99th percentile of the")
    p999_ms: float | None = _latency("--p999", "99.9th percentile of the")
    max_ms: float | None = _latency("--max", "highest")
    loss_pct: float | None = setting(
        None, "Limit for lost messages, in percent of the expected ones.", flag=("--loss",), unit="%", metavar="PERCENT"
    )
    recovery_s: float | None = setting(
        None, "Time after each event within which all other objectives must hold again.", flag=("--recovery",), unit="s"
    )
    stall_s: float = setting(
        1.0,
        "Longest stall to allow for although none was seen; a shorter step can rule out a shorter one.",
        flag=("--stall",),
        unit="s",
    )

    def __post_init__(self) -> None:
        for name, value in self.objectives().items():
            least = 0 if name == "loss_pct" else 1e-3
            require(least <= value <= 1e9, f"{name} must be {least:g} or more, not {value:g}")
        require(self.loss_pct is None or self.loss_pct < 100, f"loss_pct is 0 to below 100, not {self.loss_pct}")
        require(1e-6 <= self.stall_s <= 3600, f"stall_s is 1e-06 to 3600, not {self.stall_s:g}")

    def objectives(self) -> Mapping[str, float]:
        """Those that are set, by their name."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "stall_s"}
        return {name: value for name, value in found.items() if value is not None}
