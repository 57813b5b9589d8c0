"""The warnings of a searched rate: why there is no figure, and what limits what the figure means. Pure.

Each class finds its warnings in the columns beside the rate.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from math import ceil
from typing import ClassVar, Final, NamedTuple

from hydra.events.event import Event, Level
from hydra.events.value_formatting import between, duration, known_texts, number
from hydra.events.warnings import GO_ON, HydraWarning
from hydra.measure.column import REPEATS, STEP_S, values_of
from hydra.model import Figure
from hydra.model import number as number_of
from hydra.sweep.cleanness import host_trouble
from hydra.sweep.interface import QUICK_DRAIN_S, Row
from hydra.sweep.search_answer import SURPRISE, Inconclusive, LossyRanges
from hydra.sweep.search_figures import RateFigures
from hydra.sweep.search_spec import MOST_STEPS

Limits = tuple[float | None, float | None]
"""The limits of a 95 % confidence interval; None: not known."""


def _within(value: float | None, limits: Limits, unit: str) -> str:
    """``20,000/s [19,000 – 21,000]``."""
    low, high = limits
    if low is None or high is None or value is None:
        return f"{number(value)}{unit}"
    figure, *ends = known_texts(value, low, high)
    return f"{figure}{unit} [{' – '.join(ends)}]"


class SearchedFigure(NamedTuple):
    """The columns of a row beside a searched rate: their names begin with ``search``.

    ``figures`` are those of a search with an interval.
    """

    row: Row
    search: str
    figures: RateFigures

    def get(self, end: str) -> Figure:
        """The column whose name ends with ``end``."""
        return self.row.get(f"{self.search}{end}")

    def words(self, end: str) -> list[Figure]:
        """The keywords in a column, of a repeated row those of all repeats."""
        return values_of(self.get(end))

    def limits(self, low: str, high: str) -> Limits:
        """The two columns of an interval."""
        return number_of(self.get(low)), number_of(self.get(high))


def of_figure(row: Row, search: str) -> list[SearchWarning]:
    """The warnings of a searched rate: why there is no figure, the objections to it, and what else was found.

    Args:
        row: the row of a search, with the columns of :class:`~hydra.sweep.search_figures.RateFigures`.
        search: what the names of these columns begin with.
    """
    about = SearchedFigure(row, search, RateFigures.of_row(row, search))
    kinds = [kind for kind in Event.kinds.values() if issubclass(kind, SearchWarning)]
    found = [warning for kind in kinds for warning in kind.found_in(about)]
    if REPEATS not in row:
        return found
    # A repeated row has the texts of its searches.
    note = about.get("_note")
    tried = dict.fromkeys(warning.remedy for warning in found if warning.why)
    return [SearchText(search, note, "; ".join(tried))] if note else []


def text_of_search(row: Row, search: str) -> str | None:
    """The texts of all warnings of a searched rate, in one line."""
    return "; ".join(warning.sentence for warning in of_figure(row, search)) or None


class SearchWarning(HydraWarning):
    """A warning of a searched rate; the columns beside the rate begin with ``search``.

    Attributes:
        why: its keyword in the column ``<series>_why``; "": no keyword.
    """

    template = "{search}: {sentence}"
    why: ClassVar[str] = ""
    search: str

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The text without the name of the rate, as in the column ``<series>_note``."""

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        """The warnings of this class that a row has: by default one if the row has its keyword."""
        return [cls(about.search)] if cls.why and cls.why in values_of(about.figures.why) else []


class SearchText(SearchWarning):
    """The stored text of a row that was repeated."""

    kind = "search_note"

    words: Figure
    tried: str = ""

    @property
    def sentence(self) -> str:
        return str(self.words)

    @property
    def remedy(self) -> str:
        return self.tried


# --- why there is no figure ------------------------------------------------------------------------------------------


class NoRateHolds(SearchWarning):
    """More than the target, ``pct``, is lost at every rate."""

    level = Level.LOSS
    remedy = (
        "see in hydra report which subscribers lose messages at low rates, and when, or raise the target "
        "(--loss-target)"
    )
    why = "none"
    pct: float | None
    limits: Limits

    @property
    def sentence(self) -> str:
        return f"no rate holds: {_within(self.pct, self.limits, ' %')} of the messages are lost at every rate tried"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        its = about.figures
        found = cls(about.search, its.floor_pct, (its.floor_low_pct, its.floor_high_pct))
        return [found] if cls.why in values_of(its.answer) else []


_LONGER: Final = "use more steps (--search-steps) or longer steps (--duration)"
_QUIETLY: Final = "measure while no other processes use the hosts; if there is no answer again"


