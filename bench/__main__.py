"""Measures every line of bench/lines.py, and prints figure, 95 % confidence interval, goal and verdict.

A line with two sides is the ratio of Hydra to a bare program. Both sides take turns. A figure *holds* or *misses* its
goal; *cannot tell* means that the interval contains the goal or is wider than ± 5 %, also with twice as many pairs.
Only *holds* counts as held, but *cannot tell* is no error: it does not change the exit code.

Exit code 3: a figure misses its goal. Exit code 1: a line failed, and no figure misses.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench import machine, programs, table
from bench.failure import FAILURES
from bench.line import SECTIONS, Line
from bench.lines import lines
from bench.result import LineResult, Results, failed, measured, store
from hydra.errors import HydraError, UsageError

_EXIT_MISSES: Final = 3
_EXIT_FAILED: Final = 1


def main() -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser("bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"sections ({', '.join(SECTIONS)}) or parts of names; all by default")
    parser.add_argument("--quick", action="store_true", help="one pair for one line of each kind, without verdicts")
    parser.add_argument("--busy", action="store_true", help="measure on a busy machine, too, and mark what it disturbs")
    parser.add_argument("--pairs", type=int, default=0, help="take this number of pairs of each line, and add none")
    parser.add_argument("--list", action="store_true", help="print the lines, and measure nothing")
    parser.add_argument("--json", type=Path, help="file for the results; it keeps the results of other lines")
    asked = parser.parse_args()
    try:
        chosen = _chosen(lines(), asked.names, is_quick=asked.quick)
        if asked.list:
            _list(chosen, 1 if asked.quick else asked.pairs)
            return 0
        return _measure(chosen, asked)
    except HydraError as e:
        print(f"{e.what} {e.remedy}".strip(), file=sys.stderr)
        return e.exit_code


def _chosen(known: Sequence[Line], names: Sequence[str], *, is_quick: bool) -> list[Line]:
    """The lines to measure, with the limits that they need, in the order of the sections.

    Raises:
        UsageError: a name fits no line.
    """
    for name in names:
        if not any(_fits(line, name) for line in known):
            raise UsageError(f"No line is called {name!r}.", "--list prints all lines.")
    named = (line for line in known if not names or any(_fits(line, name) for name in names))
    chosen = [line for line in named if line.quick or not is_quick]
    limits = [line.limit for line in chosen if line.limit is not None]
    return [line for section in SECTIONS for line in known if line.section == section and line in (*chosen, *limits)]


def _fits(line: Line, name: str) -> bool:
    return name == line.section or (name not in SECTIONS and name in line.name)


def _list(chosen: Sequence[Line], pairs: int) -> None:
    for line in chosen:
        goals = ", ".join(f"{figure.unit} {figure.goal or ''}".strip() for figure in line.figures)
        print(f"{line.section:<8} {line.name:<48} {goals}\n         {line.how}")
    print(f"{len(chosen)} lines take about {table.duration(_expected_s(chosen, pairs))}.")


def _expected_s(chosen: Sequence[Line], pairs: int) -> float:
    return sum((pairs or line.pairs) * line.pair_s for line in chosen)


def _measure(chosen: Sequence[Line], asked: argparse.Namespace) -> int:
    """Measures, prints and stores the lines; returns the exit code."""
    pairs = 1 if asked.quick else asked.pairs
    expected_s = _expected_s(chosen, pairs)
    most = "" if pairs else f", and up to {table.duration(2 * expected_s)} if first pairs do not decide"
    print(f"{len(chosen)} lines take about {table.duration(expected_s)}{most}.", flush=True)
    if not programs.lacks():
        programs.client()  # compiled before anything is measured
    others = machine.OtherProcesses()
    if not asked.busy and any(figure.timed for line in chosen for figure in line.figures):
        others.reject_if_busy()
    results = Results(machine.facts())
    section = ""
    for line in _each(chosen, others, pairs):
        if line.section != section:
            section = line.section
            print(f"\n{section}")
        print("\n".join(table.rows(line)), flush=True)
        results = replace(results, lines=[*results.lines, line])
        if asked.json:
            store(results, asked.json)
    print(f"\n{table.summary(results)}")
    if results.count("misses"):
        return _EXIT_MISSES
    return _EXIT_FAILED if results.failed else 0


def _each(chosen: Sequence[Line], others: machine.OtherProcesses, pairs: int) -> Iterator[LineResult]:
    """Measures one line after the other; what a line needs runs until a line needs something else."""
    limits: dict[str, float] = {}
    with ExitStack() as running:
        within: object = None
        for line in chosen:
            try:
                if line.within is not within and not line.lacks():
                    running.close()
                    within = None
                    running.enter_context(line.within)
                    within = line.within
                found = measured(line, others, limits, pairs=pairs)
            except FAILURES as e:
                found = failed(line, e)
            if found.figures:
                limits[line.name] = found.figures[0].ours
            yield found


if __name__ == "__main__":
    sys.exit(main())
