"""The base of a kind of sweep: one file of this package, with its part of a scenario's table ``[sweep]``. Pure.

The methods here suit kinds whose rows are single steps at given settings; other kinds override them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from hydra.errors import Key
from hydra.events.value_formatting import counted, duration_us, known_digits
from hydra.events.value_formatting import number as text_of
from hydra.measure.column import POINT, REPEATS, Column, SystemColumns
from hydra.measure.connection_columns import IN_TABLE, PRIMARY, Connecting
from hydra.measure.latency_columns import DUE, SENT
from hydra.measure.step_part import columns_of
from hydra.measure.step_result import StepFigures, StepResult, step_columns
from hydra.measure.traffic_columns import AGGREGATE, AVG_RX, AVG_TX, CLIENTS, Shares, Totals, published
from hydra.model import IMPAIRMENTS, Figure, Scenario, StepPlan, SweepSpec, TableKind, number
from hydra.sweep.cleanness import why_not_clean
from hydra.sweep.host_trouble import host_trouble
from hydra.sweep.interface import Row, Sweep

if TYPE_CHECKING:
    from hydra.events.warnings import HydraWarning

Noted = TypeVar("Noted")
Name = Callable[[Row], str]
"""Gives the name that distinguishes a row from the others."""


class RowSettings(NamedTuple):
    """Settings of rows that differ from the scenario's, and their place in the file.

    Attributes:
        key: the table that contains them.
        settings: values by name.
        nth: the position of the value in a list under the setting's name; None: the value is not in a list.
    """

    key: Key
    settings: Mapping[str, Figure]
    nth: int | None = None

    def place(self, name: str) -> Key:
        """The key of a setting's value."""
        return (*self.key, name) if self.nth is None else (*self.key, name, self.nth)


class Case(NamedTuple):
    """Rows that are checked together: what they need, and whether the system supports them.

    Attributes:
        scenario: a scenario with only these rows.
        key: the key of these rows in the file; (): they are the whole scenario.
        settings: the settings under that key.
    """

    scenario: Scenario
    key: Key = ()
    settings: Mapping[str, Figure] = {}


class FoundRate(NamedTuple):
    """A rate within the target with the ends of its bar (messages/s), its own settings, and a text about it."""

    low: float
    rate: float
    high: float
    settings: Mapping[str, Figure]
    text: str


@dataclass(frozen=True, slots=True)
class HeadlineFigure:
    """One figure in large letters.

    Attributes:
        label: what it is.
        value: "" if it is unknown.
        detail: a note.
        clean: whether its row is clean.
        noted: whether there was trouble on the hosts of its row.
    """

    label: str
    value: str
    detail: str = ""
    clean: bool = True
    noted: bool = False

    @staticmethod
    def of_row(label: str, value: str, detail: str, row: Row) -> HeadlineFigure:
        """A figure of a row, with the reasons why the row is not clean, and the trouble on its hosts."""
        why, trouble = why_not_clean(row), host_trouble(row)
        details = (detail, f"not clean: {why}" if why else "", trouble)
        return HeadlineFigure(label, value, "; ".join(filter(None, details)), not why, bool(trouble))


