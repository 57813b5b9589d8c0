"""``[sweep.held]``: the sweep that finds the highest rates that were held, of each client count. Pure.

``held_rates.py`` decides the next step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

from hydra.events.value_formatting import between, counted
from hydra.events.value_formatting import number as text_of
from hydra.measure.column import ANSWER, HIGH_PPS, LOW_PPS, REPEATS, STEP_S, WALL, Column, SystemColumns
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Scenario, number
from hydra.sweep import held_columns, search_columns
from hydra.sweep.cleanness import host_trouble_in_short, why_not_clean
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.interface import Row, RowName, Sweep
from hydra.sweep.kind import SweepKind
from hydra.sweep.search import SEARCH, SearchPlan, SearchRows, SearchSteps, SearchSweep, SearchTexts
from hydra.sweep.search_spec import SearchSpec
from hydra.sweep.steps import FoundRate, rate_of
from hydra.sweep.texts import HeadlineFigure

if TYPE_CHECKING:
    from hydra.events.warnings import HydraWarning

_NEVER_HELD: Final = "none held"
_NOTHING_ABOVE: Final = {"held": "nothing above tried", "at_least": "not found in time"}
"""What the table shows in the place of a rate that was not held, by the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSweep(SearchSweep):
    """The sweep that finds the highest rate of a ladder that was held, for each series of ``search``.

    Attributes:
        held: the table ``[sweep.held]``.
        search: the table ``[sweep.search]``: the series, the loss target and the ends of the ladder; and all of the
            search with an interval, which replaces this sweep if ``held.interval`` is set.
    """

    key: ClassVar[str] = "held"

    held: HeldSpec
    search: SearchSpec = field(default_factory=SearchSpec)

    @property
    def shown(self) -> SearchSpec:
        """See :class:`hydra.sweep.search.SearchSweep`: with the highest rate received if that is measured."""
        saturated = self.held.saturation or "max_rate" in self.search.series
        return held_columns.as_held(self.search, saturated=saturated)

    @property
    def ladders(self) -> dict[str, str]:
        """The columns of the rates that were held, and the beginning of the names of the columns beside each."""
        found = search_columns.prefixes(self.shown)
        return {column: prefix for column, prefix in found.items() if prefix not in ("max_rate", "nodrop")}


class HeldPlan(SearchPlan):
    """The series of ``search.series``, each on the ladder, for every client count, ascending."""

    keeps_time: ClassVar[bool] = True

    _sweep: HeldSweep

    def completed(self) -> Scenario:
        """See :class:`hydra.sweep.plan.SweepPlan`: a search with an interval, which begins where the ladder ends."""
        if not self._sweep.held.interval:
            return self._scenario
        shared = {name: getattr(self._sweep, name) for name in ("duration_s", "clients", "repeat", "seconds")}
        search = replace(self._sweep.search, ladder=self._sweep.held.ladder)
        return replace(self._scenario, sweep=SearchSweep(**shared, search=search))

    def begin(self) -> Sweep:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        from hydra.sweep.held_rates import HeldRates

        return HeldRates(self._scenario, self._sweep.held, self._sweep.search)

    @property
    def sharp_ratio(self) -> float | None:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        return None

    @property
    def aims(self) -> dict[str, object]:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        return {"loss_target": self._sweep.search.loss_target, "ladder": self._sweep.held.ladder}


