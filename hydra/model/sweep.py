"""What a scenario varies: a grid of settings, or the rates that are searched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal

from hydra.model.base import DAY_S, INT32, LEAST_RATE, MOST_RATE, Figure, Setting, require, setting

SearchSeries = Literal["max_rate", "loss", "slow", "reconnecting", "nodrop"]


LEAST_TARGET: Final = 0.0005
"""A loss target below this is searched for as if it were this: no number of steps that fits into a day tells less from
nothing."""


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """How rates are searched for each client count.

    Rates in messages/s. ``loss_target`` is a fraction. A search for the highest rate stops when
    ``stall_doublings`` doublings in a row each gain less than ``gain_target``, and takes ``fresh_steps`` more at the
    rate at which most was received (0: the figure is the maximum itself, which is too high by chance). One for a rate
    within the target stops when the upper limit of its 95 % interval is at most ``width`` times the lower, or after
    ``steps`` steps. Cohorts are ``cohort_fraction`` of the clients: slow ones read ``slow_share`` of the first figure,
    reconnecting ones do so ``reconnect_rate`` times a second. ``sndhwms`` repeats the search below the loss target for
    each of these high-water marks; ``nodrop`` is the highest rate while the publisher waits instead of dropping.
    """

    start_rate: float = setting(
        1000.0, "Where the search for a rate begins.", metavar="RATE", least=LEAST_RATE, most=MOST_RATE
    )
    floor_rate: float = setting(1.0, least=LEAST_RATE, most=MOST_RATE)
    loss_target: float = setting(0.005, "Loss in percent below which a rate passes.", unit="fraction")
    gain_target: float = setting(0.05, least=0, most=1)
    stall_doublings: int = setting(2, least=1, most=64)
    max_doublings: int = setting(12, least=1, most=64)
    fresh_steps: int = setting(4, least=0, most=100)
    width: float = setting(
        1.25,
        "A search ends when the upper limit of its 95 % interval is at most this times the lower.",
        flag=("--search-width",),
        metavar="RATIO",
        least=1,
        most=1000,
    )
    steps: int = setting(60, "Steps of a search at most.", flag=("--search-steps",), metavar="N")
    cohort_fraction: float = 0.1
    slow_share: float = 0.5
    reconnect_rate: float = setting(2.0, least=0.001, most=100)
    series: tuple[SearchSeries, ...] = ("max_rate", "loss", "slow", "reconnecting")
    sndhwms: tuple[int, ...] = setting((), least=0, most=INT32)

    def __post_init__(self) -> None:
        require(self.start_rate > 0, f"start_rate must be above 0 messages/s, not {self.start_rate}")
        require(0 < self.floor_rate <= self.start_rate, "floor_rate must be above 0 and at most start_rate")
        require(0 <= self.loss_target < 1, f"loss_target is a fraction from 0 to below 1, not {self.loss_target}")
        require(self.width > 1, f"width is the upper limit over the lower, above 1, not {self.width}")
        require(2 <= self.steps <= 10_000, f"steps must be 2 to 10000, not {self.steps}")
        require(self.max_doublings >= 1, f"max_doublings must be at least 1, not {self.max_doublings}")
        require(0 <= self.fresh_steps <= 100, f"fresh_steps must be 0 to 100, not {self.fresh_steps}")
        require(self.stall_doublings >= 1, f"stall_doublings must be at least 1, not {self.stall_doublings}")
        require(0 < self.cohort_fraction < 1, f"cohort_fraction must lie between 0 and 1, not {self.cohort_fraction}")
        require(0 < self.slow_share < 1, f"slow_share must lie between 0 and 1, not {self.slow_share}")
        require(all(h >= 0 for h in self.sndhwms), f"sndhwms are 0 (unbounded) or more, not {list(self.sndhwms)}")
        require(len(set(self.sndhwms)) == len(self.sndhwms), f"a mark stands twice in sndhwms: {list(self.sndhwms)}")
        require(len(self.series) > 0, "series must name at least one search")
        require(
            "max_rate" in self.series or "slow" not in self.series,
            "the series 'slow' needs 'max_rate': slow clients read a share of that figure",
        )

    @property
    def target(self) -> float:
        """The shortfall that is searched for, a fraction."""
        return max(self.loss_target, LEAST_TARGET)


@dataclass(frozen=True, slots=True)
class Point:
    """One row of a sweep that lists them: what it is called, and how it differs from the scenario.

    ``clients`` may be 0 where servers keep what is sent: then only publishers run. ``publishers`` and ``duration_s``
    None are the scenario's.
    """

    name: str
    clients: int = setting(0, least=0, most=1_000_000)
    publishers: int | None = setting(None, least=1, most=10_000)
    duration_s: float | None = setting(None, least=0.001, most=DAY_S)
    settings: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """What a scenario varies: client counts, and either a grid of settings or a search; or a list of points.

    ``vary`` maps a field of ``Settings`` to the values it takes; the client count is the outer loop. ``repeat`` is how
    often each row is measured; what a repeated row has is told in ``sweep/repetition.py``. ``points`` lists the rows in
    their order, in place of ``clients`` and ``vary``. ``seconds`` keeps the figures of every second of each step.
    """

    duration_s: float = field(
        metadata=Setting(
            help="Length of a step; also with a unit, such as 90s or 10min.",
            flag=("--duration",),
            unit="s",
            metavar="SECONDS",
            least=0.001,
            most=DAY_S,
        ).metadata
    )
    clients: tuple[int, ...] = setting((), "Subscriber counts.", least=1, most=1_000_000)
    points: tuple[Point, ...] = ()
    vary: Mapping[str, tuple[Figure, ...]] = field(default_factory=dict)
    search: SearchSpec | None = None
    repeat: int = setting(1, "Measure each row N times: mean and 95 % interval.", metavar="N", least=1, most=10_000)
    seconds: bool = False

    def __post_init__(self) -> None:
        require(self.repeat >= 1, f"repeat must be at least 1, not {self.repeat}")
        require(bool(self.clients or self.points), "clients must name at least one client count, or list points")
        others = [n for n in ("clients", "vary", "search") if self.points and getattr(self, n)]
        require(not others, f"points stand in place of clients, vary and search: remove {' and '.join(others)}")
        require(all(c >= 1 for c in self.clients), f"every client count must be at least 1, not {list(self.clients)}")
        require(len(set(self.clients)) == len(self.clients), f"a client count stands twice in {list(self.clients)}")
        require(0 < self.duration_s <= 86_400, f"duration_s must be above 0 and at most 86400, not {self.duration_s}")
        require(not (self.vary and self.search), "a sweep has either vary (a grid) or search, not both")
        require(all(len(v) > 0 for v in self.vary.values()), "every list under vary needs at least one value")

    @property
    def rows(self) -> int:
        """How many rows its table has when everything is measured."""
        return len(self.points) or len(self.clients) * prod(len(values) for values in self.vary.values())

    @property
    def counts(self) -> tuple[int, ...]:
        """Every client count once, ascending."""
        return tuple(sorted({*self.clients, *(point.clients for point in self.points)}))

    @property
    def varied(self) -> tuple[str, ...]:
        """The settings that are not the same in all rows, in the order of the file."""
        return tuple(dict.fromkeys((*self.vary, *(name for point in self.points for name in point.settings))))

    @property
    def longest_s(self) -> float:
        """The length of the longest step in seconds."""
        return max((self.length_s(point.name) for point in self.points), default=self.duration_s)

    def length_s(self, point: str) -> float:
        """The length of the steps of the point of this name in seconds; "" where no points are listed."""
        return next((p.duration_s for p in self.points if p.name == point and p.duration_s), self.duration_s)
