"""What a row says of a rate that was searched for: the answer as columns, and these columns as warnings. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from hydra.events import search_warnings as told
from hydra.events.search_warnings import CannotTell, Limits, SearchWarning
from hydra.measure.column import REPEATS
from hydra.measure.column_names import STEP_S
from hydra.measure.search_columns import (
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
from hydra.model import Figure, number
from hydra.sweep.answer import Answer, Hole, Interval, Why
from hydra.sweep.interface import Row
from hydra.sweep.side_findings import Beside

_SEVERAL: Final = ", "
"""Between the words of one search."""
_APART: Final = re.compile(", | / ")
"""Between the words of one search, or of its repeats (``sweep/repetition.py``)."""


class Remark(Enum):
    """What a search says of a figure, besides :class:`~hydra.sweep.answer.Why`: in the same column."""

    STILL_RISING = "still rising"
    NOTHING_RECEIVED = "nothing received"
    TOO_FEW_CLIENTS = "too few clients"
    HIGHEST_UNKNOWN = "highest unknown"
    ABOVE_UNDISTURBED = "above undisturbed"


_CANNOT: Final[Mapping[Why, type[CannotTell]]] = {
    Why.CHANGING: told.Changing,
    Why.TOO_SHORT: told.TooShort,
    Why.BELOW_LOWEST: told.BelowLowest,
    Why.ABOVE_HIGHEST: told.AboveHighest,
    Why.CONTRADICTED: told.Contradicted,
    Why.GIVEN_UP: told.CannotTell,
}
_REMARKS: Final[Mapping[Remark, Callable[[str], SearchWarning]]] = {
    Remark.STILL_RISING: told.StillRising,
    Remark.NOTHING_RECEIVED: told.NothingReceived,
    Remark.TOO_FEW_CLIENTS: told.TooFewClients,
    Remark.HIGHEST_UNKNOWN: told.HighestUnknown,
    Remark.ABOVE_UNDISTURBED: told.AboveUndisturbed,
}


def columns_of(
    prefix: str, answer: Answer, tried: Sequence[float], beside: Beside, remarks: Iterable[Remark] = ()
) -> Row:
    """The columns beside a figure that say what it is; there are none for what was not found.

    Args:
        prefix: what they begin with.
        answer: of the search.
        tried: the rates (messages/s) of its steps.
        beside: what was found beside it.
        remarks: what else speaks against it.
    """
    low, _, high = answer.interval or (None, None, None)
    if answer.interval is None and answer.why is Why.ABOVE_HIGHEST:
        low = max(tried, default=None)
    elif answer.interval is None and answer.why is Why.BELOW_LOWEST:
        high = min(tried, default=None)
    words = [word.value for word in (answer.why, *remarks) if word is not None]
    always: Row = {
        f"{prefix}{ANSWER}": answer.kind,
        f"{prefix}{WHY}": _SEVERAL.join(words) or None,
        f"{prefix}{LOW_PPS}": low,
        f"{prefix}{HIGH_PPS}": high,
        f"{prefix}{SEEN}": not answer.form if answer.kind == "figure" else None,
    }
    sometimes: Row = {
        f"{prefix}{NEEDED}": answer.needed_s,
        **_three(prefix, FLOOR, answer.loss, 100.0),
        f"{prefix}{HOLES}": _SEVERAL.join(f"{hole.low:.5g} {hole.high:.5g}" for hole in answer.holes) or None,
        f"{prefix}{LONE}": beside.lone.client if beside.lone else None,
        f"{prefix}{LONE_PCT}": 100 * beside.lone.loss if beside.lone else None,
        **_three(prefix, WITHOUT, beside.without),
        f"{prefix}{START_MS}": beside.start_ms,
    }
    return always | {name: value for name, value in sometimes.items() if value is not None}


def _three(prefix: str, names: tuple[str, str, str], of: Interval | None, unit: float = 1.0) -> Row:
    """The columns of a value and of its limits."""
    values = (of.figure, of.low, of.high) if of else (None, None, None)
    return {f"{prefix}{n}": None if v is None else unit * v for n, v in zip(names, values, strict=True)}


def note_of(row: Row, prefix: str) -> str | None:
    """All that a row says of a search's figure, in words."""
    return "; ".join(warning.said for warning in warnings_of(row, prefix)) or None


def warnings_of(row: Row, prefix: str) -> list[SearchWarning]:
    """What has to be known of a figure: why there is none, what speaks against it, what was found beside it.

    Args:
        row: a search's, with the columns of :func:`columns_of`.
        prefix: what they begin with.
    """
    note = row.get(f"{prefix}_note")
    if REPEATS in row or (f"{prefix}{WHY}" not in row and note):
        # Repeats say it each in their words; an earlier version said nothing else.
        return [told.SearchRemark(prefix, note, _remedies(row, prefix))] if note else []
    return [*_without_figure(row, prefix), *_remarks(row, prefix), *_beside(row, prefix)]


def _remedies(row: Row, prefix: str) -> str:
    """What to try for all that the repeats say."""
    every = (*_without_figure(row, prefix), *_remarks(row, prefix))
    return "; ".join(dict.fromkeys(warning.remedy for warning in every))


def _words(row: Row, name: str) -> list[str]:
    return [word for word in _APART.split(str(row.get(name) or "")) if word]


def _limits(row: Row, low: str, high: str) -> Limits:
    return number(row.get(low)), number(row.get(high))


def _without_figure(row: Row, prefix: str) -> list[SearchWarning]:
    found: list[SearchWarning] = []
    if "none" in _words(row, f"{prefix}{ANSWER}"):
        pct, low, high = (f"{prefix}{end}" for end in FLOOR)
        found.append(told.NoRateHolds(prefix, number(row.get(pct)), _limits(row, low, high)))
    whys = {why.value: kind for why, kind in _CANNOT.items()}
    limits = _limits(row, f"{prefix}{LOW_PPS}", f"{prefix}{HIGH_PPS}")
    needed, step_s = number(row.get(f"{prefix}{NEEDED}")), number(row.get(STEP_S))
    return found + [
        whys[word](prefix, needed, step_s, limits) for word in _words(row, f"{prefix}{WHY}") if word in whys
    ]


def _remarks(row: Row, prefix: str) -> list[SearchWarning]:
    remarks = {remark.value: kind for remark, kind in _REMARKS.items()}
    return [remarks[word](prefix) for word in _words(row, f"{prefix}{WHY}") if word in remarks]


def _beside(row: Row, prefix: str) -> list[SearchWarning]:
    found: list[SearchWarning] = []
    if row.get(f"{prefix}{SEEN}") is False:
        found.append(told.ByForm(prefix))
    if holes := holes_of(row.get(f"{prefix}{HOLES}")):
        found.append(told.LossyBetween(prefix, [(hole.low, hole.high) for hole in holes]))
    if (pct := number(row.get(f"{prefix}{LONE_PCT}"))) is not None:
        rate, low, high = (f"{prefix}{end}" for end in WITHOUT)
        client = row.get(f"{prefix}{LONE}")
        found.append(told.LosesAlone(prefix, client, pct, number(row.get(rate)), _limits(row, low, high)))
    if lost_ms := number(row.get(f"{prefix}{START_MS}")):
        found.append(told.LosesAtStart(prefix, lost_ms))
    return found


def holes_of(text: Figure) -> list[Hole]:
    """The holes that a column holds."""
    pairs = (pair.split() for pair in str(text or "").split(_SEVERAL) if pair)
    return [Hole(float(low), float(high)) for low, high in pairs]
