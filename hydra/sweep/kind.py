"""What a kind of sweep is: one file of this package, with its part of a scenario's table ``[sweep]``. Pure.

What stands here is so for sweeps whose rows are of one step each, at settings that are asked for.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from hydra.errors import Key
from hydra.measure.column import REPEATS, Column
from hydra.measure.column_names import AGGREGATE, AVG_RX, AVG_TX, CLIENTS, LOSS, POINT, RATE_HELD
from hydra.measure.step_columns import DUE, EARLIER, SENT, SystemColumns, published, step_columns
from hydra.model import Figure, Scenario, StepPlan, StepResult, SweepSpec, TableKind, number, value_of
from hydra.sweep.interface import Row, Sweep

if TYPE_CHECKING:
    from hydra.events.warnings import HydraWarning

Noted = TypeVar("Noted")
Name = Callable[[Row], str]
"""What tells a row from the others."""


class RowSettings(NamedTuple):
    """Settings that rows are given beside the scenario's: each stands under its name, or is one of a list there.

    Attributes:
        key: the table in which they stand.
        settings: values by name.
        nth: of the values in their lists; None: they stand there alone.
    """

    key: Key
    settings: Mapping[str, Figure]
    nth: int | None = None

    def place(self, name: str) -> Key:
        """Where a setting's value stands."""
        return (*self.key, name) if self.nth is None else (*self.key, name, self.nth)


class Case(NamedTuple):
    """Rows that are alike in all that decides what they need.

    Attributes:
        scenario: one that has these alone.
        key: under which they stand; (): they are the whole scenario.
        settings: those that stand there.
    """

    scenario: Scenario
    key: Key = ()
    settings: Mapping[str, Figure] = {}


class FoundRate(NamedTuple):
    """A rate within the target, its 95 % interval (messages/s), and the settings of its steps that are its own."""

    low: float
    rate: float
    high: float
    settings: Mapping[str, Figure]


