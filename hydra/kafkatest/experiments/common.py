"""What the published Kafka experiments have in common: scenarios, published tables, figures of clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from hydra.kafkatest.perf_tool_lines import CONSUMER_HEADER, consumer_line, producer_line
from hydra.measure.column import TEXT, Column
from hydra.measure.column_names import POINT, PUBLISHERS, REASON, STATUS
from hydra.model import HEADER_BYTES, Figure, number
from hydra.report.latency_bound import at_most
from hydra.report.reference import parsed, text_of
from hydra.system import Done

Row = Mapping[str, Figure]
Point = dict[str, Any]

MIB: Final = 2**20
ACCOUNT: Final = "account"

RECORDS_PER_SEC: Final = Column("records_per_sec", "records/s", "of all clients together", "records/s", "none")
MB_PER_SEC: Final = Column(
    "mb_per_sec", "MB/s", "of all clients together; a MB is 2^20 bytes, as in the documents", "MB/s"
)
EXACT: Final = Column(
    ACCOUNT, TEXT, "whether records acknowledged, growth of the log and records received are the same", "account"
)

WARM_UP: Final = "warm-up"
"""The row of a part that no table shows."""
_WARM_RECORDS: Final = 300_000
"""After so many records brokers run compiled code: until then they take several times as long for each."""
_SLOWEST: Final = 2_000
"""Records/s of each producer that a step leaves time for: its length is an upper bound only."""
_LEAST_S: Final = 60.0
_DAY_S: Final = 86_400.0

IN: Final = ("in_bytes_per_s", "replication_in_bytes_per_s")
"""Payload of record batches from producers, and from leaders."""
OUT: Final = ("out_bytes_per_s", "replication_out_bytes_per_s")
"""The same to consumers, and to followers."""
INTERFACE_IN: Final = ("interface_in_bytes_per_s",)
INTERFACE_OUT: Final = ("interface_out_bytes_per_s",)
"""Of a broker's network interface, where it has one of its own."""


@cache
def published(file: str) -> tuple[dict[str, Figure], ...]:
    """The rows of a published table, not to be changed; errors as for ``text_of``."""
    return parsed(text_of(file))[1]


def scenario(points: Iterable[Point], brokers: int, partitions: int, about: str, **more: Any) -> dict[str, Any]:
    """A scenario with these points on so many brokers, as a file would have it.

    Args:
        points: keys of ``[[sweep.points]]``.
        brokers: that Hydra brings along.
        partitions: of the topic, where a point does not say so.
        about: the description.
        more: further tables and keys.
    """
    # One producer unless a point says otherwise: it would have as many as the point with the most.
    listed = [{"publishers": 1, **point} for point in points]
    return {
        "system": "kafka",
        "client": "native",
        "table": "fixed",
        "description": about,
        "publishers": max(int(point["publishers"]) for point in listed),
        "warmup_s": 0.0,
        "server": {"count": brokers},
        "kafka": {"partitions": partitions},
        "sweep": {"duration_s": _LEAST_S, "points": listed},
        **more,
    }


def warm_up(point: Point, records: int = _WARM_RECORDS) -> Point:
    """The row before all others, so that none of them measures brokers that have just been started.

    Args:
        point: what is to be measured first.
        records: how many are sent; no more than the point sends, where it says how many.
    """
    count = min(int(point.get("messages", records)), records)
    return {**point, "name": WARM_UP, "publishers": 1, "messages": count, "duration_s": time_for(count)}


def is_measured(row: Row) -> bool:
    """Whether a row has figures that tables show."""
    return row.get(STATUS) == "ok" and row.get(POINT) != WARM_UP


def time_for(records: int, producers: int = 1) -> float:
    """Seconds within which so many records of each producer are certainly sent; the step ends when they are."""
    return min(_LEAST_S + records * producers / _SLOWEST, _DAY_S)


def message_size(record_bytes: int) -> int:
    """The message that stands for a published record: at least the header, by which messages are accounted."""
    return max(record_bytes, HEADER_BYTES)


