"""What was measured of each line, as it is printed, stored as JSON, and shown on the page."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import msgspec

from bench import machine
from bench.failure import FAILURES, reason
from bench.line import SECTIONS, Figure, Line, Points
from bench.turns import Verdict, estimate, judge, meets, shortfall, side_values, take
from hydra.errors import UsageError


@dataclass(frozen=True, slots=True)
class FigureResult:
    """One figure of one line.

    Attributes:
        unit: unit of one side.
        ours, bare: medians of the two sides; ``bare`` is None if there is no other side.
        middle, low, high: the judged ratio or figure, and its 95 % confidence interval; a limit is None with one pair.
        goal: its goal as a text; "" if it has none.
        verdict: the verdict.
        meets: whether the whole interval meets the goal, or no part of it; None: it contains the goal, or has none.
        shortfall: by what share of its goal the figure falls short of it; negative: it is better.
        timed: whether other processes on the machine disturb it.
    """

    unit: str
    ours: float
    bare: float | None
    middle: float
    low: float | None
    high: float | None
    goal: str
    verdict: Verdict
    meets: bool | None = None
    shortfall: float = 0.0
    timed: bool = True


@dataclass(frozen=True, slots=True)
class LineResult:
    """One line.

    Attributes:
        section, name, how: those of the line.
        figures: its figures; empty if it was not measured.
        pairs: how many pairs, or single measurements, were taken.
        of_limit: how much of what the machine can do at all the first figure is, 0.6 for 60 %; None if unknown.
        limit: the name of the line that measures this limit.
        others: mean share of the CPU that other processes used between the pairs.
        load: the load average of the machine when the line ended.
        began: when it began, UTC.
        took_s: how long the line took.
        problem: why it was not measured; "" if it was.
        is_error: whether a measurement failed; otherwise the machine lacks something.
        points: (size, value), for the plot of growth.
        elsewhere: the processor on which it was measured, if this is not that of the other lines.
    """

    section: str
    name: str
    how: str
    figures: Sequence[FigureResult] = ()
    pairs: int = 0
    of_limit: float | None = None
    limit: str = ""
    others: float = 0.0
    load: float = 0.0
    began: str = ""
    took_s: float = 0.0
    problem: str = ""
    is_error: bool = False
    points: Points = ()
    elsewhere: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether other processes disturbed a figure of it."""
        return self.others > machine.BUSY and any(figure.timed for figure in self.figures)


@dataclass(frozen=True, slots=True)
class Results:
    """All lines.

    Attributes:
        machine: the facts of the machine, and versions.
        lines: the lines, in the order of the table.
    """

    machine: Mapping[str, str]
    lines: Sequence[LineResult] = ()

    def count(self, verdict: Verdict) -> int:
        """How many figures have this verdict."""
        return sum(figure.verdict == verdict for line in self.lines for figure in line.figures)

    @property
    def wide(self) -> int:
        """How many undecided figures meet their goal with the whole interval, which is wider than ± 5 %."""
        every = (figure for line in self.lines for figure in line.figures)
        return sum(figure.verdict == "cannot tell" and figure.meets is True for figure in every)

    @property
    def failed(self) -> int:
        """How many lines could not be measured because of an error."""
        return sum(line.is_error for line in self.lines)

    @property
    def lacking(self) -> int:
        """How many lines were not measured because the machine lacks something."""
        return sum(bool(line.problem) and not line.is_error for line in self.lines)


def measured(line: Line, others: machine.OtherProcesses, limits: Mapping[str, float], *, pairs: int = 0) -> LineResult:
    """Measures a line.

    Args:
        line: the line; what it needs is running.
        others: looks at the machine before each pair.
        limits: first figures of the lines that are limits of others, by name.
        pairs: takes this number of pairs and adds none; 0: as many as the line decides.
    """
    limit = line.limit.name if line.limit else ""
    result = LineResult(line.section, line.name, line.how, limit=limit, began=now())
    if lacks := line.lacks():
        return replace(result, problem=f"This machine lacks {lacks}.")
    goals = [figure.goal for figure in line.figures]
    began = time.monotonic()
    others.mean()
    try:
        taken = take(line.ours, line.bare, goals, pairs or line.pairs, before=others.look, may_add=not pairs)
        figures = [_figure(figure, *side_values(*taken, n)) for n, figure in enumerate(line.figures)]
        points = line.points()
    except FAILURES as e:
        return failed(line, e)
    return replace(
        result,
        figures=figures,
        pairs=len(taken[0]),
        of_limit=_share(figures[0], limits.get(result.limit)),
        others=others.mean(),
        load=machine.load(),
        took_s=time.monotonic() - began,
        points=points,
    )


def now() -> str:
    """The time in UTC, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M")


def failed(line: Line, error: Exception) -> LineResult:
    """The result of a line that an error ended."""
    return LineResult(line.section, line.name, line.how, problem=reason(error), is_error=True)


def _figure(figure: Figure, ours: Sequence[float], bare: Sequence[float] | None) -> FigureResult:
    e = estimate(ours, bare)
    low, high = (limit if math.isfinite(limit) else None for limit in (e.low, e.high))
    if high is None:
        low = None
    return FigureResult(
        figure.unit,
        median(ours),
        median(bare) if bare else None,
        e.middle,
        low,
        high,
        str(figure.goal or ""),
        judge(e, figure.goal),
        meets(e, figure.goal) if figure.goal else None,
        shortfall(e, figure.goal) if figure.goal else 0.0,
        figure.timed,
    )


def _share(figure: FigureResult, limit: float | None) -> float | None:
    """How much of the limit a figure is: of a rate more is better, of a time or a size less."""
    if not limit or not figure.ours:
        return None
    return figure.ours / limit if figure.unit.endswith("/s") else limit / figure.ours


def store(results: Results, file: Path) -> None:
    """Writes results as JSON; the file keeps its own of other lines, with their processor if that is another."""
    fresh = {(line.section, line.name) for line in results.lines}
    earlier = load(file) if file.exists() else Results({})
    here, there = (each.machine.get("processor", "") for each in (results, earlier))
    kept = [
        replace(line, elsewhere="" if (line.elsewhere or there) == here else line.elsewhere or there)
        for line in earlier.lines
        if (line.section, line.name) not in fresh
    ]
    every = sorted([*kept, *results.lines], key=lambda line: SECTIONS.index(line.section))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(replace(results, lines=every)), indent=1) + b"\n")


def load(file: Path) -> Results:
    """Reads results.

    Raises:
        UsageError: the file has no results.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=Results)
    except (OSError, msgspec.MsgspecError) as e:
        raise UsageError(f"{file} has no results: {e}.", "Measure with --json FILE.") from e
