"""The columns of rates that were held: ``[sweep.held]``, and the columns of each series of ``[sweep.search]``. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from hydra.events.value_formatting import number as text_of
from hydra.measure.column import (
    ANSWER,
    HIGH_PPS,
    LOW_PPS,
    MICROSECONDS,
    PER_SECOND,
    WALL,
    WHY,
    Column,
    text_column,
    values_of,
)
from hydra.measure.step_result import StepFigures
from hydra.model import Evidence, Figure
from hydra.sweep import search_columns
from hydra.sweep.search_spec import SearchSeries, SearchSpec

HELD_S: Final = "_held_s"
TOTAL: Final = "_total_pps"
LOST: Final = "_loss_pct"
P50: Final = "_p50_us"
P99: Final = "_p99_us"
NOT_HELD: Final = "_not_held_pps"
CAUSE: Final = "_not_held_cause"
AMOUNT: Final = "_not_held_amount"
FAILURES: Final = "_not_held_steps"
CLEAN_STEPS: Final = "_held_steps"
WHOLE_STEPS: Final = "_held_of_steps"
FAILED_BELOW: Final = "_failed_below_pps"
"""Suffixes: each is appended to the name of a series and gives the name of a column beside the rate that was held."""
WALL_S: Final = Column(WALL, "s", "time that the steps of the row took, connecting and drains included")


@dataclass(frozen=True, slots=True)
class RungRates(Evidence):
    """Rates (messages/s) of rungs of a ladder, ascending."""

    rates: tuple[float, ...]

    def __str__(self) -> str:
        return ", ".join(f"{rate:g}" for rate in self.rates)


UNSENT: Final = "unsent"
UNITS: Final = {
    "lost": "lost {} %",
    "late": "late {} %",
    "waiting": "{} % still waiting",
    "unknown": "{} % unknown",
    UNSENT: "publisher reached {}/s",
    "unaccepted": "{} % not accepted",
    "disconnected": "{} disconnected",
    "gone": "{} subscribers failed",
    "stopped": "nothing arrived for {} s",
    "other": "not clean",
}
"""The causes for which a rate is not held, each with its text about the amount."""


def cause_of(figures: StepFigures) -> tuple[str, float | None]:
    """Why a step is not clean, as a keyword of ``UNITS``, and how much: % of the messages, messages/s, clients or s."""
    accepted, loss = figures.accepted, figures.loss
    if without_report := loss.without_report:
        return "gone", float(without_report)
    if figures.held.rate_held is False and figures.held.rate_sent is False:
        return UNSENT, figures.totals.avg_tx_rate_pps
    if cut := (accepted.publishers_disconnected or 0) + (accepted.subscribers_disconnected or 0):
        return "disconnected", float(cut)
    if figures.held.rate_held is False:
        return "unaccepted", accepted.unaccepted_pct
    shares = {
        "lost": max(figures.totals.client_loss_pct or 0.0, loss.client_loss_low_pct or 0.0),
        "late": loss.late_pct,
        "waiting": loss.undrained_pct,
        "unknown": loss.unknown_pct,
    }
    cause, share = max(((cause, share or 0.0) for cause, share in shares.items()), key=lambda each: each[1])
    if share:
        return cause, share
    return ("stopped", float(stopped_s)) if (stopped_s := figures.passing.stopped_s) else ("other", None)


def cause_text(row: Mapping[str, Figure], prefix: str) -> str:
    """Why the next rate was not held: ``lost 1.1 %``, ``publisher reached 23,100/s``; "" if there is none."""
    amount = text_of(row.get(prefix + AMOUNT))
    return " or ".join(UNITS.get(str(cause), str(cause)).format(amount) for cause in values_of(row.get(prefix + CAUSE)))


def not_held_column(prefix: str) -> Column:
    """The column of the rate that was not held."""
    return Column(f"{prefix}{NOT_HELD}", PER_SECOND, "the lowest rate above it that was not held", "Not held")


def series_columns(prefix: str, series: SearchSeries) -> tuple[Column, ...]:
    """The columns beside one rate that was held, in the order of the table; ``prefix`` begins their names."""
    searched = {column.name.removeprefix(prefix): column for column in search_columns.side_columns(prefix, series)}
    kept = ("_steps", WHY, "_note", "_verdict", "_generator_limited", "_cohort_loss_pct", "_cohort_felt")
    limits = "the rates between which the answer is known to be, if no rate was held for its duration"
    amount = "how much of it: % of the messages, messages/s sent, subscribers, or seconds"
    own = (
        text_column(
            f"{prefix}{ANSWER}",
            "`held`; `at_least`: the clients or their hosts were the limit of the step above it, or the time was over "
            "before a rate was found that is not held; `unconfirmed`: the time was over before a rate was held for its "
            "duration; or `none_held`: not even the lowest rate was held",
        ),
        Column(f"{prefix}{HELD_S}", "s", "how long the rate was held", repeats="common"),
        Column(f"{prefix}{CLEAN_STEPS}", "", "the steps of this length at the rate that were clean"),
        Column(f"{prefix}{WHOLE_STEPS}", "", "all steps of this length at the rate"),
        Column(f"{prefix}{TOTAL}", PER_SECOND, "the rate that was held × publishers"),
        Column(f"{prefix}{LOST}", "%", "loss while the rate was held", digits="six"),
        *(
            Column(
                f"{prefix}{end}", MICROSECONDS, "latency since the due time while the rate was held", repeats="median"
            )
            for end in (P50, P99)
        ),
        not_held_column(prefix),
        text_column(f"{prefix}{CAUSE}", f"why that rate was not held: {', '.join(f'`{each}`' for each in UNITS)}"),
        Column(f"{prefix}{AMOUNT}", "", amount),
        Column(f"{prefix}{FAILURES}", "", "the steps at that rate that were not clean"),
        text_column(
            f"{prefix}{FAILED_BELOW}",
            "rates (messages/s) that were not held in two steps although a step at a higher rate was clean",
        ),
        Column(f"{prefix}{LOW_PPS}", PER_SECOND, limits),
        Column(f"{prefix}{HIGH_PPS}", PER_SECOND, limits),
    )
    return (*own, *(searched[end] for end in kept if end in searched))


def as_held(search: SearchSpec, *, saturated: bool) -> SearchSpec:
    """The series whose columns a table has: with the highest rate received if that is measured."""
    others = [series for series in search.series if series != "max_rate"]
    known: Sequence[SearchSeries] = (*(("max_rate",) if saturated else ()), *others)
    return search if tuple(known) == search.series else replace(search, series=tuple(known))
