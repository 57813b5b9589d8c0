"""Whether a row is clean: the system carried the load that was requested. Pure.

Everything that shows a row (the line of a step, tables, headlines, lists of runs, JSON, ``--strict``) asks here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hydra.events.value_formatting import counted, number
from hydra.measure.acceptance import STALLED_S
from hydra.measure.acceptance_columns import (
    LOST_WHY,
    PROGRESS,
    PUBLISHERS_LOST,
    RATE_HELD,
    RATE_SENT,
    REFUSED_REASON,
    STALLED,
    SUBSCRIBERS_LOST,
    SUBSCRIBERS_LOST_WHY,
    UNACCEPTED,
    UNANSWERED,
)
from hydra.measure.column import CLEAN, NOT_CLEAN_WHY, POINT, REASON, REPEATS, STATUS
from hydra.measure.loss_columns import DIED_BY, LATE, LOSS_HIGH, LOSS_LOW, NO_REPORT
from hydra.measure.passing_columns import LOSS_TARGET, PASSED, STOPPED
from hydra.measure.published_columns import AVG_TX, CLIENTS, LOSS
from hydra.measure.traffic_columns import REQUESTED
from hydra.model import Figure
from hydra.model import number as number_of
from hydra.sweep.interface import Row
from hydra.sweep.search_columns import WHY, answers, is_good

Figures = Mapping[str, Figure]

_DISCONNECTED: Final = (
    ("publisher", PUBLISHERS_LOST, LOST_WHY),
    ("subscriber", SUBSCRIBERS_LOST, SUBSCRIBERS_LOST_WHY),
)
_WITHOUT_END: Final = {"undrained": "still waiting (undrained)", "unknown": "unknown"}
"""Messages that were not received and are not known to be lost: the column, and what a reason calls them."""


def flaws(row: Figures) -> tuple[str, ...]:
    """The reasons why a row is not clean; none for a clean row.

    A row is clean if it was measured, the system accepted each publisher's messages at the requested rate (at
    ``max``: all the time), the row passed (docs/measurements.md, *When a rate passes*), no message is undrained or
    unknown, no stop was found (*Stops*), no subscriber died or was silent, and no client lost its connection without
    a cause that the row asked for. A row of a search is clean if every search has a figure, or a rate
    that was held.

    Args:
        row: of a table; or the figures of a measured step, which have no status.
    """
    status = str(row.get(STATUS) or "ok")
    if status != "ok":
        return (": ".join(filter(None, (status, str(row.get(REASON) or "")))),)
    if REQUESTED not in row:
        return tuple(_searches(row))
    return (
        *_unreported(row),
        *_disconnected(row),
        *_rate(row),
        *_progress(row),
        *_messages(row),
        *_stops(row),
        *unjudged(row),
    )


def why_not_clean(row: Figures) -> str:
    """The same in one line; "" for a clean row."""
    return "; ".join(flaws(row))


def judged(row: Figures) -> Row:
    """A row with the columns ``clean`` and ``why``."""
    why = why_not_clean(row)
    return {**row, CLEAN: not why, NOT_CLEAN_WHY: why or None}


def in_short(rows: Sequence[Figures]) -> str:
    """How many rows are not clean, and the first of them with its reason; "" if all are clean."""
    found = [(row, why) for row in rows if (why := why_not_clean(row))]
    if not found:
        return ""
    row, why = found[0]
    if len(rows) == 1:
        return f"not clean: {why}"
    name = row.get(POINT) or counted(row.get(CLIENTS), "subscriber")
    return f"{len(found)} of {len(rows)} rows not clean: {name}: {why}"


def unreported_in(row: Figures) -> str:
    """How many subscribers died or were silent, "" if none were: ``1 died (SIGKILL), 2 never answered``."""
    died, silent = (number_of(row.get(column)) or 0.0 for column in NO_REPORT)
    return unreported_text(died, silent, str(row.get(DIED_BY) or ""))


def unreported_text(died: float, silent: float, died_by: str = "") -> str:
    """The same of these numbers; ``died_by`` is how the dead ended, "" if that is unknown."""
    how = f" ({died_by})" if died_by else ""
    counts = zip((died, silent), NO_REPORT.values(), (how, ""), strict=True)
    return ", ".join(f"{number(count)} {what}{by}" for count, what, by in counts if count)


def unjudged(row: Figures) -> tuple[str, ...]:
    """What is unknown of a measured row, so the row cannot be called clean."""
    if REQUESTED not in row:
        return ()
    rate = row.get(RATE_HELD) is None and number_of(row.get(REQUESTED)) is not None
    messages = row.get(PASSED) is None and row.get(CLIENTS) != 0
    unknown = ("the rate was held",) * rate + ("messages were lost or late",) * messages
    return (f"unknown whether {' and whether '.join(unknown)}",) if unknown else ()


def _unreported(row: Figures) -> Iterator[str]:
    if text := unreported_in(row):
        yield f"subscribers: {text}"


def _rate(row: Figures) -> Iterator[str]:
    requested, sent = number_of(row.get(REQUESTED)), number_of(row.get(AVG_TX))
    if row.get(RATE_HELD) is False:
        done = "accepted" if row.get(RATE_SENT) is True else "sent"
        of = f"{number(sent)} of {number(requested)}/s {done}" if sent is not None and requested is not None else ""
        yield ": ".join(filter(None, ("rate not held", of)))


def _disconnected(row: Figures) -> Iterator[str]:
    for role, count, reason in _DISCONNECTED:
        if clients := number_of(row.get(count)):
            why = row.get(reason)
            yield f"{counted(clients, role)} lost the connection{_in_a_repeat(row)}{f' ({why})' if why else ''}"


def _progress(row: Figures) -> Iterator[str]:
    if row.get(PROGRESS) is not False:
        return
    unanswered, stalled_s = number_of(row.get(UNANSWERED)), number_of(row.get(STALLED)) or 0.0
    if unanswered:
        yield f"{counted(unanswered, 'message')} never acknowledged{_in_a_repeat(row)}"
    if stalled_s >= STALLED_S or not unanswered:
        yield f"nothing accepted of a publisher for {number(stalled_s)} s{_in_a_repeat(row)}"


def _in_a_repeat(row: Figures) -> str:
    """Of a repeated row, such a figure is the highest of its repeats."""
    return " in a repeat" if REPEATS in row else ""


def _messages(row: Figures) -> Iterator[str]:
    failed = row.get(PASSED) is False
    parts = [*(_unaccepted_lost_and_late(row) if failed else ()), *_without_end(row)]
    if failed and (parts or not row.get(STOPPED)):
        target = number_of(row.get(LOSS_TARGET))
        limit = "" if target is None else f" (loss target {number(target)} %)"
        yield f"{', '.join(parts) or 'did not pass'}{limit}"
    elif parts:
        yield ", ".join(parts)


def _stops(row: Figures) -> Iterator[str]:
    if stopped_s := number_of(row.get(STOPPED)):
        yield f"nothing arrived for {number(stopped_s)} s{_in_a_repeat(row)} although messages were due"


def _unaccepted_lost_and_late(row: Figures) -> Iterator[str]:
    if share := number_of(row.get(UNACCEPTED)):
        reason = row.get(REFUSED_REASON)
        yield f"{number(share)} % not accepted{f' ({reason})' if reason else ''}"
    low, high = number_of(row.get(LOSS_LOW)), number_of(row.get(LOSS_HIGH))
    if low is not None and high is not None:
        yield f"{number(low)} to {number(high)} % lost"
    elif lost := number_of(row.get(LOSS)):
        yield f"{number(lost)} % lost"
    if late := number_of(row.get(LATE)):
        yield f"{number(late)} % late"


def _without_end(row: Figures) -> Iterator[str]:
    for column, what in _WITHOUT_END.items():
        if share := number_of(row.get(f"{column}_pct")):
            yield f"{number(share)} % {what}"
        elif count := number_of(row.get(column)):
            yield f"{counted(count, 'message')} {what}"


def _searches(row: Figures) -> Iterator[str]:
    for search, answer in answers(row).items():
        if is_good(answer):
            continue
        why = str(row.get(search + WHY) or "").replace("_", " ")
        what = {
            "none": "no rate passes",
            "none_held": "no rate was held",
            "unknown": "no answer",
            "unconfirmed": "not confirmed",
        }.get(str(answer), "no answer in some repeats")
        yield f"{search}: {what}{f' ({why})' if why and answer == 'unknown' else ''}"
