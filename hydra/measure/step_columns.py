"""The columns of a step, in the order of the table, and their figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from hydra.measure.acceptance_columns import ACCEPTED, HELD
from hydra.measure.cohort_columns import COHORT
from hydra.measure.column import Column, SystemColumns
from hydra.measure.connection_columns import COMING_BACK, CONNECTING
from hydra.measure.host_columns import HOSTS, LIMIT, SERVERS
from hydra.measure.latency_columns import CLOCKS, DELAYS, DUE, SENT, latency_columns
from hydra.measure.loss_columns import COUNTS, LOSSES
from hydra.measure.passing_columns import PASSING
from hydra.measure.published_columns import published
from hydra.measure.step_column import StepColumn
from hydra.measure.topic_columns import OF_TOPICS
from hydra.measure.traffic_columns import RATES, SHARES
from hydra.model import Evidence


@cache
def evidence_classes() -> Mapping[str, type[Evidence]]:
    """The class of each column's figures, if they are evidence."""
    found = {each.name: each.evidence for each in step_columns() if isinstance(each, StepColumn)}
    return {name: kind for name, kind in found.items() if kind is not None}


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
    system = system or SystemColumns()
    of_latency = (column for prefix in latencies for column in latency_columns(prefix))
    sending = (*SHARES, *HELD, *DELAYS, *system.reported, *ACCEPTED)
    some = (*OF_TOPICS, *(COHORT if cohort else ()), *(CONNECTING if connecting else ()), *COMING_BACK)
    first = (*published(system), *RATES, *LOSSES, *of_latency, *CLOCKS, *sending, *COUNTS, *some)
    return (*first, *PASSING, *SERVERS, *HOSTS, *LIMIT)