def _minutes(steps: int, step_s: float) -> str:
    """How long these steps take."""
    return f"about {duration(steps * (step_s + QUICK_DRAIN_S))}"


class NoAnswer(SearchWarning):
    """A search without an answer.

    Attributes:
        needed_s: the least seconds of measurement in all that an answer usually needs; None: not known.
        step_s: length of a step.
        limits: the rates (messages/s) between which the answer is; None: not known.
        steps: steps that were measured; None: not known.
        disturbed: whether there was trouble on the hosts in the steps that decide.
    """

    kind = "cannot_tell"

    level = Level.LOSS
    why = Inconclusive.GIVEN_UP.value
    because: ClassVar[str] = "steps of the search could not be measured"
    needed_s: float | None = None
    step_s: float | None = None
    limits: Limits = (None, None)
    steps: int | None = None
    disturbed: bool = False

    @property
    def sentence(self) -> str:
        return f"no answer: {self.because}{self._so_far}"

    @property
    def remedy(self) -> str:
        return f"{GO_ON}: Hydra measures the failed steps again"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        its, step_s, steps = about.figures, number_of(about.row.get(STEP_S)), number_of(about.get("_steps"))
        limits, disturbed = (its.low_pps, its.high_pps), bool(host_trouble(about.row))
        found = cls(about.search, its.needed_s, step_s, limits, None if steps is None else round(steps), disturbed)
        return [found] if cls.why in values_of(about.figures.why) else []

    @property
    def _so_far(self) -> str:
        low, high = self.limits
        return (
            ""
            if low is None or high is None
            else f", and the rate may be anywhere from {number(low)} to {number(high)}/s"
        )

    @property
    def _longer(self) -> str:
        longer = self._longer_search
        return f"{_QUIETLY}, {longer}" if self.disturbed else longer

    @property
    def _longer_search(self) -> str:
        if not self.step_s or not (self.needed_s or self.steps):
            return _LONGER
        steps = ceil(self.needed_s / self.step_s) if self.needed_s else 2 * (self.steps or 0)
        if steps > MOST_STEPS:
            return f"use steps of {ceil(steps * self.step_s / MOST_STEPS)} s or more (--duration)"
        measured_s = steps * self.step_s
        measured = f"at least {measured_s:,.0f} s of measuring, {_minutes(steps, self.step_s)}"
        return f"use --search-steps {steps} or more in a new run ({measured})"


class RateDrifted(NoAnswer):
    """The rate that holds moved while it was searched for."""

    kind = "changing"

    remedy = (
        "use a longer warm-up, such as --set warmup_s=30 (half a minute more for each subscriber count), or look in "
        "the report of a fixed-rate command at the change from second to second"
    )
    why = Inconclusive.CHANGING.value
    because = "the rate that holds changed during the search"


class SearchTooShort(NoAnswer):
    """The measured steps do not decide."""

    kind = "too_short"

    why = Inconclusive.TOO_SHORT.value
    because = "too few seconds were measured"

    @property
    def remedy(self) -> str:
        return self._longer


class AnswerContradicted(NoAnswer):
    """The loss of a step has less than 1 % probability by the answer of the other steps."""

    kind = "contradicted"

    why = Inconclusive.CONTRADICTED.value
    because = (
        "one step contradicts the other steps: by the result of the others, the loss of this step has less than "
        f"{100 * SURPRISE:g} % probability"
    )

    @property
    def remedy(self) -> str:
        return self._longer


class AnswerBelowLowest(NoAnswer):
    """Every rate that was tried is too high."""

    kind = "below_lowest"

    remedy = "raise the target (--loss-target), or lower the lowest rate (--set sweep.search.floor_rate=…)"
    why = Inconclusive.BELOW_LOWEST.value
    because = "every rate tried is too high"

    @property
    def sentence(self) -> str:
        low, high = self.limits
        if low is None and high is not None:
            return f"no rate down to {number(high)}/s is within the loss target"
        return f"no answer: {self.because}{self._so_far}"


class AnswerAboveHighest(NoAnswer):
    """No rate that was tried is too high."""

    kind = "above_highest"

    why = Inconclusive.ABOVE_HIGHEST.value

    @property
    def remedy(self) -> str:
        low, _ = self.limits
        if low is None or not self.step_s:
            return "raise --start-rate"
        return f"use --start-rate {number(low).replace(',', '')}, which searches above that rate"

    @property
    def sentence(self) -> str:
        low, _ = self.limits
        up_to = "" if low is None else f" up to {number(low)}/s, the highest one,"
        return f"every rate tried{up_to} is within the loss target"


