"""What has to be known about a row before its figures are believed. Pure."""

from __future__ import annotations

from typing import Final

from hydra.model import Figure, Scenario
from hydra.sweep import Row
from hydra.sweep.columns import RATE_HELD, REASON, STATUS

MARK: Final = "⚠"
BUSY_HOST_PCT: Final = 95.0


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
    if scenario.sweep.search:
        return notes + _search_notes(row)
    return notes + _step_notes(row)


def _number(value: Figure) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _step_notes(row: Row) -> list[str]:
    notes: list[str] = []
    loss = _number(row.get("client_loss_pct"))
    if loss:
        notes.append(f"LOSS: {loss:.6g} % of the messages never arrived")
    gone = [f"{row[c]} {what}" for c, what in _GONE.items() if row.get(c)]
    if gone:
        notes.append(f"subscribers that failed without an account: {', '.join(gone)}")
    if row.get(RATE_HELD) is False:
        notes.append(_missed_rate(row))
    if row.get("stopped_early"):
        notes.append(f"the publisher stopped early: {row['stopped_early']}")
    if row.get("tx_failed"):
        notes.append(f"{row['tx_failed']} messages were refused by the broker or the library")
    if _number(row.get("undrained")):
        notes.append(f"{row['undrained']} messages were still waiting when the drain ended")
    if _number(row.get("host_cpu_mean_pct")) >= BUSY_HOST_PCT:
        notes.append(f"a host had no CPU left ({_number(row['host_cpu_mean_pct']):.0f} % of all cores)")
    entered, clients = row.get("rx_clients"), row.get("clients")
    others = _number(clients) - _number(row.get("cohort_clients"))
    if isinstance(entered, int) and entered < others:
        notes.append(f"the receive rate is of {entered} subscribers only: the others got fewer than two batches")
    return notes


_GONE: Final = {"failed_dead": "died", "failed_silent": "never answered"}


def _missed_rate(row: Row) -> str:
    requested, reached = _number(row.get("requested_rate")), row.get("avg_tx_rate_pps")
    held = f", it reached {reached:,.0f}/s" if isinstance(reached, int | float) else ""
    return f"the publisher missed the requested rate of {requested:,.0f}/s{held}"


def _search_notes(row: Row) -> list[str]:
    notes = [
        f"{column.removesuffix('_note')}: {text}" for column, text in row.items() if column.endswith("_note") and text
    ]
    if row.get("slow_cohort_felt") is False:
        notes.append("slow: the slow clients' buffers never filled, so they were not felt")
    return notes
