"""Everything that has to be known of a rate that was searched for: why there is no figure, and what is beside it.

``search`` names the figure: what the columns beside it begin with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from hydra.events.event import Level
from hydra.events.formatting import number
from hydra.events.warnings import GO_ON, HydraWarning

Limits = tuple[float | None, float | None]
"""Of a 95 % interval; None: not known."""


def _within(value: float | None, limits: Limits, unit: str) -> str:
    """``20,000/s [19,000 – 21,000]``."""
    low, high = limits
    between = "" if low is None or high is None else f" [{number(low)} – {number(high)}]"
    return f"{number(value)}{unit}{between}"


@dataclass(frozen=True, slots=True)
class SearchWarning(HydraWarning):
    """Something of the search for a figure."""

    search: str

    @property
    def remedy(self) -> str:
        return ""

    @property
    def text(self) -> str:
        return f"{self.search}: {self.said}"

    @property
    @abstractmethod
    def said(self) -> str:
        """The text without the figure's name: what stands beside the figure in its row."""


@dataclass(frozen=True, slots=True)
class SearchRemark(SearchWarning):
    """What a row says in words: one that was repeated, or that an earlier version made."""

    remark: object
    tried: str = ""

    @property
    def said(self) -> str:
        return str(self.remark)

    @property
    def remedy(self) -> str:
        return self.tried


# --- why there is no figure ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoRateHolds(SearchWarning):
    """More than the target is lost at any rate: ``pct``."""

    level = Level.LOSS
    remedy = "see in hydra report who loses when at a low rate, or raise the target (sweep.search.loss_target)"
    pct: float | None
    limits: Limits

    @property
    def said(self) -> str:
        return f"no rate holds: {_within(self.pct, self.limits, ' %')} is lost at any rate"


@dataclass(frozen=True, slots=True)
class CannotTell(SearchWarning):
    """A search without an answer.

    Attributes:
        needed_s: seconds of measuring that would tell; None: not known.
        step_s: length of a step.
        limits: between which rates (messages/s) the answer is, as far as it is known.
    """

    level = Level.LOSS
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

    @property
    def _so_far(self) -> str:
        low, high = self.limits
        return "" if low is None or high is None else f": it may be anywhere from {low:,.0f} to {high:,.0f}/s"

    @property
    def _longer(self) -> str:
        if self.needed_s and self.step_s:
            return f"take {ceil(self.needed_s / self.step_s)} steps (--search-steps), or fewer and longer ones"
        return "take longer steps, or more of them (--search-steps)"


@dataclass(frozen=True, slots=True)
class Changing(CannotTell):
    """The rate that holds moved while it was searched for."""

    remedy = "raise warmup_s, or see at one rate what changes (sweep.seconds of a fixed-rate command)"
    because: ClassVar[str] = "the rate that holds changed during the search"


@dataclass(frozen=True, slots=True)
class TooShort(CannotTell):
    """What was measured leaves it open."""

    because: ClassVar[str] = "too few seconds were measured"

    @property
    def remedy(self) -> str:
        return self._longer


@dataclass(frozen=True, slots=True)
class Contradicted(CannotTell):
    """A step lost what an answer all but excludes."""

    because: ClassVar[str] = "a step lost what the other steps all but exclude"

    @property
    def remedy(self) -> str:
        return self._longer


@dataclass(frozen=True, slots=True)
class BelowLowest(CannotTell):
    """Every rate that is tried is too high."""

    remedy = "lower sweep.search.floor_rate, or raise the target (sweep.search.loss_target)"
    because: ClassVar[str] = "the rates that were tried end above the answer"

    @property
    def said(self) -> str:
        low, high = self.limits
        if low is None and high is not None:
            return f"no rate down to {high:,.0f}/s is within the target"
        return f"cannot tell: {self.because}{self._so_far}"


@dataclass(frozen=True, slots=True)
class AboveHighest(CannotTell):
    """Nothing fell short."""

    remedy = "raise --start-rate"

    @property
    def said(self) -> str:
        low, _ = self.limits
        return f"nothing fell short{'' if low is None else f' up to {low:,.0f}/s'}, the highest rate that is tried"


@dataclass(frozen=True, slots=True)
class StillRising(SearchWarning):
    """The highest rate received was still rising at the last doubling."""

    remedy = "raise --start-rate"

    @property
    def said(self) -> str:
        return "still rising at the last doubling"


@dataclass(frozen=True, slots=True)
class NothingReceived(SearchWarning):
    """No rate has a figure of what was received."""

    remedy = "lower --start-rate"

    @property
    def said(self) -> str:
        return "nothing was received at any rate"


@dataclass(frozen=True, slots=True)
class TooFewClients(SearchWarning):
    """A cohort takes a part of the clients, and leaves others."""

    remedy = "measure more clients"

    @property
    def said(self) -> str:
        return "a cohort needs at least 2 clients"


@dataclass(frozen=True, slots=True)
class HighestUnknown(SearchWarning):
    """Slow clients read a share of a figure that is not there."""

    remedy = "search for max_rate as well"

    @property
    def said(self) -> str:
        return "slow clients read a share of the highest rate, which is not known"


# --- what is beside a figure -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AboveUndisturbed(SearchWarning):
    """Clients that disturb seem to make the system faster."""

    remedy = "take longer steps"

    @property
    def said(self) -> str:
        return "above the rate without the cohort, beyond both intervals, also when both were measured again"


@dataclass(frozen=True, slots=True)
class ByForm(SearchWarning):
    """A figure of which the seconds near it alone would not tell."""

    remedy = "take longer steps, or more of them (--search-steps)"

    @property
    def said(self) -> str:
        return "the figure rests on how losses usually grow with the rate, more than on what was seen near it"


@dataclass(frozen=True, slots=True)
class LossyBetween(SearchWarning):
    """Rates (messages/s) that lose more than the target, although higher ones do not."""

    remedy = "hydra report shows the loss at each rate"
    ranges: Sequence[tuple[float, float]]

    @property
    def said(self) -> str:
        ranges = " and ".join(f"between {number(low)} and {number(high)}/s" for low, high in self.ranges)
        return f"loses {ranges} and not above"


@dataclass(frozen=True, slots=True)
class LosesAlone(SearchWarning):
    """A subscriber that loses at every rate, and by itself.

    Attributes:
        client: its id.
        pct: what it loses.
        without: what the others carry, messages/s; None: not known, or no rate holds for them either.
        limits: of ``without``.
    """

    level = Level.LOSS
    remedy = "hydra report shows when it loses; see what its host or connection has of its own"
    client: object
    pct: float
    without: float | None = None
    limits: Limits = (None, None)

    @property
    def said(self) -> str:
        others = f"; without it {_within(self.without, self.limits, '/s')}" if self.without is not None else ""
        return f"subscriber {self.client} loses {number(self.pct)} % at every rate{others}"


@dataclass(frozen=True, slots=True)
class LosesAtStart(SearchWarning):
    """What is lost as each step starts."""

    remedy = "longer steps make less of it"
    lost_ms: float

    @property
    def said(self) -> str:
        return f"{number(self.lost_ms)} ms of traffic are lost at the start of each step"
