"""``[sweep.search]``: the sweep that searches for the highest rates of each client count. Pure.

``rate_search.py`` decides the next step; only a run of a search needs half a second to import it (scipy).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hydra.errors import Key
from hydra.events.value_formatting import counted, known_texts
from hydra.events.value_formatting import number as text_of
from hydra.measure.column import AGGREGATE_MAX, FAILED_STEPS, HIGH_PPS, LOW_PPS, REPEATS, STEP_S, Column, SystemColumns
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Figure, SweepSpec, names_of, number
from hydra.sweep import search_columns
from hydra.sweep.cleanness import host_trouble, host_trouble_in_short, why_not_clean
from hydra.sweep.interface import SHARP_STEPS, Row, RowName, Sweep
from hydra.sweep.kind import SweepKind
from hydra.sweep.plan import SweepPlan
from hydra.sweep.rows import SweepRows
from hydra.sweep.search_figures import RateFigures
from hydra.sweep.search_spec import SearchSpec
from hydra.sweep.steps import FoundRate, Noted, SweepSteps, lost_pct, rate_of
from hydra.sweep.texts import HeadlineFigure, SweepTexts, together

if TYPE_CHECKING:
    from hydra.events.warnings import HydraWarning


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSweep(SweepSpec):
    """The sweep that makes the searches of ``search.series``, in order, for every client count, ascending.

    Attributes:
        search: the table ``[sweep.search]``; a sweep has ``vary`` or ``search``, not both.
    """

    key: ClassVar[str] = "search"
    decided: ClassVar[tuple[str, ...]] = ("rate",)

    search: SearchSpec

    @property
    def loss_target(self) -> float:
        """See :class:`hydra.model.SweepSpec`."""
        return self.search.loss_target

    @property
    def shown(self) -> SearchSpec:
        """The series whose columns the table has."""
        return self.search

    @property
    def cohorts(self) -> Mapping[str, tuple[str, ...]]:
        """See :class:`hydra.model.SweepSpec`."""
        series = (name for name in ("slow", "reconnecting") if name in self.search.series)
        return dict.fromkeys(series, ("sweep", "search", "series"))


class SearchPlan(SweepPlan):
    """The searches of ``search.series``, in order, for every client count, ascending."""

    in_order: ClassVar[bool] = True
    keeps_time: ClassVar[bool] = False

    _sweep: SearchSweep

    def refusals(self) -> Iterator[tuple[Key, str, str]]:
        """See :class:`hydra.sweep.plan.SweepPlan`: series for which the system has no setting, among others."""
        if self._scenario.settings.messages is not None:
            what = "is a number of messages, and the steps of a search have a length"
            yield ("settings", "messages"), what, "leave it out; sweep.duration_s is the length"
        series = self._sweep.search.series
        if len(set(series)) < len(series):
            yield ("sweep", "search", "series"), f"a series stands twice in {list(series)}", ""
        needed = {
            "series": "nodrop" if "nodrop" in series else "",
            "sndhwms": "sndhwm" if self._sweep.search.sndhwms else "",
        }
        for key, setting in needed.items():
            if setting and setting not in names_of(self._scenario.settings):
                what = f"takes the setting {setting}, which system {self._scenario.system} does not have"
                yield ("sweep", "search", key), what, "leave it out"

    def begin(self) -> Sweep:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        from hydra.sweep.rate_search import Search

        return Search(self._scenario, self._sweep.search)

    @property
    def sharp_ratio(self) -> float | None:
        """See :class:`hydra.sweep.plan.SweepPlan`: few steps instead of all."""
        if self._sweep.search.series != ("loss",) or self._sweep.search.steps <= SHARP_STEPS:
            return None
        return SHARP_STEPS / self._sweep.search.steps

    @property
    def aims(self) -> Mapping[str, object]:
        """See :class:`hydra.sweep.plan.SweepPlan`."""
        return {name: getattr(self._sweep.search, name) for name in ("loss_target", "width", "steps")}


class SearchRows(SweepRows):
    """A row for each client count, with all searched rates."""

    _sweep: SearchSweep

    def published(self, system: SystemColumns) -> tuple[Column, ...]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        return search_columns.published(self._sweep.search)

    def columns(self, system: SystemColumns) -> Sequence[Column]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        return search_columns.search_columns(self._sweep.search)

    @property
    def primary(self) -> tuple[str, ...]:
        """See :class:`hydra.sweep.rows.SweepRows`: the first rate within the target, otherwise the highest."""
        rates = search_columns.rates(self._sweep.search)
        return (*(column for prefix, column in rates.items() if prefix.startswith("loss")), *rates.values())

    def limits(self, column: str) -> tuple[str, str] | None:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        prefix = search_columns.prefixes(self._sweep.search).get(column)
        return None if prefix is None else (prefix + LOW_PPS, prefix + HIGH_PPS)

    def in_place(self, row: Row, column: str) -> str:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        prefix = search_columns.prefixes(self._sweep.search).get(column)
        if prefix is None or row.get(column) is not None:
            return ""
        found = RateFigures.of_row(row, prefix)
        loses = "" if found.floor_pct is None else f": loses {text_of(found.floor_pct)} %"
        return "" if found.answer is None else f"{found.answer}{loses}"

    def warnings(self, row: Row) -> list[HydraWarning]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        from hydra.sweep.search_warnings import of_figure

        return [warning for name in search_columns.rates(self._sweep.search) for warning in of_figure(row, name)]

    def slow_rates(self, row: Row) -> tuple[float | None, float | None] | None:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        columns = search_columns.rates(self._sweep.search)
        if "slow" not in columns:
            return None
        highest = number(row.get(columns.get("max_rate", ""))) or 0.0
        return number(row.get(columns["slow"])) or None, self._sweep.search.slow_share * highest or None

    @property
    def rates(self) -> tuple[Sequence[str], str]:
        """See :class:`hydra.sweep.rows.SweepRows`."""
        return list(search_columns.rates(self._sweep.shown).values()), AGGREGATE_MAX


class SearchTexts(SweepTexts):
    """The texts about the rows of a search."""

    of_rows: ClassVar[str] = "the fastest step that passed, for each subscriber count"
    all_good: ClassVar[str] = "every rate that was searched for was found"
    aim: ClassVar[str] = "the highest rates were searched for"
    of_diamonds: ClassVar[str] = "A diamond marks the rate that was found, with its interval from all steps together."

    _sweep: SearchSweep

    @property
    def _outline_addition(self) -> str:
        return f", searches: {', '.join(self._sweep.search.series)}"

    @property
    def searched(self) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`."""
        values = asdict(self._sweep.search)
        names = ("loss_target", "series", "sndhwms", "cohort_fraction", "slow_share", "reconnect_rate")
        return f"searches for {', '.join(f'{name} {values[name]}' for name in names if values[name])}"

    def legend(self, rows: Sequence[Row]) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`."""
        columns = search_columns.rates(self._sweep.search).values()
        if not any(SearchRows(self._scenario).interval(row, column) for row in rows for column in columns):
            return ""
        return (
            "In brackets: the 95 % confidence interval of the highest rate at which on average over time at most "
            f"{100 * self._sweep.search.target:g} % of the messages are lost or added to the backlog."
        )

    def effort(self, row: Row) -> str:
        """See :class:`hydra.sweep.texts.SweepTexts`: its steps; "" for rows of versions that did not store them."""
        steps = [
            f"{name} {text_of(row[f'{name}_steps'])}"
            for name in search_columns.rates(self._sweep.search)
            if isinstance(row.get(f"{name}_steps"), int | float)
        ]
        if not steps or row.get(STEP_S) is None:
            return ""
        repeats = f", on average of {counted(row[REPEATS], 'repeat')}" if REPEATS in row else ""
        text = (
            f"{counted(row.get(CLIENTS), 'subscriber')}: steps of {text_of(row[STEP_S])} s{repeats}: {', '.join(steps)}"
        )
        failed = number(row.get(FAILED_STEPS))
        return f"{text}; failed and measured again: {text_of(row[FAILED_STEPS])}" if failed else text

    def headline(self, rows: Sequence[Row], name: RowName) -> list[HeadlineFigure]:
        """See :class:`hydra.sweep.texts.SweepTexts`.

        These are the rate within the target at the largest client count that has one, of the clean rows if there are
        any, and the highest rate received with drops.
        """
        from hydra.sweep.search_warnings import of_figure

        column = search_columns.rates(self._sweep.search).get("loss", "")
        rated = [row for row in reversed(rows) if number(row.get(column)) is not None]
        row = next((row for row in rated if not why_not_clean(row)), rated[0] if rated else None)
        if row is not None:
            value, interval = text_of(row[column]), ""
            if limits := SearchRows(self._scenario).interval(row, column):
                value, low, high = known_texts(number(row[column]) or 0.0, *limits)
                interval = f", 95 % interval {low} to {high}/s"
            detail = f"to {name(row)} within {100 * self._sweep.search.target:g} % loss{interval}"
            label = "delivered" if why_not_clean(row) else "carried"
            found = [HeadlineFigure.of_row(label, f"{value}/s", detail, row)]
        else:
            notes = [warning.sentence for row in reversed(rows) for warning in of_figure(row, "loss")]
            reason = notes[0] if notes else "no rate was found within the loss target: see the warnings"
            detail = "; ".join(filter(None, (reason, host_trouble_in_short(rows))))
            found = [HeadlineFigure("carried", "", detail, clean=False)]
        return [*found, *self._at_most_received(rows, row, name)]

    @staticmethod
    def _at_most_received(rows: Sequence[Row], shown: Row | None, name: RowName) -> list[HeadlineFigure]:
        """The highest rate received with drops; none if it was not measured.

        Args:
            rows: the measured rows.
            shown: the row whose figure stands before it, with the trouble on its hosts; None: there is none.
            name: gives the name of a row.
        """
        best = max(rows, key=lambda row: number(row.get(AGGREGATE_MAX)) or 0.0)
        if not number(best.get(AGGREGATE_MAX)):
            return []
        trouble = host_trouble(best)
        detail = f"messages received by {together(best, name)}, with drops"
        if best is not shown and trouble:
            detail = f"{detail}; {trouble}"
        return [HeadlineFigure("at most received", f"{text_of(best[AGGREGATE_MAX])}/s", detail, noted=bool(trouble))]


class SearchSteps(SweepSteps):
    """The fastest steps that passed, and the slowest that lost something."""

    _sweep: SearchSweep

    @property
    def target(self) -> float:
        """See :class:`hydra.sweep.steps.SweepSteps`."""
        return self._sweep.search.target

    def found(self, row: Row) -> list[FoundRate]:
        """See :class:`hydra.sweep.steps.SweepSteps`."""
        found = []
        for column, prefix in self._within.items():
            figures, rate = RateFigures.of_row(row, prefix), number(row.get(column))
            low, high = figures.low_pps, figures.high_pps
            if low is not None and rate is not None and high is not None:
                text = f"found: {text_of(rate)}/s, 95 % interval {text_of(low)} to {text_of(high)}/s"
                found.append(FoundRate(low, rate, high, self._own_settings(prefix), text))
        return found

    def _own_settings(self, prefix: str) -> dict[str, Figure]:
        """The settings of the search whose columns begin so, except those that all searches of a row share."""
        marks = {search_columns.sndhwm_prefix(mark): mark for mark in self._sweep.search.sndhwms}
        return {"sndhwm": marks[prefix]} if prefix in marks else {}

    @property
    def _within(self) -> dict[str, str]:
        """The columns of the rates within the target, and the beginning of the names of the columns beside each."""
        found = search_columns.prefixes(self._sweep.shown)
        return {column: prefix for column, prefix in found.items() if prefix.startswith("loss")}

    def shown_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: RowName
    ) -> list[tuple[str, list[StepResult]]]:
        """See :class:`hydra.sweep.steps.SweepSteps`: of each client count the fastest that passed, up to its figure."""
        passing = self._passing(rows, results)
        return [
            (f"{counted(step.plan.clients, 'subscriber')} at {text_of(rate_of(step))}/s", [step]) for step in passing
        ]

    def with_latency(
        self, rows: Sequence[tuple[Row, Noted]], results: Sequence[StepResult], nothing: Noted
    ) -> Sequence[tuple[Row, Noted]]:
        """See :class:`hydra.sweep.steps.SweepSteps`: the figures of single steps, since rows have no latency."""
        passing = self._passing([row for row, _ in rows], results)
        without = {row.get(CLIENTS) for row, _ in rows if not self._has_rate(row)}
        return [
            ({CLIENTS: step.plan.clients, **step.figures.cells}, nothing)
            for step in passing
            if step.plan.clients not in without
        ]

    def latency_row(self, row: Row, results: Sequence[StepResult]) -> Row:
        """See :class:`hydra.sweep.steps.SweepSteps`: those of the fastest step that passed within the row's figure.

        A row without a rate within the target has none.
        """
        passing = self._passing([row], results) if self._has_rate(row) else []
        return next((dict(step.figures.cells) for step in passing if step.plan.clients == row.get(CLIENTS)), {})

    def _has_rate(self, row: Row) -> bool:
        """Whether the row has a rate within the target, or the search is for no such rate."""
        return not self._within or any(row.get(column) is not None for column in self._within)

    def _passing(self, rows: Sequence[Row], results: Sequence[StepResult]) -> list[StepResult]:
        """For every client count the fastest step without a cohort that passed.

        Steps may pass by chance far above the rate that was found, so only steps up to that rate count.
        """
        limits = {row.get(CLIENTS): self._vouched(row) for row in rows}
        best: dict[int, StepResult] = {}
        for result in results:
            held = best.get(result.plan.clients)
            passed = result.status == "ok" and not why_not_clean(result.figures) and result.plan.cohort.kind == "none"
            within = rate_of(result) <= limits.get(result.plan.clients, math.inf)
            if passed and within and (held is None or rate_of(result) >= rate_of(held)):
                best[result.plan.clients] = result
        return [best[clients] for clients in sorted(best)]

    def _vouched(self, row: Row) -> float:
        """The highest rate (messages/s) within the target found without a cohort; infinite if there is none."""
        rates = [number(row.get(column)) for column, prefix in self._within.items() if prefix + HIGH_PPS in row]
        return max((rate for rate in rates if rate is not None), default=math.inf)

    def lossy_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: RowName, most: int
    ) -> tuple[list[tuple[str, StepResult]], int]:
        """See :class:`hydra.sweep.steps.SweepSteps`: the slowest steps that lost something.

        The fastest steps always lose, so the slowest step that did not pass is shown in detail.
        """
        tried = [r for r in results if r.status == "ok" and r.plan.cohort.kind == "none" and lost_pct(r)]
        shown = sorted(sorted(tried, key=rate_of)[:most], key=lambda r: (r.plan.clients, rate_of(r)))
        failed = [n for n, r in enumerate(shown) if not r.figures.passing.passed]
        worst = min(failed or range(len(shown)), key=lambda n: rate_of(shown[n]), default=0)
        return [(f"{r.plan.clients} at {_rate(r)}", r) for r in shown], worst

    def at_full_load(self, results: Sequence[StepResult]) -> list[StepResult]:
        """See :class:`hydra.sweep.steps.SweepSteps`: for every client count the step with the highest rate received."""
        fastest: dict[int, StepResult] = {}
        for result in results:
            held = fastest.get(result.plan.clients)
            if held is None or _aggregate(result) > _aggregate(held):
                fastest[result.plan.clients] = result
        return list(fastest.values())


def _rate(result: StepResult) -> str:
    rate = result.plan.settings.rate
    return "max" if rate == "max" else f"{text_of(rate)}/s"


def _aggregate(result: StepResult) -> float:
    return result.figures.rates.aggregate_pps or 0.0


SEARCH: Final = SweepKind(
    spec=SearchSweep,
    own=SearchSpec,
    uses=("clients", "search"),
    tables=("rates", "rate"),
    flags=tuple(f"sweep.search.{name}" for name in ("start_rate", "loss_target", "width", "steps")),
    plan=SearchPlan,
    rows=SearchRows,
    texts=SearchTexts,
    steps=SearchSteps,
)
"""The kind of sweeps that search for rates with their intervals."""
