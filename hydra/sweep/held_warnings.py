"""The warnings of rates that were held, or were not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hydra.events.event import Level
from hydra.events.value_formatting import between, number, series_text
from hydra.measure.column import ANSWER, HIGH_PPS, LOW_PPS, REPEATS, WHY
from hydra.measure.host_columns import Hosts
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.model import Figure
from hydra.sweep.cleanness import answers, others_of
from hydra.sweep.held_columns import (
    CAUSE,
    CLEAN_STEPS,
    FAILED_BELOW,
    HELD_S,
    NOT_HELD,
    UNSENT,
    WHOLE_STEPS,
    RungRates,
    cause_text,
)
from hydra.sweep.interface import Row
from hydra.sweep.search_warnings import Limits, SearchedFigure, SearchWarning, of_figure


def of_held(row: Row, series: str) -> list[SearchWarning]:
    """The warnings of a rate that was held, or was not: those of this file, and of a series that was not measured."""
    return of_figure(row, series)


class HeldWarning(SearchWarning):
    """A warning of a rate that was held, or was not; the usual one has no name in its text."""

    template = "{named}{sentence}"

    @property
    def named(self) -> str:
        """The series in words, before the sentence; "" for the usual one."""
        return "" if self.search == "loss" else f"{series_text(self.search)}: "


def limited_by_clients(row: Row) -> list[str]:
    """The series of which the clients or their hosts were the limit of the step above the rate that was held."""
    return [
        name
        for name, answer in answers(row).items()
        if answer == "at_least" and row.get(name + NOT_HELD) is not None and REPEATS not in row
    ]


class HeldAtLeast(HeldWarning):
    """The clients or their hosts, and not the system, were the limit of the step above the rate that was held.

    Attributes:
        rate: the rate of that step, in messages/s.
        cause: why it was not held.
        unsent: whether the publisher was too slow.
        busy_pct: the CPU that was used of a host that had none left, in %; None: every host had some.
        others_pct: the CPU of it that processes outside the run used, in %; 0: unknown or small.
    """

    rate: Figure
    cause: str
    unsent: bool
    busy_pct: float | None = None
    others_pct: float = 0.0

    @property
    def remedy(self) -> str:
        """What may raise the limit."""
        if self.unsent and self.busy_pct is None:
            return "use more publishers, or native clients if these are not"
        return "run the clients on hosts of their own"

    @property
    def sentence(self) -> str:
        beyond = f"{number(self.rate)}/s was not held ({self.cause})"
        if self.busy_pct is None:
            return f"the clients or their hosts were the limit, not the system: {beyond}"
        who = "clients, any server there and other processes" if self.others_pct else "clients and any server there"
        others = f", of which others {self.others_pct:.0f} %" if self.others_pct else ""
        unknown = f"what the system alone can do is unknown, because {who} shared the full CPU of a host"
        return f"{unknown}: {beyond}, {self.busy_pct:.0f} % of the CPU used{others}"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        if about.search not in limited_by_clients(about.row):
            return []
        hosts, unsent = Hosts.of_row(about.row), UNSENT in about.words(CAUSE)
        used_pct, others_pct = hosts.host_cpu_mean_pct or 0.0, others_of(hosts)
        busy_pct = used_pct if used_pct >= BUSY_HOST_PCT else None
        others_pct = others_pct if busy_pct and others_pct >= OTHERS_PCT else 0.0
        cause = cause_text(about.row, about.search)
        return [cls(about.search, about.get(NOT_HELD), cause, unsent, busy_pct, others_pct)]


class NextRateUnknown(HeldWarning):
    """A rate was held, and no higher one was found that was not: the time was over."""

    remedy = "give it more time (--within)"

    @property
    def sentence(self) -> str:
        return "no higher rate was found that is not held: the time was over"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        over = about.get(ANSWER) == "at_least" and about.get(NOT_HELD) is None and not about.words(WHY)
        return [cls(about.search)] if over else []


class HeldInPart(HeldWarning):
    """Not every step of the whole duration at a rate was clean: ``clean`` of ``steps``, of ``held_s`` seconds."""

    remedy = "hydra report shows the loss at each rate"
    clean: Figure
    steps: Figure
    held_s: Figure

    @property
    def sentence(self) -> str:
        return f"held in {number(self.clean)} of {number(self.steps)} steps of {number(self.held_s)} s"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        clean, steps = about.get(CLEAN_STEPS), about.get(WHOLE_STEPS)
        return [] if clean == steps else [cls(about.search, clean, steps, about.get(HELD_S))]


class NotConfirmed(HeldWarning):
    """The time was over before a rate was held for its duration; ``limits`` are the rates (messages/s) around it."""

    level = Level.LOSS
    remedy = "give it more time (--within), or measure while no other processes use the hosts"
    limits: Limits

    @property
    def sentence(self) -> str:
        return f"{between(*self.limits, '/s') or 'no rate is known'}, not confirmed: the time was over"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        if about.get(ANSWER) != "unconfirmed" or about.words(WHY):
            return []
        return [cls(about.search, about.limits(LOW_PPS, HIGH_PPS))]


class NoneHeld(HeldWarning):
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


class FailedBelowHeld(HeldWarning):
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
