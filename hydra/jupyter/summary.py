"""The beginning of a report: a sentence about what was asked of the system, and three numbers about the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from html import escape

from hydra.events.value_formatting import MARK, UNKNOWN, counted
from hydra.events.value_formatting import number as text_of
from hydra.jupyter.blocks import Html, block
from hydra.jupyter.run_data import RunData, RunTable
from hydra.measure.column import STATUS
from hydra.measure.host_columns import VERDICT
from hydra.measure.slo import word
from hydra.model import PUBLISHERS, Scenario
from hydra.report.figure_texts import NOTED, OF_RUNS, marks_line
from hydra.report.slo_text import deciding
from hydra.report.tables import name_of
from hydra.sweep import Row, texts_of
from hydra.sweep.texts import HeadlineFigure


def summary(run: RunData) -> Html:
    """The first sentence, and the numbers."""
    shown = numbers(run)
    cards = "".join(
        f'<div class="number{" unclean" if mark(n) else ""}"><span>{escape(label(n))}</span>'
        f"<strong>{escape(n.value)}</strong><span>{escape(n.detail)}</span></div>"
        for n in shown
    )
    marks = marks_line(map(mark, shown), OF_RUNS)
    below = f'<p class="below">{escape(marks)}</p>' if marks else ""
    return block(f'<p class="summary">{escape(request_sentence(run))}</p><div class="numbers">{cards}</div>{below}')


def label(figure: HeadlineFigure) -> str:
    """The label of a figure; the mark of its row stands before it."""
    return f"{mark(figure)} {figure.label}".strip()


def mark(figure: HeadlineFigure) -> str:
    """The mark of a figure: that of its row, or that of trouble on the row's hosts; "" if it has none."""
    return MARK if not figure.clean else NOTED if figure.noted else ""


def request_sentence(run: RunData) -> str:
    """What was asked of the system, where and when, in a sentence; "" if nothing of it is known."""
    sweep, host = run.scenario.sweep, run.metadata.get("host", {})
    varied = ", ".join(f"{name} {_listed(run.scenario.values_of(name))}" for name in sweep.varied)
    aim = texts_of(run.scenario).aim or _rate(run.scenario.settings.rate)
    when = str(run.metadata.get("began", ""))[:10]
    ends = " ".join(filter(None, (f"on {host['name']}" if "name" in host else "", when and f"on {when}")))
    parts = ", ".join(filter(None, (aim if "rate" not in sweep.varied else "", varied, ends)))
    return f"{parts[:1].upper()}{parts[1:]}." if parts else ""


def _rate(rate: object) -> str:
    return "as fast as possible" if rate == "max" else f"{text_of(rate)} messages/s" if isinstance(rate, float) else ""


def _listed(values: Sequence[object]) -> str:
    return f"{values[0]} to {values[-1]}" if len(values) > 2 else " and ".join(map(str, values))


def numbers(run: RunTable) -> list[HeadlineFigure]:
    """The answer for the objectives, the carried rate, its latency or loss, and what limits it.

    There are fewer numbers if some are unknown.
    """
    numbers_ = []
    if (its := run.answer) is not None:
        numbers_.append(HeadlineFigure("objectives kept", word(its.holds), deciding(its), its.holds is True))
    good = [row for row in run.rows if row.get(STATUS) == "ok"]
    if not good:
        return [*numbers_, HeadlineFigure("carried", UNKNOWN, "no row was finished", clean=False)]
    found = texts_of(run.scenario).headline(good, partial(_with_publishers, run.scenario))
    return [*numbers_, *(replace(each, value=each.value or UNKNOWN) for each in found), _limit(good)]


def _with_publishers(scenario: Scenario, row: Row) -> str:
    """The name of a row, with the number of its publishers if there are several."""
    publishers = row.get(PUBLISHERS) or scenario.publishers
    return name_of(scenario, row) + (f", {counted(publishers, 'publisher')}" if publishers != 1 else "")


def _limit(rows: Iterable[Row]) -> HeadlineFigure:
    """What limited the rows: their most frequent verdict."""
    verdicts = Counter(str(row[name]) for row in rows for name in row if name.endswith(VERDICT) and row[name])
    if not verdicts:
        return HeadlineFigure("limited by", UNKNOWN)
    (first, _), *others = verdicts.most_common()
    return HeadlineFigure("limited by", first, f"elsewhere: {', '.join(name for name, _ in others)}" if others else "")
