"""The tables of an experiment, made from its file and from the parts that are done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import Formatter

from hydra.config.experiment_file import ColumnEntry, ExperimentFile, NoteEntry, TableEntry
from hydra.experiments.columns import COMMON, columns_of
from hydra.experiments.expression import Scope, combinations, parsed, text_of
from hydra.experiments.measured_rows import (
    Measured,
    below_bound,
    marks_of_part,
    measured,
    not_measured,
    quality_of_runs,
)
from hydra.experiments.published_figures import (
    figure_of,
    figures_of,
    lines_of,
    published_row,
    with_published,
    with_published_columns,
)
from hydra.experiments.scope import scope_of
from hydra.measure.column import Column
from hydra.model import Figure, number
from hydra.system.experiment import ExperimentOptions, ExperimentTable, PartResult

Row = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class RowSource:
    """What a row is made of.

    Attributes:
        scope: the names that its expressions can use.
        figures: figures by name, for columns without an expression.
        quality: the figures of ``QUALITY``.
        values: expressions of this row only, by column.
    """

    scope: Mapping[str, object]
    figures: Mapping[str, object] = field(default_factory=dict)
    quality: Row = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)

    def with_names(self, names: Mapping[str, object]) -> RowSource:
        """The same with further names, which columns can have, too."""
        return replace(self, scope={**self.scope, **names}, figures={**self.figures, **names})


def tables_of(file: ExperimentFile, order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    """All tables, also those without rows."""
    scope = scope_of(file, order, done)
    shown = (entry for entry in file.tables if not entry.when or parsed(entry.when).value(scope))
    return [_TableMaker(file, entry, scope, done).table() for entry in shown]


@dataclass(frozen=True, slots=True)
class _TableMaker:
    file: ExperimentFile
    entry: TableEntry
    scope: Scope
    done: Sequence[PartResult]

    def table(self) -> ExperimentTable:
        entry = self.entry
        columns = columns_of(entry.columns, self.file.columns)
        sources = list(self._sources())
        rows: list[dict[str, Figure]] = []
        for source in sources:
            for one in self._by_document(source):
                rows.append(self._row(one.with_names({"before": rows[-1] if rows else {}}), columns))
        kept = [column for name, column in columns.items() if self._is_shown(name, rows)]
        scope = {**self.scope, "figures": [source.figures for source in sources]}
        marks = {text: number(figures_of({text: at}, scope)[text]) for text, at in entry.marks.items()}
        return ExperimentTable(
            entry.title,
            list(with_published_columns(kept, entry.compared)),
            rows,
            [line for note in entry.notes for line in self._lines(note, sources)],
            entry.x,
            entry.y,
            {text: at for text, at in marks.items() if at},
        )

    def _is_shown(self, name: str, rows: Sequence[Row]) -> bool:
        deciding = self.entry.optional.get(name)
        return deciding is None or any(row.get(deciding) is not None for row in rows)

    # --- the rows ----------------------------------------------------------------------------------------------------

    def _sources(self) -> Iterator[RowSource]:
        made: Mapping[str, Callable[[], Iterator[RowSource]]] = {
            "points": self._points,
            "means": self._means,
            "publishers": self._publishers,
            "servers": self._servers,
            "parts": self._parts,
            "listed": self._listed,
        }
        for source in made[self.entry.rows]():
            found = source
            for name, text in self.entry.let.items():
                found = found.with_names({name: parsed(text).value(found.scope)})
            if not self.entry.only or parsed(self.entry.only).value(found.scope):
                yield found

    def _measured(self) -> Iterator[tuple[Measured, RowSource]]:
        """The measured rows that the table is about, each with the values in its name."""
        for run in measured(self.done):
            values = values_in(run.name, self.entry.points)
            if values is None:
                continue
            scenario = run.done.scenario
            scope = {
                **self.scope,
                "name": run.name,
                "row": run.row,
                "publishers": run.publishers,
                "subscribers": run.subscribers,
                "servers": run.servers,
                "server_count": scenario.server.count,
                "window_s": scenario.sweep.length_s(run.name),
            }
            yield run, RowSource(scope, quality=run.quality).with_names(values)

    def _points(self) -> Iterator[RowSource]:
        for run, source in self._measured():
            yield replace(source, figures={**run.row, **source.figures})

    def _publishers(self) -> Iterator[RowSource]:
        for run, source in self._measured():
            for index, client in enumerate(run.publishers, 1):
                yield replace(source, scope={**source.scope, "index": index}, figures={**client, **source.figures})

    def _servers(self) -> Iterator[RowSource]:
        for run, source in self._measured():
            for name, figures in sorted(run.servers.items()):
                yield replace(source, scope={**source.scope, "server": name, "servers": {name: figures}})

    def _means(self) -> Iterator[RowSource]:
        """The runs of each scenario together: their figures are those of the columns with expressions."""
        columns = [name for name in self.entry.columns if self._column(name).value]
        runs: dict[str, list[Row]] = {}
        names: dict[str, Mapping[str, object]] = {}
        for run, source in self._measured():
            figures = figures_of({name: self._column(name).value for name in columns}, source.scope)
            runs.setdefault(run.scenario, []).append({**figures, **run.quality})
            names.setdefault(run.scenario, values_in(run.name, self.entry.points) or {})
        sets = {name: runs.get(scenario, []) for name, scenario in self.entry.sets.items()}
        for scenario, found in runs.items():
            scope = {**self.scope, **sets, "runs": found}
            yield RowSource(scope, quality=quality_of_runs(found)).with_names(names[scenario])

    def _parts(self) -> Iterator[RowSource]:
        for each in self.done:
            rows = {run.name: run for run in measured([each])}
            yield RowSource({**self.scope, "part": each.part.name, "at": rows.get}, quality=marks_of_part(each))

    def _listed(self) -> Iterator[RowSource]:
        for chosen in combinations(self.entry.each, self.scope):
            for values in self.entry.listed or ({},):
                scenario = parsed(values.get("runs", "None")).value(self.scope)
                runs = [run.quality for run in measured(self.done) if run.scenario == scenario]
                quality = quality_of_runs(runs) if scenario else {}
                yield RowSource(self.scope, {}, quality, values).with_names(chosen)

    def _by_document(self, source: RowSource) -> Iterator[RowSource]:
        """The source of a row, once for each document that it stands beside."""
        if not self.entry.documents:
            yield source
            return
        sources = [source.with_names(document) for document in self.file.documents]
        published = self.entry.published
        if published is not None and published.only_found:
            sources = [
                each
                for each in sources
                if any(lines_of(published.file, where, each.scope) for where in published.lines.values())
            ]
        yield from sources or [source.with_names(dict.fromkeys(self.file.documents[0]))]

    def _column(self, name: str) -> ColumnEntry:
        return self.file.columns.get(name) or COMMON.get(name) or ColumnEntry()

    def _expression(self, name: str, source: RowSource) -> str:
        """The expression of a column; "" if the row has the figure."""
        own = source.values.get(name) or self.entry.values.get(name)
        value = self._column(name).value
        if own or not value or self.entry.rows == "publishers":
            return own or ""
        return f"mean(runs, {name!r})" if self.entry.rows == "means" else value

    def _row(self, source: RowSource, columns: Mapping[str, Column]) -> dict[str, Figure]:
        known = {**source.figures, **source.quality}
        texts = {name: self._expression(name, source) for name in columns}
        own = figures_of({name: text for name, text in texts.items() if text}, source.scope)
        row = {of.name: own[name] if name in own else figure_of(name, known.get(name)) for name, of in columns.items()}
        if self.entry.published is None:
            return row
        compared = {name: texts[name] for name in self.entry.compared if texts[name]}
        published = published_row(self.entry.published, compared, source.scope)
        return with_published(row, published, self.entry.compared)

    # --- the notes ---------------------------------------------------------------------------------------------------

    def _lines(self, note: NoteEntry, sources: Sequence[RowSource]) -> list[str]:
        if note.of:
            return not_measured(self.done) if note.of == "rows" else below_bound(self.done, note.columns)
        if not note.each:
            return [text_of(note.text, self.scope)]
        chosen = (each for each in sources if not note.only or parsed(note.only).value(each.scope))
        lines = list(dict.fromkeys(text_of(note.each, each.scope) for each in chosen))
        if not note.text or not lines:
            return lines
        return [text_of(note.text, {**self.scope, "lines": ", ".join(lines)})]


def values_in(name: str, patterns: Sequence[str]) -> dict[str, object] | None:
    """The values in the name of a point, by the first pattern that it has; None if it has none of them.

    Digits are a number. Without patterns, every name is taken.
    """
    if not patterns:
        return {}
    for pattern in patterns:
        found = re.fullmatch(_regular_expression(pattern), name)
        if found:
            return {key: int(text) if text.isdecimal() else text for key, text in found.groupdict().items()}
    return None


def _regular_expression(pattern: str) -> str:
    return "".join(
        re.escape(before) + (f"(?P<{key}>[^/]+?)" if key else "") for before, key, _, _ in Formatter().parse(pattern)
    )
