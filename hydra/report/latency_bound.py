"""What tables and plots show of figures that are known within a bound, or are another thing than they are called. Pure.

A latency between two hosts is wrong by the bound of their clocks at most. So one below the bound may be anything up to
measured + bound, and one above it is known to ± bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from hydra.measure.column import HIGH, LOW
from hydra.measure.column_names import CLIENTS, LATENCY_BOUND, RX_P1
from hydra.measure.step_columns import DUE, SENT, latency_columns
from hydra.model import Figure, number

Row = Mapping[str, Figure]

_PERCENTILES: Final = frozenset(
    f"{column.name}{end}" for since in (DUE, SENT) for column in latency_columns(since) for end in ("", LOW, HIGH)
)
"""The percentiles of latency from one host to another, and the range of the repeats' own."""
_SOME_BELOW_P1: Final = 100
"""From so many values on, more than one is at or below the first percentile."""


def bounded_text(row: Row, name: str) -> Figure:
    """A figure of a row in a table for spreadsheets: ``< 305`` for a latency of 152 µs where the bound is 153 µs.

    The row itself keeps what was measured.
    """
    limit_us = at_most(row, name)
    return row.get(name) if limit_us is None else f"< {ceil(limit_us)}"


def at_most(row: Row, name: str) -> float | None:
    """What a latency (µs) may be at most that was measured below the bound; None for every other figure."""
    latency_us, bound_us = number(row.get(name)), clock_bound(row, name)
    return latency_us + bound_us if latency_us is not None and 0.0 < bound_us > latency_us else None


def margin(row: Row, name: str) -> float | None:
    """By how much a latency of a row (µs) may be wrong to either side, where it is above the bound; None otherwise."""
    latency_us, bound_us = number(row.get(name)), clock_bound(row, name)
    return bound_us if latency_us is not None and 0.0 < bound_us <= latency_us else None


def beside(row: Row, name: str) -> str:
    """What stands behind a figure: `` ± 153`` where it is known so well, `` (minimum)`` where that is what it is."""
    bound_us = margin(row, name)
    if bound_us is not None:
        return f" ± {ceil(bound_us)}"
    if name == RX_P1 and row.get(name) is not None and _subscribers(row) <= _SOME_BELOW_P1:
        return " (minimum)"
    return ""


def _subscribers(row: Row) -> float:
    """Those outside the cohort, which order statistics are of."""
    return (number(row.get(CLIENTS)) or 0.0) - (number(row.get("cohort_clients")) or 0.0)


def clock_bound(row: Row, name: str) -> float:
    """The bound of the clocks (µs) that a percentile of latency is known to; 0.0 for every other figure.

    That of a repeated row is the largest of its repeats.
    """
    if name not in _PERCENTILES:
        return 0.0
    bounds = [number(row.get(column)) for column in (LATENCY_BOUND, LATENCY_BOUND + HIGH)]
    return max((b for b in bounds if b is not None), default=0.0)
