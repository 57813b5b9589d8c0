"""What the published Kafka experiments have in common: scenarios, published tables, figures of clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from hydra.events.value_formatting import MARK
from hydra.measure.column import POINT, REASON, STATUS, TEXT, Column
from hydra.measure.latency_columns import DUE, SENT
from hydra.model import HEADER_BYTES, PUBLISHERS, Figure, number
from hydra.report.latency_bound import at_most
from hydra.report.reference_files import parsed, text_of
from hydra.system import (
    Experiment,
    ExperimentOptions,
    ExperimentPart,
    ExperimentTable,
    PartResult,
    in_turn,
    with_published,
    with_published_columns,
)
from hydra.system.experiment import MARKING, TROUBLE, WHY, Parts

Row = Mapping[str, Figure]
Point = dict[str, Any]
T = TypeVar("T")

MIB: Final = 2**20
MB_TEXT: Final = "a MB is 2^20 bytes, as in the documents"
ACCOUNT: Final = "account"

RECORDS_PER_SEC: Final = Column("records_per_sec", "records/s", "sum over all clients", "records/s", "none")
MB_PER_SEC: Final = Column("mb_per_sec", "MB/s", f"sum over all clients; {MB_TEXT}", "MB/s")
EXACT: Final = Column(
    ACCOUNT, TEXT, "whether records acknowledged, growth of the log and records received are equal", "account"
)

_SINCE: Final = (DUE, SENT)
"""What a latency counts from, the due time or, at full speed, the send."""
_ACKS: Final = {"ack_p50_ms": "ack_p50_us", "ack_p99_ms": "ack_p99_us"}
_RECEIPTS: Final = {"receipt_p50_ms": "p50_us", "receipt_p99_ms": "p99_us"}
_TO_RECEIPT: Final = "time from a message's due time (at full speed: from its send) to its receipt"
OF_ROW: Final = (
    Column("ack_p50_ms", "ms", "median time from send to acknowledgement, of all producers", "ack p50, ms"),
    Column("ack_p99_ms", "ms", "99th percentile of that time", "ack p99, ms"),
    Column("receipt_p50_ms", "ms", f"median {_TO_RECEIPT}, of all consumers", "latency p50, ms"),
    Column("receipt_p99_ms", "ms", "99th percentile of that time", "latency p99, ms"),
    EXACT,
    *MARKING,
)
"""What each row of a table has besides its figures: latencies, the account, and the reasons of its mark."""

WARM_UP: Final = "warm-up"
"""The name of a part's warm-up row, which no table shows."""
_WARM_RECORDS: Final = 300_000
"""The records after which brokers run compiled code; before, each record takes them several times as long."""
_SLOWEST: Final = 2_000
"""Records/s of a slow producer, by which a step's length is an upper bound."""
_LEAST_S: Final = 60.0
_DAY_S: Final = 86_400.0

IN: Final = ("in_bytes_per_s", "replication_in_bytes_per_s")
"""Bytes/s of record batches into a broker, from producers and from leaders."""
OUT: Final = ("out_bytes_per_s", "replication_out_bytes_per_s")
"""Bytes/s of record batches out of a broker, to consumers and to followers."""
INTERFACE_IN: Final = ("interface_in_bytes_per_s",)
INTERFACE_OUT: Final = ("interface_out_bytes_per_s",)
"""Bytes/s of a broker's network interface, if the broker has its own."""


@cache
def published(file: str) -> tuple[dict[str, Figure], ...]:
    """The rows of a published table, which callers must not change; errors as for ``text_of``."""
    return parsed(text_of(file))[1]


def part(name: str, points: Iterable[Point], brokers: int, partitions: int, about: str, **more: Any) -> ExperimentPart:
    """A part with these points on brokers started by Hydra.

    Args:
        name: the part's name.
        points: the points, as in ``[[sweep.points]]``.
        brokers: the number of brokers.
        partitions: the topic's partitions, if a point does not set them.
        about: the description.
        more: further tables and keys of the scenario.
    """
    # One producer by default: otherwise a point would have as many as the point with the most.
    listed = [{"publishers": 1, **point} for point in points]
    scenario = {
        "system": "kafka",
        "client": "native",
        "table": "fixed",
        "description": about,
        "publishers": max(int(point["publishers"]) for point in listed),
        "warmup_s": 0.0,
        "server": {"count": brokers},
        "kafka": {"partitions": partitions},
        "sweep": {"duration_s": _LEAST_S, "points": listed},
    }
    return ExperimentPart(name, {**scenario, **more})


