"""Everything that has to be known of a rate that was searched for: why there is no figure, and what is beside it. Pure.

Each class says of which columns beside the figure it is found.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from math import ceil
from typing import ClassVar, Final, NamedTuple

from hydra.events.event import Event, Level
from hydra.events.formatting import number
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.measure.column import REPEATS
from hydra.measure.column_names import STEP_S
from hydra.model import Figure
from hydra.model import number as number_of
from hydra.sweep import search_columns
from hydra.sweep.interface import Row
from hydra.sweep.search_answer import Inconclusive, LossyRange

SEVERAL: Final = ", "
"""Between the words of one search."""
_APART: Final = re.compile(", | / ")
"""Between the words of one search, or of its repeats (``sweep/repetition.py``)."""

Limits = tuple[float | None, float | None]
"""Of a 95 % interval; None: not known."""


def _within(value: float | None, limits: Limits, unit: str) -> str:
    """``20,000/s [19,000 – 21,000]``."""
    low, high = limits
    between = "" if low is None or high is None else f" [{number(low)} – {number(high)}]"
    return f"{number(value)}{unit}{between}"


class SearchedFigure(NamedTuple):
    """What a row says of a figure: ``search`` is what the columns beside it begin with."""

    row: Row
    search: str

    def get(self, end: str) -> Figure:
        """The column whose name ends so."""
        return self.row.get(f"{self.search}{end}")

    def words(self, end: str) -> list[str]:
        """The words in a column."""
        return [word for word in _APART.split(str(self.get(end) or "")) if word]

    def limits(self, low: str, high: str) -> Limits:
        """Two columns that are an interval."""
        return number_of(self.get(low)), number_of(self.get(high))


def of_figure(row: Row, search: str) -> list[SearchWarning]:
    """What has to be known of a figure: why there is none, what speaks against it, what was found beside it.

    Args:
        row: a search's, with the columns of :func:`~hydra.sweep.search_figures.columns_of`.
        search: what they begin with.
    """
    about = SearchedFigure(row, search)
    kinds = [kind for kind in Event.kinds.values() if issubclass(kind, SearchWarning)]
    found = [warning for kind in kinds for warning in kind.found_in(about)]
    note = about.get("_note")
    if REPEATS not in row and (f"{search}{search_columns.WHY}" in row or not note):
        return found
    # Repeats say it each in their words; an earlier version said nothing else.
    tried = dict.fromkeys(warning.remedy for warning in found if warning.why)
    return [SearchText(search, note, "; ".join(tried))] if note else []


def text_of_search(row: Row, search: str) -> str | None:
    """All that a row says of a search's figure, in words."""
    return "; ".join(warning.said for warning in of_figure(row, search)) or None


def lossy_ranges_of(text: Figure) -> list[LossyRange]:
    """The holes that a column holds."""
    pairs = (pair.split() for pair in str(text or "").split(SEVERAL) if pair)
    return [LossyRange(float(low), float(high)) for low, high in pairs]


class SearchWarning(HydraWarning):
    """Something of the search for a figure: ``search`` is what the columns beside it begin with.

    Attributes:
        why: the word for it among those that say why there is no figure, or what speaks against it; "": it has none.
    """

    template = "{search}: {said}"
    why: ClassVar[str] = ""
    search: str

    @property
    @abstractmethod
    def said(self) -> str:
        """The text without the figure's name: what stands beside the figure in its row."""

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        """What a row has of it: where nothing else is said, one where its word is."""
        return [cls(about.search)] if cls.why and cls.why in about.words(search_columns.WHY) else []


class SearchText(SearchWarning):
    """What a row says in words: one that was repeated, or that an earlier version made."""

    kind = "search_note"

    words: Figure
    tried: str = ""

    @property
    def said(self) -> str:
        return str(self.words)

    @property
    def remedy(self) -> str:
        return self.tried


# --- why there is no figure ------------------------------------------------------------------------------------------


class NoRateHolds(SearchWarning):
    """More than the target is lost at any rate: ``pct``."""

    level = Level.LOSS
    remedy = "see in hydra report who loses when at a low rate, or raise the target (sweep.search.loss_target)"
    why = "none"
    pct: float | None
    limits: Limits

    @property
    def said(self) -> str:
        return f"no rate holds: {_within(self.pct, self.limits, ' %')} is lost at any rate"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        pct, low, high = search_columns.FLOOR
        found = cls(about.search, number_of(about.get(pct)), about.limits(low, high))
        return [found] if cls.why in about.words(search_columns.ANSWER) else []


class CannotTell(SearchWarning):
    """A search without an answer.

    Attributes:
        needed_s: seconds of measuring that would tell; None: not known.
        step_s: length of a step.
        limits: between which rates (messages/s) the answer is, as far as it is known.
    """

    level = Level.LOSS
    why = Inconclusive.GIVEN_UP.value
    because: ClassVar[str] = "its steps could not be measured"
    needed_s: float | None = None
    step_s: float | None = None
    limits: Limits = (None, None)

    @property
    def said(self) -> str:
        needed = f" ({self.needed_s:,.0f} s of measuring would tell)" if self.needed_s else ""
        return f"cannot tell: {self.because}{self._so_far}{needed}"

    @property
    def remedy(self) -> str:
        return f"{GO_ON}: its failed steps are measured again"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        needed, step_s = number_of(about.get(search_columns.NEEDED)), number_of(about.row.get(STEP_S))
        found = cls(about.search, needed, step_s, about.limits(search_columns.LOW_PPS, search_columns.HIGH_PPS))
        return [found] if cls.why in about.words(search_columns.WHY) else []

    @property
    def _so_far(self) -> str:
        low, high = self.limits
        return "" if low is None or high is None else f": it may be anywhere from {low:,.0f} to {high:,.0f}/s"

    @property
    def _longer(self) -> str:
        if self.needed_s and self.step_s:
            return f"take {ceil(self.needed_s / self.step_s)} steps (--search-steps), or fewer and longer ones"
        return "take longer steps, or more of them (--search-steps)"


