"""Writes docs/speed.md from results: the machine, a table for each section, and the plot of growth.

Run: python -m bench.page RESULTS.json docs/speed.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench import table
from bench.line import SECTIONS
from bench.plot import svg
from bench.result import FigureResult, LineResult, Results, load

_TITLES: Final = {
    "limits": "What the machine can do",
    "clients": "Clients beside bare loops",
    "tools": "Other tools",
    "start": "Start, steps, end",
    "memory": "Memory",
    "growth": "Growth",
}
_PLOT: Final = "images/growth.svg"
_REASONS: Final = Path(__file__).with_name("reasons.md")
_FIRST: Final = """\
# Speed

This page is for readers who ask what Hydra itself costs, and for authors of Hydra. `make bench` measures each line, and
this page is made from its results (`python -m bench.page`). `bench/lines.py` has all lines and goals.

A line with two sides is *Hydra : bare program*, and is judged by the ratio of both. Both sides take turns. In brackets
is the 95 % confidence interval, by the statistics of `hydra compare`. A figure `holds` or `misses` its goal; it is
`cannot tell` if the interval contains the goal or is wider than ± 5 %, also with twice as many pairs. Only `holds`
counts. *Of the limit* compares a figure with what the machine can do at all. BUSY marks a figure during which other
processes used more than 5 % of the CPU; counts, bytes and memory do not depend on other processes.
"""
_OPEN: Final = """
## What does not hold
The best figure is the first. *Short* is the share of the goal by which the figure falls short of the goal;
a negative share is better than the goal.

| line | ratio or figure (95 % interval) | goal | short | |
|---|---:|---|---:|---|"""


def write(results: Results, page: Path) -> None:
    """Writes the page, and its plot if a line of growth was measured."""
    page.write_text("\n".join(_blocks(results)), encoding="utf-8")
    curves = {line.name: line.points for line in results.lines if len(line.points) > 1}
    if curves:
        (page.parent / _PLOT).write_text(svg(curves), encoding="utf-8")


def _blocks(results: Results) -> Iterator[str]:
    yield _FIRST
    yield f"{table.summary(results)} Measured {_days(results.lines)}.\n"
    yield "| machine | |\n|---|---|"
    yield from (f"| {name} | {value} |" for name, value in results.machine.items())
    yield from _open(results.lines)
    for section in SECTIONS:
        lines = [line for line in results.lines if line.section == section]
        if lines:
            yield f"\n## {_TITLES[section]}"
            yield from _table(lines)
        if section == "growth" and any(len(line.points) > 1 for line in lines):
            yield f"\n![Cost by the number of clients, on logarithmic axes]({_PLOT})"
    yield _REASONS.read_text(encoding="utf-8").rstrip()
    yield "\n## How each line is measured"
    yield from _how(results.lines)
    yield ""


def _table(lines: Sequence[LineResult]) -> Iterator[str]:
    yield "| line | figures | ratio or figure (95 % interval) | goal | |"
    yield "|---|---:|---:|---|---|"
    for line in lines:
        if line.problem:
            yield f"| {line.name} | not measured: {line.problem} | | | |"
        for n, figure in enumerate(line.figures):
            name = line.name if n == 0 else f"… {figure.unit}"
            cells = (
                name,
                table.sides(figure, n),
                table.judged(figure),
                figure.goal,
                _marked(figure, table.notes(line, n)),
            )
            yield f"| {' | '.join(cells)} |"


def _open(lines: Sequence[LineResult]) -> Iterator[str]:
    """The figures that miss their goal, or are undecided, by their distance from it."""
    every = [(figure, line, n) for line in lines for n, figure in enumerate(line.figures) if figure.goal]
    found = [each for each in every if each[0].verdict != "holds"]
    if found:
        yield _OPEN
    for figure, line, n in sorted(found, key=lambda each: each[0].shortfall):
        name = line.name if n == 0 else f"{line.name}: {figure.unit}"
        cells = (
            name,
            table.judged(figure),
            figure.goal,
            f"{figure.shortfall:.0%}",
            _marked(figure, table.verdict(figure)),
        )
        yield f"| {' | '.join(cells)} |"


def _marked(figure: FigureResult, text: str) -> str:
    """The text with its verdict as code."""
    return text.replace(figure.verdict, f"`{figure.verdict}`", 1)


def _how(lines: Sequence[LineResult]) -> Iterator[str]:
    """Each text once, with the lines that it describes."""
    texts: dict[str, list[str]] = {}
    for line in lines:
        texts.setdefault(line.how, []).append(line.name)
    for how, names in texts.items():
        yield f"- {'; '.join(names)}: {how}"


def _days(lines: Sequence[LineResult]) -> str:
    days = sorted({line.began.partition(" ")[0] for line in lines if line.began})
    return "on no day" if not days else f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"


if __name__ == "__main__":
    write(load(Path(sys.argv[1])), Path(sys.argv[2]))