def produced(order: ExperimentOptions, records: int, producers: int = 1, **settings: Any) -> Point:
    """A point whose producers send a published number of records each, as fast as they can."""
    count = order.records(records)
    step = {"publishers": producers, "messages": count, "duration_s": time_for(count, producers)}
    return {"rate": "max", **step, **settings}


def warmed(points: Sequence[Point]) -> list[Point]:
    """The points, with a warm-up before them."""
    return [warm_up(points[0]), *points]


def warm_up(point: Point, records: int = _WARM_RECORDS) -> Point:
    """The warm-up row before all others, so no row measures brokers that have just been started.

    Args:
        point: the first measured point.
        records: the number of records to send; at most the point's own number, if it sets one.
    """
    count = min(int(point.get("messages", records)), records)
    return {**point, "name": WARM_UP, "publishers": 1, "messages": count, "duration_s": time_for(count)}


def is_measured(row: Row) -> bool:
    """Whether a row has figures that tables show."""
    return row.get(STATUS) == "ok" and row.get(POINT) != WARM_UP


def time_for(records: int, producers: int = 1) -> float:
    """Seconds that certainly suffice for ``records`` of each producer; the step ends when they are sent."""
    return min(_LEAST_S + records * producers / _SLOWEST, _DAY_S)


def message_size(record_bytes: int) -> int:
    """The message bytes for a published record: at least the header, by which Hydra accounts for messages."""
    return max(record_bytes, HEADER_BYTES)


def header_note(sizes: Iterable[int]) -> list[str]:
    """Notes about records that are smaller than the header."""
    text = f"records are {HEADER_BYTES} bytes here, the size of the header that accounts for each"
    return [f"{size}-byte {text}" for size in sorted({size for size in sizes if size < HEADER_BYTES})]


class Measured(NamedTuple):
    """A measured row: its point's name, its figures, and the figures of its producers, consumers and brokers."""

    name: str
    row: Row
    producers: Sequence[Row]
    consumers: Sequence[Row]
    brokers: Mapping[str, Row]
    done: PartResult

    @property
    def latencies_us(self) -> dict[str, str]:
        """The row's column of each latency in :data:`OF_ROW`."""
        since = next((of for of in _SINCE if self.row.get(f"{of}_p50_us") is not None), DUE)
        return {**_ACKS, **{name: f"{since}_{percentile}" for name, percentile in _RECEIPTS.items()}}

    @property
    def marked(self) -> dict[str, Figure]:
        """Why the row is not clean, and the trouble on its hosts, as the columns that mark it."""
        return {WHY.name: _why_not_clean(self.row) or None, TROUBLE.name: _host_trouble(self.row) or None}

    def figures(self, *names: str) -> dict[str, Figure]:
        """These figures of the row, and those of :data:`OF_ROW`."""
        latencies = {name: thousandth(self.row.get(us)) for name, us in self.latencies_us.items()}
        known = {name: self.row.get(name) for name in (*names, ACCOUNT)}
        return {**known, **latencies, **self.marked}


def of_runs(runs: Sequence[Row]) -> dict[str, Figure]:
    """The columns :data:`OF_ROW` of a row that is the mean of several: medians of latencies, and all texts."""
    from statistics import median  # slow to import, as perf_tool_lines below: a list of names does without

    found: dict[str, Figure] = {}
    for column in OF_ROW:
        if column.unit == TEXT:
            texts = dict.fromkeys(str(text) for run in runs if (text := run.get(column.name)))
            found[column.name] = "; ".join(texts) or None
        else:
            known = [value for run in runs if (value := number(run.get(column.name))) is not None]
            found[column.name] = median(known) if known else None
    return found


