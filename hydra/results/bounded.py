"""Latencies that are shorter than the clocks can tell: how tables and plots show them. Made from rows alone."""

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
    """A figure of a row as a person is told it: ``< 153`` for a latency that is below the bound of the clocks.

    The row itself keeps what was measured.
    """
    bound_us = bound_above(row, name)
    return row.get(name) if bound_us is None else f"< {ceil(bound_us)}"


def bound_above(row: Row, name: str) -> float | None:
    """The bound of the clocks (µs) that a latency of a row is below; None for every other figure.

    That of a repeated row is the largest of its repeats.
    """
    if name not in _PERCENTILES:
        return None
    latency_us = number(row.get(name))
    bounds = [number(row.get(column)) for column in (LATENCY_BOUND, LATENCY_BOUND + HIGH)]
    bound_us = max((b for b in bounds if b is not None), default=0.0)
    return bound_us if latency_us is not None and 0.0 < bound_us > latency_us else None