class HeldRows(SearchRows):
    """A row for each client count, with all rates that were held."""

    _sweep: HeldSweep

    def published(self, system: SystemColumns) -> tuple[Column, ...]:
        """See :class:`hydra.sweep.rows.SweepRows`: each rate that was held, the next one, and what full speed gave."""
        first, *others = search_columns.published(self._sweep.shown)
        if self._scenario.published:
            return first, *others
        held = [column for column in others if column.name in self._sweep.ladders]
        both = (
            (
                replace(column, heading="Held" if prefix == "loss" else column.heading),
                held_columns.not_held_column(prefix),
            )
            for column in held
            for prefix in (self._sweep.ladders[column.name],)
        )
        return first, *(each for pair in both for each in pair), *(each for each in others if each not in held)

    def columns(self, system: SystemColumns) -> Sequence[Column]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        of_rates = [
            column
            for prefix, series in search_columns.series_of(self._sweep.shown).items()
            for column in (
                search_columns.side_columns(prefix, series)
                if prefix in ("max_rate", "nodrop")
                else held_columns.series_columns(prefix, series)
            )
        ]
        return (
            *self.published(system),
            search_columns.LENGTH,
            held_columns.WALL_S,
            *of_rates,
            search_columns.FAILED,
            *search_columns.host_columns(),
        )

    @property
    def primary(self) -> tuple[str, ...]:
        """See :class:`hydra.sweep.rows.SweepRows`: the rate that was held, otherwise the highest received."""
        return (*self._sweep.ladders, *search_columns.rates(self._sweep.shown).values())

    def limits(self, column: str) -> tuple[str, str] | None:
        """See :class:`hydra.sweep.rows.SweepRows`: a rate that was held has no interval."""
        return None

    def in_place(self, row: Row, column: str) -> str:
        """See :class:`hydra.sweep.rows.SweepRows`: what is known instead of a rate, and why the next was not held."""
        if REPEATS in row:
            return ""
        if (prefix := self._sweep.ladders.get(column)) is not None:
            return _held_text(row, prefix, column)
        prefix = column.removesuffix(held_columns.NOT_HELD)
        if prefix == column or prefix not in self._sweep.ladders.values():
            return ""
        return not_held_text(row, prefix)

    def warnings(self, row: Row) -> list[HydraWarning]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        from hydra.sweep.held_warnings import of_held

        return [warning for name in search_columns.rates(self._sweep.shown) for warning in of_held(row, name)]


class HeldTexts(SearchTexts):
    """The texts about the rows of rates that were held."""

    of_rows: ClassVar[str] = "the step that held the rate, for each client count"
    all_good: ClassVar[str] = "a rate was held in every row"
    aim: ClassVar[str] = "the highest rates that were held"
    of_diamonds: ClassVar[str] = "A diamond marks the rate that was held; its bar ends at the next rate, which was not."

    _sweep: HeldSweep

    @property
    def _outline_addition(self) -> str:
        return f", rates held on {self._sweep.held.ladder} rungs a decade: {', '.join(self._sweep.search.series)}"

    @property
    def searched(self) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`."""
        names = ("loss_target", "series", "sndhwms", "cohort_fraction", "slow_share", "reconnect_rate")
        values = {"ladder": self._sweep.held.ladder, "held_s": self._sweep.duration_s, **asdict(self._sweep.search)}
        shown = [f"{name} {values[name]}" for name in ("ladder", "held_s", *names) if values[name]]
        return f"finds the rates that were held: {', '.join(shown)}"

    def legend(self, rows: Sequence[Row]) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`."""
        return (
            f"Held: the highest rate of the ladder at which a step of {text_of(self._sweep.duration_s)} s was clean "
            f"(loss target {100 * self._sweep.search.target:g} %). Not held: the lowest rate above it that was not "
            "clean: in two steps, or in one (once)."
        )

    def effort(self, row: Row) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`."""
        steps = sum(number(row.get(f"{name}_steps")) or 0.0 for name in search_columns.rates(self._sweep.shown))
        if not steps or row.get(WALL) is None:
            return ""
        repeats = f", on average of {counted(row[REPEATS], 'repeat')}" if REPEATS in row else ""
        steps_text = f"{counted(row.get(CLIENTS), 'subscriber')}: {counted(steps, 'step')} in {text_of(row[WALL])} s"
        held = any(row.get(prefix + held_columns.HELD_S) is not None for prefix in self._sweep.ladders.values())
        return f"{steps_text}{f', the rate held for {text_of(row[STEP_S])} s' if held else ''}{repeats}"

    def headline(self, rows: Sequence[Row], name: RowName) -> list[HeadlineFigure]:
        """See :class:`hydra.sweep.texts.SweepTexts`.

        These are the rate that was held at the largest client count that has one, of the clean rows if there are any,
        and the highest rate received with drops.
        """
        found = []
        column = next(iter(self._sweep.ladders), "")
        prefix = self._sweep.ladders.get(column, "")
        rated = [row for row in reversed(rows) if number(row.get(column)) is not None]
        row = next((row for row in rated if not why_not_clean(row)), rated[0] if rated else None)
        if row is not None:
            beyond = not_held_text(row, prefix, "/s")
            detail = f"to {name(row)} for {text_of(row.get(prefix + held_columns.HELD_S))} s"
            detail = f"{detail}; not held: {beyond}" if beyond else detail
            label = "held at least" if row.get(prefix + ANSWER) == "at_least" else "held"
            found.append(HeadlineFigure.of_row(label, f"{text_of(row[column])}/s", detail, row))
        elif column:
            notes = [note for each in reversed(rows) if (note := each.get(f"{prefix}_note"))]
            reason = str(notes[0]) if notes else "no rate was held: see the warnings"
            detail = "; ".join(filter(None, (reason, host_trouble_in_short(rows))))
            found.append(HeadlineFigure("held", "", detail, clean=False))
        return [*found, *self._at_most_received(rows, row, name)]


