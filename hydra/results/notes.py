"""What has to be known about a row before its figures are believed. Pure."""

from __future__ import annotations

from typing import Final

from hydra.columns.column import COUNT, REPEATS
from hydra.columns.names import CLIENTS, GONE, LOSS_HIGH, LOSS_LOW, RATE_HELD, REASON, STATUS
from hydra.measure.loss import BACKLOG_S
from hydra.measure.verdict import BUSY_HOST_PCT
from hydra.model import Figure, Scenario
from hydra.sweep import Row

MARK: Final = "⚠"
_NAMED: Final = 4
"""Columns that a note names, of those with fewer figures than repeats."""


def notes_of(row: Row, scenario: Scenario) -> list[str]:
    """The notes of a row, gravest first; empty when its figures can be taken as they are."""
    status = row.get(STATUS)
    if status == "skipped":
        return [f"SKIPPED: {row.get(REASON) or 'no reason was given'}"]
    notes: list[str] = []
    if status == "failed":
        notes.append(f"FAILED: {row.get(REASON) or 'no reason was given'}")
    elif status == "partial":
        notes.append("not finished: the run ended before its last step")
    elif row.get(REASON):
        notes.append(f"{row[REASON]}")
    notes += _repeat_notes(row)
    if scenario.sweep.search:
        return notes + _search_notes(row)
    return notes + _step_notes(row, scenario.sweep.duration_s)


def gone_of(row: Row) -> str:
    """How many subscribers died or fell silent in a row, "" if none did: ``1 died, 2 never answered``."""
    return ", ".join(f"{_number(row[c]):g} {what}" for c, what in GONE.items() if row.get(c))


def _number(value: Figure) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _repeat_notes(row: Row) -> list[str]:
    """What is not known of every repeat."""
    columns: dict[Figure, list[str]] = {}
    for column, count in row.items():
        if REPEATS in row and column.endswith(COUNT) and column.removesuffix(COUNT) in row:
            columns.setdefault(count, []).append(column.removesuffix(COUNT))
    return [
        f"only {count} of {row[REPEATS]} repeats have a figure for {', '.join(names[:_NAMED])}"
        + (f" and {len(names) - _NAMED} other columns" if len(names) > _NAMED else "")
        for count, names in columns.items()
    ]


def _step_notes(row: Row, duration_s: float) -> list[str]:
    notes = [*_loss_notes(row), *_lag_notes(row, duration_s)]
    if gone := gone_of(row):
        notes.append(f"subscribers that failed without an account: {gone}")
    if row.get(RATE_HELD) is False:
        notes.append(_missed_rate(row))
    if row.get("stopped_early"):
        notes.append(f"the publisher stopped early: {row['stopped_early']}")
    if row.get("tx_failed"):
        notes.append(f"{_number(row['tx_failed']):g} messages were refused by a server or the library")
    if _number(row.get("host_cpu_mean_pct")) >= BUSY_HOST_PCT:
        notes.append(f"a host had no CPU left ({_number(row['host_cpu_mean_pct']):.0f} % of all cores)")
    entered = row.get("rx_clients")
    if isinstance(entered, int | float) and entered < _others(row) and not isinstance(row.get(LOSS_HIGH), float):
        notes.append(f"the receive rate is of {entered:g} subscribers only: the others got fewer than two batches")
    return notes


def _others(row: Row) -> float:
    """Subscribers outside the cohort."""
    return _number(row.get(CLIENTS)) - _number(row.get("cohort_clients"))


def _loss_notes(row: Row) -> list[str]:
    notes: list[str] = []
    loss, undrained, unknown = (_number(row.get(c)) for c in ("client_loss_pct", "undrained", "unknown"))
    if isinstance(row.get(LOSS_HIGH), float):
        low, high = _number(row.get(LOSS_LOW)), _number(row[LOSS_HIGH])
        notes.append(
            f"LOSS: {low:.6g} to {high:.6g} %, and what was received is not known better: a publisher had so many "
            "messages without an acknowledgement that it joined their ranges"
        )
    elif loss and undrained and "lost" not in row:
        # Runs of earlier versions counted what still waited among the lost.
        notes.append(f"LOSS: {loss:.6g} % of the messages never arrived or were still waiting when the drain ended")
    elif loss:
        notes.append(f"LOSS: {loss:.6g} % of the messages never arrived")
    if undrained:
        notes.append(f"{undrained:,.0f} messages were still waiting when the drain ended; they are not lost")
    if unknown:
        notes.append(
            f"nobody knows what became of {unknown:,.0f} messages: they had not come when the drain had to end"
        )
    return notes


def _lag_notes(row: Row, duration_s: float) -> list[str]:
    """Why subscribers received less than was sent, and yet lost nothing."""
    share = (_number(row.get("late_pct")) + _number(row.get("undrained_pct"))) / 100
    behind_s = share * duration_s
    if behind_s <= BACKLOG_S:
        return []
    messages = share * _number(row.get("total_tx")) * _others(row)
    return [
        f"consumers lagged: at the end of the window {messages:,.0f} messages ({100 * share:.3g} % of what was due, "
        f"about {behind_s:.2g} s) were still to come"
    ]


def _missed_rate(row: Row) -> str:
    requested, reached = _number(row.get("requested_rate")), row.get("avg_tx_rate_pps")
    held = f", it reached {reached:,.0f}/s" if isinstance(reached, int | float) else ""
    missed = f"the publisher missed the requested rate of {requested:,.0f}/s{held}"
    return f"in some of {row[REPEATS]} repeats {missed} on average" if REPEATS in row else missed


def _search_notes(row: Row) -> list[str]:
    notes = [
        f"{column.removesuffix('_note')}: {text}" for column, text in row.items() if column.endswith("_note") and text
    ]
    if row.get("slow_cohort_felt") is False:
        notes.append("slow: the slow clients' buffers never filled, so they were not felt")
    return notes