def measured(done: Sequence[PartResult]) -> Iterator[Measured]:
    """Every measured row but the warm-up."""
    for each in done:
        for n, row in enumerate(each.rows):
            if is_measured(row):
                clients = _at(each.publishers, n, ()), _at(each.subscribers, n, ())
                yield Measured(str(row[POINT]), row, *clients, _at(each.servers, n, {}), each)


def _at(of_rows: Sequence[T], index: int, none: T) -> T:
    return of_rows[index] if index < len(of_rows) else none


def total(clients: Iterable[Row], name: str) -> float | None:
    """The sum of a figure over clients; None if no client has it."""
    found = [value for client in clients if (value := number(client.get(name))) is not None]
    return sum(found) if found else None


def mean(clients: Iterable[Row], name: str) -> float | None:
    """The mean of a figure over clients; None if no client has it."""
    found = [value for client in clients if (value := number(client.get(name))) is not None]
    return sum(found) / len(found) if found else None


def thousandth(value: Figure) -> float | None:
    """Microseconds as milliseconds; None if unknown."""
    found = number(value)
    return None if found is None else found / 1000


def below_bound(done: Sequence[PartResult], columns: Iterable[str] = ()) -> list[str]:
    """A note for each row with a latency shorter than the clocks of its hosts can measure.

    Args:
        done: the parts.
        columns: further latencies of their rows, beside those of :data:`OF_ROW`.
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


def together(clients: Sequence[Row]) -> dict[str, Figure]:
    """Records and MB a second of clients together."""
    return {name: total(clients, name) for name in (RECORDS_PER_SEC.name, MB_PER_SEC.name)}


def familiar_lines(done: Sequence[PartResult]) -> list[str]:
    """The lines that Kafka's own tools would print for each producer and consumer, below the name of each row."""
    from hydra.kafkatest.perf_tool_lines import CONSUMER_HEADER, consumer_line, producer_line

    lines = []
    for each in measured(done):
        lines += [f"# {each.name}", *map(producer_line, each.producers)]
        if each.consumers:
            lines.append(CONSUMER_HEADER)
        lines += [consumer_line(its, round(number(its.get("began_ns")) or 0)) for its in each.consumers]
    return lines


def _why_not_clean(row: Mapping[str, Figure]) -> str:
    from hydra.sweep.cleanness import why_not_clean  # slow to import; the names of experiments do not need it

    return why_not_clean(row)


def _host_trouble(row: Mapping[str, Figure]) -> str:
    from hydra.sweep.host_trouble import host_trouble  # as above

    return host_trouble(row)


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


def of_broker(broker: Row, names: Sequence[str]) -> float | None:
    """The sum of these figures of a broker; None if the broker reported none of them."""
    found = [float(value) for name in names if isinstance(value := broker.get(name), (int, float))]
    return sum(found) if found else None


def mean_of(brokers: Mapping[str, Row], names: Sequence[str]) -> float | None:
    """The mean of :func:`of_broker` over brokers; None if no broker reported any."""
    found = [value for broker in brokers.values() if (value := of_broker(broker, names)) is not None]
    return sum(found) / len(found) if found else None


def compared_table(
    title: str,
    columns: Iterable[Column],
    published: Sequence[Column],
    rows: Iterable[tuple[Row, Row | None]],
    notes: Sequence[str],
    **picture: Any,
) -> ExperimentTable:
    """Makes a table; behind each column in ``published`` stand the published figure and the ratio to it.

    Args:
        title: the table's title.
        columns: all columns.
        published: the columns with published figures.
        rows: each row with the published one, None if there is none.
        notes: the notes below the table.
        picture: ``x``, ``y`` and ``marks`` of the table's plot.
    """
    shown = [
        each for column in columns for each in (with_published_columns([column]) if column in published else [column])
    ]
    names = [column.name for column in published]
    return ExperimentTable(
        title, shown, [with_published(known, published_row, names) for known, published_row in rows], notes, **picture
    )


def experiment(parts: Parts, **more: Any) -> Experiment:
    """An experiment whose parts are known before it measures anything; ``more`` as for ``Experiment``."""
    return Experiment(parts=parts, next_part=in_turn(parts), lines=familiar_lines, **more)
