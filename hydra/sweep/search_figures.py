"""The answer of a search as columns of a row. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hydra.measure.column import Values
from hydra.model import Figure
from hydra.sweep.interface import Row
from hydra.sweep.search_answer import CredibleInterval, Inconclusive, LossyRanges, SearchAnswer, SideFindings
from hydra.sweep.search_columns import (
    ANSWER,
    FLOOR,
    HIGH_PPS,
    HOLES,
    LONE,
    LONE_PCT,
    LOW_PPS,
    NEEDED,
    SEEN,
    START_MS,
    WHY,
    WITHOUT,
)
from hydra.sweep.search_warnings import SearchWarning


def columns_of(
    prefix: str,
    answer: SearchAnswer,
    tried: Sequence[float],
    findings: SideFindings,
    against: Iterable[type[SearchWarning]] = (),
) -> Row:
    """The columns beside a figure: its answer, and its side findings if there are any.

    Args:
        prefix: the beginning of their names.
        answer: the answer of the search.
        tried: the rates (messages/s) of its steps.
        findings: the findings beside the figure.
        against: further objections to the figure.
    """
    low, _, high = answer.interval or (None, None, None)
    if answer.interval is None and answer.why is Inconclusive.ABOVE_HIGHEST:
        low = max(tried, default=None)
    elif answer.interval is None and answer.why is Inconclusive.BELOW_LOWEST:
        high = min(tried, default=None)
    words = [*([answer.why.value] if answer.why else []), *(warning.why for warning in against)]
    always: Row = {
        f"{prefix}{ANSWER}": answer.kind,
        f"{prefix}{WHY}": _one_or_several(words),
        f"{prefix}{LOW_PPS}": low,
        f"{prefix}{HIGH_PPS}": high,
        f"{prefix}{SEEN}": not answer.form if answer.kind == "figure" else None,
    }
    sometimes: Row = {
        f"{prefix}{NEEDED}": answer.needed_s,
        **_three(prefix, FLOOR, answer.loss, 100.0),
        f"{prefix}{HOLES}": LossyRanges(answer.holes) if answer.holes else None,
        f"{prefix}{LONE}": findings.lone.client if findings.lone else None,
        f"{prefix}{LONE_PCT}": 100 * findings.lone.loss if findings.lone else None,
        **_three(prefix, WITHOUT, findings.without),
        f"{prefix}{START_MS}": findings.start_ms,
    }
    return always | {name: value for name, value in sometimes.items() if value is not None}


def _one_or_several(words: Sequence[str]) -> Figure:
    return Values(tuple(words), ", ") if len(words) > 1 else next(iter(words), None)


def _three(prefix: str, names: tuple[str, str, str], of: CredibleInterval | None, unit: float = 1.0) -> Row:
    """The columns of a value and its limits, by ``names`` of the value, the lower and the upper limit."""
    values = (of.figure, of.low, of.high) if of else (None, None, None)
    return {f"{prefix}{n}": None if v is None else unit * v for n, v in zip(names, values, strict=True)}
