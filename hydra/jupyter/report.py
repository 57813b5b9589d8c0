"""The report of a run: a function for each section, which the cells of ``report.ipynb`` call, too."""

from __future__ import annotations

from html import escape
from typing import Final

from hydra.jupyter import line_plots, loss_plot
from hydra.jupyter import loss_heatmap as its_losers
from hydra.jupyter import time_series_plot as its_course
from hydra.jupyter.blocks import Heading, ReportNotebook, Section, block, html, scrolling, titled
from hydra.jupyter.markup import comparison, facts, table, title, warnings
from hydra.jupyter.run_data import RunData
from hydra.jupyter.run_data import load as load  # for notebooks, as all that is here
from hydra.jupyter.summary import summary
from hydra.report.slo_text import answer_line, events_table, objective_warnings, objectives_table
from hydra.sweep import texts_of


def rates(run: RunData) -> Section:
    """Sent, received and aggregate rates, or the searched rates."""
    return titled("Rates", line_plots.rates(run), "Click a name in the legend to hide or show it.")


def loss(run: RunData) -> Section:
    """Loss with its intervals by rate, or by client count if there is one rate."""
    found = loss_plot.loss(run)
    return titled("Loss", found.figure, found.note) if found else Section()


def losers(run: RunData) -> Section:
    """Losses of subscribers over steps and time."""
    found = its_losers.losers(run)
    return titled("Who lost when", found.figure, found.note) if found else Section()


def latency(run: RunData) -> Section:
    """Latency percentiles by client count."""
    return titled("Latency", line_plots.latency(run))


def percentiles(run: RunData) -> Section:
    """Latency at every percentile, a curve for each row."""
    below = f"For {texts_of(run.scenario).of_rows}, over all messages of all subscribers."
    return titled("Latency at every percentile", line_plots.percentiles(run), below)


def over_time(run: RunData) -> Section:
    """The age of the newest messages over each row's window."""
    text = "The median subscriber (dotted: the slowest) in twenty parts of each row's window, or of the last repeat's."
    return titled("Latency over time", line_plots.over_time(run), text)


def batches(run: RunData) -> Section:
    """The effect of the batch size by client count, if it varies."""
    return titled("Effect of the batch", line_plots.batches(run))


def published(run: RunData) -> Section:
    """The rows that match the published table, with both figures."""
    found = comparison(run)
    return Section() if found is None else Section((Heading("Comparison with the published table"), found))


def answer(run: RunData) -> Section:
    """Whether the last step with a time series met its objectives, and the effects of its events."""
    if (found := run.answer) is None:
        return Section()
    sentences = [
        f"<p><strong>{escape(answer_line(found))}</strong></p>",
        scrolling(html(objectives_table(found.objectives))),
    ]
    sentences += [f'<p class="below">{escape(note)}</p>' for note in objective_warnings(found)]
    if found.consequences:
        sentences.append(scrolling(html(events_table(found))))
    return Section((Heading("Does it hold?"), block("".join(sentences))))


def course(run: RunData) -> Section:
    """The time series of the last step, with its events."""
    return titled("Second by second", its_course.course(run), "The last step whose time series was stored.")


REPORT: Final[ReportNotebook[RunData]] = ReportNotebook(
    "report",
    ("RUN", "the run directory"),
    "run",
    (
        title,
        summary,
        answer,
        Heading("Results", "In plots, the points of rows with a mark (⚠ or *) are hollow."),
        table,
        rates,
        loss,
        losers,
        latency,
        percentiles,
        over_time,
        batches,
        course,
        Heading("Warnings", "Read these before you use the figures. The most severe ones come first."),
        warnings,
        published,
        Heading("What was run, and where"),
        facts,
    ),
)
