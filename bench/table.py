"""The rows that the command prints: a line of text for each figure, and the summary."""

from __future__ import annotations

from collections.abc import Iterator

from bench.result import FigureResult, LineResult, Results
from hydra.events.value_formatting import counted


def rows(line: LineResult) -> Iterator[str]:
    """The rows of a line."""
    if line.problem:
        yield f"{line.name:<60} not measured: {line.problem}"
        return
    for n, figure in enumerate(line.figures):
        name = line.name if n == 0 else f"  {figure.unit}"
        yield f"{name:<60} {sides(figure, n):<30} {judged(figure):<24} {figure.goal:<8} {notes(line, n)}".rstrip()


def sides(figure: FigureResult, n: int) -> str:
    """The medians of both sides; with their unit for the first figure, because the name of others is their unit."""
    both = short(figure.ours) if figure.bare is None else f"{short(figure.ours)} : {short(figure.bare)}"
    return f"{both} {figure.unit}" if n == 0 else both


def judged(figure: FigureResult) -> str:
    """The judged figure with its interval."""
    if figure.low is None or figure.high is None:
        return short(figure.middle)
    return f"{short(figure.middle)} ({short(figure.low)} … {short(figure.high)})"


def verdict(figure: FigureResult) -> str:
    """The verdict; of an undecided figure also whether its interval is only too wide."""
    if figure.verdict != "cannot tell" or figure.meets is None:
        return figure.verdict
    return f"{figure.verdict} (the whole interval {'meets' if figure.meets else 'misses'} the goal, but is too wide)"


def notes(line: LineResult, n: int) -> str:
    """The verdict, the share of the limit, and the marks of another and of a busy machine, of figure ``n``."""
    figure = line.figures[n]
    found = [verdict(figure)] if figure.goal else []
    if n == 0 and line.of_limit is not None:
        found.append(f"{line.of_limit:.0%} of the limit")
    if n == 0 and line.elsewhere:
        found.append(f"measured on {line.elsewhere}")
    if line.is_busy and figure.timed:
        found.append(f"BUSY: other processes used {line.others:.0%} of the CPU")
    return ", ".join(found)


def short(value: float) -> str:
    """Three digits, with k or M from ten thousand on."""
    for factor, suffix in ((1e6, " M"), (1e3, " k")):
        if abs(value) >= 10 * factor or (factor == 1e6 and abs(value) >= factor):
            return f"{value / factor:.3g}{suffix}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def summary(results: Results) -> str:
    """How many figures hold, miss and are undecided, and how many lines were not measured."""
    wide = f"; the whole interval of {results.wide} meets the goal, but is too wide" if results.wide else ""
    parts = [
        f"`holds`: {results.count('holds')}, `misses`: {results.count('misses')}",
        f"`cannot tell`: {results.count('cannot tell')} (not counted as held{wide})",
    ]
    if results.lacking:
        parts.append(f"{counted(results.lacking, 'line was', 'lines were')} not measured on this machine")
    if results.failed:
        parts.append(f"{counted(results.failed, 'line')} failed")
    return ", ".join(parts) + "."


def duration(seconds: float) -> str:
    """Minutes, or seconds below two minutes."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} s"
