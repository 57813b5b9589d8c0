"""Which warnings a row has: what has to be known before its figures are believed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra.events.event import Level
from hydra.events.formatting import number
from hydra.events.row_warnings import (
    FateOfGone,
    FateUnknown,
    FewerFigures,
    GeneratorLimited,
    HostBusy,
    HostShared,
    Lagged,
    Loss,
    LossBetween,
    NotSteady,
    RateMissed,
    RowFailed,
    RowPartial,
    RowRemark,
    RowSkipped,
    SendsRefused,
    SlowNotFelt,
    StoppedEarly,
    SubscribersGone,
    Undrained,
)
from hydra.events.warnings import HydraWarning
from hydra.measure.column import COUNT, REPEATS
from hydra.measure.column_names import (
    CLIENTS,
    GENERATOR_LIMITED,
    GONE,
    GROUP,
    HOST_OTHERS,
    LOSS,
    LOSS_HIGH,
    LOSS_LOW,
    POINT,
    PUBLISHERS,
    RATE_HELD,
    REASON,
    REQUESTED,
    STATUS,
    STEADY,
    UNSTEADY,
)
from hydra.measure.loss import BACKLOG_S
from hydra.measure.search_columns import rates
from hydra.measure.steadiness import Unsteady, read
from hydra.measure.verdict import BUSY_HOST_PCT, OTHERS_PCT
from hydra.model import Figure, Scenario, SearchSpec
from hydra.model import number as number_of
from hydra.store.system_columns import held_by
from hydra.sweep import Row, search_figures

MARK: Final = "⚠"
_ROWS_NAMED: Final = 4
"""Rows that are named beside a warning, of many."""


def notes_of(row: Row, scenario: Scenario, rows: Sequence[Row] = ()) -> list[HydraWarning]:
    """The warnings of a row, gravest first; empty when its figures can be taken as they are.

    Args:
        row: the one.
        scenario: of the run.
        rows: all rows of the run.
    """
    status = row.get(STATUS)
    reason = str(row.get(REASON) or "")
    notes: list[HydraWarning] = []
    if status == "skipped":
        # By hand, in the middle of its repeats: it has figures, too.
        notes.append(RowSkipped(reason))
    elif status == "failed":
        notes.append(RowFailed(reason))
    elif status == "partial":
        notes.append(RowPartial())
    elif reason:
        notes.append(RowRemark(reason))
    notes += _repeat_notes(row)
    if scenario.sweep.search:
        return notes + _search_notes(row, scenario, scenario.sweep.search)
    as_much_at = _as_much_lost_at(row, rows, scenario.sweep.varied)
    return notes + _step_notes(row, scenario.sweep.length_s(str(row.get(POINT) or "")), as_much_at)


def gone_of(row: Row) -> str:
    """How many subscribers died or fell silent in a row, "" if none did: ``1 died, 2 never answered``."""
    return ", ".join(f"{number(row[c])} {what}" for c, what in GONE.items() if row.get(c))


def _number(value: Figure) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _repeat_notes(row: Row) -> list[HydraWarning]:
    """What is not known of every repeat."""
    columns: dict[Figure, list[str]] = {}
    for column, count in row.items():
        if REPEATS in row and column.endswith(COUNT) and column.removesuffix(COUNT) in row:
            columns.setdefault(count, []).append(column.removesuffix(COUNT))
    return [FewerFigures(count, row[REPEATS], names) for count, names in columns.items()]


def _lost_pct(row: Row) -> float | None:
    return number_of(row.get(LOSS_HIGH) if LOSS_HIGH in row else row.get(LOSS))


def _as_much_lost_at(row: Row, rows: Sequence[Row], varied: Sequence[str]) -> float | None:
    """The measured rate below this row's, or else the one above, if as much was lost at it; otherwise None.

    Less is lost where the loss is a tenth lower, or a tenth more arrives: far above a capacity the loss changes little.
    """
    names = [name for name in (CLIENTS, PUBLISHERS, *varied) if name != "rate"]
    known = [
        (rate, lost)
        for each in rows
        if (rate := number_of(each.get(REQUESTED))) is not None
        and (lost := _lost_pct(each)) is not None
        and all(each.get(name) == row.get(name) for name in names)
    ]
    own, lost = number_of(row.get(REQUESTED)), _lost_pct(row)
    if own is None or lost is None:
        return None
    below, above = [each for each in known if each[0] < own], [each for each in known if each[0] > own]
    if not below and not above:
        return None
    rate, there = max(below) if below else min(above)
    lower, higher = (there, lost) if below else (lost, there)
    falls = lower <= 0.9 * higher or 100 - lower >= 1.1 * (100 - higher)
    return None if falls else rate


def _step_notes(row: Row, duration_s: float, as_much_at: float | None) -> list[HydraWarning]:
    notes = [*_loss_notes(row, as_much_at), *_lag_notes(row, duration_s)]
    if row.get(STEADY) is False:
        found = [] if REPEATS in row else read(str(row.get(UNSTEADY) or ""))
        notes.append(NotSteady([_differs(each) for each in found]))
    if gone := gone_of(row):
        notes.append(SubscribersGone(gone))
    if row.get(RATE_HELD) is False:
        notes.append(_missed_rate(row))
    if row.get("stopped_early"):
        notes.append(StoppedEarly(row["stopped_early"]))
    if row.get("tx_failed"):
        notes.append(SendsRefused(_number(row["tx_failed"])))
    others = _number(row.get(HOST_OTHERS))
    if _number(row.get("host_cpu_mean_pct")) >= BUSY_HOST_PCT:
        notes.append(HostBusy(_number(row["host_cpu_mean_pct"]), others if others >= OTHERS_PCT else None))
    elif others >= OTHERS_PCT:
        notes.append(HostShared(others))
    if row.get(GENERATOR_LIMITED) is True:
        notes.append(GeneratorLimited())
    return notes


def _differs(found: Unsteady) -> str:
    """How seconds of a row differ from the others."""
    by = f"{number(100 * abs(found.by))} % {'less' if found.by < 0 else 'more'}"
    if found.kind == "beginning":
        return f"{by} was received in the first {found.at_s} s than later"
    if found.kind == "change":
        return f"{by} from second {found.at_s} on"
    return f"{by} than usual in second {found.at_s}"


def _others(row: Row) -> float:
    """Subscribers outside the cohort."""
    return _number(row.get(CLIENTS)) - _number(row.get("cohort_clients"))


def _loss_notes(row: Row, as_much_at: float | None) -> list[HydraWarning]:
    notes: list[HydraWarning] = []
    loss, undrained, unknown = (_number(row.get(c)) for c in ("client_loss_pct", "undrained", "unknown"))
    if isinstance(row.get(LOSS_HIGH), float):
        notes.append(LossBetween(_number(row.get(LOSS_LOW)), _number(row[LOSS_HIGH]), as_much_at))
    elif loss:
        # Runs of earlier versions counted what still waited among the lost.
        notes.append(Loss(loss, bool(undrained) and "lost" not in row, as_much_at))
    if undrained:
        notes.append(Undrained(undrained))
    if unknown:
        notes.append(FateOfGone(unknown) if row.get(GROUP) and gone_of(row) else FateUnknown(unknown))
    return notes


def _lag_notes(row: Row, duration_s: float) -> list[HydraWarning]:
    """Why subscribers received less than was sent, and yet lost nothing."""
    share = (_number(row.get("late_pct")) + _number(row.get("undrained_pct"))) / 100
    behind_s = share * duration_s
    if behind_s <= BACKLOG_S:
        return []
    takers = 1 if row.get(GROUP) else _others(row)
    return [Lagged(share * _number(row.get("total_tx")) * takers, share, behind_s)]


def _missed_rate(row: Row) -> HydraWarning:
    reached = row.get("avg_tx_rate_pps")
    reached_pps = float(reached) if isinstance(reached, int | float) else None
    return RateMissed(_number(row.get("requested_rate")), reached_pps, row.get(REPEATS))


def _search_notes(row: Row, scenario: Scenario, search: SearchSpec) -> list[HydraWarning]:
    notes: list[HydraWarning] = [warning for name in rates(search) for warning in search_figures.warnings_of(row, name)]
    limited = f"_{GENERATOR_LIMITED}"
    notes += [GeneratorLimited(c.removesuffix(limited)) for c, v in row.items() if c.endswith(limited) and v is True]
    if row.get("slow_cohort_felt") is False:
        notes.append(_not_felt(row, scenario, search))
    return notes


def _not_felt(row: Row, scenario: Scenario, search: SearchSpec) -> HydraWarning:
    """What it would have taken, where the rates are known."""
    columns = rates(search)
    sent, highest = row.get(columns["slow"]), row.get(columns.get("max_rate", ""))
    held = held_by(scenario)
    return SlowNotFelt(
        sent_pps=_number(sent) or None,
        read_pps=search.slow_share * _number(highest) or None,
        duration_s=scenario.sweep.duration_s,
        queue=held.queue if held else None,
        queues=held.queues if held else "",
        kernel=held.kernel if held else 0.0,
    )


def told_once(about: Sequence[tuple[str, Sequence[HydraWarning]]]) -> list[tuple[str, str]]:
    """Every warning once, gravest first, with the rows that have it: their names, and what is said of them.

    What would change it stands once behind all that has the same remedy.

    Args:
        about: the name of each row, and its warnings.
    """
    kinds: dict[tuple[type, str], dict[str, list[str]]] = {}
    levels: dict[tuple[type, str], Level] = {}
    for name, warnings in about:
        for warning in warnings:
            kind = type(warning), warning.remedy
            levels[kind] = warning.level
            kinds.setdefault(kind, {}).setdefault(warning.text, []).append(name)
    order = list(Level)
    found = []
    for kind in sorted(kinds, key=lambda each: order.index(levels[each])):
        (names, text), *others = ((_names(its, len(about)), text) for text, its in kinds[kind].items())
        said = "; ".join([text, *(another if its == names else f"{its}: {another}" for its, another in others)])
        found.append((names, f"{said}; {kind[1]}" if kind[1] else said))
    return found


def _names(rows: Sequence[str], of: int) -> str:
    if len(rows) == of > _ROWS_NAMED:
        return f"all {of} rows"
    if len(rows) <= _ROWS_NAMED:
        return "; ".join(rows)
    return f"{'; '.join(rows[: _ROWS_NAMED - 1])}; {len(rows) - _ROWS_NAMED + 1} more rows"
