"""The warnings of rates that were held, or were not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hydra.events.event import Level
from hydra.events.value_formatting import between, number
from hydra.model import Figure
from hydra.sweep.held_columns import CAUSE, FAILED_BELOW, HELD_S, NOT_HELD, UNSENT, RungRates, cause_text
from hydra.sweep.interface import Row
from hydra.sweep.search_columns import ANSWER, HIGH_PPS, LOW_PPS
from hydra.sweep.search_warnings import Limits, SearchedFigure, SearchWarning, of_figure


def of_held(row: Row, series: str) -> list[SearchWarning]:
    """The warnings of a rate that was held, or was not: those of this file, and of a series that was not measured."""
    return of_figure(row, series)


class HeldAtLeast(SearchWarning):
    """The clients or their hosts, and not the system, were the limit of the step above the rate that was held."""

    rate: Figure
    cause: str
    unsent: bool

    @property
    def remedy(self) -> str:
        """What may raise the limit."""
        return "use more publishers, or native clients" if self.unsent else "run the clients on hosts of their own"

    @property
    def sentence(self) -> str:
        beyond = f"{number(self.rate)}/s was not held ({self.cause})"
        return f"the clients or their hosts were the limit, not the system: {beyond}"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        if about.get(ANSWER) != "at_least":
            return []
        unsent = UNSENT in about.words(CAUSE)
        return [cls(about.search, about.get(NOT_HELD), cause_text(about.row, about.search), unsent)]


class NotConfirmed(SearchWarning):
    """The time was over before a rate was held for its duration, and one above it was not.

    ``limits`` are the rates (messages/s) around the answer, and ``held_s`` is for how long the lower one was held.
    """

    level = Level.LOSS
    remedy = "give it more time (--within), or measure while no other processes use the hosts"
    limits: Limits
    held_s: Figure

    @property
    def sentence(self) -> str:
        if self.held_s is not None:
            held = f"{number(self.limits[0])}/s was held for {number(self.held_s)} s"
            return f"{held}, and no rate above it was found that is not: the time was over"
        return f"{between(*self.limits, '/s') or 'no rate is known'}, not confirmed: the time was over"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        if about.get(ANSWER) != "unconfirmed" or about.words("_why"):
            return []
        return [cls(about.search, about.limits(LOW_PPS, HIGH_PPS), about.get(HELD_S))]


class NoneHeld(SearchWarning):
    """Not even the lowest rate was held."""

    level = Level.LOSS
    remedy = "see in hydra report what is lost at low rates, and when, or raise the target (--loss-target)"
    rate: Figure
    cause: str

    @property
    def sentence(self) -> str:
        return f"no rate was held: at {number(self.rate)}/s, the lowest one, {self.cause}"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        if about.get(ANSWER) != "none_held":
            return []
        return [cls(about.search, about.get(NOT_HELD), cause_text(about.row, about.search))]


class FailedBelowHeld(SearchWarning):
    """Rates (messages/s) that were not held although a step at a higher rate was clean."""

    remedy = "hydra report shows the loss at each rate"
    rates: Sequence[float]

    @property
    def sentence(self) -> str:
        shown = ", ".join(map(number, self.rates))
        return f"{shown}/s was not held in two steps, although a step at a higher rate was clean"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        rungs = (each for each in about.words(FAILED_BELOW) if isinstance(each, RungRates))
        rates = sorted({rate for each in rungs for rate in each.rates})
        return [cls(about.search, rates)] if rates else []
