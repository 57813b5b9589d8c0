"""What the repeats of runs tell of each figure in each row: the difference, its interval, and a verdict. Pure.

A repeat is a sample, and nothing smaller is: slices of one repeat share its processes, its connections and its minute,
and a hundred of them are no more evidence than one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from hydra.columns import Column
from hydra.compare import statistics
from hydra.compare.environment import Difference, differences
from hydra.compare.figures import others, primary, words
from hydra.compare.matching import Matched, match
from hydra.compare.sides import Repeat, Side
from hydra.compare.statistics import ALPHA, holm
from hydra.model import Figure, number

Kind = Literal["ratio", "difference"]

NO_DIFFERENCE: Final = "no difference shown"
NO_VERDICT: Final = "no verdict"

_FEWEST: Final = 2
"""Repeats without which nothing is known of their spread."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of one row in one run, against the base.

    Attributes:
        row: the row's name.
        column: of the figure.
        base, other: names of the runs.
        base_shown, other_shown: the figure as the runs' own tables have it.
        kind: whether ``change`` is a share of the base (0.1: a tenth more), or a difference in the figure's unit, which
            it is where a figure was 0.
        change: other against base; None where it is not known.
        low, high: its 95 % interval; None where there is none.
        level: the mean of the base's repeats, where ``change`` is a difference.
        p: two-sided; None without a verdict.
        p_adjusted: the same, by Holm among the figures of its family.
        repeats: of base and other that were compared; pairs where these are the same by being paired.
        left_out: what was not compared and why, "" where all was.
        verdict: what the other run is against the base, or NO_DIFFERENCE, or NO_VERDICT.
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
    level: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    repeats: tuple[int, int] = (0, 0)
    left_out: str = ""
    verdict: str = NO_VERDICT
    is_better: bool | None = None
    reason: str = ""


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

    sides: Sequence[Side]
    paired: bool
    rows: Sequence[Matched]
    primary: Column
    first: Sequence[Compared]
    others: Sequence[Compared]
    unmatched: dict[str, Sequence[str]]
    environment: Sequence[Difference]


def compare(sides: Sequence[Side], *, paired: bool, figure: str = "") -> Comparison:
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


def family(sides: Sequence[Side], rows: Sequence[Matched], names: Sequence[str], *, paired: bool) -> list[Compared]:
    """Figures in all rows and runs, with verdicts that together are wrong as rarely as one is.

    Args:
        sides: the runs.
        rows: of them.
        names: of the figures.
        paired: whether repeats are pairs.
    """
    found = [
        one(row, sides, index, name, paired=paired) for name in names for row in rows for index in range(1, len(sides))
    ]
    tested = [n for n, each in enumerate(found) if each.p is not None]
    adjusted = holm([found[n].p or 0.0 for n in tested])
    for n, p in zip(tested, adjusted, strict=True):
        found[n] = _judged(found[n], p)
    return found


def one(row: Matched, sides: Sequence[Side], index: int, name: str, *, paired: bool) -> Compared:
    """One figure of one run against the base, without a verdict yet.

    Args:
        row: of all runs.
        sides: the runs.
        index: of the run.
        name: of the figure.
        paired: whether repeats are pairs.
    """
    base, other = row.rows[0], row.rows[index]
    compared = Compared(
        row.name,
        sides[0].columns[name],
        sides[0].name,
        sides[index].name,
        base.shown.get(name),
        other.shown.get(name),
    )
    below = sum(name in repeat.below for each in (base, other) for repeat in each.repeats)
    values = [[_value(repeat, name) for repeat in each.repeats] for each in (base, other)]
    if paired:
        pairs = [(a, b) for a, b in zip(*values, strict=False) if a is not None and b is not None]
        samples = [[a for a, _ in pairs], [b for _, b in pairs]]
    else:
        samples = [[value for value in its if value is not None] for its in values]
    counts = (len(samples[0]), len(samples[1]))
    all_of = (len(base.repeats), len(other.repeats))
    compared = replace(
        compared, repeats=counts, left_out=_left_out((base.repeats, other.repeats), counts, name, paired)
    )
    if below:
        reason = f"{below} of {sum(all_of)} repeats are below what the clocks can tell"
        return replace(compared, reason=reason)
    if min(counts) == 0:
        return replace(compared, reason="it was never measured" if min(all_of) else "no repeat")
    return _estimated(compared, samples, paired=paired)


def _value(repeat: Repeat, name: str) -> float | None:
    value = None if repeat.problem else number(repeat.figures.get(name))
    return value if value is not None and math.isfinite(value) else None


def _left_out(
    repeats: tuple[Sequence[Repeat], Sequence[Repeat]], counts: tuple[int, int], name: str, paired: bool
) -> str:
    """Repeats that failed, that have no such figure, or that have no partner."""
    if counts == (len(repeats[0]), len(repeats[1])):
        return ""
    texts = []
    for which, its in zip(("base", "other"), repeats, strict=True):
        failed = sum(bool(repeat.problem) for repeat in its)
        without = sum(not repeat.problem and _value(repeat, name) is None for repeat in its)
        texts += [f"{failed} of {which} failed"] if failed else []
        texts += [f"{without} of {which} have no such figure"] if without else []
    if paired and len(repeats[0]) != len(repeats[1]):
        texts.append(f"{abs(len(repeats[0]) - len(repeats[1]))} without a partner")
    return ", ".join(texts)


def _estimated(compared: Compared, samples: Sequence[Sequence[float]], *, paired: bool) -> Compared:
    """The difference and its interval: of logarithms where all figures are above zero, otherwise of the figures.

    There is no logarithm of a loss of 0.
    """
    a, b = (np.asarray(sample) for sample in samples)
    is_ratio = bool((a > 0).all() and (b > 0).all())
    if is_ratio:
        a, b = np.log(a), np.log(b)
    else:
        compared = replace(compared, kind="difference", level=float(a.mean()))
    back = _expm1 if is_ratio else float
    if min(len(a), len(b)) < _FEWEST:
        reason = "one repeat tells nothing of the spread"
        return replace(compared, change=back(float(b.mean() - a.mean())), reason=reason)
    e = statistics.paired(b - a) if paired else statistics.independent(a, b)
    change, low, high = (back(float(x)) for x in (e.mean, e.low, e.high))
    return replace(compared, change=change, low=low, high=high, p=float(e.p))


def _expm1(x: float) -> float:
    """exp(x) − 1; infinite where two repeats tell as good as nothing."""
    return math.expm1(x) if x < 700 else math.inf


def _judged(compared: Compared, p_adjusted: float) -> Compared:
    if p_adjusted > ALPHA or not compared.change:
        return replace(compared, p_adjusted=p_adjusted, verdict=NO_DIFFERENCE)
    is_higher = compared.change > 0
    word = words(compared.column)[0 if is_higher else 1]
    better = compared.column.better
    is_better = None if not better else is_higher == (better == "higher")
    return replace(compared, p_adjusted=p_adjusted, verdict=word, is_better=is_better)
