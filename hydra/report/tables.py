"""The tables of a run: ``table.md``, the terminal's table, ``table.csv`` and ``rows.json``.

They are made from rows alone.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Final, NamedTuple

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.events.event import StoredEvent
from hydra.events.value_formatting import UNKNOWN, counted, known_digits, number
from hydra.events.warnings import HydraWarning
from hydra.measure.column import COUNT, INTERVAL, REPEATS, STATUS, Column
from hydra.measure.connection_columns import ACHIEVED, LOCAL
from hydra.measure.latency_columns import DUE, SENT, latency_columns
from hydra.measure.loss_columns import LATE
from hydra.measure.passing_columns import GROUP
from hydra.measure.step_result import StepResult
from hydra.measure.traffic_columns import AGGREGATE, AVG_RX, AVG_TX, CLIENTS, LOSS
from hydra.model import PUBLISHERS, Figure, RunSetup, Scenario, cell_of
from hydra.model import number as number_of
from hydra.report.figure_texts import bounded_text, error_text, latency_in_ms, mark_of_row
from hydra.report.interval_display import LeastLosses, efforts, least_losses, legend, loss_limits, whole_rate
from hydra.report.row_warnings import WarnedRow, merge_equal_warnings, warnings, warnings_of_rows
from hydra.report.run_setup import setup_columns, setup_line, setup_object, setup_of
from hydra.report.table import PartedLine, Table, TableCell, TableRow, fitted
from hydra.report.table import markdown as text_of
from hydra.store.run_folders import ROWS, write_whole
from hydra.store.stored_scenario import columns_of, in_order, published_columns
from hydra.sweep import Row, rows_of, steps_of
from hydra.sweep.cleanness import flaws, judged


class FigureFormat(NamedTuple):
    """The formats of a column's figures and of searched rates."""

    figure: Callable[[Column, Figure], str]
    rate: Callable[[Figure], str]


def headings(scenario: Scenario) -> dict[str, str]:
    """The heading of every column that a row of this scenario can have."""
    return {name: column.title for name, column in columns_of(scenario).items()}


def table_columns(scenario: Scenario, rows: Sequence[Row], results: Sequence[StepResult] = ()) -> list[Column]:
    """The columns of a table that have a figure in some row; all columns that it can have if there are no rows.

    These are the published columns, with other varied settings after the numbers of subscribers; then late messages if
    a row has some, and the latencies.

    Args:
        scenario: the scenario of the run.
        rows: the rows of the table.
        results: the steps of the run, in which the rows of a search have their latencies.
    """
    columns = _received_first(scenario, published_columns(scenario))
    known = columns_of(scenario)
    names = {column.name for column in columns}
    varied = [known[name] for name in scenario.sweep.varied if name not in names]
    last = 1 + max(n for n, column in enumerate(columns) if column.name in (CLIENTS, PUBLISHERS))
    late = [replace(known[LATE], heading="Late")] if any(number_of(row.get(LATE)) for row in rows) else []
    latencies = [] if scenario.table == "connections" else _latencies(known)
    chosen = [*columns[:last], *varied, *columns[last:], *late, *latencies]
    of_rows, steps = rows_of(scenario), steps_of(scenario)
    measured = [steps.latency_row(row, results) for row in rows]
    return [
        column
        for column in chosen
        if not rows
        or (
            any(row.get(column.name) is not None for row in measured)
            if _is_latency(column)
            else any(row.get(column.name) is not None or of_rows.in_place(row, column.name) for row in rows)
        )
    ]


def _received_first(scenario: Scenario, columns: Sequence[Column]) -> Sequence[Column]:
    """The columns, with Rx rate before Tx rate if a row has the rate ``max``, whose result is what was received."""
    if scenario.published or "max" not in scenario.values_of("rate"):
        return columns
    order = {AVG_TX: AVG_RX, AVG_RX: AVG_TX}
    by_name = {column.name: column for column in columns}
    return [by_name[order.get(column.name, column.name)] for column in columns]