def header_note(sizes: Iterable[int]) -> list[str]:
    """What has to be said of records that are smaller than the header."""
    text = f"records are {HEADER_BYTES} bytes here: so large is the header that accounts for each"
    return [f"{size}-byte {text}" for size in sorted({size for size in sizes if size < HEADER_BYTES})]


def rows_of(done: Sequence[Done]) -> Iterator[tuple[str, Row, Sequence[Row], Sequence[Row]]]:
    """Every measured row but the warm-up: its point, its figures, and those of its producers and consumers."""
    for part in done:
        for index, row in enumerate(part.rows):
            if is_measured(row):
                yield str(row[POINT]), row, _at(part.publishers, index), _at(part.subscribers, index)


def total(clients: Iterable[Row], name: str) -> float | None:
    """The sum of a figure over clients; None where nobody has it."""
    found = [value for client in clients if (value := number(client.get(name))) is not None]
    return sum(found) if found else None


def mean(clients: Iterable[Row], name: str) -> float | None:
    """The mean of a figure over clients; None where nobody has it."""
    found = [value for client in clients if (value := number(client.get(name))) is not None]
    return sum(found) / len(found) if found else None


def thousandth(value: Figure) -> float | None:
    """Milliseconds of microseconds; None where it is not known."""
    found = number(value)
    return None if found is None else found / 1000


def below_bound(done: Sequence[Done], columns: Iterable[str]) -> list[str]:
    """A note for every row in which one of these latencies is shorter than the clocks of its hosts can tell."""
    names = tuple(columns)
    notes = []
    for point, row, _, _ in rows_of(done):
        limits = [limit_us for name in names if (limit_us := at_most(row, name)) is not None]
        if limits:
            text = f"a latency of at most {max(limits) / 1000:.3g} ms is shorter than the clocks of its hosts can tell"
            notes.append(f"{point}: {text}")
    return notes


def together(clients: Sequence[Row]) -> dict[str, Figure]:
    """Records and MB a second of clients together."""
    return {name: total(clients, name) for name in (RECORDS_PER_SEC.name, MB_PER_SEC.name)}


def _at(of_rows: Sequence[Sequence[Row]], index: int) -> Sequence[Row]:
    return of_rows[index] if index < len(of_rows) else ()


def familiar_lines(done: Sequence[Done]) -> list[str]:
    """What Kafka's own tools would have printed of each producer and consumer, row by row below its name."""
    lines = []
    for name, _, producers, consumers in rows_of(done):
        lines += [f"# {name}", *map(producer_line, producers)]
        if consumers:
            lines.append(CONSUMER_HEADER)
        lines += [consumer_line(consumer, round(number(consumer.get("began_ns")) or 0)) for consumer in consumers]
    return lines


def not_measured(done: Sequence[Done]) -> list[str]:
    """A note for every row without figures, or in which not every record was sent within its time."""
    notes = []
    for row in (row for part in done for row in part.rows):
        sent = number(row.get("total_tx"))
        asked = (number(row.get("messages")) or 0.0) * (number(row.get(PUBLISHERS)) or 0.0)
        if row.get(STATUS) != "ok":
            notes.append(f"{row.get(POINT)} {row.get(STATUS)}: {row.get(REASON)}")
        elif sent is not None and sent < asked:
            notes.append(f"{row.get(POINT)}: {sent:,.0f} of {asked:,.0f} records were acknowledged within its time")
    return notes


def with_brokers(done: Sequence[Done]) -> Iterator[tuple[Done, Row, dict[str, Row]]]:
    """Every measured row with what each broker counted in its window."""
    for part in done:
        for index, row in enumerate(part.rows):
            if is_measured(row):
                yield part, row, dict(part.servers[index]) if index < len(part.servers) else {}


def of_broker(broker: Row, names: Sequence[str]) -> float | None:
    """The sum of these figures of a broker; None where it told none of them."""
    found = [float(value) for name in names if isinstance(value := broker.get(name), (int, float))]
    return sum(found) if found else None


def mean_of(brokers: dict[str, Row], names: Sequence[str]) -> float | None:
    """Its mean over brokers; None where no broker told."""
    found = [value for broker in brokers.values() if (value := of_broker(broker, names)) is not None]
    return sum(found) / len(found) if found else None