class SearchInterrupted(SearchWarning):
    """The run ended before the search had an answer; ``limits`` are the rates (messages/s) around the answer so far."""

    remedy = "continue with --resume and the run's directory"
    why = "interrupted"
    limits: Limits

    @property
    def sentence(self) -> str:
        known = between(*self.limits, "/s")
        answer = f"the answer is {known}" if known else "nothing is known of the answer"
        return f"by the steps that were measured, {answer}"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        """See :class:`SearchWarning`."""
        limits = about.figures.low_pps, about.figures.high_pps
        return [cls(about.search, limits)] if cls.why in values_of(about.figures.why) else []


class StillRising(SearchWarning):
    """The received rate was still rising when the sent rate was doubled for the last time."""

    remedy = "raise --start-rate"
    why = "still rising"
    sentence = "the received rate was still rising when the sent rate was doubled for the last time"


class NothingReceived(SearchWarning):
    """No step has a receive rate."""

    remedy = "lower --start-rate"
    why = "nothing received"
    sentence = "subscribers received nothing at any rate"


class TooFewClients(SearchWarning):
    """A cohort needs a subscriber inside and one outside."""

    remedy = "use more clients"
    why = "too few clients"
    sentence = "slow or reconnecting clients (a cohort) need at least 2 clients in all"


class HighestUnknown(SearchWarning):
    """Slow clients read a share of a rate that is unknown."""

    remedy = "add max_rate to sweep.search.series"
    why = "highest unknown"
    sentence = "slow clients read a share of the highest rate received, and that rate is unknown"


# --- findings beside a figure ----------------------------------------------------------------------------------------


class AboveUndisturbed(SearchWarning):
    """The rate with a cohort is higher than the rate without."""

    remedy = "use longer steps"
    why = "above undisturbed"
    sentence = (
        "the rate with slow or reconnecting subscribers is above the rate without "
        "them, by more than both confidence intervals, also after both rates were "
        "measured again"
    )


class AnswerByCurve(SearchWarning):
    """A figure that the losses measured near it do not determine alone."""

    kind = "by_form"

    remedy = _LONGER
    sentence = "the figure follows more from the assumed form of the loss curve than from losses measured near it"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        return [cls(about.search)] if about.figures.seen is False else []


class LossyBetween(SearchWarning):
    """Rates (messages/s) that lose more than the target, although higher rates do not."""

    remedy = "hydra report shows the loss at each rate"
    ranges: Sequence[tuple[float, float]]

    @property
    def sentence(self) -> str:
        ranges = " and ".join(f"between {number(low)} and {number(high)}/s" for low, high in self.ranges)
        return f"more than the target is lost {ranges}, but not at higher rates"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        found = (each for each in values_of(about.figures.holes_pps) if isinstance(each, LossyRanges))
        ranges = [(hole.low, hole.high) for each in found for hole in each.ranges]
        return [cls(about.search, ranges)] if ranges else []


class SubscriberLosesAlone(SearchWarning):
    """A subscriber that alone loses messages, at every rate.

    Attributes:
        client: its id.
        pct: its loss in %.
        without: messages/s that the other subscribers carry; None: not known, or no rate holds for them either.
        limits: the interval of ``without``.
    """

    kind = "loses_alone"

    level = Level.LOSS
    remedy = "see in hydra report when this subscriber loses messages, and check its host and its connection"
    client: Figure
    pct: float
    without: float | None = None
    limits: Limits = (None, None)

    @property
    def sentence(self) -> str:
        others = ""
        if self.without is not None:
            others = f"; the other subscribers carry {_within(self.without, self.limits, '/s')}"
        return f"subscriber {self.client} loses {number(self.pct)} % of its messages at every rate{others}"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        its = about.figures
        pct, limits = its.lone_loser_loss_pct, (its.others_low_pps, its.others_high_pps)
        return [] if pct is None else [cls(about.search, its.lone_loser, pct, its.others_pps, limits)]


class LossAtStart(SearchWarning):
    """Messages that are lost at the start of each step."""

    kind = "loses_at_start"

    remedy = "use longer steps, in which this loss is a smaller share"
    lost_ms: float

    @property
    def sentence(self) -> str:
        return f"{number(self.lost_ms)} ms of traffic are lost at the start of each step"

    @classmethod
    def found_in(cls, about: SearchedFigure) -> Iterable[SearchWarning]:
        return [cls(about.search, lost_ms)] if (lost_ms := about.figures.start_lost_ms) else []
