"""The HTML parts of the report: warnings, facts, tables. Every text that comes from a run is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, Final

from hydra.events.event import Level, StoredEvent
from hydra.events.run_events import SystemFact
from hydra.events.value_formatting import MARK, UNKNOWN, counted
from hydra.events.warnings import HydraWarning, RunEndedBadly, RunIncomplete
from hydra.jupyter.blocks import Html, block, facts_table, figure, html, measured, scrolling, style
from hydra.jupyter.run_data import RunData
from hydra.jupyter.step_details import details
from hydra.measure.column import POINT, Column
from hydra.measure.traffic_columns import CLIENTS
from hydra.model import Settings, names_of, value_of
from hydra.report.figure_texts import NOTED, bounded_text, error_text, marks_line
from hydra.report.interval_display import efforts, legend, whole_rate
from hydra.report.published_tables import CellComparison, RowComparison, compare, differences, published_scenario
from hydra.report.run_setup import client_texts
from hydra.report.table import Table, TableRow, without_empty_columns
from hydra.report.tables import FigureFormat, count_lines, name_of, pacing_line, table_columns
from hydra.report.tables import table as its_table
from hydra.store.database import FINISHED
from hydra.store.stored_scenario import columns_of, in_order
from hydra.sweep import Row, texts_of
from hydra.sweep.cleanness import flaws, host_trouble

_ORDER: Final = tuple(Level)
_MOST_DETAILS: Final = 20


@dataclass(frozen=True, slots=True)
class ReportWarning:
    """A warning as the report shows it.

    Attributes:
        level: its severity.
        about: the row or the events that it is about.
        text: what happened, and what to do.
        details: single events if it stands for several.
        kind: its entry in docs/warnings.md; "": ``about`` names the category of several events.
    """

    level: Level
    about: str
    text: str
    details: tuple[str, ...] = ()
    kind: str = ""


def warnings_of(run: RunData) -> list[ReportWarning]:
    """The run's warnings: how it ended, rows by severity, then events."""
    of_rows = [
        _about(name_of(run.scenario, row), warning)
        for row, warnings in zip(run.rows, run.notes, strict=True)
        for warning in warnings
    ]
    of_rows.sort(key=lambda warning: _ORDER.index(warning.level))
    return [*_of_the_end(run), *of_rows, *_of_events(run.events)]


def _about(about: str, warning: HydraWarning) -> ReportWarning:
    return ReportWarning(warning.level, about, str(warning), kind=warning.kind)


def _of_the_end(run: RunData) -> Iterator[ReportWarning]:
    if run.coming is not None:
        known: Row = {POINT: run.coming.point, CLIENTS: run.coming.clients}
        plan = name_of(run.scenario, known | {v: run.coming.value(v) for v in run.scenario.sweep.crossed})
        yield _about("The run is not complete", RunIncomplete(run.ended, run.error, plan))
    elif run.ended != FINISHED:
        yield _about("The run did not end normally", RunEndedBadly(run.ended, run.error))


def _of_events(events: list[StoredEvent]) -> Iterator[ReportWarning]:
    """The events that are not routine, by category."""
    categories: dict[str, list[StoredEvent]] = {}
    for event in events:
        if event.data.level != Level.ROUTINE:
            categories.setdefault(event.category, []).append(event)
    for category, happened in categories.items():
        details = [f"step {e.epoch}: {e.text}" if e.epoch is not None else e.text for e in happened]
        count = len(happened)
        if count > _MOST_DETAILS:
            details = [*details[:_MOST_DETAILS], f"… and {count - _MOST_DETAILS} more, in the table events of run.db"]
        gravest = min((event.data.level for event in happened), key=_ORDER.index)
        yield ReportWarning(gravest, f"{count} × {category}", happened[0].summary, tuple(details))


def title(run: RunData) -> Html:
    """The name of the scenario, how the run ended, what it measured, and the page's style sheet."""
    complete = run.ended == FINISHED and run.coming is None
    state = FINISHED if complete else (run.ended if run.ended != FINISHED else "") or "unfinished"
    clean = not any(map(flaws, run.rows)) and (run.answer is None or run.answer.holds is True)
    sound = ("loss", f"{NOTED} ") if any(map(host_trouble, run.rows)) else ("good", "")
    kind, mark = ("fail", "") if not complete else sound if clean else ("loss", f"{MARK} ")
    badge = f'<span class="badge {kind}">{mark}{escape(state)}</span>'
    name = escape(run.scenario.name)
    about = f'<p class="lead">{escape(run.scenario.description)}</p>{measured(run.setup)}'
    return Html(f'{style()}<div class="hydra"><h1>{name} {badge}</h1>{about}</div>')


