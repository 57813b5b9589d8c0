"""Writes docs/speed.md from results: the machine, what does not hold, a table for each section, and the plot of growth.

Run: python -m bench.page bench/results/lines.json docs/speed.md --hours bench/results/hours.json [--before OLDER.json]
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import table
from bench.hours import RATE, Finding, HourResults, load_hours
from bench.line import SECTIONS
from bench.plot import Axes, svg
from bench.result import FigureResult, LineResult, Results, load
from hydra.errors import HydraError
from hydra.events.value_formatting import counted

_TITLES: Final = {
    "limits": "What the machine can do",
    "clients": "Clients beside bare loops",
    "tools": "Other tools",
    "start": "Start, steps, end",
    "memory": "Memory",
    "growth": "Growth",
}
_PLOT: Final = "images/growth.svg"
_PLOTTED: Final = "slope of seconds"
"""The unit of the lines whose points are seconds by the number of clients."""
_CURVE: Final = re.compile(r"reports of (.+), [\d,]+ to [\d,]+ clients$")
_REASONS: Final = Path(__file__).with_name("reasons.md")
_FIRST: Final = """\
# Speed

This page is for readers who ask what Hydra itself costs, and for authors of Hydra. `make bench` measures each line, and
`python -m bench.page` makes this page from the results. `bench/lines.py` has all lines and goals.

A line with two sides is *Hydra : bare program*, and is judged by the ratio of both. Both sides take turns. In brackets
is the 95 % confidence interval, by the statistics of `hydra compare`. A figure `holds` or `misses` its goal; it is
`cannot tell` if the interval contains the goal or is wider than ± 5 %, also with twice as many pairs. Only `holds`
counts. *Of the limit* compares a figure with what the machine can do at all. BUSY marks a figure during which other
processes used more than 5 % of the CPU; counts, bytes and memory do not depend on other processes. A line that was
measured on another machine names its processor.
"""
_SHORT: Final = """
## What does not hold
"""
_SHORT_TABLE: Final = """\
These figures are worse than their goals; one that `misses` is so with its whole interval. *Short* is the share of the
goal by which a figure falls short of the goal.

| line | ratio or figure (95 % interval) | goal | short | |
|---|---:|---|---:|---|"""
_HOURS: Final = """
## Hours
`python -m bench.hours` runs each workload for an hour, and once a second it reads the resident memory, the open files
and the threads of all processes of a kind together. The first third of a run does not count. Memory has the mean of
the first and of the last minute, and its slope with the 95 % confidence interval, which must lie below the goal."""
_HOURS_TABLE: Final = """
| workload | rate | figure | value | goal | |
|---|---:|---|---:|---|---|"""


class _Judged(NamedTuple):
    """A figure with its line, and its place there."""

    figure: FigureResult
    line: LineResult
    n: int

    @property
    def name(self) -> str:
        return self.line.name if self.n == 0 else f"{self.line.name}: {self.figure.unit}"


def write(results: Results, page: Path, hours: HourResults | None = None, before: Results | None = None) -> None:
    """Writes the page, and its plot if a line of growth was measured.

    Args:
        results: the results of make bench.
        page: the file.
        hours: the results of runs of an hour.
        before: older results of make bench, to which these are compared.
    """
    page.write_text("\n".join(_blocks(results, hours, before)), encoding="utf-8")
    if plotted := _plotted(results.lines):
        goal = float(plotted[0].figures[0].goal.split()[-1])
        axes = Axes("subscribers", "seconds of start, configuring and reports")
        picture = svg({_curve(line.name): line.points for line in plotted}, axes, goal)
        (page.parent / _PLOT).write_text(picture, encoding="utf-8")


def _blocks(results: Results, hours: HourResults | None, before: Results | None) -> Iterator[str]:
    yield _FIRST
    yield f"{table.summary(results)} Measured {_span(_dates(results.lines))}.\n"
    yield "| machine | |\n|---|---|"
    yield from (f"| {name} | {value} |" for name, value in results.machine.items())
    yield from _short(results.lines, hours)
    if before is not None:
        yield from _changes(results.lines, before.lines)
    for section in SECTIONS:
        lines = [line for line in results.lines if line.section == section]
        if lines:
            yield f"\n## {_TITLES[section]}"
            yield from _table(lines)
        if section == "growth" and _plotted(lines):
            yield f"\n![Seconds of start, configuring and reports by the number of subscribers]({_PLOT})\n"
            yield (
                "The dashed line has the slope of the goal: a curve meets its goal if it is not steeper over its last "
                "two decades."
            )
    yield _HOURS
    yield from _hours(hours)
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


def _figures(lines: Sequence[LineResult]) -> Iterator[_Judged]:
    for line in lines:
        yield from (_Judged(figure, line, n) for n, figure in enumerate(line.figures))


def _short(lines: Sequence[LineResult], hours: HourResults | None) -> Iterator[str]:
    """The figures that do not meet their goals, and the number of the others that are not decided."""
    open_ = [each for each in _figures(lines) if each.figure.verdict in ("misses", "cannot tell")]
    short = [each for each in open_ if _is_short(each.figure)]
    others = [each for each in open_ if not _is_short(each.figure)]
    yield _SHORT + (_SHORT_TABLE if short else "No figure is worse than its goal.")
    for each in sorted(short, key=lambda each: -each.figure.shortfall):
        figure = each.figure
        verdict = _marked(figure, table.verdict(figure))
        yield f"| {each.name} | {table.judged(figure)} | {figure.goal} | {_percent(figure.shortfall)} | {verdict} |"
    if others:
        wide = sum(each.figure.meets is True for each in others)
        yield (
            f"\nNot listed: {counted(len(others), 'figure')} better than the goal, but `cannot tell` (the interval "
            f"contains the goal: {len(others) - wide}; the whole interval meets it, but is wider than ± 5 %: {wide})."
        )
    if missed := sum(finding.holds is False for finding in hours.findings) if hours else 0:
        miss = counted(missed, "figure misses its goal", "figures miss their goals")
        yield f"\nIn [runs of an hour](#hours), {miss}."


def _is_short(figure: FigureResult) -> bool:
    return figure.verdict == "misses" or figure.shortfall > 0


def _percent(share: float) -> str:
    return "below 0.1%" if share < 0.001 else f"{share:.1%}" if share < 0.01 else f"{share:.0%}"


def _changes(lines: Sequence[LineResult], before: Sequence[LineResult]) -> Iterator[str]:
    """The figures whose intervals lie apart from those of older results."""
    both = list(_comparable(lines, before))
    changed = [(each, old) for each, old in both if _lie_apart(each.figure, old)]
    yield f"\n## Changes since {(_dates(before) or ['older results'])[0]}"
    yield (
        f"{counted(len(both), 'figure was', 'figures were')} measured in the same way then and now; the intervals of "
        f"{len(changed)} lie apart{':' if changed else '.'}"
    )
    if changed:
        yield "\n| line | before (95 % interval) | now (95 % interval) | now : before | |\n|---|---:|---:|---:|---|"
    for each, old in changed:
        now = each.figure
        ratio = table.short(now.middle / old.middle) if old.middle else ""
        word = "better" if (now.middle > old.middle) == _is_more_better(now) else "worse"
        yield f"| {each.name} | {table.judged(old)} | {table.judged(now)} | {ratio} | {word} |"


def _comparable(lines: Sequence[LineResult], before: Sequence[LineResult]) -> Iterator[tuple[_Judged, FigureResult]]:
    """The figures that were measured again in the same way, with the older ones."""
    older = {(line.section, line.name, line.how): line for line in before}
    for line in lines:
        old = older.get((line.section, line.name, line.how))
        if old is None or old.began == line.began:  # a file keeps the results of lines that are not measured again
            continue
        for n, (figure, then) in enumerate(zip(line.figures, old.figures, strict=False)):
            if figure.unit == then.unit:
                yield _Judged(figure, line, n), then


def _is_more_better(figure: FigureResult) -> bool:
    return figure.goal.startswith("≥") or (not figure.goal and figure.unit.endswith("/s"))


def _lie_apart(one: FigureResult, other: FigureResult) -> bool:
    """Whether two intervals have no value in common."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low > other.high or other.low > one.high


