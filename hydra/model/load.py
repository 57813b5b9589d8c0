"""The workload of a step over time: its load, its events, and its objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Final, Literal

from hydra.model.base import Need, require, setting

Points = Sequence[tuple[float, float]]
"""Ascending times (s since the start) with the rate (messages/s) at each; two points with one time are a jump."""

MAX_POINTS: Final = 8192

BURST: Final = "burst"
RESTART: Final = "restart_server"
"""The event that kills a server started by Hydra and starts it again."""
IMPAIRMENTS: Final = ("slow", "gone")
"""The kinds of events that impair a part of the subscribers."""
MAX_IMPAIRMENTS: Final = 64
"""The maximum number of impairments of one subscriber in a step."""
EVENT_KINDS: Final = (BURST, *IMPAIRMENTS)
"""The kinds of events of every system."""

LoadShape = Literal["constant", "ramp", "steps", "daily", "recorded"]


def check_points(points: Points) -> None:
    """Checks the points of a load.

    Raises:
        ValueError: the points are invalid; the text gives the reason.
    """
    require(len(points) <= MAX_POINTS, f"a load of {len(points)} points, above the limit of {MAX_POINTS}")
    require(not points or points[0][0] == 0, "a load begins at 0 s")
    require(all(b[0] >= a[0] for a, b in pairwise(points)), "the times of a load rise")
    require(
        all(math.isfinite(t) and 0 <= r <= 1e9 and t <= 1e9 for t, r in points),
        "the rates of a load are 0 to 1e9 messages/s, and its times end at 1e9 s",
    )


def _shape(*shapes: LoadShape) -> Need:
    return Need("load.shape", shapes)


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """How the rate of each publisher changes during a step; all parts are parts of ``settings.rate``.

    ``constant``: the rate does not change. ``ramp``: it changes linearly from the part ``low`` to the part ``high``.
    ``steps``: it has each of ``parts`` for an equal time. ``daily``: it is a sine that begins at its minimum ``low``,
    and has the period ``period_s``. ``recorded``: it follows ``file``; its highest rate becomes ``settings.rate``,
    unless that is "max". ``points`` are read from that file: seconds and messages/s.
    """

    shape: LoadShape = setting(
        "constant", "Shape of the rate over time; the table [load] of a scenario has the details.", flag=("--load",)
    )
    low: float = setting(0.1, needs=(_shape("ramp", "daily"),))
    high: float = setting(1.0, needs=(_shape("ramp", "daily"),))
    parts: tuple[float, ...] = setting((0.25, 0.5, 0.75, 1.0), needs=(_shape("steps"),))
    period_s: float = setting(86_400.0, needs=(_shape("daily"),))
    file: str = setting("", unit="path", needs=(_shape("recorded"),))
    points: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        require(0 <= self.low <= 1, f"low is a part of the rate, 0 to 1, not {self.low:g}")
        require(0 < self.high <= 1, f"high is a part of the rate, above 0 and at most 1, not {self.high:g}")
        require(self.shape != "daily" or self.low <= self.high, "low must not be above high")
        require(0 < len(self.parts) <= MAX_POINTS // 2, f"parts must have 1 to {MAX_POINTS // 2} shares of the rate")
        require(all(0 <= part <= 1 for part in self.parts), f"each of parts is 0 to 1, not {list(self.parts)}")
        require(any(self.parts), "one of parts must be above 0")
        require(self.period_s > 0, f"period_s must be above 0, not {self.period_s:g}")
        require(
            self.shape != "recorded" or bool(self.file or self.points),
            "shape 'recorded' needs a CSV of times or rates: add --set load.file=FILE",
        )
        check_points(self.points)


@dataclass(frozen=True, slots=True)
class EventSpec:
    """An event during a step.

    ``at_s`` is its begin in seconds since the start of the step, ``for_s`` its duration in seconds. ``burst``
    multiplies the rate by ``factor``. With ``slow`` the part ``fraction`` of the subscribers reads at most ``rate``
    messages/s;
    None: half of the step's mean rate. With ``gone`` these subscribers are disconnected. Other kinds belong to the
    system (``SystemSpec.events``), and have no duration.
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
    """The field of a latency objective."""
    return setting(None, f"Limit for the {what} latency, such as 20ms.", flag=(flag,), unit="ms")


@dataclass(frozen=True, slots=True)
class SloSpec:
    """The objectives of a step: latency from the due time, loss, and the recovery time after each event.

    None is no objective. ``loss_pct`` is a percentage of the messages that every subscriber should receive. ``stall_s``
    is no objective: it is the longest stall or burst of losses, in seconds of traffic, that may have been missed.
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
        """The objectives of ``hydra slo`` that are set, such as the highest p99 latency, by name."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "stall_s"}
        return {name: value for name, value in found.items() if value is not None}