class SweepKind(SweepSpec, ABC):
    """One kind of sweep: that of the scenarios whose table ``[sweep]`` has its key."""

    __slots__ = ()

    key: ClassVar[str]
    """Its own field, a key of ``[sweep]``; a sweep without the key of any kind is a grid."""
    own: ClassVar[type | None] = None
    """The dataclass of that key; None if the key is no table."""
    uses: ClassVar[tuple[str, ...]]
    """The keys of ``[sweep]`` that it allows in addition to those of all kinds."""
    row_keys: ClassVar[tuple[str, ...]] = ()
    """The keys that may stand beside the settings of its rows."""
    tables: ClassVar[tuple[TableKind, ...]] = ("fixed", "batch", "connections")
    """The kinds of table that it can have as its result."""
    flags: ClassVar[tuple[str, ...]] = ("settings.rate",)
    """The dotted keys whose flags a scenario of this kind has."""
    across: ClassVar[str] = CLIENTS
    """The column on the horizontal axis of plots."""
    of_rows: ClassVar[str] = "each row"
    """What each curve of a plot of single steps belongs to."""
    all_good: ClassVar[str] = "every row was measured, nothing was lost and no rate was missed"
    """The text that is shown if no row has a warning."""
    aim: ClassVar[str] = ""
    """The text that is shown in place of a rate, for kinds that search for it."""
    in_order: ClassVar[bool] = False
    """Whether each step depends on those before it, so a row has several steps and is repeated as a whole."""
    of_diamonds: ClassVar[str] = ""
    """The explanation of the rates that a plot of losses marks."""
    keeps_time: ClassVar[bool] = True
    """Whether its time limit is near to the time that it usually takes."""
    is_published: ClassVar[bool] = True
    """Whether it can be the sweep of a published table."""

    def __post_init__(self) -> None:
        SweepSpec.__post_init__(self)  # with slots, super() does not find it
        self.check()

    def check(self) -> None:
        """Rejects impossible values.

        Raises:
            ValueError: the text states what would be right.
        """
        if not self.counts:
            raise ValueError("clients must name at least one subscriber count, or list points")

    @classmethod
    def against(cls, others: Sequence[str], every: Sequence[str]) -> str:
        """The error for keys of other kinds in the same table.

        Args:
            others: the keys of other kinds in the table.
            every: the keys of all kinds.
        """
        return f"a sweep has either {cls.key} or {' and '.join(others)}, not both"

    # --- a scenario of it --------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, written: Any) -> Any:
        """The value of its key in a file, in the form that the field is built from.

        Args:
            written: the value as read from TOML.

        Raises:
            RefusedError: the value is invalid.
        """
        return written

    def completed(self, scenario: Scenario) -> Scenario:
        """The scenario with the values that follow from its sweep."""
        return scenario

    def given(self) -> Iterator[RowSettings]:
        """All settings of rows that differ from the scenario's."""
        yield from ()

    def refusals(self, scenario: Scenario) -> Iterator[tuple[Key, str, str]]:
        """The reasons to reject the scenario: the key, what is wrong, what to try."""
        yield from ()

    def cases(self, scenario: Scenario) -> list[Case]:
        """The scenario in parts that are checked one by one: what each needs, and whether the system supports it."""
        return [Case(scenario)]

    # --- its steps ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def begin(self, scenario: Scenario) -> Sweep:
        """The object that decides the next step of a scenario of this kind, without repeats."""

    def parts(self, scenario: Scenario) -> dict[Hashable, Scenario]:
        """The parts that are repeated as a whole, here each subscriber count, by the key that :meth:`part_of` gives."""
        alone = {("", clients): replace(self, clients=(clients,), repeat=1) for clients in self.counts}
        return {part: replace(scenario, sweep=sweep) for part, sweep in alone.items()}

    def part_of(self, plan: StepPlan) -> Hashable:
        """The key of the part that a step belongs to."""
        return plan.point, plan.clients

    # --- its rows ----------------------------------------------------------------------------------------------------

    def published(self, scenario: Scenario, system: SystemColumns) -> tuple[Column, ...]:
        """The columns of its table."""
        if scenario.table == "connections":
            return tuple(
                c for c in (*published(system), *columns_of(Connecting)) if c.name == CLIENTS or c.name in IN_TABLE
            )
        return tuple(c for c in published(system) if scenario.table == "batch" or c is not system.batch)

    def columns(self, scenario: Scenario, system: SystemColumns) -> Sequence[Column]:
        """All columns that its rows can have, except those that every row has."""
        # A recorded load has a rate although the setting is `max`.
        paced = {1.0} if scenario.load.shape != "constant" else set()
        rates = {scenario.settings.rate, *scenario.values_of("rate"), *paced}
        since = [*([DUE] if rates - {"max"} else []), *([SENT] if "max" in rates else [])]
        connecting = scenario.values_of("connect_rate") != (None,)
        cohort = any(event.kind in IMPAIRMENTS for event in scenario.events)
        return step_columns(since, cohort=cohort, system=system, connecting=connecting)

    def primary(self, scenario: Scenario) -> tuple[str, ...]:
        """The columns by which runs of a scenario are usually compared: the first one with a figure counts.

        A scenario of connections is compared by the time until its subscribers are ready.

        If the scenario sets the rate of every row, the rate is no result, and the 99th percentile of latency comes
        first. Otherwise it is the rate that a subscriber received.
        """
        if scenario.table == "connections":
            return PRIMARY
        paced = "max" not in scenario.values_of("rate")
        return (f"{DUE}_p99_us", AVG_RX) if paced else (AVG_RX,)

    def name_of(self, row: Row, title: Callable[[str], str]) -> str:
        """The name that distinguishes a row from the others: ``60 subscribers, Batch 200``.

        Args:
            row: the row.
            title: gives the heading of a column by its name.
        """
        varied = [f"{title(name)} {text_of(row.get(name))}" for name in self.crossed]
        return ", ".join([counted(row.get(CLIENTS), "subscriber"), *varied])

    def limits(self, column: str) -> tuple[str, str] | None:
        """The columns of the limits of a rate's interval that the sweep itself found; None for every other column."""
        return None

    def interval(self, row: Row, column: str) -> tuple[float, float] | None:
        """The limits of the 95 % confidence interval (messages/s) that the sweep itself found; None: it found none.

        A repeated row has the interval over its repeats instead.
        """
        names = self.limits(column)
        if names is None or REPEATS in row or row.get(column) is None:
            return None
        low, high = (row.get(name) for name in names)
        return (low, high) if isinstance(low, float) and isinstance(high, float) else None

    def in_place(self, row: Row, column: str) -> str:
        """The text in place of a figure that was not found; "" for every other figure."""
        return ""

    def legend(self, rows: Sequence[Row]) -> str:
        """The explanation of the brackets beside its figures; "" if there are none."""
        return ""

    def effort(self, row: Row) -> str:
        """The number of steps of a row, if the results decide it; "" otherwise."""
        return ""

    def warnings(self, row: Row) -> list[HydraWarning]:
        """The warnings of the figures that the sweep itself found."""
        return []

    def slow_rates(self, row: Row) -> tuple[float | None, float | None] | None:
        """Messages/s sent to the slow clients of a row, and read by each of them; None if it has no slow clients."""
        return None

    # --- texts about its rows ----------------------------------------------------------------------------------------

    @property
    def outline(self) -> str:
        """What the scenario asks for, for the facts of a report."""
        *others, last = self.counts
        counts = ", ".join([*(f"{count:,}" for count in others), counted(last, "subscriber")])
        return f"{counts}{self.outline_addition}; {self.duration_s:g} s a step, "

    @property
    def outline_addition(self) -> str:
        """What the scenario asks for in addition to subscriber counts and lengths."""
        return ""

    @property
    def sharp_ratio(self) -> float | None:
        """The duration if losses begin at one rate, in expected durations; None: chance has no part in it."""
        return None

    @property
    def searched(self) -> str:
        """What it searches for, and how: only runs with the same text are compared; "": it searches for nothing."""
        return ""

    @property
    def aims(self) -> Mapping[str, object]:
        """The settings that define its figures, by name; a comparison with a published table shows differing ones."""
        return {}

    @property
    def facts(self) -> dict[str, object]:
        """The settings that may differ between compared runs, except those that rows contain."""
        return {"duration_s": self.duration_s, "repeat": self.repeat, "seconds": self.seconds}

    def headline(self, rows: Sequence[Row], name: Name) -> list[HeadlineFigure]:
        """What the system carried, what was requested and not carried, and the latency.

        The first figure is that of the clean row in which most arrived. If other rows are not clean, the second figure
        is of the one in which most arrived. The latency is that of the first figure's row.

        Args:
            rows: the measured rows.
            name: gives the name of a row.
        """
        reasons = [(row, why_not_clean(row)) for row in rows]
        clean, others = _most([row for row, why in reasons if not why]), _most([row for row, why in reasons if why])
        found = []
        of_clean = StepFigures.of(clean or {})
        if clean is not None and (carried := of_clean.rates.aggregate_pps) is not None:
            lost = of_clean.totals.client_loss_pct
            loss = f"with {text_of(lost)} % loss" if lost else "without loss"
            label, what = ("received", _received_by) if _at_full_speed(of_clean) else ("carried", _delivered_to)
            found.append(HeadlineFigure.of_row(label, f"{text_of(carried)}/s", f"{loss}; {what(clean, name)}", clean))
        elif clean is None:
            found.append(HeadlineFigure("carried", "", "no row is clean", clean=False))
        if others is not None:
            figures = StepFigures.of(others)
            delivered = figures.rates.aggregate_pps
            rate = "" if "rate" in self.varied else f"{requested(others)}, "
            label, what = ("received", _received_by) if _at_full_speed(figures) else ("delivered", _delivered_to)
            value = "" if delivered is None else f"{text_of(delivered)}/s"
            found.append(HeadlineFigure.of_row(label, value, f"{rate}{what(others, name)}", others))
        best = clean or others or {}
        late = StepFigures.of(best).p99_us
        if late is not None:
            text, noted = f"there ({name(best)})", bool(host_trouble(best))
            found.append(HeadlineFigure("p99 latency", duration_us(late), text, clean is not None, noted))
        return found

    # --- what a plot shows -------------------------------------------------------------------------------------------

    @property
    def rates(self) -> tuple[Sequence[str], str]:
        """The columns of the rates of one client, and the column of the rate of all clients together."""
        return (AVG_TX, AVG_RX), AGGREGATE

    @property
    def target(self) -> float | None:
        """The shortfall (a fraction) around which steps are tried; None: plots show rows, not steps."""
        return None

    def found(self, row: Row) -> list[FoundRate]:
        """The rates within the target that a row has."""
        return []

    def steps_of(self, row: Row, results: Sequence[StepResult]) -> list[StepResult]:
        """The steps of a row, oldest first; several if the row was repeated."""
        found = [
            result
            for result in results
            if result.status == "ok"
            and (result.plan.clients, result.plan.point) == (row.get(CLIENTS), row.get(POINT) or "")
            and all(result.plan.value(name) == row.get(name) for name in self.varied)
        ]
        return found if REPEATS in row else found[-1:]

    def shown_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: Name
    ) -> list[tuple[str, list[StepResult]]]:
        """The steps that are plotted one by one, each with its label: here the steps of every row."""
        return [(name(row), steps) for row in rows if (steps := self.steps_of(row, results))]

    def with_latency(
        self, rows: Sequence[tuple[Row, Noted]], results: Sequence[StepResult], nothing: Noted
    ) -> Sequence[tuple[Row, Noted]]:
        """The rows that have latencies.

        Args:
            rows: the rows of the table, with their notes.
            results: the steps.
            nothing: the note of a step that is no row.
        """
        return rows

    def latency_row(self, row: Row, results: Sequence[StepResult]) -> Row:
        """The figures with the latencies that a table shows for a row: the row's own.

        Args:
            row: of the table.
            results: the steps.
        """
        return row

    def lossy_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: Name, most: int
    ) -> tuple[list[tuple[str, StepResult]], int]:
        """The steps whose losses are plotted by subscriber, and the position of the one shown in detail.

        The plotted steps are the last step of each row; the step that lost most is shown in detail.

        Args:
            rows: the rows of the table.
            results: the steps.
            name: gives the name of a row.
            most: how many are plotted at most: those that lost most.
        """
        found = [(label, steps[-1]) for label, steps in self.shown_steps(rows, results, name)]
        found = sorted(found, key=lambda each: -lost_pct(each[1]))[:most] if len(found) > most else found
        at = max(range(len(found)), key=lambda n: (lost_pct(found[n][1]), found[n][1].plan.clients), default=0)
        return found, at

    def at_full_load(self, results: Sequence[StepResult]) -> list[StepResult]:
        """The measured steps at the highest load."""
        return list(results)