class SweepKind(SweepSpec, ABC):
    """One kind: a scenario whose table ``[sweep]`` has its key is of it."""

    __slots__ = ()

    key: ClassVar[str]
    """Its own field, a key of ``[sweep]``; where none of any kind is written, the sweep is a grid."""
    own: ClassVar[type | None] = None
    """The dataclass of that key, where it is a table."""
    uses: ClassVar[tuple[str, ...]]
    """What may stand in ``[sweep]`` beside what all kinds have."""
    beside: ClassVar[tuple[str, ...]] = ()
    """What may stand beside the settings that its rows are given."""
    tables: ClassVar[tuple[TableKind, ...]] = ("fixed", "batch")
    """The tables that can come out."""
    flags: ClassVar[tuple[str, ...]] = ("settings.rate",)
    """The dotted keys whose flags a scenario of it has."""
    across: ClassVar[str] = CLIENTS
    """The column that figures are drawn against."""
    of_rows: ClassVar[str] = "each row"
    """What a plot of single steps shows one of."""
    all_good: ClassVar[str] = "every row was measured, nothing was lost and no rate was missed"
    """What is said of rows without a warning."""
    aim: ClassVar[str] = ""
    """What is said in place of a rate, where it is searched for."""
    in_order: ClassVar[bool] = False
    """Whether each step follows from those before it, so that a row is of several and is repeated as a whole."""
    is_published: ClassVar[bool] = True
    """Whether it can be the sweep of a published table."""

    def __post_init__(self) -> None:
        SweepSpec.__post_init__(self)  # with slots, super() does not find it
        self.check()

    def check(self) -> None:
        """Refuses what cannot be.

        Raises:
            ValueError: the text says what would be right.
        """
        if not self.counts:
            raise ValueError("clients must name at least one client count, or list points")

    @classmethod
    def against(cls, others: Sequence[str], every: Sequence[str]) -> str:
        """What is wrong with keys of other kinds beside its own.

        Args:
            others: those that are written.
            every: all keys that kinds have.
        """
        return f"a sweep has either {cls.key} or {' and '.join(others)}, not both"

    # --- a scenario of it --------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, written: Any, aliases: Mapping[str, str]) -> Any:
        """What a file has under its key, as the field is built from it.

        Args:
            written: as TOML has it.
            aliases: other names of keys, by which users may call them.

        Raises:
            RefusedError: it cannot be.
        """
        return written

    def completed(self, scenario: Scenario) -> Scenario:
        """The scenario with all that follows from its sweep."""
        return scenario

    def given(self) -> Iterator[RowSettings]:
        """All settings that rows are given beside the scenario's."""
        yield from ()

    def refusals(self, scenario: Scenario) -> Iterator[tuple[Key, str, str]]:
        """Why the scenario cannot be: the key, what is wrong, what to try."""
        yield from ()

    def cases(self, scenario: Scenario) -> list[Case]:
        """The scenario in parts, of each of which it can be said what it needs and whether its system can do it."""
        return [Case(scenario)]

    # --- its steps ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def begin(self, scenario: Scenario) -> Sweep:
        """What decides the next step of a scenario of this kind, each row once."""

    def parts(self, scenario: Scenario) -> dict[Hashable, Scenario]:
        """What is repeated as a whole, by what :meth:`part_of` says of its steps: each client count."""
        alone = {("", clients): replace(self, clients=(clients,), repeat=1) for clients in self.counts}
        return {part: replace(scenario, sweep=sweep) for part, sweep in alone.items()}

    def part_of(self, plan: StepPlan) -> Hashable:
        """The part that a step belongs to."""
        return plan.point, plan.clients

    # --- its rows ----------------------------------------------------------------------------------------------------

    def published(self, scenario: Scenario, system: SystemColumns) -> tuple[Column, ...]:
        """The columns of its table."""
        return tuple(c for c in published(system) if scenario.table == "batch" or c is not system.batch)

    def columns(self, scenario: Scenario, system: SystemColumns) -> Sequence[Column]:
        """All columns that its rows can have, but for what every row has."""
        rates = {scenario.settings.rate, *scenario.values_of("rate")}
        since = [*([DUE] if rates - {"max"} else []), *([SENT] if "max" in rates else [])]
        columns = step_columns(since, cohort=False, system=system)
        return [each for column in columns for each in (column, EARLIER.get(column.name)) if each is not None]

    def primary(self, scenario: Scenario) -> tuple[str, ...]:
        """The figures that runs of a scenario are usually compared by, the first of them that is known.

        Where every row has a rate that was asked for, that rate is no result: the 99th percentile of latency is one.
        Elsewhere it is what a subscriber received.
        """
        paced = "max" not in scenario.values_of("rate")
        return (f"{DUE}_p99_us", AVG_RX) if paced else (AVG_RX,)

    def name_of(self, row: Row, title: Callable[[str], str]) -> str:
        """What tells a row from the others: ``60 clients, Batch 200``.

        Args:
            row: the one.
            title: the heading of a column by its name.
        """
        varied = [f"{title(name)} {text_of(row.get(name))}" for name in self.crossed]
        return ", ".join([f"{text_of(row.get(CLIENTS))} clients", *varied])

    def limits(self, column: str) -> tuple[str, str] | None:
        """The columns with the limits of a rate's interval that the sweep itself found; None for every other column."""
        return None

    def interval(self, row: Row, column: str) -> tuple[float, float] | None:
        """The limits of the 95 % interval (messages/s) that the sweep itself found; None for every other figure.

        The interval of a row that was repeated is that of its repeats.
        """
        names = self.limits(column)
        if names is None or REPEATS in row or row.get(column) is None:
            return None
        low, high = (row.get(name) for name in names)
        return (low, high) if isinstance(low, float) and isinstance(high, float) else None

    def in_place(self, row: Row, column: str) -> str:
        """What stands in place of a figure that was not found; "" for every other one."""
        return ""

    def legend(self, rows: Sequence[Row]) -> str:
        """What the brackets beside its own figures are; "" where there are none."""
        return ""

    def effort(self, row: Row) -> str:
        """What a row took, where that is chance; "" elsewhere."""
        return ""

    def warnings(self, row: Row) -> list[HydraWarning]:
        """What has to be known of the figures that it found."""
        return []

    def slow_rates(self, row: Row) -> tuple[float | None, float | None] | None:
        """Messages/s that were sent to slow clients of a row, and that each read; None where it has none."""
        return None

    # --- what is told of them ----------------------------------------------------------------------------------------

    @property
    def asked(self) -> str:
        """What was asked for, as the facts of a report have it."""
        counts = ", ".join(f"{c:,}" for c in self.counts)
        return f"{counts} clients{self.more_asked}; {self.duration_s:g} s a step, "

    @property
    def more_asked(self) -> str:
        """The same beside client counts and lengths."""
        return ""

    @property
    def searched(self) -> str:
        """What it searches for, and how: only runs that have that in common are compared; "": nothing."""
        return ""

    @property
    def aims(self) -> Mapping[str, object]:
        """What gives its figures their meaning, by name: beside a published table it is told where it differs."""
        return {}

    @property
    def facts(self) -> dict[str, object]:
        """What may differ between runs that are compared; what rows tell is left out."""
        return {"duration_s": self.duration_s, "repeat": self.repeat, "seconds": self.seconds}

    def headline(self, rows: Sequence[Row], name: Name) -> list[tuple[str, str, str]]:
        """What it carries, how late or with which loss: the label, the value and the remark of each figure.

        It is told of the row in which most arrived: of those that kept their rate and lost nothing, if there are any.

        Args:
            rows: that were measured.
            name: of a row.
        """
        from hydra.events.value_formatting import duration_us  # see text_of

        whole = [row for row in rows if not number(row.get(LOSS)) and row.get(RATE_HELD) is not False]
        best = max(whole or rows, key=lambda row: number(row.get(AGGREGATE)) or number(row.get(AVG_RX)) or 0.0)
        loss = "without loss" if best in whole else f"with {text_of(best.get(LOSS))} % loss"
        found = []
        if number(best.get(AGGREGATE)) is not None:
            found.append(("carried", f"{text_of(best[AGGREGATE])}/s", f"{loss}, by {name(best)} together"))
        late = next((p99 for of in (DUE, SENT) if (p99 := number(best.get(f"{of}_p99_us"))) is not None), None)
        if late is not None:
            found.append(("p99 latency", duration_us(late), f"there ({name(best)})"))
        return found

    # --- what a plot shows -------------------------------------------------------------------------------------------

    @property
    def rates(self) -> tuple[Sequence[str], str]:
        """The columns of the rates of a client, and that of all clients together."""
        return (AVG_TX, AVG_RX), AGGREGATE

    @property
    def target(self) -> float | None:
        """The shortfall (a fraction) around which steps are tried; None: rows are drawn, and not steps."""
        return None

    def found(self, row: Row) -> list[FoundRate]:
        """The rates within the target that a row has."""
        return []

    def steps_of(self, row: Row, results: Sequence[StepResult]) -> list[StepResult]:
        """The steps that a row was made of, oldest first: several where it was repeated."""
        found = [
            result
            for result in results
            if result.status == "ok"
            and (result.plan.clients, result.plan.point) == (row.get(CLIENTS), row.get(POINT) or "")
            and all(value_of(result.plan.settings, name) == row.get(name) for name in self.varied)
        ]
        return found if REPEATS in row else found[-1:]

    def shown_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: Name
    ) -> list[tuple[str, list[StepResult]]]:
        """The steps that are drawn one by one, each with its label: those of every row."""
        return [(name(row), steps) for row in rows if (steps := self.steps_of(row, results))]

    def with_latency(
        self, rows: Sequence[tuple[Row, Noted]], results: Sequence[StepResult], nothing: Noted
    ) -> Sequence[tuple[Row, Noted]]:
        """The rows with a latency.

        Args:
            rows: of the table, with their notes.
            results: the steps.
            nothing: the note of what is no row.
        """
        return rows

    def lossy_steps(
        self, rows: Sequence[Row], results: Sequence[StepResult], name: Name, most: int
    ) -> tuple[list[tuple[str, StepResult]], int]:
        """The steps of which it is drawn who lost what, and which of them is looked into: the last step of each row.

        Args:
            rows: the table.
            results: the steps.
            name: of a row.
            most: how many are drawn; of more, those that lost most. The one that lost most is looked into.
        """
        found = [(label, steps[-1]) for label, steps in self.shown_steps(rows, results, name)]
        found = sorted(found, key=lambda each: -lost_pct(each[1]))[:most] if len(found) > most else found
        at = max(range(len(found)), key=lambda n: (lost_pct(found[n][1]), found[n][1].plan.clients), default=0)
        return found, at

    def at_full_load(self, results: Sequence[StepResult]) -> list[StepResult]:
        """The measured steps that tell what a system carries."""
        return list(results)


def text_of(figure: Figure) -> str:
    """A figure as text."""
    from hydra.events.value_formatting import number as text  # every event comes with it, and help waits for none

    return text(figure)


def lost_pct(step: StepResult) -> float:
    """The loss of a step; 0 where it is not known."""
    return number(step.figures.get(LOSS)) or 0.0


def rate_of(result: StepResult) -> float:
    """The rate that a step was asked for, in messages/s; infinite for ``max``."""
    rate = result.plan.settings.rate
    return math.inf if rate == "max" else rate


def kind_of(scenario: Scenario) -> SweepKind:
    """The sweep of a scenario with all that is asked of it.

    Raises:
        TypeError: it was made without saying of which kind it is.
    """
    if not isinstance(scenario.sweep, SweepKind):
        raise TypeError(f"{type(scenario.sweep).__name__} is no kind of sweep")
    return scenario.sweep
