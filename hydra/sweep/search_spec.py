"""The table ``[sweep.search]``: the settings of a search for the highest rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hydra.model import Bounded, Need, setting
from hydra.model.base import INT32, LEAST_RATE, MOST_RATE, require

SearchSeries = Literal["max_rate", "loss", "slow", "reconnecting", "nodrop"]

MOST_STEPS: Final = 10_000
LEAST_TARGET: Final = 0.0005
"""The search replaces a smaller loss target by this fraction: a whole day of steps cannot distinguish a smaller loss
from zero."""


def _series(*series: SearchSeries) -> tuple[Need, ...]:
    return (Need("sweep.search.series", series),)


_WITH_INTERVAL: Final = Need("sweep.held.interval", (True,), other=Need("sweep.held", (None,)))
_HIGHEST: Final = _series("max_rate", "nodrop")
_BELOW: Final = _series("loss", "slow", "reconnecting")


@dataclass(frozen=True, slots=True)
class SearchSpec(Bounded):
    """How rates are searched for each client count.

    Attributes:
        series: the searches, in order: ``"max_rate"``, ``"loss"``, ``"slow"``, ``"reconnecting"``, and for a
            system with this setting ``"nodrop"`` (the highest rate while the publisher waits instead of dropping).
            ``"slow"`` needs ``"max_rate"``.
        start_rate: the first rate that a search measures, in messages/s.
        floor_rate: the lowest rate that a search measures, in messages/s.
        loss_target: the highest expected shortfall of the rate that is searched for, as a fraction; a value below
            0.0005 counts as 0.0005.
        gain_target: a doubling of the rate that gains less than this fraction has stalled.
        stall_doublings: the search for the highest rate ends after this number of stalled doublings in a row.
        fresh_steps: steps after that, at the rate at which most was received; the result is their mean. 0: the result
            is the maximum itself, which is too high by chance.
        max_doublings: the most doublings of the rate.
        width: a search ends when the upper limit of its 95 % confidence interval is at most this many times the lower
            limit.
        steps: the most steps of each search. A search that brackets the rate finishes its bracket; one whose two
            results contradict each other takes half as many more.
        cohort_fraction: the fraction of the subscribers that is slow or reconnects.
        slow_share: slow subscribers read at this fraction of the result of ``max_rate``.
        reconnect_rate: reconnections per second of each reconnecting subscriber.
        ladder: rungs in a decade of the ladder (ISO 3) on which short steps bracket the rate before the search below
            the loss target; 0: the search begins with ``start_rate``, or half of what ``max_rate`` found.
        sndhwms: the search below the loss target is repeated for each of these high-water marks, for a system with the
            setting ``sndhwm``.
    """

    start_rate: float = setting(
        1000.0, "First rate of the search, in messages/s.", metavar="RATE", least=LEAST_RATE, most=MOST_RATE
    )
    floor_rate: float = setting(1.0, least=LEAST_RATE, most=MOST_RATE, needs=_BELOW)
    loss_target: float = setting(
        0.005, "Highest loss of a rate that passes, in percent.", unit="fraction", least=0, below=1, needs=_BELOW
    )
    gain_target: float = setting(0.05, least=0, most=1, needs=_HIGHEST)
    stall_doublings: int = setting(2, least=1, most=64, needs=_HIGHEST)
    max_doublings: int = setting(12, least=1, most=64)
    fresh_steps: int = setting(4, least=0, most=100, needs=_HIGHEST)
    width: float = setting(
        1.25,
        "A search ends when the upper limit of its 95 % interval is at most RATIO times the lower limit.",
        flag=("--search-width",),
        metavar="RATIO",
        above=1,
        most=1000,
        needs=(*_BELOW, _WITH_INTERVAL),
    )
    steps: int = setting(
        60,
        "Most steps of a search.",
        flag=("--search-steps",),
        metavar="N",
        least=2,
        most=MOST_STEPS,
        needs=(*_BELOW, _WITH_INTERVAL),
    )
    cohort_fraction: float = setting(0.1, above=0, below=1, needs=_series("slow", "reconnecting"))
    slow_share: float = setting(0.5, above=0, below=1, needs=_series("slow"))
    reconnect_rate: float = setting(2.0, least=0.001, most=100, needs=_series("reconnecting"))
    ladder: Literal[0, 5, 10, 20, 40] = 0
    series: tuple[SearchSeries, ...] = ("max_rate", "loss", "slow", "reconnecting")
    sndhwms: tuple[int, ...] = setting((), least=0, most=INT32, needs=_series("loss"))

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(
            self.floor_rate <= self.start_rate,
            f"start_rate must be {self.floor_rate:g}/s (floor_rate) or more, not {self.start_rate:g}/s; for a slower "
            f"search add --set sweep.search.floor_rate={self.start_rate:g}",
            *("start_rate", "floor_rate"),
        )
        require(
            len(set(self.sndhwms)) == len(self.sndhwms),
            f"a mark stands twice in sndhwms: {list(self.sndhwms)}",
            *("sndhwms", "series"),
        )
        require(len(self.series) > 0, "must name at least one search", "series")
        require(
            "max_rate" in self.series or "slow" not in self.series,
            "the series 'slow' needs 'max_rate': slow clients read a share of that figure",
        )

    @property
    def target(self) -> float:
        """The loss target of the search, a fraction of at least ``LEAST_TARGET``."""
        return max(self.loss_target, LEAST_TARGET)
