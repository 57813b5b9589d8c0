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


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchColumn:
    """The definition of a column: its content and its source.

    Attributes:
        name: name of the column.
        text: its meaning, for the page of the protocol.
        items: the type of its items.
        of: what its items belong to: each client, each ledger, or all clients together.
        noun: the attribute of the report or the ledger that it holds; "": its values are computed.
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
    items: Items = "whole"
    of: Literal["client", "ledger", "together"] = "client"
    noun: str = ""
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
        declared = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Reported)), Reported())
        plain = hint.__origin__ if get_origin(hint) is Annotated else hint
        column = BatchColumn(name=name, text=text, of=of, noun=within + name)
        if plain is bool or get_origin(plain) is Literal:
            choices = get_args(plain) or (False, True)
            said = ", ".join(f"{n} {choice}" for n, choice in enumerate(choices)) if get_args(plain) else "0 or 1"
            found[bool].append(replace(column, text=said, choices=choices, most=len(choices) - 1))
        elif plain in found:
            found[plain].append(
                replace(
                    column,
                    items="whole" if plain is int else "fraction",
                    most=declared.most,
                    added=of == "ledger" and declared.most == LARGEST,
                    sql=name if declared.sql is None else declared.sql,
                    known=name if declared.moment else "",
                    moment=declared.moment,
                    shown=declared.shown,
                )
            )
    for columns in found.values():
        yield from columns


def _latency(name: str, **rest: Any) -> BatchColumn:
    text = (
        "of the client's own histogram; all 0 if it is empty. A percentile p is the highest value of the bucket that "
        "contains the value of rank max(⌈p · count / 100⌉, 1), at most the maximum"
    )
    return BatchColumn(name=f"latency_{name}", text=text, **{"least": -LATENCY_HIGHEST_US} | rest)


def _sum(name: str, clients: str, *, topics: bool = False) -> tuple[BatchColumn, BatchColumn]:
    """The columns of the sum of the histograms of several clients."""
    return (
        BatchColumn(
            name=f"{name}_bounds",
            text=f"minimum and maximum of the sum of {clients}; no items if it is empty",
            of="together",
            topics=topics,
        ),
        BatchColumn(
            name=f"{name}_counts",
            text="index and count of each bucket of this sum; indexes rise",
            of="together",
            topics=topics,
        ),
    )


BATCH_COLUMNS: Final = (
    *_numbers(SubscriberReport, "client", "as in the report"),
    *_numbers(ProcessUsage, "client", "of `usage`", "usage."),
    _latency("count", least=0),
    _latency("min_us"),
    *(
        _latency(f"{name}_us", percentile=PERCENTILES[name], sql=f"{name}_us", known="latency_count")
        for name in ("p50", "p99")
    ),
    _latency("max_us", sql="max_us"),
    BatchColumn(
        name="lag_bins_us",
        text="−2⁶³ is null; all of a client null: it has none. No items if no client has any",
        width=LAG_BINS,
    ),
    BatchColumn(name="absent_counts", text="intervals of each client", most=MAX_ABSENT),
    BatchColumn(name="absent", text="begin and end", noun="absent", lengths="absent_counts", width=2),
    BatchColumn(name="ledger_counts", text="ledgers of each client; L is their sum"),
    *_numbers(LedgerCounts, "ledger", "as in a ledger"),
    BatchColumn(name="range_counts", text="missing ranges of each ledger", of="ledger", most=MAX_MISSING_RANGES),
    BatchColumn(
        name="ranges", text="first and last", of="ledger", noun="missing_ranges", lengths="range_counts", width=2
    ),
    BatchColumn(name="bits_bytes", text="length of each ledger's bitmap", of="ledger"),
    BatchColumn(
        name="bits",
        text="`received_bits` without base64",
        items="byte",
        of="ledger",
        noun="received_bits",
        lengths="bits_bytes",
    ),
    BatchColumn(name="system_bytes", text="length of each client's `system`; 0: null"),
    BatchColumn(name="system", text="JSON", items="byte", noun="system", lengths="system_bytes"),
    *_sum("latency", "the histograms of this batch's clients outside the cohort"),
    *_sum("cohort_latency", "the histograms of the clients whose last `configure` had `cohort`"),
    *(
        replace(column, name=f"hot_{column.name}", sql="", topics=True)
        for column in _numbers(HotTopicCounts, "client", "of `hot`; 0 without", "hot.")
    ),
    *_sum("hot_latency", "the histograms in `hot` of this batch's clients outside the cohort", topics=True),
)
"""All columns except ``ids``, in order."""