class RateDrifted(CannotTell):
    """The rate that holds moved while it was searched for."""

    kind = "changing"

    remedy = "raise warmup_s, or see at one rate what changes (sweep.seconds of a fixed-rate command)"
    why = Inconclusive.CHANGING.value
    because = "the rate that holds changed during the search"


class SearchTooShort(CannotTell):
    """What was measured leaves it open."""

    kind = "too_short"

    why = Inconclusive.TOO_SHORT.value
    because = "too few seconds were measured"

    @property
    def remedy(self) -> str:
        return self._longer


class AnswerContradicted(CannotTell):
    """A step lost what an answer all but excludes."""

    kind = "contradicted"

    why = Inconclusive.CONTRADICTED.value
    because = "a step lost what the other steps all but exclude"

    @property
    def remedy(self) -> str:
        return self._longer


class AnswerBelowLowest(CannotTell):
    """Every rate that is tried is too high."""

    kind = "below_lowest"

    remedy = "lower sweep.search.floor_rate, or raise the target (sweep.search.loss_target)"
    why = Inconclusive.BELOW_LOWEST.value
    because = "the rates that were tried end above the answer"

    @property
    def said(self) -> str:
        low, high = self.limits
        if low is None and high is not None:
            return f"no rate down to {high:,.0f}/s is within the target"
        return f"cannot tell: {self.because}{self._so_far}"


class AnswerAboveHighest(CannotTell):
    """Nothing fell short."""

    kind = "above_highest"

    remedy = "raise --start-rate"
    why = Inconclusive.ABOVE_HIGHEST.value

    @property
    def said(self) -> str:
        low, _ = self.limits
        return f"nothing fell short{'' if low is None else f' up to {low:,.0f}/s'}, the highest rate that is tried"


class StillRising(SearchWarning):
    """The highest rate received was still rising at the last doubling."""

    remedy = "raise --start-rate"
    why = "still rising"
    said = "still rising at the last doubling"


class NothingReceived(SearchWarning):
    """No rate has a figure of what was received."""

    remedy = "lower --start-rate"
    why = "nothing received"
    said = "nothing was received at any rate"


class TooFewClients(SearchWarning):
    """A cohort takes a part of the clients, and leaves others."""

    remedy = "measure more clients"
    why = "too few clients"
    said = "a cohort needs at least 2 clients"


class HighestUnknown(SearchWarning):
    """Slow clients read a share of a figure that is not there."""

    remedy = "search for max_rate as well"
    why = "highest unknown"
    said = "slow clients read a share of the highest rate, which is not known"


# --- what is beside a figure -----------------------------------------------------------------------------------------


class AboveUndisturbed(SearchWarning):
    """Clients that disturb seem to make the system faster."""

    remedy = "take longer steps"
    why = "above undisturbed"
    said = "above the rate without the cohort, beyond both intervals, also when both were measured again"


class AnswerByCurve(SearchWarning):
    """A figure of which the seconds near it alone would not tell."""

    kind = "by_form"

    remedy = "take longer steps, or more of them (--search-steps)"
    said = "the figure rests on how losses usually grow with the rate, more than on what was seen near it"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        return [cls(about.search)] if about.get(search_columns.SEEN) is False else []


class LossyBetween(SearchWarning):
    """Rates (messages/s) that lose more than the target, although higher ones do not."""

    remedy = "hydra report shows the loss at each rate"
    ranges: Sequence[tuple[float, float]]

    @property
    def said(self) -> str:
        ranges = " and ".join(f"between {number(low)} and {number(high)}/s" for low, high in self.ranges)
        return f"loses {ranges} and not above"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        ranges = [(hole.low, hole.high) for hole in lossy_ranges_of(about.get(search_columns.HOLES))]
        return [cls(about.search, ranges)] if ranges else []


class SubscriberLosesAlone(SearchWarning):
    """A subscriber that loses at every rate, and by itself.

    Attributes:
        client: its id.
        pct: what it loses.
        without: what the others carry, messages/s; None: not known, or no rate holds for them either.
        limits: of ``without``.
    """

    kind = "loses_alone"

    level = Level.LOSS
    remedy = "hydra report shows when it loses; see what its host or connection has of its own"
    client: Figure
    pct: float
    without: float | None = None
    limits: Limits = (None, None)

    @property
    def said(self) -> str:
        others = f"; without it {_within(self.without, self.limits, '/s')}" if self.without is not None else ""
        return f"subscriber {self.client} loses {number(self.pct)} % at every rate{others}"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        rate, low, high = search_columns.WITHOUT
        pct, without = (number_of(about.get(end)) for end in (search_columns.LONE_PCT, rate))
        lone = about.get(search_columns.LONE)
        return [] if pct is None else [cls(about.search, lone, pct, without, about.limits(low, high))]


class LossAtStart(SearchWarning):
    """What is lost as each step starts."""

    kind = "loses_at_start"

    remedy = "longer steps make less of it"
    lost_ms: float

    @property
    def said(self) -> str:
        return f"{number(self.lost_ms)} ms of traffic are lost at the start of each step"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        return [cls(about.search, lost_ms)] if (lost_ms := number_of(about.get(search_columns.START_MS))) else []
