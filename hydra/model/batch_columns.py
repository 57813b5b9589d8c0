"""The columns of a batch, which hold the reports of many subscribers: their names, order, bounds and meaning.

Those of numbers follow from the declarations of :class:`SubscriberReport` and its parts. The others, which have several
items for each client, sums over clients or computed values, are declared here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

from hydra.model.base import LATENCY_HIGHEST_US
from hydra.model.reports import (
    LAG_BINS,
    LARGEST,
    MAX_ABSENT,
    MAX_MISSING_RANGES,
    PERCENTILES,
    HotTopicCounts,
    LedgerCounts,
    ProcessUsage,
    Reported,
    SubscriberReport,
)

Items = Literal["whole", "fraction", "byte"]
"""Numbers of 64 bits, whole or not, or bytes."""


@dataclass(frozen=True, slots=True)
class BatchColumn:
    """The definition of a column: its content and its source.

    Attributes:
        name: name of the column.
        text: its meaning, for the page of the protocol.
        noun: the attribute of the report or the ledger that it holds; "": its values are computed.
        of: what its items belong to: each client, each ledger, or all clients together.
        items: the type of its items.
        lengths: if a client or a ledger has several items: the column with their number.
        width: the count of numbers in one item.
        least, most: bounds of its numbers.
        added: whether the sum over the ledgers of a client must be at most ``most``, too.
        choices: the values for which the numbers 0, 1, ... stand.
        percentile: the percentile of the client's latencies that it holds.
        sql: its name in the table of clients; "": the table does not have it, or not in this form.
        known: the column that is above 0 if there is a value to store; "": there always is one.
        moment: whether it is a time on the step's clock.
        topics: whether only batches of steps with several topics have it.
        shown: the definition of its sum over all subscribers, in rows of that name; "": rows do not have it.
    """

    name: str
    text: str
    noun: str = ""
    of: Literal["client", "ledger", "together"] = "client"
    items: Items = "whole"
    lengths: str = ""
    width: int = 1
    least: int = 0
    most: int = LARGEST
    added: bool = False
    choices: tuple[object, ...] = ()
    percentile: float | None = None
    sql: str = ""
    known: str = ""
    moment: bool = False
    topics: bool = False
    shown: str = ""


def _numbers(kind: type, of: Literal["client", "ledger"], text: str, within: str = "") -> Iterator[BatchColumn]:
    """A column for each number of a part of a report: whole numbers, then choices, then fractions."""
    found: dict[type, list[BatchColumn]] = {int: [], bool: [], float: []}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        options = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Reported)), Reported())
        plain = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        column = BatchColumn(name, text, within + name, of)
        if plain is bool or get_origin(plain) is Literal:
            choices = get_args(plain) or (False, True)
            found[bool].append(replace(column, choices=choices, most=len(choices) - 1))
        elif plain is float:
            found[float].append(replace(column, items="fraction", sql=name))
        elif plain is int:
            bounds: dict[str, Any] = {"most": options.most, "added": of == "ledger" and options.most == LARGEST}
            stored: dict[str, Any] = {
                "sql": name if options.sql is None else options.sql,
                "known": name if options.moment else "",
            }
            found[int].append(replace(column, **bounds, **stored, moment=options.moment, shown=options.shown))
    for columns in found.values():
        yield from columns


_COUNT: Final = "latency_count"
_LATENCY: Final = BatchColumn(
    "latency_min_us",
    "of the client's own histogram; all 0 if it is empty. A percentile p is the highest value of the bucket that "
    "contains the value of rank max(⌈p · count / 100⌉, 1), at most the maximum",
    least=-LATENCY_HIGHEST_US,
)


def _sum(name: str, clients: str, *, topics: bool = False) -> tuple[BatchColumn, BatchColumn]:
    """The columns of the sum of the histograms of several clients."""
    bounds = f"minimum and maximum of the sum of the histograms {clients}; no items if it is empty"
    counts = "index and count of each bucket of this sum; indexes rise"
    return (
        BatchColumn(f"{name}_bounds", bounds, of="together", topics=topics),
        BatchColumn(f"{name}_counts", counts, of="together", topics=topics),
    )


BATCH_COLUMNS: Final = (
    *_numbers(SubscriberReport, "client", "as in the report"),
    *_numbers(ProcessUsage, "client", "of `usage`", "usage."),
    replace(_LATENCY, name=_COUNT, least=0),
    _LATENCY,
    *(
        replace(_LATENCY, name=f"latency_{name}_us", percentile=PERCENTILES[name], sql=f"{name}_us", known=_COUNT)
        for name in ("p50", "p99")
    ),
    replace(_LATENCY, name="latency_max_us", sql="max_us"),
    BatchColumn(
        "lag_bins_us", "−2⁶³ is null; all of a client null: it has none. No items if no client has any", width=LAG_BINS
    ),
    BatchColumn("absent_counts", "intervals of each client", most=MAX_ABSENT),
    BatchColumn("absent", "begin and end", "absent", lengths="absent_counts", width=2),
    BatchColumn("ledger_counts", "ledgers of each client; L is their sum"),
    *_numbers(LedgerCounts, "ledger", "as in a ledger"),
    BatchColumn("range_counts", "missing ranges of each ledger", of="ledger", most=MAX_MISSING_RANGES),
    BatchColumn("ranges", "first and last", "missing_ranges", "ledger", lengths="range_counts", width=2),
    BatchColumn("bits_bytes", "length of each ledger's bitmap", of="ledger"),
    BatchColumn("bits", "the bytes of each ledger's `received_bits`", "received_bits", "ledger", "byte", "bits_bytes"),
    BatchColumn("system_bytes", "length of each client's `system`; 0: null"),
    BatchColumn("system", "JSON", "system", items="byte", lengths="system_bytes"),
    *_sum("latency", "of this batch's clients outside the cohort"),
    *_sum("cohort_latency", "of the clients whose last `configure` had `cohort`"),
    *(
        replace(column, name=f"hot_{column.name}", sql="", topics=True)
        for column in _numbers(HotTopicCounts, "client", "of `hot`; 0 without", "hot.")
    ),
    *_sum("hot_latency", "in `hot` of this batch's clients outside the cohort", topics=True),
)
"""All columns except ``ids``, in order."""
