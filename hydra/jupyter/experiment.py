"""The report of an experiment, with its tables and plots; its notebook calls these functions, too."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

import plotly.graph_objects as go

from hydra.jupyter.blocks import (
    Block,
    Heading,
    Html,
    Plot,
    ReportNotebook,
    Section,
    block,
    facts_table,
    figure,
    file_name,
    html,
    measured,
    scrolling,
    style,
)
from hydra.jupyter.drawing import finish, panels
from hydra.measure.column import Column
from hydra.model import Figure, RunSetup, number
from hydra.report import experiment_folder
from hydra.report.experiment_folder import ExperimentRecord, ExperimentTable, shown_columns
from hydra.report.figure_texts import marks_line
from hydra.store.database import FINISHED
from hydra.store.run_folders import DATABASE

__all__ = ["facts", "load", "parts", "show", "title"]

_MEASURED: Final = "#0b7285"
_PUBLISHED: Final = "#c92a2a"
_MARK: Final = "#52606d"
_MARGIN: Final = 0.1
"""The margin left and right of the points, in decades."""


@dataclass(frozen=True, slots=True)
class ExperimentData:
    """The data of the report of an experiment."""

    folder: Path
    record: ExperimentRecord
    views: list[ExperimentTable]
    setup: RunSetup


def load(folder: Path | str) -> ExperimentData:
    """Reads an experiment.

    Raises:
        RunDirectoryError: the folder holds no experiment.
    """
    path = Path(folder)
    record = experiment_folder.read_record(path)
    return ExperimentData(path, record, experiment_folder.read_views(path), experiment_folder.setup_of(path, record))


def title(found: ExperimentData) -> Html:
    """The title of the experiment, how it ended, and the page's style sheet."""
    record = found.record
    good = record.ended == FINISHED and not any(part.reason for part in record.parts)
    badge = f'<span class="badge {"good" if good else "fail"}">{escape(record.ended or "unfinished")}</span>'
    text = f"{record.source}; measured at {record.at_scale}"
    if record.error:
        text += f". It failed: {record.error}"
    name, line = escape(record.title), measured(found.setup)
    return Html(f'{style()}<div class="hydra"><h1>{name} {badge}</h1><p class="lead">{escape(text)}</p>{line}</div>')


def show(found: ExperimentData) -> Section:
    """All tables with their notes and plots."""
    shown: list[Block] = []
    for view in found.views:
        shown.append(table(view))
        if (picture := plot(view)) is not None:
            shown.append(Plot(picture, file_name(view.title)))
    return Section(shown)


def table(view: ExperimentTable) -> Html:
    """A table with its title and its notes."""
    shown = experiment_folder.table(view, figure)
    marks = marks_line(shown.marks)
    inner = scrolling(html(shown)) + (f'<p class="below">{escape(marks)}</p>' if marks else "")
    notes = "".join(f"<li>{escape(note)}</li>" for note in view.notes)
    if not view.rows:
        inner = '<p class="empty">No row was measured.</p>'
    return block(f"<h2>{escape(view.title)}</h2>{inner}<ul>{notes}</ul>")


def plot(view: ExperimentTable) -> go.Figure | None:
    """The plot of a view, with a panel for each figure, measured and published; None if there is nothing to plot."""
    known = {column.name: column for column in view.columns}
    upwards = [name for name in view.y if any(number(row.get(name)) for row in view.rows)]
    if not view.x or not upwards:
        return None
    drawn = panels([known[name].title for name in upwards])
    for panel, name in enumerate(upwards, 1):
        _points(drawn, view, name, "measured", _MEASURED, panel)
        _points(drawn, view, f"{name}_published", "published", _PUBLISHED, panel)
    finished = finish(drawn, known[view.x].axis_title, [known[name].axis_title for name in upwards])
    if finished is not None:
        _marks(finished, view)
    return finished


def _points(drawn: go.Figure, view: ExperimentTable, name: str, called: str, color: str, panel: int) -> None:
    rows = [row for row in view.rows if number(row.get(view.x)) and number(row.get(name))]
    if not rows:
        return
    across = [row[view.x] for row in rows]
    # Rows with the same place differ in something else, so a line through them would be meaningless.
    joined = len(set(across)) == len(across)
    trace = go.Scatter(
        x=across,
        y=[row[name] for row in rows],
        name=called,
        legendgroup=called,
        showlegend=not any(other.name == called for other in drawn.data),
        mode="lines+markers" if joined else "markers",
        line={"color": color, "width": 2},
        marker={"size": 8, "color": color},
        customdata=[[_hover_text(shown_columns(view), row)] for row in rows],
        hovertemplate="%{customdata[0]}<extra>%{fullData.name}</extra>",
    )
    drawn.add_trace(trace, row=1, col=panel)


def _hover_text(columns: list[Column], row: Any) -> str:
    facts_ = [(column.title, row.get(column.name)) for column in columns]
    return "<br>".join(f"{escape(name)}: {_short(value)}" for name, value in facts_ if value is not None)


def _short(value: Figure) -> str:
    return f"{value:,.6g}" if isinstance(value, int | float) else escape(str(value))


def _marks(drawn: go.Figure, view: ExperimentTable) -> None:
    """Adds vertical lines with their texts, and extends the axis to them."""
    found = [float(at) for trace in drawn.data for at in trace.x] + list(view.marks.values())
    drawn.update_xaxes(range=[math.log10(min(found)) - _MARGIN, math.log10(max(found)) + _MARGIN])
    for text, value in view.marks.items():
        drawn.add_vline(x=value, line={"dash": "dot", "color": _MARK, "width": 1})
        # On a logarithmic axis, shapes take the value, and texts its logarithm.
        at = {"x": math.log10(value), "y": 1, "yref": "paper", "xanchor": "right", "yanchor": "top"}
        drawn.add_annotation(text=escape(text), showarrow=False, font={"color": _MARK}, **at)


def parts(found: ExperimentData) -> Html:
    """The list of the experiment's runs, with links to their tables."""
    items = []
    for part in found.record.parts:
        name = escape(part.name)
        if (found.folder / part.name / DATABASE).is_file():
            files = [n for n in ("report.html", "table.md", "table.csv") if (found.folder / part.name / n).is_file()]
            links = ", ".join(f'<a href="{name}/{file}">{file}</a>' for file in files)
            items.append(f"<li>{name}, {escape(part.ended or 'unfinished')}: {links}</li>")
        else:
            items.append(f"<li>{name} was not run: {escape(part.reason)}</li>")
    return block(f"<ul>{''.join(items)}</ul>")


def facts(found: ExperimentData) -> Html:
    """The table with the command, the start and the options of the experiment."""
    record = found.record
    facts_ = {
        "Command": f"<code>{escape(record.command_line)}</code>",
        "Began": escape(record.began),
        "Scale": escape(record.at_scale),
        "Options": escape(", ".join(f"{name} {value}" for name, value in record.options.items())),
    }
    return facts_table(facts_)


REPORT: Final[ReportNotebook[ExperimentData]] = ReportNotebook(
    "experiment",
    ("FOLDER", "of the experiment"),
    "found",
    (
        title,
        show,
        Heading(
            "The runs",
            "Each run has a table with every column, and <code>hydra report</code> makes its page.",
        ),
        parts,
        Heading("How the experiment was started"),
        facts,
    ),
)