def _most(rows: Sequence[Row]) -> Row | None:
    """The row in which most arrived; None without rows."""

    def received(row: Row) -> float:
        figures = StepFigures.of(row)
        return figures.rates.aggregate_pps or figures.totals.avg_rx_rate_pps or 0.0

    return max(rows, key=received, default=None)


def _at_full_speed(figures: StepFigures) -> bool:
    """Whether the row's publishers sent at rate ``max``."""
    return figures.shares.requested_rate == "max"


def _delivered_to(row: Row, name: Name) -> str:
    """Whose messages the figure of a row counts."""
    return f"messages delivered to {together(row, name)}"


def _received_by(row: Row, name: Name) -> str:
    """The same of a row at rate ``max``, with what each subscriber received and each publisher sent a second."""
    totals = Totals.of_row(row)
    each = f", {text_of(totals.avg_rx_rate_pps)}/s each" if totals.clients != 1 else ""
    return f"messages received by {together(row, name)}{each}; sent: {text_of(totals.avg_tx_rate_pps)}/s"


def together(row: Row, name: Name) -> str:
    """The subscribers of a row whose figure is that of all: ``all subscribers together (30 subscribers)``."""
    return name(row) if row.get(CLIENTS) == 1 else f"all subscribers together ({name(row)})"


def requested(row: Row) -> str:
    """The rate that was requested of each publisher of a row: ``at 30,000/s``, ``at full speed``."""
    rate = number(Shares.of_row(row).requested_rate)
    return "at full speed" if rate is None else f"at {text_of(rate)}/s"


def known_texts(figure: float, low: float, high: float) -> tuple[str, str, str]:
    """A figure and the limits of its interval, with the digits that the interval leaves known."""
    figure, low, high = (known_digits(each, (high - low) / 2) for each in (figure, low, high))
    return text_of(figure), text_of(low), text_of(high)


def lost_pct(step: StepResult) -> float:
    """The loss of a step in percent; 0 if it is not known."""
    return step.figures.totals.client_loss_pct or 0.0


def rate_of(result: StepResult) -> float:
    """The rate in the plan of a step, in messages/s; infinite for ``max``."""
    rate = result.plan.settings.rate
    return math.inf if rate == "max" else rate


def kind_of(scenario: Scenario) -> SweepKind:
    """The sweep of a scenario as an object of its kind.

    Raises:
        TypeError: the sweep was made without a kind.
    """
    if not isinstance(scenario.sweep, SweepKind):
        raise TypeError(f"{type(scenario.sweep).__name__} is no kind of sweep")
    return scenario.sweep