def _latencies(known: Mapping[str, Column]) -> list[Column]:
    """The latencies of a table, in milliseconds: from the due time, and from the send if a row has the rate ``max``."""
    since = {DUE: "Latency", SENT: "Latency from send"}
    found = [prefix for prefix in since if f"{prefix}_p50_us" in known] or [DUE]  # a search has that of a step
    return [
        replace(column, heading=f"{since[prefix]} {column.title}", unit=MILLISECONDS)
        for prefix in found
        for column in latency_columns(prefix)
        if column.title in _PERCENTILES
    ]


def _is_latency(column: Column) -> bool:
    """Whether a column of a table is a latency, which is stored in microseconds and shown in milliseconds."""
    return column.unit == MILLISECONDS and column.name.endswith("_us")


MILLISECONDS: Final = "ms"
_PERCENTILES: Final = ("p50", "p99")


def name_of(scenario: Scenario, row: Row) -> str:
    """The name of a row: its point, or ``60 clients, Batch 200``."""
    return rows_of(scenario).name_of(row, lambda column: columns_of(scenario)[column].title)


class RunTables:
    """The tables of a run as texts. Its warnings, and each text for a file, are made once.

    Arguments:
        scenario: the scenario of the run.
        rows: the rows of the table.
        setup: what was measured; None: only what the scenario determines.
        results: the steps of the run; the latencies of a search's row are those of one step.
        events: the stored events of the run.
        error: why the run could not continue; "" if it did.
    """

    def __init__(
        self,
        scenario: Scenario,
        rows: Sequence[Row],
        setup: RunSetup | None = None,
        results: Sequence[StepResult] = (),
        events: Iterable[StoredEvent] = (),
        error: str = "",
    ) -> None:
        self.scenario, self.rows, self.results, self.events, self.error = scenario, rows, results, events, error
        self._setup = setup

    @cached_property
    def setup(self) -> RunSetup:
        """What was measured."""
        return self._setup or setup_of(ResolvedScenario.of(self.scenario))

    @cached_property
    def notes(self) -> list[list[HydraWarning]]:
        """The warnings of each row."""
        return warnings_of_rows(self.scenario, self.rows)

    @cached_property
    def markdown(self) -> str:
        """The text of ``table.md``."""
        return text_of(self._document(_FILE))

    def terminal(self, width: int, *, colours: bool = False) -> str:
        """The same table for a terminal: fitted to its width, figures rounded and grouped by thousands.

        Args:
            width: width of the terminal in characters.
            colours: whether the terminal shows colours.
        """
        _, *parts = self._document(_TERMINAL)
        return fitted(parts, width, colours=colours)

    def table(self) -> Table:
        """The table alone, for a text that has the warnings of the rows itself."""
        return self._table(_TERMINAL)

    def _table(self, written: FigureFormat) -> Table:
        return table(self.scenario, self._columns, self.rows, self.notes, self.results, written)

    @cached_property
    def _columns(self) -> list[Column]:
        return table_columns(self.scenario, self.rows, self.results)

    @cached_property
    def csv(self) -> str:
        """The text of ``table.csv``: full precision, column names of ``conf/reference``; an unknown figure is empty.

        A latency below the bound of the clocks is written as ``< 305``, its largest possible value. A latency above the
        bound is written as measured, with the bound in its own column. ``rows.json`` has the measured values. The last
        columns have what was measured, which is the same in all rows.
        """
        rows, measured = list(map(judged, self.rows)), setup_columns(self.setup)
        columns = [column.name for column in in_order(self.scenario, rows)]
        out = io.StringIO()
        writer = csv.DictWriter(out, [*columns, *measured], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**{name: bounded_text(row, name) for name in row}, **measured} for row in rows)
        return out.getvalue()

    @cached_property
    def json(self) -> str:
        """The text of ``rows.json``: every row as an object with all columns in order, and all warnings.

        ``report/json_schema.py`` describes the format.
        """
        rows, scenario = list(map(judged, self.rows)), self.scenario
        columns = in_order(scenario, rows)
        content = {
            "scenario": scenario.name,
            "system": scenario.system,
            "client": scenario.client,
            "setup": setup_object(self.setup),
            "rows": [{c.name: cell_of(row.get(c.name)) for c in columns} for row in rows],
            "warnings": warnings(self.rows, self.notes, self.events),
            **({"error": self.error} if self.error else {}),
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def write(self, directory: Path) -> list[Path]:
        """Writes the three files into a run directory, each completely or not at all, and returns their paths.

        Raises:
            HydraError: the directory cannot be written.
        """
        texts = {"table.md": self.markdown, "table.csv": self.csv, ROWS: self.json}
        remedy = f"everything measured is in {directory / 'run.db'}"
        return [write_whole(directory / name, text, remedy) for name, text in texts.items()]

    def _document(self, written: FigureFormat) -> list[str | PartedLine | Table]:
        """The table with its title, what was measured, the legend and the warnings."""
        scenario, rows, titles = self.scenario, self.rows, headings(self.scenario)
        names = [rows_of(scenario).name_of(row, titles.__getitem__) for row in rows]
        about = merge_equal_warnings(
            [WarnedRow(name, its, not flaws(row)) for name, its, row in zip(names, self.notes, rows, strict=True)]
        )
        parts: list[str | PartedLine | Table] = [
            f"# {scenario.name}",
            scenario.description,
            setup_line(self.setup),
            self._table(written),
            *count_lines(scenario, self._columns, rows),
            pacing_line(scenario),
            legend(scenario, rows),
            "\n".join(f"- {each.mark}{' ' * bool(each.mark)}**{each.rows}**: {each.text}" for each in about),
            "\n".join(f"- {text}" for text in efforts(scenario, rows)),
        ]
        return [part for part in parts if part]


def table(
    scenario: Scenario,
    columns: Sequence[Column],
    rows: Sequence[Row],
    notes: Sequence[Sequence[HydraWarning]],
    results: Sequence[StepResult],
    written: FigureFormat,
) -> Table:
    """The table; ``⚠`` stands beside a row that is not clean, ``*`` beside a clean row with a warning.

    Args:
        scenario: the scenario of the run.
        columns: the columns of the table.
        rows: the rows of the table.
        notes: the warnings of each row.
        results: the steps of the run.
        written: the formats of figures.
    """
    steps = steps_of(scenario)
    least = least_losses(rows)
    body = [
        TableRow(
            [
                _latency(column, row, steps.latency_row(row, results), written)
                if _is_latency(column)
                else _with_interval(column, row, scenario, least, written)
                for column in columns
            ],
            mark_of_row(row, warned=bool(about)),
            "; ".join(note.text for note in about),
            str(row.get(STATUS, "")),
        )
        for row, about in zip(rows, notes, strict=True)
    ]
    heads = [heading(scenario, column) for column in columns]
    return Table(heads, body, [True] * len(columns), spare=[column.name in _SPARE for column in columns])


_TOTALS: Final = ("total_tx", "total_rx")
_SPARE: Final = (*_TOTALS, ACHIEVED, LOCAL)
"""Columns for which a narrow terminal has no place."""


def count_lines(scenario: Scenario, columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """The sentences about the rates and totals of several publishers, and about the figures of a group's members.

    Args:
        scenario: the scenario of the run.
        columns: the columns of its table.
        rows: the rows of the table.
    """
    titles = {c.name: (scenario.published and c.published) or c.title for c in columns}
    return [line for line in (_publishers_line(scenario, titles), _group_line(titles, rows)) if line]


def _publishers_line(scenario: Scenario, titles: Mapping[str, str]) -> str:
    """The sentence about the rates and totals of several publishers; "" for one publisher, or without these columns."""
    if scenario.publishers == 1 or not titles.keys() >= {AVG_TX, AVG_RX, *_TOTALS}:
        return ""
    sent, received = (titles[name] for name in _TOTALS)
    return (
        f"{publishers_text(scenario)}: {titles[AVG_TX]} is the mean over publishers, and {sent} the sum over "
        f"publishers; {titles[AVG_RX]} and {received} are means over subscribers, of the messages of all publishers."
    )


def _group_line(titles: Mapping[str, str], rows: Sequence[Row]) -> str:
    """The sentence about the figures of a consumer group's members; "" without a group, or without these columns."""
    names = [titles[name] for name in (AVG_RX, _TOTALS[1]) if name in titles]
    if not names or not any(row.get(GROUP) for row in rows):
        return ""
    return (
        f"A consumer group shares the messages: {' and '.join(names)} {'is' if len(names) == 1 else 'are'} the mean "
        f"share of a member; `{AGGREGATE}` is the rate of the whole group."
    )


def pacing_line(scenario: Scenario) -> str:
    """The sentence about publishers that do not space their messages evenly; "" if they do."""
    if scenario.native.pacing == "smooth" or set(scenario.values_of("rate")) == {"max"}:
        return ""
    return f"Pacing: {scenario.native.pacing}; publishers send all messages of a second at its start."


def publishers_text(scenario: Scenario) -> str:
    """The number of publishers of the rows: ``2 publishers``, ``1 to 4 publishers``."""
    counts = sorted({publishers for publishers, _ in scenario.sizes})
    least = f"{counts[0]:,} to " if len(counts) > 1 else ""
    return least + counted(counts[-1], "publisher")


def heading(scenario: Scenario, column: Column) -> str:
    """What the table of this scenario calls a column: with its unit, or as it was published."""
    if scenario.published and not _is_latency(column):
        return column.published or column.title
    return column.table_heading


def _with_interval(
    column: Column, row: Row, scenario: Scenario, least: LeastLosses, written: FigureFormat
) -> TableCell:
    """A cell: its figure, its 95 % interval if it was searched or repeated, and the number of repeats if not all."""
    name, text = column.name, partial(written.figure, column)
    of_rows = rows_of(scenario)
    if limits := of_rows.interval(row, name):
        wide = limits[1] - limits[0]
        figure, low, high = (written.rate(known_digits(x, wide / 2)) for x in (number_of(row[name]) or 0.0, *limits))
        return TableCell(figure, f"[{low} – {high}]")
    if answer := of_rows.in_place(row, name):
        return TableCell(answer)
    notes, half, count = [], number_of(row.get(name + INTERVAL)), row.get(name + COUNT)
    shown = bounded_text(row, name)
    if name == LOSS and (known := loss_limits(row, least)):
        text = partial(_known, column, (known.high - known.low) / 2, written)
        notes.append(f"[{text(known.low)} – {text(known.high)}]")
    elif half is not None:
        text = partial(_known, column, half, written)
        notes.append(f"± {text(half)}")
    if (reached := number_of(row.get(column.reached))) is not None:
        notes.append(f"(reached {number(reached)})")
    if count is not None:
        notes.append(f"({count} of {row.get(REPEATS)})")
    return TableCell(text(shown) + error_text(row, name), " ".join(notes))


def _known(column: Column, half: float, written: FigureFormat, value: Figure) -> str:
    """A figure or a limit of an interval with the digits that half the interval's width leaves known."""
    if not half or not isinstance(value, int | float):
        return written.figure(column, value)
    return written.figure(replace(column, digits="all"), known_digits(float(value), half))


def _latency(column: Column, row: Row, measured: Row, written: FigureFormat) -> TableCell:
    """A latency of a row in milliseconds; ``measured`` has it, and ``row`` the number of its repeats."""
    ms = replace(column, digits="six")
    text = latency_in_ms(measured, column.name, lambda value: written.figure(ms, float(f"{value:.4g}")))
    count = row.get(column.name + COUNT)
    return TableCell(text or written.figure(column, None), "" if count is None else f"({count} of {row.get(REPEATS)})")


def cell(column: Column, value: Figure) -> str:
    """A figure as text."""
    if value is None:
        return UNKNOWN
    if isinstance(value, float):
        if column.digits == "rate":
            return whole_rate(value)
        if column.digits == "all":
            return f"{value:.12g}"
        if column.digits == "six":
            text = f"{value:.6g}"
            return number(value, 6) if "e" in text else text
        text = f"{value:.0f}" if value.is_integer() or column.digits == "none" else f"{value:.2f}"
        return number(value) if value and not float(text) else text
    return str(value)


_FILE: Final = FigureFormat(cell, whole_rate)
_TERMINAL: Final = FigureFormat(lambda _, value: number(value), number)
