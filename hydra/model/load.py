"""The workload of a step over time: its load, its events, and its objectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, Final, Literal

from hydra.model.base import DAY_S, Need, Setting, require, setting
from hydra.model.bounds import Bounded

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
class LoadSpec(Bounded):
    """How the rate of each publisher changes during a step; all parts are parts of ``settings.rate``.

    ``constant``: the rate does not change. ``ramp``: it changes linearly from the part ``low`` to the part ``high``.
    ``steps``: it has each of ``parts`` for an equal time. ``daily``: it is a sine that begins at its minimum ``low``,
    and has the period ``period_s``. ``recorded``: it follows ``file``; its highest rate becomes ``settings.rate``,
    unless that is "max". ``points`` are read from that file: seconds and messages/s.
    """

    shape: LoadShape = setting(
        "constant", "Shape of the rate over time; the table [load] of a scenario has the details.", flag=("--load",)
    )
    low: float = setting(0.1, least=0, most=1, needs=(_shape("ramp", "daily"),))
    high: float = setting(1.0, above=0, most=1, needs=(_shape("ramp", "daily"),))
    parts: tuple[float, ...] = setting((0.25, 0.5, 0.75, 1.0), least=0, most=1, needs=(_shape("steps"),))
    period_s: float = setting(86_400.0, above=0, needs=(_shape("daily"),))
    file: str = setting("", unit="path", needs=(_shape("recorded"),))
    points: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(self.shape != "daily" or self.low <= self.high, "low must not be above high", "low", "high", "shape")
        require(0 < len(self.parts) <= MAX_POINTS // 2, f"must have 1 to {MAX_POINTS // 2} shares of the rate", "parts")
        require(any(self.parts), "must have one above 0", "parts")
        require(
            self.shape != "recorded" or bool(self.file or self.points),
            "shape 'recorded' needs a CSV of times or rates: add --set load.file=FILE",
            *("shape", "file"),
        )
        check_points(self.points)


@dataclass(frozen=True, slots=True)
class EventSpec(Bounded):
    """An event during a step.

    ``at_s`` is its begin in seconds since the start of the step, ``for_s`` its duration in seconds. ``burst``
    multiplies the rate by ``factor``. With ``slow`` the part ``fraction`` of the subscribers reads at most ``rate``
    messages/s;
    None: half of the step's mean rate. With ``gone`` these subscribers are disconnected. Other kinds belong to the
    system (``SystemSpec.events``), and have no duration.
    """

    at_s: float = field(metadata=Setting(least=0, most=DAY_S).metadata)
    kind: str
    for_s: float = setting(10.0, above=0, most=DAY_S)
    factor: float = setting(5.0, above=0, most=1000)
    fraction: float = setting(0.1, above=0, below=1)
    rate: float | None = setting(None, above=0)


def _latency(flag: str, what: str) -> Any:
    """The field of a latency objective."""
    return setting(None, f"Limit for the {what} latency, such as 20ms.", flag=(flag,), unit="ms", least=1e-3, most=1e9)


@dataclass(frozen=True, slots=True)
class SloSpec(Bounded):
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
        None,
        "Limit for lost messages, in percent of the expected ones.",
        flag=("--loss",),
        unit="%",
        metavar="PERCENT",
        least=0,
        below=100,
    )
    recovery_s: float | None = setting(
        None,
        "Time after each event within which all other objectives must hold again.",
        flag=("--recovery",),
        unit="s",
        least=1e-3,
        most=1e9,
    )
    stall_s: float = setting(
        1.0,
        "Longest stall to allow for although none was seen; a shorter step can rule out a shorter one.",
        flag=("--stall",),
        unit="s",
        least=1e-6,
        most=3600,
    )

    def objectives(self) -> Mapping[str, float]:
        """The objectives of ``hydra slo`` that are set, such as the highest p99 latency, by name."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "stall_s"}
        return {name: value for name, value in found.items() if value is not None}
