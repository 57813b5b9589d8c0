"""Latencies between hosts whose clocks are known within a bound, as tables and plots show them. Made from rows alone.

What was measured is wrong by the bound at most. So a latency below the bound may be anything up to measured + bound,
and one above it is known to ± bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from hydra.columns.column import HIGH, LOW
from hydra.columns.names import LATENCY_BOUND
from hydra.columns.step import DUE, SENT, latency_columns
from hydra.model import Figure, number

Row = Mapping[str, Figure]

_PERCENTILES: Final = frozenset(
    f"{column.name}{end}" for since in (DUE, SENT) for column in latency_columns(since) for end in ("", LOW, HIGH)
)
"""The percentiles of latency from one host to another, and the range of the repeats' own."""


def shown(row: Row, name: str) -> Figure:
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


def margin_text(row: Row, name: str) -> str:
    """`` ± 153`` behind a latency that is known so well; "" behind every other figure."""
    bound_us = margin(row, name)
    return "" if bound_us is None else f" ± {ceil(bound_us)}"


def clock_bound(row: Row, name: str) -> float:
    """The bound of the clocks (µs) that a percentile of latency is known to; 0.0 for every other figure.

    That of a repeated row is the largest of its repeats.
    """
    if name not in _PERCENTILES:
        return 0.0
    bounds = [number(row.get(column)) for column in (LATENCY_BOUND, LATENCY_BOUND + HIGH)]
    return max((b for b in bounds if b is not None), default=0.0)
