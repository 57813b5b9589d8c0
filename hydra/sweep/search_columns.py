"""The columns of a search: the searched rates (``conf/reference/*.csv``), and the columns beside each."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hydra.measure.column import (
    AGGREGATE_MAX,
    FAILED_STEPS,
    PER_SECOND,
    STEP_S,
    Column,
    text_column,
    yes_no_column,
)
from hydra.measure.host_columns import GENERATOR_LIMITED
from hydra.measure.step_result import step_columns
from hydra.measure.traffic_columns import PUBLISHED
from hydra.sweep.cleanness import HOST_FACTS
from hydra.sweep.search_figures import RateFigures

if TYPE_CHECKING:
    from hydra.sweep.search_spec import SearchSeries, SearchSpec

LENGTH: Final = Column(STEP_S, "s", "length of each step of the row", repeats="common")
FAILED: Final = Column(FAILED_STEPS, "steps", "failed steps of the row, which were measured again")
_TOGETHER: Final = Column(
    AGGREGATE_MAX,
    PER_SECOND,
    "mean `aggregate_pps` of the same further steps",
    "Highest aggregate rate",
    digits="rate",
    better="higher",
    published="Aggregate Max pps",
)


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.6g}".replace(".", "_")


def rate_column(series: SearchSeries, search: SearchSpec) -> Column:
    """The column of a search's figure.

    With the published settings these are the columns of the first table in ``conf/reference``. Other settings have
    other names, because their figures are not comparable.
    """
    if series == "max_rate":
        text = (
            "mean `avg_rx_rate_pps` of further steps at the sent rate that gave the "
            "highest received rate; the publisher may drop messages"
        )
        heading = "Highest rate, drops allowed"
        return Column("max_rate_with_drop_pps", PER_SECOND, text, heading, published="MaxRate at SUB With Drop")
    if series == "nodrop":
        text = (
            "mean `avg_rx_rate_pps` of further steps at the sent rate that gave the "
            "highest received rate; the publisher waits instead of dropping messages"
        )
        heading = "Highest rate, publisher waits"
        return Column("max_rate_nodrop_pps", PER_SECOND, text, heading, published="MaxRate at Sub (XPUB_NODROP)")
    if series == "loss":
        return _loss_column(search)
    share = f"{_percent(search.cohort_fraction)}pct_clients"
    whose = f"{search.cohort_fraction * 100:g}% of clients"
    of = f"{search.cohort_fraction * 100:g} %"
    of_others = (
        "the highest rate at which the loss of the other subscribers is within the loss target, while "
        f"{search.cohort_fraction * 100:g} % of the subscribers"
    )
    if series == "slow":
        half = search.slow_share == 0.5
        part = "half" if half else f"{_percent(search.slow_share)}pct"
        speed = "half" if half else f"{search.slow_share * 100:g} %"
        return Column(
            f"max_rate_{share}_{part}_rate_pps",
            PER_SECOND,
            f"{of_others} read at {speed} of the highest rate that this search found (`max_rate`)",
            f"{of} of the subscribers read at {speed} of the rate",
            published=f"{whose} at {'Half Rate' if half else f'{search.slow_share * 100:g}% of the Rate'}",
        )
    twice = search.reconnect_rate == 2.0
    times = "" if twice else f"_{search.reconnect_rate:g}_per_s".replace(".", "_")
    often = "twice" if twice else f"{search.reconnect_rate:g} times"
    return Column(
        f"max_rate_{share}_reconnecting{times}_pps",
        PER_SECOND,
        f"{of_others} reconnect {often} a second",
        f"{of} of the subscribers reconnect",
        published=f"{whose} Reconnecting",
    )


def _loss_column(search: SearchSpec) -> Column:
    text = "the highest rate whose expected shortfall is within the loss target, which is part of the name"
    if not search.loss_target:
        heading = "Highest rate without loss"
        return Column("max_rate_without_drop_pps", PER_SECOND, text, heading, published="MaxRate without Drop")
    name = f"max_rate_below_{_percent(search.loss_target)}pct_drop_pps"
    target = f"{search.loss_target * 100:g}"
    heading = f"Highest rate within {target} % loss"
    return Column(name, PER_SECOND, text, heading, published=f"MaxRate at Sub (< {target}% Drop)")


def _sndhwm_column(sndhwm: int, search: SearchSpec) -> Column:
    """The column of the search below the loss target at one of several high-water marks.

    Only the name of the first contains the target, as in the published table.
    """
    loss = _loss_column(search)
    name, first = f"max_rate_sndhwm_{sndhwm}_pps", ""
    if sndhwm == search.sndhwms[0]:
        name = f"{loss.name.removesuffix('_pps')}_sndhwm_{sndhwm}_pps"
        first = f"< {search.loss_target * 100:g}% Drop, "
    heading, published = f"{loss.heading}, sndhwm {sndhwm}", f"MaxRate at Sub ({first}SNDHWM = {sndhwm})"
    return replace(loss, name=name, heading=heading, published=published)


def sndhwm_prefix(sndhwm: int) -> str:
    """The beginning of the names of the columns beside the figure at one of several high-water marks."""
    return f"loss_sndhwm_{sndhwm}"


def _rates(search: SearchSpec) -> list[tuple[str, SearchSeries, Column]]:
    """(beginning of the names of the columns beside it, series, column) of every searched rate, in order."""
    found: list[tuple[str, SearchSeries, Column]] = []
    for series in search.series:
        if series == "loss" and search.sndhwms:
            found += [(sndhwm_prefix(mark), series, _sndhwm_column(mark, search)) for mark in search.sndhwms]
        else:
            found.append((series, series, rate_column(series, search)))
    return [(prefix, series, replace(column, digits="rate", better="higher")) for prefix, series, column in found]


def series_of(search: SearchSpec) -> dict[str, SearchSeries]:
    """The series of each searched rate, by the beginning of the names of the columns beside it."""
    return {prefix: series for prefix, series, _ in _rates(search)}


def rates(search: SearchSpec) -> dict[str, str]:
    """The column of each searched rate, by the beginning of the names of the columns beside it."""
    return {prefix: column.name for prefix, _, column in _rates(search)}


def prefixes(search: SearchSpec) -> dict[str, str]:
    """The beginning of the names of the columns beside each searched rate, by the rate's column."""
    return {column: prefix for prefix, column in rates(search).items()}