class HeldSteps(SearchSteps):
    """The steps in which rates were held."""

    _sweep: HeldSweep

    def found(self, row: Row) -> list[FoundRate]:
        """See :class:`hydra.sweep.steps.SweepSteps`: the bar ends at the next rate, which was not held."""
        found = []
        for column, prefix in self._within.items():
            held, beyond = number(row.get(column)), number(row.get(prefix + held_columns.NOT_HELD))
            if held is not None:
                text = f"held: {text_of(held)}/s"
                text = text if beyond is None else f"{text}, not held: {not_held_text(row, prefix, '/s')}"
                found.append(FoundRate(held, held, beyond or held, self._own_settings(prefix), text))
        return found

    def _passing(self, rows: Sequence[Row], results: Sequence[StepResult]) -> list[StepResult]:
        """See :class:`hydra.sweep.search.SearchSteps`: the step in which a rate was held for its duration."""
        best: dict[int, StepResult] = {}
        limits = {row.get(CLIENTS): self._vouched(row) for row in rows}
        for result in results:
            whole = result.status == "ok" and result.plan.duration_s >= self._sweep.duration_s
            held = rate_of(result) == limits.get(result.plan.clients) and result.plan.cohort.kind == "none"
            if whole and held and not why_not_clean(result.figures):
                best[result.plan.clients] = result
        return [best[clients] for clients in sorted(best)]

    def _vouched(self, row: Row) -> float:
        """See :class:`hydra.sweep.search.SearchSteps`."""
        rates = [number(row.get(column)) for column in self._within]
        return max((rate for rate in rates if rate is not None), default=math.inf)


def not_held_text(row: Row, prefix: str, unit: str = "") -> str:
    """The rate that was not held, with the reason: ``10,000/s (lost 1.1 %)``; or why there is none."""
    rate = row.get(prefix + held_columns.NOT_HELD)
    if rate is None:
        return _NOTHING_ABOVE.get(str(row.get(prefix + ANSWER)), "")
    once = ", once" if row.get(prefix + held_columns.FAILURES) == 1 else ""
    return f"{text_of(rate)}{unit} ({held_columns.cause_text(row, prefix)}{once})"


def _held_text(row: Row, prefix: str, column: str) -> str:
    answer = row.get(prefix + ANSWER)
    if answer == "none_held":
        return _NEVER_HELD
    if answer == "at_least":
        return f"at least {text_of(row.get(column))}"
    if answer == "unconfirmed":
        low, high = (number(row.get(prefix + end)) for end in (LOW_PPS, HIGH_PPS))
        return f"{between(low, high, '') or 'unknown'}, not confirmed"
    return ""


HELD: Final = SweepKind(
    spec=HeldSweep,
    own=HeldSpec,
    uses=("clients", "held", "search"),
    tables=SEARCH.tables,
    flags=(
        *(f"sweep.held.{name}" for name in ("ladder", "within_s", "interval", "saturation")),
        *SEARCH.flags,
    ),
    plan=HeldPlan,
    rows=HeldRows,
    texts=HeldTexts,
    steps=HeldSteps,
)
"""The kind of sweeps that find the rates that were held."""
