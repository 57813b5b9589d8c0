"""The measured rows of an experiment: the figures of each, and its quality: latencies, account, and marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from hydra.config.experiment_file import WARM_UP, scenario_name
from hydra.events.value_formatting import MARK
from hydra.measure.column import POINT, REASON, STATUS, TEXT, Column
from hydra.measure.latency_columns import DUE, SENT
from hydra.model import PUBLISHERS, Figure, number
from hydra.report.figure_texts import at_most
from hydra.system.experiment import MARKING, TROUBLE, WHY, PartResult

Row = Mapping[str, Figure]
T = TypeVar("T")

ACCOUNT: Final = "account"
_SINCE: Final = (DUE, SENT)
"""What a latency counts from, the due time or, at full speed, the send."""
_ACKS: Final = {"ack_p50_ms": "ack_p50_us", "ack_p99_ms": "ack_p99_us"}
_RECEIPTS: Final = {"receipt_p50_ms": "p50_us", "receipt_p99_ms": "p99_us"}
_TO_RECEIPT: Final = "time from a message's due time (at full speed: from its send) to its receipt"
QUALITY: Final = (
    Column("ack_p50_ms", "ms", "median time from send to acknowledgement, of all producers", "ack p50, ms"),
    Column("ack_p99_ms", "ms", "99th percentile of that time", "ack p99, ms"),
    Column("receipt_p50_ms", "ms", f"median {_TO_RECEIPT}, of all consumers", "latency p50, ms"),
    Column("receipt_p99_ms", "ms", "99th percentile of that time", "latency p99, ms"),
    Column(ACCOUNT, TEXT, "whether records acknowledged, growth of the log and records received are equal", ACCOUNT),
    *MARKING,
)
"""What each row of a table has besides its figures: latencies, the account, and the reasons of its mark."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured row: its point's name, its figures, and those of its publishers, subscribers and servers."""

    name: str
    row: Row
    publishers: Sequence[Row]
    subscribers: Sequence[Row]
    servers: Mapping[str, Row]
    done: PartResult

    @property
    def scenario(self) -> str:
        """The published scenario that the row belongs to."""
        return scenario_name(self.name)

    @property
    def latencies_us(self) -> dict[str, str]:
        """The row's column of each latency in :data:`QUALITY`."""
        since = next((of for of in _SINCE if self.row.get(f"{of}_p50_us") is not None), DUE)
        return {**_ACKS, **{name: f"{since}_{percentile}" for name, percentile in _RECEIPTS.items()}}

    @property
    def marks(self) -> dict[str, Figure]:
        """Why the row is not clean, and the trouble on its hosts, as the columns that mark it."""
        return {WHY.name: _why_not_clean(self.row) or None, TROUBLE.name: _host_trouble(self.row) or None}

    @property
    def quality(self) -> dict[str, Figure]:
        """The figures of :data:`QUALITY`."""
        us = {name: number(self.row.get(column)) for name, column in self.latencies_us.items()}
        latencies = {name: None if value is None else value / 1000 for name, value in us.items()}
        return {**latencies, ACCOUNT: self.row.get(ACCOUNT), **self.marks}


def measured(done: Sequence[PartResult]) -> Iterator[Measured]:
    """Every measured row but the warm-up."""
    for each in done:
        for n, row in enumerate(each.rows):
            if row.get(STATUS) == "ok" and row.get(POINT) != WARM_UP:
                clients = _at(each.publishers, n, ()), _at(each.subscribers, n, ())
                yield Measured(str(row[POINT]), row, *clients, _at(each.servers, n, {}), each)


def _at(of_rows: Sequence[T], index: int, none: T) -> T:
    return of_rows[index] if index < len(of_rows) else none


def quality_of_runs(runs: Sequence[Row]) -> dict[str, Figure]:
    """The figures of :data:`QUALITY` of a row that is the mean of several: medians of latencies, and all texts."""
    from statistics import median  # slow to import: a list of names does without

    found: dict[str, Figure] = {}
    for column in QUALITY:
        if column.unit == TEXT:
            texts = dict.fromkeys(str(text) for run in runs if (text := run.get(column.name)))
            found[column.name] = "; ".join(texts) or None
        else:
            known = [value for run in runs if (value := number(run.get(column.name))) is not None]
            found[column.name] = median(known) if known else None
    return found


def marks_of_part(done: PartResult) -> dict[str, Figure]:
    """The marks of all rows of a part, each behind the name of its row."""
    rows = list(measured([done]))
    return {
        column.name: "; ".join(f"{row.name}: {why}" for row in rows if (why := row.marks[column.name])) or None
        for column in MARKING
    }


def below_bound(done: Sequence[PartResult], columns: Iterable[str]) -> list[str]:
    """A note for each row with a latency shorter than the clocks of its hosts can measure.

    Args:
        done: the parts.
        columns: further latencies of their rows, beside those of :data:`QUALITY`.
    """
    notes = []
    for each in measured(done):
        names = dict.fromkeys((*columns, *each.latencies_us.values()))
        limits = [limit_us for name in names if (limit_us := at_most(each.row, name)) is not None]
        if limits:
            text = (
                f"a latency of at most {max(limits) / 1000:.3g} ms is shorter than the clocks of the hosts can measure"
            )
            notes.append(f"{each.name}: {text}")
    return notes


def not_measured(done: Sequence[PartResult]) -> list[str]:
    """A note for each row with a mark, without figures, or with records that were not acknowledged in time."""
    notes = [f"{MARK} {each.name}: not clean: {why}" for each in measured(done) if (why := _why_not_clean(each.row))]
    notes += [f"{each.name}: {trouble}" for each in measured(done) if (trouble := _host_trouble(each.row))]
    for row in (row for part in done for row in part.rows):
        sent = number(row.get("total_tx"))
        due = (number(row.get("messages")) or 0.0) * (number(row.get(PUBLISHERS)) or 0.0)
        if row.get(STATUS) != "ok":
            notes.append(f"{row.get(POINT)} {row.get(STATUS)}: {row.get(REASON)}")
        elif sent is not None and sent < due:
            notes.append(f"{row.get(POINT)}: {sent:,.0f} of {due:,.0f} records were acknowledged within its time")
    return notes


def _why_not_clean(row: Row) -> str:
    from hydra.sweep.cleanness import why_not_clean  # slow to import; the names of experiments do not need it

    return why_not_clean(row)


def _host_trouble(row: Row) -> str:
    from hydra.sweep.cleanness import host_trouble  # as above

    return host_trouble(row)