def published(search: SearchSpec) -> tuple[Column, ...]:
    """The columns of a search's table in their order."""
    found = [replace(PUBLISHED[0], published="Client Count")]
    for _, series, column in _rates(search):
        found += [column, _TOGETHER] if series == "max_rate" else [column]
    return tuple(found)


def side_columns(prefix: str, series: SearchSeries) -> tuple[Column, ...]:
    """The columns beside one rate, in the order of the table; ``prefix`` begins their names."""
    steps = Column(f"{prefix}_steps", "steps", "number of steps measured for this searched rate")
    answer = RateFigures.columns(prefix)
    why = answer.pop("why")
    note = text_column(f"{prefix}_note", "the texts of all warnings about this rate", repeats="noted")
    verdict = text_column(
        f"{prefix}_verdict",
        "`verdict` of the slowest step beyond the loss target; for `max_rate` and `nodrop`, `verdict` of the fastest "
        "step",
    )
    limited = yes_no_column(
        f"{prefix}_{GENERATOR_LIMITED}", f"`{GENERATOR_LIMITED}` of the step that `{prefix}_verdict` is about"
    )
    around = [
        Column(
            f"{prefix}_{end}_pps", PER_SECOND, "Student's 95 % confidence interval of the mean over the further steps"
        )
        for end in ("low", "high")
    ]
    if series == "max_rate":
        return *around, verdict, limited, steps, why, note
    if series == "nodrop":
        together = replace(_TOGETHER, name=f"{prefix}_aggregate_pps", heading="", published="")
        return *around, verdict, limited, together, steps, why, note
    found = [*answer.values(), steps, why, note, verdict, limited]
    if series in ("slow", "reconnecting"):
        text = (
            "loss of the slow or reconnecting subscribers (`cohort_loss_pct`) in the step "
            f"that `{prefix}_verdict` is about"
        )
        found.append(Column(f"{prefix}_cohort_loss_pct", "%", text, digits="six"))
    if series == "slow":
        text = f"`cohort_felt` of the step that `{prefix}_verdict` is about"
        found.append(yes_no_column(f"{prefix}_cohort_felt", text))
    return tuple(found)


def search_columns(search: SearchSpec) -> tuple[Column, ...]:
    """All columns of a search's row in their order."""
    of_rates = (column for prefix, series, _ in _rates(search) for column in side_columns(prefix, series))
    return *published(search), LENGTH, *of_rates, FAILED, *host_columns()


def host_columns() -> tuple[Column, ...]:
    """The columns about the hosts of the steps that decide a row."""
    return tuple(
        replace(column, help=f"{column.help}. Of the steps that decide this row")
        for column in step_columns()
        if column.name in HOST_FACTS
    )