def warnings(run: RunData) -> Html:
    """All warnings as a list, or a text that there are none."""
    found = warnings_of(run)
    if not found:
        good = texts_of(run.scenario).all_good
        return block(f'<p class="all-good">None: {good if run.rows else "no row was measured"}.</p>')
    return block(f'<ul class="cautions">{"".join(map(_warning, found))}</ul>')


def _warning(warning: ReportWarning) -> str:
    text = f"<strong>{escape(warning.about)}</strong>: {escape(warning.text)}"
    if warning.details:
        items = "".join(f"<li>{escape(d)}</li>" for d in warning.details)
        text = f"<details><summary>{text}</summary><ul>{items}</ul></details>"
    if warning.kind:
        text += f' <code title="docs/warnings.md#{warning.kind}">{warning.kind}</code>'
    return f'<li class="{warning.level}">{text}</li>'


def facts(run: RunData) -> Html:
    """The table of facts about the run and its hosts."""
    known = run.metadata
    host: Mapping[str, Any] = known.get("host", {})
    limits: Mapping[str, Any] = known.get("limits", {})
    agents: Sequence[Mapping[str, Any]] = known.get("cluster", {}).get("agents", [])
    scenario, steps = run.scenario, counted(len(run.results), "step")
    shown = {
        "Command": f"<code>{escape(str(known.get('command_line', UNKNOWN)))}</code>",
        "Began": escape(str(known.get("began", UNKNOWN))),
        "System": escape(f"{scenario.system}, client {scenario.client}"),
        "Measured": escape(f"{texts_of(scenario).outline}{steps}, {counted(len(run.rows), 'row')}"),
        "Settings": escape(_pairs(_settings(run))),
        "Clients": "<br>".join(map(escape, client_texts(client for client in run.setup.clients if client.role))),
        "Versions": escape(_pairs(known.get("versions", {}))),
        "Host": escape(_host(host)),
        "Limits": escape(_pairs(limits)),
        "Cluster": escape(str(known.get("master", UNKNOWN))),
        "Agents": "<br>".join(escape(_agent(a)) for a in agents) or UNKNOWN,
        "Facts": "<br>".join(escape(e.text) for e in run.events if e.kind == SystemFact.kind),
    }
    return facts_table(shown)


def _settings(run: RunData) -> dict[str, object]:
    """All settings except those that the run varies."""
    settings = run.scenario.settings
    varied = (*run.scenario.sweep.varied, *run.scenario.sweep.decided, *_idle(settings))
    shown: dict[str, object] = {name: value_of(settings, name) for name in names_of(settings)}
    return {name: value for name, value in shown.items() if value is not None and name not in varied}


def _idle(settings: Settings) -> Iterator[str]:
    """The settings of payloads, topics and keys that have no effect with these settings."""
    one_size = settings.message_size_min in (None, settings.message_size)
    if settings.payload != "json":
        yield "payload_ratio"
    if settings.payload != "lines":
        yield "payload_file"
    if settings.payload == "lines" or (settings.payload == "zeros" and one_size):
        yield "payload_seed" if settings.topics == 1 and not settings.keys and not settings.message_sizes else ""
    if settings.topics == 1:
        yield from ("topics", "topic_skew", "topics_per_client", "wildcard")
    if not settings.keys:
        yield from ("keys", "key_skew")
    yield "message_size" if settings.message_sizes else "message_sizes"


def _host(host: Mapping[str, Any]) -> str:
    memory = host.get("memory_bytes")
    gib = f", {memory / 2**30:.1f} GiB" if isinstance(memory, int | float) else ""
    return f"{host.get('name', UNKNOWN)}: {host.get('system', UNKNOWN)}, {counted(host.get('cores'), 'core')}{gib}"


def _agent(agent: Mapping[str, Any]) -> str:
    resources = {k: v for k, v in agent.get("resources", {}).items() if v}
    return f"{agent.get('id')} on {agent.get('hostname')}: {_pairs(agent.get('attributes', {}))}; {_pairs(resources)}"


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or UNKNOWN


