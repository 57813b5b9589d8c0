"""The columns of a step, in the order of the table. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hydra.measure.cohort_columns import SlowClients
from hydra.measure.column import Column, SystemColumns
from hydra.measure.connection_columns import Connecting
from hydra.measure.latency_columns import DUE, SENT, Delays, Latency, SendLatency
from hydra.measure.published_columns import Totals, published
from hydra.measure.step_part import StepColumn, columns_of
from hydra.measure.step_result import parts_of_steps


def step_columns(
    latencies: Iterable[str] = (DUE, SENT),
    cohort: bool = True,
    system: SystemColumns | None = None,
    *,
    connecting: bool = True,
) -> tuple[Column, ...]:
    """The columns of a step in their order, by default all that any step can have.

    Args:
        latencies: the starts from which the steps count latency.
        cohort: whether the steps have a cohort.
        system: the columns that the system adds; None: those that all systems share.
        connecting: whether the steps measure how subscribers connect.
    """
    has = {Latency: DUE in latencies, SendLatency: SENT in latencies, SlowClients: cohort, Connecting: connecting}
    return tuple(_columns(system or SystemColumns(), without={part for part, there in has.items() if not there}))


def _columns(system: SystemColumns, without: set[type]) -> Iterator[Column]:
    for part in parts_of_steps().values():
        if part is Totals:
            yield from published(system)
        elif part not in without:
            yield from (column for column in columns_of(part) if column.shown)
        if part is Delays:
            yield from system.reported


def hidden_columns() -> tuple[StepColumn, ...]:
    """The figures of a step that are stored, but no column of a table."""
    return tuple(column for part in parts_of_steps().values() for column in columns_of(part) if not column.shown)