def _hours(hours: HourResults | None) -> Iterator[str]:
    if hours is None:
        yield "These results have no such run."
        return
    if measured := list(_conditions(hours)):
        yield f"\nMeasured {'; '.join(measured)}."
    rates: Mapping[str, str] = {each.hour: each.value for each in hours.findings if each.figure == RATE}
    yield _HOURS_TABLE
    of = ""
    for each in hours.findings:
        if each.figure == RATE:
            continue
        names = ("…", "") if each.hour == of else (each.hour, rates.get(each.hour, ""))
        of = each.hour
        yield f"| {' | '.join((*names, each.figure, each.value, each.goal, _verdict(each)))} |"


def _verdict(finding: Finding) -> str:
    return finding.verdict and f"`{finding.verdict}`"


def _conditions(hours: HourResults) -> Iterator[str]:
    """How the hours were measured, as far as it is known."""
    if hours.began:
        yield f"on {hours.began.replace(' ', ' at ')} UTC"
    if hours.minutes is not None:
        yield f"{hours.minutes:g} minutes"
    workloads = len({each.hour for each in hours.findings})
    if hours.together is not None:
        yield f"all {workloads} workloads at the same time" if hours.together else "one workload after the other"
    if hours.share is not None:
        part = f", divided by {workloads}" if hours.together else ""
        yield f"each rate is {hours.share:.0%} of what the machine carries of this workload alone{part}"
    if hours.others is not None:
        yield f"other processes used {hours.others:.0%} of the CPU"


def _plotted(lines: Sequence[LineResult]) -> list[LineResult]:
    """The lines of the plot: seconds by the number of clients."""
    return [line for line in lines if len(line.points) > 1 and line.figures and line.figures[0].unit == _PLOTTED]


def _curve(name: str) -> str:
    """The clients of a line of growth."""
    found = _CURVE.search(name)
    return found[1] if found else name


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


def _dates(lines: Sequence[LineResult]) -> Sequence[str]:
    return sorted({line.began.partition(" ")[0] for line in lines if line.began})


def _span(dates: Sequence[str]) -> str:
    return "on no day" if not dates else f"on {dates[0]}" if len(dates) == 1 else f"from {dates[0]} to {dates[-1]}"


def main() -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser("bench.page", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", type=Path, help="results of python -m bench --json")
    parser.add_argument("page", type=Path, help="the page, such as docs/speed.md")
    parser.add_argument("--hours", type=Path, metavar="FILE", help="results of python -m bench.hours --json")
    parser.add_argument("--before", type=Path, metavar="FILE", help="older results, to which these are compared")
    asked = parser.parse_args()
    try:
        hours = load_hours(asked.hours) if asked.hours else None
        before = load(asked.before) if asked.before else None
        write(load(asked.results), asked.page, hours, before)
    except HydraError as e:
        print(f"{e.what} {e.remedy}".strip(), file=sys.stderr)
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
