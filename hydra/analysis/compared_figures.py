"""Selects the figures to compare, and names differences in them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hydra.analysis.compared_runs import ComparedRun
from hydra.errors import UsageError
from hydra.measure.column import AGGREGATE_MAX, MB_S, PER_SECOND, TEXT, YES_NO, Column, columns_meant
from hydra.measure.latency_columns import ACK, DUE, SENT
from hydra.measure.traffic_columns import AGGREGATE, AVG_RX, AVG_TX, LOSS

_OTHERS: Final = (
    *(AVG_TX, AVG_RX, AGGREGATE, AGGREGATE_MAX, LOSS, "late_pct"),
    *(f"{DUE}_{name}_us" for name in ("p50", "p99", "p999")),
    *(f"{ACK}_p99_us", "publisher_cores", "subscriber_cpu_s", "subscriber_rss_max_bytes"),
    *("ready_p99_ms", "connect_server_cpu_s"),
)
"""The other figures in order.

These figures are few on purpose, because each further figure makes differences harder to show. The latency from the
send is none of them: at rate ``max`` it is the length of the queue that publishers fill.
"""


def measured_columns(columns: Mapping[str, Column]) -> list[str]:
    """The columns of numbers that are measured in a repeat."""
    return [
        column.name
        for column in columns.values()
        if column.unit not in (TEXT, YES_NO) and column.repeats not in ("common", "noted")
    ]


def primary(sides: Sequence[ComparedRun], wanted: str = "") -> str:
    """The primary figure of a comparison.

    Args:
        sides: all runs.
        wanted: the figure that the user chose; "": the default.

    Raises:
        UsageError: there is no such figure, or no figure is known in all runs.
    """
    known = _known(sides)
    if not wanted:
        if found := [name for name in sides[0].primary if name in known]:
            return found[0]
        raise UsageError("no figure is known in all of these runs", "see what was measured with hydra report")
    if wanted in known:
        return wanted
    if wanted in measured_columns(sides[0].columns):
        raise UsageError(f"--figure {wanted} is not known in all of these runs", f"known: {', '.join(known[:8])}")
    meant = columns_meant(wanted, {name: sides[0].columns[name] for name in known})
    remedy = f"did you mean {' or '.join(meant)}?" if meant else f"some known figures: {', '.join(known[:8])}"
    raise UsageError(f"--figure {wanted!r} is no figure of these runs", remedy)


def others(sides: Sequence[ComparedRun], first: str) -> list[str]:
    """The other figures to compare."""
    known = set(_known(sides))
    search = [column.name for column in sides[0].columns.values() if _searched(column)] if sides[0].searches else []
    return [name for name in dict.fromkeys((*search, *_OTHERS)) if name in known and name != first]


def _searched(column: Column) -> bool:
    return column.unit == PER_SECOND and column.better == "higher"


def _known(sides: Sequence[ComparedRun]) -> list[str]:
    """The figures that every side has in some repeat, in the order of the table."""
    common = [
        {
            name
            for row in side.rows
            for repeat in row.repeats
            for name, value in repeat.figures.items()
            if value is not None
        }
        for side in sides
    ]
    return [name for name in measured_columns(sides[0].columns) if all(name in its for its in common)]


def words(column: Column) -> tuple[str, str]:
    """The words for a run in which a figure is higher, and for one in which it is lower."""
    if column.unit in (PER_SECOND, MB_S):
        return "faster", "slower"
    if column.name.startswith("ready_"):
        return "slower", "faster"
    if column.name.startswith(SENT):
        return "longer queue", "shorter queue"
    if column.name.startswith((DUE, ACK)):
        return "higher latency", "lower latency"
    if column.name == LOSS:
        return "more loss", "less loss"
    if column.unit == "cores" or "_cpu_" in column.name:
        return "more CPU", "less CPU"
    if "_rss_" in column.name:
        return "more memory", "less memory"
    return "higher", "lower"
