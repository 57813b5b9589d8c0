"""What the repeats of runs tell of each figure in each row: the difference, its interval, and a verdict. Pure.

A repeat is a sample, and nothing smaller is: slices of one repeat share its processes, its connections and its minute,
and a hundred of them are no more evidence than one. A repeat that failed is no figure: it counts as the worst one. And
what was not measured in turns may differ, but nobody knows by what: no run is called better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from hydra.analysis import statistics
from hydra.analysis.compared_figures import others, primary, words
from hydra.analysis.compared_runs import ComparedRun, EnvironmentDifference, MatchedRow, RowRepeat, differences, match
from hydra.analysis.statistics import ALPHA, holm, levels
from hydra.measure.column import Column
from hydra.model import Figure, number

Kind = Literal["ratio", "difference"]

NO_DIFFERENCE: Final = "no difference shown"
NO_VERDICT: Final = "no verdict"
NO_SPREAD: Final = "no spread"
DIFFERS: Final = "differs, cause unknown"

_FEWEST: Final = 2
"""Repeats without which nothing is known of their spread."""


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of one row in one run, against the base.

    Attributes:
        row: the row's name.
        column: of the figure.
        base, other: names of the runs.
        base_shown, other_shown: the figure as the runs' own tables have it.
        kind: whether ``change`` is a share of the base (0.1: a tenth more), or a difference in the figure's unit, which
            it is where a figure was 0.
        change: other against base; None where it is not known.
        low, high: its interval, infinite where it has no limit; None where there is none.
        confidence: of that interval, so that all of its family together hold their truths in 95 %.
        level: the mean of the base's repeats, where ``change`` is a difference.
        p: two-sided; None without a verdict.
        p_adjusted: the same, by Holm among the figures of its family.
        repeats: of base and other that were compared; pairs where these are the same by being paired.
        left_out: what was not compared and why, "" where all was.
        verdict: what the other run is against the base; DIFFERS where they did not take turns; NO_DIFFERENCE;
            NO_SPREAD where each has the same figure in all repeats, so that nothing tells what chance does; NO_VERDICT.
        is_better: whether that is the better one; None where neither is, or nothing is shown.
        reason: why there is no verdict.
    """

    row: str
    column: Column
    base: str
    other: str
    base_shown: Figure = None
    other_shown: Figure = None
    kind: Kind = "ratio"
    change: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float = 1 - ALPHA
    level: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    repeats: tuple[int, int] = (0, 0)
    left_out: str = ""
    verdict: str = NO_VERDICT
    is_better: bool | None = None
    reason: str = ""

    @property
    def differs(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict not in (NO_DIFFERENCE, NO_VERDICT, NO_SPREAD)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that a comparison tells.

    Attributes:
        sides: the runs; the first is the base.
        paired: whether repeats of the same number are pairs, because the runs took turns.
        rows: those that all runs have.
        primary: the figure that the runs are compared by.
        first: that figure in each row and each other run; one family.
        others: all other figures; one more family.
        unmatched: by a run's name, rows that not all runs have.
        environment: what else differs.
    """

    sides: Sequence[ComparedRun]
    paired: bool
    rows: Sequence[MatchedRow]
    primary: Column
    first: Sequence[FigureComparison]
    others: Sequence[FigureComparison]
    unmatched: dict[str, Sequence[str]]
    environment: Sequence[EnvironmentDifference]


def compare(sides: Sequence[ComparedRun], *, paired: bool, figure: str = "") -> Comparison:
    """Compares runs.

    Args:
        sides: two or more; the first is the base.
        paired: whether their repeats took turns.
        figure: the primary one; "": the usual.

    Raises:
        UsageError: they cannot be compared.
    """
    matching = match(sides)
    first = primary(sides, figure)
    return Comparison(
        sides,
        paired,
        matching.rows,
        sides[0].columns[first],
        family(sides, matching.rows, [first], paired=paired),
        family(sides, matching.rows, others(sides, first), paired=paired),
        dict(matching.unmatched),
        differences([side.facts for side in sides]),
    )


def family(
    sides: Sequence[ComparedRun], rows: Sequence[MatchedRow], names: Sequence[str], *, paired: bool
) -> list[FigureComparison]:
    """Figures in all rows and runs, with verdicts and intervals that together are wrong as rarely as one is.

    Args:
        sides: the runs.
        rows: of them.
        names: of the figures.
        paired: whether repeats are pairs.
    """
    which = [(row, index, name) for name in names for row in rows for index in range(1, len(sides))]

    def of(n: int, alpha: float) -> FigureComparison:
        row, index, name = which[n]
        return _one(row, sides, index, name, alpha, paired=paired)

    found = [of(n, ALPHA) for n in range(len(which))]
    tested = [(n, each.p) for n, each in enumerate(found) if each.p is not None]
    ps = [p for _, p in tested]
    adjusted = holm(ps)
    for (n, _), its, alpha in zip(tested, adjusted, levels(ps, adjusted), strict=True):
        found[n] = _judged(of(n, alpha), its, paired=paired)
    return found


def _one(
    row: MatchedRow, sides: Sequence[ComparedRun], index: int, name: str, alpha: float, *, paired: bool
) -> FigureComparison:
    """One figure of one run against the base, without a verdict yet.

    Args:
        row: of all runs.
        sides: the runs.
        index: of the run.
        name: of the figure.
        alpha: how rarely the interval may miss the truth.
        paired: whether repeats are pairs.
    """
    base, other = row.rows[0], row.rows[index]
    column = sides[0].columns[name]
    compared = FigureComparison(
        row.name, column, sides[0].name, sides[index].name, base.shown.get(name), other.shown.get(name)
    )
    every = [*base.repeats, *other.repeats]
    failed, without = sum(each.failed for each in every), sum(_lacks(each, name) for each in every)
    samples: Sequence[Sequence[float | None]]
    if paired:
        pairs = [(a, b) for a, b in zip(base.repeats, other.repeats, strict=False) if _counts(a, name, b)]
        samples = [[_value(a, name) for a, _ in pairs], [_value(b, name) for _, b in pairs]]
    else:
        samples = [[_value(each, name) for each in its.repeats if _counts(each, name)] for its in (base, other)]
    counts = (len(samples[0]), len(samples[1]))
    compared = replace(compared, repeats=counts, left_out=_left_out((base.repeats, other.repeats), name, paired))
    if below := sum(name in repeat.below for repeat in every):
        return replace(compared, reason=f"{below} of {len(every)} repeats are below what the clocks can tell")
    if not all(any(value is not None for value in its) for its in samples):
        return replace(compared, reason="it was never measured" if base.repeats and other.repeats else "no repeat")
    estimated = _estimated(compared, samples, alpha, paired=paired)
    if estimated.reason or not (without or (failed and not paired)):
        return estimated
    # Which repeats have no figure is no chance: what the others show would be that of the good ones.
    why = f"{without} of {len(every)} repeats have no such figure" if without else f"{failed} of {len(every)} failed"
    return replace(estimated, low=None, high=None, p=None, verdict=NO_VERDICT, reason=why)


def _value(repeat: RowRepeat, name: str) -> float | None:
    value = None if repeat.problem else number(repeat.figures.get(name))
    return value if value is not None and math.isfinite(value) else None


def _lacks(repeat: RowRepeat, name: str) -> bool:
    """Whether it was measured, and has no such figure."""
    return not repeat.problem and _value(repeat, name) is None


def _counts(repeat: RowRepeat, name: str, partner: RowRepeat | None = None) -> bool:
    """Whether a repeat is a sample, or a pair is one: a failed one is where it has a partner."""
    if partner is None:
        return _value(repeat, name) is not None
    return all(each.failed or _value(each, name) is not None for each in (repeat, partner))


def _left_out(repeats: tuple[Sequence[RowRepeat], Sequence[RowRepeat]], name: str, paired: bool) -> str:
    """Repeats that failed, that nobody measured, that have no such figure, or that have no partner."""
    texts = []
    for which, its in zip(("base", "other"), repeats, strict=True):
        failed, without = sum(repeat.failed for repeat in its), sum(_lacks(repeat, name) for repeat in its)
        passed_over = sum(repeat.passed_over for repeat in its)
        texts += [f"{failed} of {which} failed{', and count as worst' if paired else ''}"] if failed else []
        texts += [f"{passed_over} of {which} not measured"] if passed_over else []
        texts += [f"{without} of {which} have no such figure"] if without else []
    if paired and len(repeats[0]) != len(repeats[1]):
        texts.append(f"{abs(len(repeats[0]) - len(repeats[1]))} without a partner")
    return ", ".join(texts)


def _estimated(
    compared: FigureComparison, samples: Sequence[Sequence[float | None]], alpha: float, *, paired: bool
) -> FigureComparison:
    """The difference and its interval: of logarithms where all figures are above zero, otherwise of the figures.

    There is no logarithm of a loss of 0.

    Args:
        compared: what is known besides.
        samples: of base and other; None: a repeat that failed.
        alpha: how rarely the interval may miss the truth.
        paired: whether they are pairs.
    """
    known = [[value for value in its if value is not None] for its in samples]
    is_ratio = min(map(min, known)) > 0
    if not is_ratio:
        compared = replace(compared, kind="difference", level=sum(known[0]) / len(known[0]))
    # The worst that there is; where no side of a figure is the better one, nobody knows where it stands.
    worst = {"higher": -math.inf, "lower": math.inf}.get(compared.column.better, math.nan)
    a, b = (
        np.array([worst if value is None else math.log(value) if is_ratio else value for value in its])
        for its in samples
    )
    back = _expm1 if is_ratio else float
    if min(len(a), len(b)) < _FEWEST:
        change = float(b.mean() - a.mean())
        reason = "one repeat tells nothing of the spread"
        return replace(compared, change=back(change) if math.isfinite(change) else None, reason=reason)
    if len(known[0]) + len(known[1]) < len(a) + len(b):
        with np.errstate(invalid="ignore"):  # both failed: neither was better
            e = statistics.signs((b - a).tolist(), alpha)
    else:
        e = statistics.paired(b - a, alpha) if paired else statistics.independent(a, b, alpha)
    if math.isnan(float(e.p)):
        change = back(float(e.mean))
        return replace(compared, change=change, verdict=NO_SPREAD if change else NO_DIFFERENCE)
    change, low, high = (back(float(x)) for x in (e.mean, e.low, e.high))
    return replace(compared, change=change, low=low, high=high, confidence=1 - alpha, p=float(e.p))


def _expm1(x: float) -> float:
    """exp(x) − 1; infinite where two repeats tell as good as nothing, NaN where nothing is known."""
    return math.inf if x >= 700 else math.expm1(x)


def _judged(compared: FigureComparison, p_adjusted: float, *, paired: bool) -> FigureComparison:
    compared = replace(compared, p_adjusted=p_adjusted, verdict=NO_DIFFERENCE)
    # Without limits the signs cannot tell; what the interval leaves out is what the difference is not.
    if p_adjusted > ALPHA or compared.low is None or compared.high is None:
        return compared
    if not paired:
        return replace(compared, verdict=DIFFERS)
    is_higher = compared.low > 0
    better = compared.column.better
    is_better = None if not better else is_higher == (better == "higher")
    return replace(compared, verdict=words(compared.column)[0 if is_higher else 1], is_better=is_better)
