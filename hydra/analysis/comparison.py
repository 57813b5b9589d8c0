"""Compares the repeats of runs, for each figure in each row: the difference, its interval, and a verdict. Pure.

The sample is a repeat, not a part of one: slices of a repeat share its processes, connections and time, so a
hundred slices are no more evidence than one. A failed repeat has no figure, and counts as the worst one. If runs were
not interleaved, the cause of a difference is unknown: no run is called better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from hydra.analysis import statistics
from hydra.analysis.compared_figures import others, primary, words
from hydra.analysis.compared_runs import (
    ComparedRun,
    EnvironmentDifference,
    MatchedRow,
    RowRepeat,
    are_systems,
    differences,
    match,
)
from hydra.analysis.statistics import ALPHA, holm, levels
from hydra.events.value_formatting import counted
from hydra.measure.column import Column
from hydra.model import Figure, number

Kind = Literal["ratio", "difference"]

NO_DIFFERENCE: Final = "no difference shown"
NO_VERDICT: Final = "no verdict"
NO_SPREAD: Final = "no spread"
DIFFERS: Final = "differs, cause unknown"

STATED: Final = 0.05
"""The difference, as a share of the base, for which a comparison without a verdict states the repeats."""
LEAST_REPEATS: Final = 3
"""The least number of repeats or pairs with an interval: that of two of them reaches thousands of times the base."""


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of one row in one run, compared with the base.

    Attributes:
        row: the row's name.
        column: the column of the figure.
        base, other: names of the runs.
        base_shown, other_shown: the figure in the runs' own tables.
        kind: whether ``change`` is a share of the base (0.1: a tenth more), or a difference in the figure's unit, which
            is used if a figure was 0.
        change: the change from base to other; None if unknown.
        low, high: limits of the interval of ``change``, infinite if it has no limit; None if there is no interval.
        confidence: confidence of the interval; all intervals of a family together contain the true values with 95 %.
        level: the mean of the base's repeats, if ``change`` is a difference.
        p: the two-sided p value; None without a verdict.
        p_adjusted: the p value, adjusted by Holm among the figures of its family.
        repeats: numbers of compared repeats of base and other; of paired repeats, the number of pairs.
        left_out: the repeats that were not compared, and why; "" if all were.
        verdict: how the other run differs; DIFFERS if the runs were not interleaved; NO_DIFFERENCE; NO_SPREAD if each
            run has the same figure in all repeats, so the effect of chance is unknown; NO_VERDICT.
        is_better: whether the other run is the better one; None if no difference is shown, or neither is better.
        reason: why there is no verdict.
        shown_from: the least change of this kind that four of five comparisons with these repeats show, by the measured
            spread; None: not known.
        repeats_needed: about how many repeats of each run show a change of ``STATED`` in four of five comparisons;
            None: not known, or more than ``statistics.MOST``.
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
    shown_from: float | None = None
    repeats_needed: int | None = None

    @property
    def differs(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict not in (NO_DIFFERENCE, NO_VERDICT, NO_SPREAD)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        sides: the runs; the first is the base.
        paired: whether repeats of the same number are pairs, because the runs were interleaved.
        rows: the rows that all runs have.
        primary: the column of the primary figure.
        first: the primary figure in each row and each other run; one family.
        others: all other figures; another family.
        unmatched: by a run's name, rows that not all runs have.
        environment: facts that differ between the runs.
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
        sides: two or more runs; the first is the base.
        paired: whether their repeats were interleaved.
        figure: the primary figure; "": the default.

    Raises:
        UsageError: the runs cannot be compared.
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
        differences([side.facts for side in sides], shared_only=are_systems(sides)),
    )


def family(
    sides: Sequence[ComparedRun], rows: Sequence[MatchedRow], names: Sequence[str], *, paired: bool
) -> list[FigureComparison]:
    """Compares figures in all rows and runs; verdicts and intervals are adjusted for their number.

    Args:
        sides: the runs.
        rows: rows that all runs have.
        names: names of the figures.
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
    """Compares one figure of one run with the base, without a verdict yet.

    Args:
        row: the row of all runs.
        sides: the runs.
        index: index of the run.
        name: name of the figure.
        alpha: probability that the interval misses the true value.
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
        return replace(compared, reason=f"{below} of {len(every)} repeats are below the bound of the clocks")
    if not all(any(value is not None for value in its) for its in samples):
        return replace(
            compared, reason="the figure was never measured" if base.repeats and other.repeats else "no repeat"
        )
    estimated = _estimated(compared, samples, alpha, paired=paired)
    if estimated.reason or not (without or (failed and not paired)):
        return estimated
    # Repeats do not lack a figure by chance: the others would show only the good cases.
    why = f"{without} of {len(every)} repeats have no such figure" if without else f"{failed} of {len(every)} failed"
    return replace(estimated, low=None, high=None, p=None, verdict=NO_VERDICT, reason=why)


def _value(repeat: RowRepeat, name: str) -> float | None:
    value = None if repeat.problem else number(repeat.figures.get(name))
    return value if value is not None and math.isfinite(value) else None


def _lacks(repeat: RowRepeat, name: str) -> bool:
    """Whether the repeat was measured, but has no such figure."""
    return not repeat.problem and _value(repeat, name) is None


def _counts(repeat: RowRepeat, name: str, partner: RowRepeat | None = None) -> bool:
    """Whether a repeat, or a pair of repeats, is a sample; a failed repeat counts only in a pair."""
    if partner is None:
        return _value(repeat, name) is not None
    return all(each.failed or _value(each, name) is not None for each in (repeat, partner))


def _left_out(repeats: tuple[Sequence[RowRepeat], Sequence[RowRepeat]], name: str, paired: bool) -> str:
    """A text about repeats that failed, were not measured, lack the figure, or have no partner."""
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
    """The difference and its interval: of logarithms if all figures are above zero, otherwise of the figures.

    For example, a loss of 0 has no logarithm.

    Args:
        compared: the comparison so far.
        samples: the samples of base and other; None is a failed repeat.
        alpha: probability that the interval misses the true value.
        paired: whether the samples are pairs.
    """
    known = [[value for value in its if value is not None] for its in samples]
    is_ratio = min(map(min, known)) > 0
    if not is_ratio:
        compared = replace(compared, kind="difference", level=sum(known[0]) / len(known[0]))
    # A failed repeat is the worst one; if neither direction of a figure is better, its place is unknown.
    worst = {"higher": -math.inf, "lower": math.inf}.get(compared.column.better, math.nan)
    a, b = (
        np.array([worst if value is None else math.log(value) if is_ratio else value for value in its])
        for its in samples
    )
    back = _expm1 if is_ratio else float
    if (few := min(len(a), len(b))) < LEAST_REPEATS:
        change = float(b.mean() - a.mean())
        repeats = counted(few, "pair" if paired else "repeat")
        reason = f"{repeats} {'does' if few == 1 else 'do'} not show the spread, {LEAST_REPEATS} are needed"
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
    if all(map(np.isfinite, (a.sum(), b.sum()))):
        compared = _with_power(compared, [b - a] if paired else [a, b], alpha)
    return replace(compared, change=change, low=low, high=high, confidence=1 - alpha, p=float(e.p))


def _with_power(
    compared: FigureComparison, samples: Sequence[npt.NDArray[np.float64]], alpha: float
) -> FigureComparison:
    """Adds what these repeats can show; ``samples`` are the differences of pairs, or both samples."""
    variance, repeats, is_paired = sum(float(s.var(ddof=1)) for s in samples), min(map(len, samples)), len(samples) == 1
    is_ratio = compared.kind == "ratio"
    shown = statistics.shown_with(variance, repeats, alpha, is_paired=is_paired)
    size = math.log1p(STATED) if is_ratio else STATED * abs(compared.level or 0.0)
    return replace(
        compared,
        shown_from=_expm1(shown) if is_ratio else shown,
        repeats_needed=statistics.repeats_for(size, variance, alpha, is_paired=is_paired) if size else None,
    )


def _expm1(x: float) -> float:
    """exp(x) − 1; infinite for limits that are too large (of two repeats, for example), NaN if x is NaN."""
    return math.inf if x >= 700 else math.expm1(x)


def _judged(compared: FigureComparison, p_adjusted: float, *, paired: bool) -> FigureComparison:
    compared = replace(compared, p_adjusted=p_adjusted, verdict=NO_DIFFERENCE)
    # Without limits the sign of the difference is unknown.
    if p_adjusted > ALPHA or compared.low is None or compared.high is None:
        return compared
    if not paired:
        return replace(compared, verdict=DIFFERS)
    is_higher = compared.low > 0
    better = compared.column.better
    is_better = None if not better else is_higher == (better == "higher")
    return replace(compared, verdict=words(compared.column)[0 if is_higher else 1], is_better=is_better)