def table(run: RunData) -> Html:
    """The table, then all columns, collapsed."""
    if not run.rows:
        return block('<p class="empty">No row was measured.</p>')
    columns = table_columns(run.scenario, run.rows, run.results)
    shown = its_table(run.scenario, columns, run.rows, run.notes, run.results, _PAGE)
    below = [
        marks_line(shown.marks),
        *count_lines(run.scenario, columns, run.rows),
        pacing_line(run.scenario),
        legend(run.scenario, run.rows),
        *efforts(run.scenario, run.rows),
    ]
    every = _everything(run.rows, in_order(run.scenario, run.rows))
    return block(
        scrolling(html(shown))
        + "".join(f'<p class="below">{escape(text)}</p>' for text in below if text)
        + f"<details><summary>All {len(every.heads)} columns</summary>{scrolling(html(every, 'rows every'))}</details>"
        + "".join(details(run))
    )


_PAGE: Final = FigureFormat(figure, partial(whole_rate, grouped=True))


def _everything(rows: Iterable[Row], columns: Sequence[Column]) -> Table:
    """The table of all columns that have a figure in some row, with the unit and the definition of each."""
    body = [TableRow([figure(c, bounded_text(row, c.name)) + error_text(row, c.name) for c in columns]) for row in rows]
    hints = [": ".join(filter(None, (column.unit, column.help))) for column in columns]
    return without_empty_columns(Table([column.name for column in columns], body, hints=hints))


def comparison(run: RunData) -> Html | None:
    """The rows of the run that have a published counterpart, with both figures; None if there is no such row."""
    if run.published is None:
        return None
    lines = compare(run.rows, run.published, run.scenario.sweep.crossed)
    both = [line for line in lines if line.side == "both"]
    if not both:
        return None
    known = columns_of(run.scenario)
    columns = [known.get(c, Column(c)) for c in run.published.columns if c in both[0].cells]
    keys = [known.get(key, Column(key)) for key in both[0].key]
    head = "".join(f'<th rowspan="2">{escape(key.published or key.title)}</th>' for key in keys)
    head += "".join(f'<th colspan="3" class="first">{escape(c.published or c.title)}</th>' for c in columns)
    under = '<th class="first">here</th><th>publ.</th><th>ratio</th>' * len(columns)
    body = f"<tbody>{''.join(_line(line, keys, columns) for line in both)}</tbody>"
    differing = differences(run.scenario, published_scenario(run.published))
    note = f"Published: <code>{escape(run.published.reference.file)}</code>, measured on other machines. "
    note += f"This run used {escape('; '.join(differing))}. " if differing else ""
    note += "A ratio is this run's figure divided by the published one. "
    for side, text in (
        ("published", "published but not measured here"),
        ("measured", "measured here but not published"),
    ):
        count = sum(line.side == side for line in lines)
        note += f"{counted(count, 'more row was', 'more rows were')} {text}. " if count else ""
    return block(
        f"<p>{note}</p>"
        + scrolling(f'<table class="rows comparison"><thead><tr>{head}</tr><tr>{under}</tr></thead>{body}</table>')
        + (f'<p class="below">{escape(marks)}</p>' if (marks := marks_line(line.mark for line in both)) else "")
    )


def _line(line: RowComparison, keys: Iterable[Column], columns: Iterable[Column]) -> str:
    mark = f'<span class="mark">{line.mark}</span> ' if line.mark else ""
    first, *others = (escape(figure(key, line.key[key.name])) for key in keys)
    cells_html = "".join(f"<td>{text}</td>" for text in (mark + first, *others))
    cells = "".join(_cell(c, line.cells[c.name]) for c in columns)
    return f"<tr>{cells_html}{cells}</tr>"


def _cell(column: Column, cell: CellComparison) -> str:
    ratio = UNKNOWN
    if cell.ratio is not None:
        ratio = f"{cell.ratio:.2f}×" if cell.ratio < 100 else f"{cell.ratio:,.0f}×"
    elif cell.measured == cell.published == 0:
        ratio = "="
    return (
        f'<td class="first">{escape(figure(column, cell.measured))}</td>'
        f'<td class="published">{escape(figure(column, cell.published))}</td><td class="ratio">{ratio}</td>'
    )
