"""The cohort of each series of a search: the slow or reconnecting subscribers of its steps. Pure."""

from __future__ import annotations

import zlib

from hydra.measure.column import WHY
from hydra.model import Cohort
from hydra.sweep.interface import Row
from hydra.sweep.search_spec import SearchSeries, SearchSpec
from hydra.sweep.search_warnings import HighestUnknown, SearchWarning, TooFewClients, text_of_search


def cohort_of(
    search: SearchSpec, series: SearchSeries, clients: int, max_rate: float | None
) -> Cohort | type[SearchWarning]:
    """The cohort of a series, or why it cannot be measured.

    Args:
        search: the table ``[sweep.search]``.
        series: the series.
        clients: the number of subscribers.
        max_rate: the highest rate received, in messages/s; None: not known.
    """
    if series == "loss":
        return Cohort()
    if clients < 2:
        return TooFewClients
    # One seed for each client count: both cohorts are taken from the ends of one order and never overlap.
    seed = zlib.crc32(f"cohort of {clients}".encode())
    if series == "reconnecting":
        return Cohort("reconnecting", search.cohort_fraction, search.reconnect_rate, seed)
    if not max_rate:
        return HighestUnknown
    return Cohort("slow", search.cohort_fraction, search.slow_share * max_rate, seed)


def warn(row: Row, name: str, warning: type[SearchWarning]) -> None:
    """Writes into a row why a series has no figure, or why the figure is doubtful."""
    row[f"{name}{WHY}"] = warning.why
    row[f"{name}_note"] = text_of_search(row, name)
