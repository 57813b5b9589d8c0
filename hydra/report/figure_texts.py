"""How a figure stands in tables, plots and pages: its mark, and the bound of a latency. Pure.

A latency between two hosts is wrong by at most the bound of their clocks. A measured latency below the bound may be
anything up to measured + bound; a latency above the bound is known to ± bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil
from typing import Final

from hydra.events.value_formatting import MARK
from hydra.measure.column import HIGH, LOW
from hydra.measure.latency_columns import DUE, LATENCY_BOUND, SENT, latency_columns
from hydra.measure.traffic_columns import CLIENTS, RX_P1
from hydra.model import Figure, number
from hydra.sweep.cleanness import flaws, host_trouble

NOTED: Final = "*"
"""The mark of a clean row with a warning, or of a run with such a row."""

OF_ROWS: Final[Mapping[str, str]] = {
    MARK: "the row is not clean: read its warnings before you use its figures",
    NOTED: "the row is clean, but read its warning",
}
OF_RUNS: Final[Mapping[str, str]] = {
    MARK: "a row of the run is not clean, or it is not shown that the run kept its objectives",
    NOTED: "other processes, or a host without free CPU, may have changed the figures of a row",
}
"""What each mark means beside a row, and beside a run."""


def mark_of_row(row: Mapping[str, Figure], *, warned: bool = False) -> str:
    """The mark of a row, "" if it has none; ``warned`` is whether it has a warning about anything but its hosts."""
    return MARK if flaws(row) else NOTED if warned or host_trouble(row) else ""


def marks_line(marks: Iterable[str], meanings: Mapping[str, str] = OF_ROWS, quote: str = "") -> str:
    """The line below a table that explains its marks; "" if it has none.

    Args:
        marks: the marks in the table.
        meanings: what each of them means.
        quote: stands before and behind a mark: a Markdown reader would take a star at the beginning for a list.
    """
    used = set(marks)
    return "; ".join(f"{quote}{mark}{quote} {meaning}" for mark, meaning in meanings.items() if mark in used)


Row = Mapping[str, Figure]

_PERCENTILES: Final = frozenset(
    f"{column.name}{end}" for since in (DUE, SENT) for column in latency_columns(since) for end in ("", LOW, HIGH)
)
"""The columns of latency percentiles, and of their range over the repeats."""
_SOME_BELOW_P1: Final = 100
"""With more values than this, more than one value is at or below the first percentile."""


def bounded_text(row: Row, name: str) -> Figure:
    """A figure of a row for ``table.csv``: ``< 305`` for a latency of 152 µs if the bound is 153 µs.

    The row itself keeps the measured value.
    """
    limit_us = at_most(row, name)
    return row.get(name) if limit_us is None else f"< {ceil(limit_us)}"


def at_most(row: Row, name: str) -> float | None:
    """The largest true value (µs) of a latency measured below the bound; None for every other figure."""
    latency_us, bound_us = number(row.get(name)), clock_bound(row, name)
    return latency_us + bound_us if latency_us is not None and 0.0 < bound_us > latency_us else None


def margin(row: Row, name: str) -> float | None:
    """The error (±µs) of a latency measured above the bound; None for every other figure."""
    latency_us, bound_us = number(row.get(name)), clock_bound(row, name)
    return bound_us if latency_us is not None and 0.0 < bound_us <= latency_us else None


def error_text(row: Row, name: str) -> str:
    """The text after a figure: `` ± 153`` for a latency with this error, `` (minimum)`` for such a percentile."""
    bound_us = margin(row, name)
    if bound_us is not None:
        return f" ± {ceil(bound_us)}"
    if name == RX_P1 and row.get(name) is not None and _subscribers(row) <= _SOME_BELOW_P1:
        return " (minimum)"
    return ""


def latency_in_ms(row: Row, name: str, text: Callable[[float], str]) -> str | None:
    """A latency (a column in µs) in milliseconds, with the bound of the clocks; None if it is unknown.

    Args:
        row: the row.
        name: the column.
        text: writes milliseconds.

    Returns:
        ``1.52``; ``< 0.305`` below the bound; ``2.14 ± 0.153`` above it.
    """
    latency_us, limit_us, bound_us = number(row.get(name)), at_most(row, name), margin(row, name)
    if latency_us is None:
        return None
    if limit_us is not None:
        return f"< {text(ceil(limit_us) / 1000)}"
    return text(latency_us / 1000) + ("" if bound_us is None else f" ± {text(ceil(bound_us) / 1000)}")


def _subscribers(row: Row) -> float:
    """The number of subscribers outside the cohort, over which order statistics are computed."""
    return (number(row.get(CLIENTS)) or 0.0) - (number(row.get("cohort_clients")) or 0.0)


def clock_bound(row: Row, name: str) -> float:
    """The bound of the clocks (µs) for a percentile of latency; 0.0 for every other figure.

    For a repeated row it is the largest bound of its repeats.
    """
    if name not in _PERCENTILES:
        return 0.0
    bounds = [number(row.get(column)) for column in (LATENCY_BOUND, LATENCY_BOUND + HIGH)]
    return max((b for b in bounds if b is not None), default=0.0)
