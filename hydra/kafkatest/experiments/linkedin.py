"""LinkedIn's benchmark of 2014: each of its scenarios alone, and all of them in one run with three brokers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import click

from hydra.kafkatest.experiments.common import (
    EXACT,
    MB_PER_SEC,
    OF_ROW,
    RECORDS_PER_SEC,
    Point,
    Row,
    below_bound,
    compared_table,
    experiment,
    header_note,
    measured,
    message_size,
    not_measured,
    part,
    produced,
    published,
    thousandth,
    time_for,
    together,
    total,
    warm_up,
)
from hydra.measure.column import MESSAGES, TEXT, Column
from hydra.model import Figure, number
from hydra.options.flag_types import ByteCountRange
from hydra.system import Experiment, ExperimentOptions, ExperimentPart, ExperimentTable, PartResult
from hydra.system.experiment import MARKING

FILE: Final = "linkedin_2014.csv"
SOURCE: Final = "LinkedIn, Benchmarking Apache Kafka, 2014"
ALL: Final = "linkedin-2014"

_RECORDS: Final = 50_000_000
_RECORD_BYTES: Final = 100
_STORED_BYTES: Final = 50_000_000_000 * _RECORD_BYTES
_STORED_HERE: Final = 500_000_000
"""Bytes to which the log grows at most, without ``--stored-bytes`` and below ``--scale 1``."""
_STEPS: Final = 8
"""The number of rows in which the log grows."""
_SIZES: Final = (10, 100, 1000, 10_000, 100_000)
_LATENCY_RECORDS: Final = 5000
_LATENCY_RATE: Final = 500.0
"""Messages/s: the rate of sending each message after the previous one arrived, at the published median of 2 ms."""

STORED: Final = click.Option(
    ["--stored-bytes"],
    type=ByteCountRange(min=1_000_000),
    metavar="BYTES",
    help="Bytes to which the log grows, without replicas (throughput-vs-stored-data).",
)

_PRODUCER: Final = {"rate": "max", "message_size": _RECORD_BYTES, "acks": "1", "batch_bytes": 8196}
_REPLICATED: Final = {"replication_factor": 3}
_LATENCIES: Final = {"p50_ms": "latency_p50_us", "p99_ms": "latency_p99_us", "p99_9_ms": "latency_p999_us"}
_PUBLISHED_LATENCIES: Final[Row] = {"p50_ms": 2, "p99_ms": 3, "p99_9_ms": 14}
"""The latencies in the note of the published row."""


_GROWING: Final = "throughput-vs-stored-data"
_SWEEP: Final = "message-size-sweep"
_LATENCY: Final = "end-to-end-latency"
_CONSUMERS: Final = ("single-consumer", "three-consumers", "producer-and-consumer")
_TITLES: Final = {
    "single-producer-no-replication": "one producer, one replica",
    "single-producer-async-replication": "one producer, three replicas, acknowledged by the leader",
    "single-producer-sync-replication": "one producer, three replicas, acknowledged by all",
    "three-producers-async-replication": "three producers, three replicas",
    "single-consumer": "one consumer of a stored log",
    "three-consumers": "three consumers, each with a copy of a stored log",
    "producer-and-consumer": "a producer and a consumer at the same time",
    _SWEEP: "records of 10 to 100,000 bytes",
    _LATENCY: "time from send to receipt, one message after another",
    _GROWING: "one producer while the log grows beyond memory",
}
"""The titles by the name of each published scenario, in the order of a run; the one that fills the disk is last."""


# --- the points ------------------------------------------------------------------------------------------------------


def _produced(order: ExperimentOptions, producers: int = 1, **settings: Figure) -> Point:
    return produced(order, _RECORDS, producers, **{**_PRODUCER, **settings})


def _consumed(order: ExperimentOptions, consumers: int) -> Point:
    return {**_produced(order, **_REPLICATED), "clients": consumers, "read": "stored"}


def _single(name: str, order: ExperimentOptions) -> list[Point]:
    make = {
        "single-producer-no-replication": lambda: _produced(order, replication_factor=1),
        "single-producer-async-replication": lambda: _produced(order, **_REPLICATED),
        "single-producer-sync-replication": lambda: _produced(order, acks="all", batch_bytes=64_000, **_REPLICATED),
        "three-producers-async-replication": lambda: _produced(order, 3, **_REPLICATED),
        "single-consumer": lambda: _consumed(order, 1),
        "three-consumers": lambda: _consumed(order, 3),
        "producer-and-consumer": lambda: {**_produced(order, **_REPLICATED), "clients": 1},
        _LATENCY: _one_by_one,
    }
    return [{"name": name, **make[name]()}]


def _growing(order: ExperimentOptions) -> list[Point]:
    records = max(stored_bytes(order) // _RECORD_BYTES // _STEPS, 1000)
    step = {**_PRODUCER, **_REPLICATED, "messages": records, "duration_s": time_for(records), "keep": True}
    return [{"name": f"{_GROWING}/{n}", **step} for n in range(1, _STEPS + 1)]


def stored_bytes(order: ExperimentOptions) -> int:
    """The size in bytes to which the log grows, without replicas."""
    given = order.options.get("stored_bytes")
    if given is not None:
        return int(given)
    scaled = round(_STORED_BYTES * order.scale)
    return scaled if order.scale >= 1 else min(scaled, _STORED_HERE)


def _sizes(order: ExperimentOptions) -> list[Point]:
    points = []
    for size in _SIZES:
        records = order.records(1000 * 2**20 // size)
        point = {"message_size": message_size(size), "messages": records, "batch_bytes": 128_000}
        points.append({"name": f"{_SWEEP}/{size}", **_produced(order, **_REPLICATED), **point})
    return points


def _one_by_one() -> Point:
    pace = {"rate": _LATENCY_RATE, "messages": _LATENCY_RECORDS, "duration_s": 2 * _LATENCY_RECORDS / _LATENCY_RATE}
    return {**_PRODUCER, **_REPLICATED, "clients": 1, "msg_batch": 1, "linger_ms": 0.0, **pace}


def _points(name: str, order: ExperimentOptions) -> list[Point]:
    """The points of a published scenario, by its name with dashes."""
    many = {_SWEEP: _sizes, _GROWING: _growing}
    return many[name](order) if name in many else _single(name, order)


def _parts(names: Sequence[str], order: ExperimentOptions) -> list[ExperimentPart]:
    points = [point for name in names for point in _points(name, order)]
    about = f"{SOURCE}: {', '.join(names)}"
    warm = warm_up({"name": "", **_produced(order, **_REPLICATED)})
    return [part(names[0] if len(names) == 1 else ALL, [warm, *points], 3, 6, about)]


# --- the tables ------------------------------------------------------------------------------------------------------

_SCENARIO: Final = Column("scenario", TEXT, "the published scenario")
_RECORDS_HERE: Final = Column("records", MESSAGES, "records that each producer sent")
_BYTES: Final = Column("record_bytes", "bytes", "published size of a record", "record bytes")
_FIGURES: Final = (RECORDS_PER_SEC, MB_PER_SEC)
_BATCH: Final = Column("records_per_batch", "records", "mean records in a batch that was sent", "records/batch")


def _views(names: Sequence[str], order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    makers = {_SWEEP: _sizes_view, _LATENCY: _latency, _GROWING: _stored}
    wanted = dict.fromkeys(makers.get(name, _throughput) for name in names)
    return [make(order, done) for make in wanted]


def _throughput(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentTable:
    published_rows = {str(row["scenario"]).replace("_", "-"): row for row in published(FILE)}
    rows: list[tuple[Row, Row | None]] = []
    for run in measured(done):
        if run.name in _TITLES and run.name != _LATENCY:
            clients = run.consumers if run.name in _CONSUMERS else run.producers
            records = order.records(_RECORDS)
            known = {"scenario": run.name, "records": records, **run.figures(_BATCH.name), **together(clients)}
            rows.append((known, published_rows.get(run.name)))
    notes = [
        "the rates are sums over the consumers if the scenario is named after them, otherwise over the producers",
        "the published figures are of six machines with six disks each and gigabit Ethernet; here brokers and clients "
        "share one machine unless --master names a cluster",
        *not_measured(done),
    ]
    columns = [_SCENARIO, _RECORDS_HERE, *_FIGURES, _BATCH, *OF_ROW]
    return compared_table("Throughput", columns, _FIGURES, rows, notes)


def _sizes_view(_order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentTable:
    rows: list[Row] = []
    for run in measured(done):
        sweep, _, size = run.name.partition("/")
        if sweep == _SWEEP:
            here = {"record_bytes": int(size), "message_bytes": message_size(int(size))}
            rows.append({**here, **together(run.producers), **run.figures(_BATCH.name)})
    columns = [
        _BYTES,
        Column("message_bytes", "bytes", "message size here", "message bytes"),
        *_FIGURES,
        _BATCH,
        *OF_ROW,
    ]
    notes = ["no figures were published, only that records/s falls and MB/s rises with the size", *header_note(_SIZES)]
    return ExperimentTable(
        "Message sizes", columns, rows, notes, x="record_bytes", y=(RECORDS_PER_SEC.name, MB_PER_SEC.name)
    )


def _latency(_: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentTable:
    rows: list[tuple[Row, Row | None]] = []
    for run in measured(done):
        if run.name == _LATENCY:
            figures = {ms: thousandth(run.row.get(us)) for ms, us in _LATENCIES.items()}
            known = {"scenario": run.name, "records": total(run.producers, "records"), **run.figures(), **figures}
            rows.append((known, _PUBLISHED_LATENCIES))
    headings = {"p50_ms": "median, ms", "p99_ms": "p99, ms", "p99_9_ms": "p99.9, ms"}
    columns = [
        Column(name, "ms", "time from the due time of a message to its receipt", headings[name]) for name in _LATENCIES
    ]
    notes = [
        f"the document sends one message, waits for it, and sends the next; here {_LATENCY_RECORDS:,} are sent at "
        f"{_LATENCY_RATE:g} a second, the rate that follows from its median of 2 ms. The count is the document's at "
        "every scale",
        *below_bound(done, _LATENCIES.values()),
        *not_measured(done),
    ]
    shown = [_SCENARIO, _RECORDS_HERE, *columns, EXACT, *MARKING]
    return compared_table("End-to-end latency", shown, columns, rows, notes)


def _stored(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentTable:
    rows: list[Row] = []
    stored, cache = 0.0, 0.0
    for run in measured(done):
        if run.name.startswith(f"{_GROWING}/"):
            stored += (total(run.producers, "records") or 0.0) * _RECORD_BYTES * _REPLICATED["replication_factor"]
            cache = max(cache, number(run.row.get("host_memory_available_min_bytes")) or 0.0)
            rows.append({"stored_bytes": stored, **together(run.producers), **run.figures()})
    columns = [
        Column("stored_bytes", "bytes", "payload in the logs of all replicas", "bytes stored", axis="bytes stored"),
        *_FIGURES,
        *OF_ROW,
    ]
    size = stored_bytes(order)
    notes = [
        f"the log grows to {size:,} bytes of records in {_STEPS} steps, counted without replicas (--stored-bytes "
        f"sets this size); the document stored {_STORED_BYTES:,} and saw no loss of throughput",
        "the line marks the memory of this host that was free or used as cache: records beyond this size must be read "
        "from the disk",
    ]
    mark = {"page cache": cache} if cache else {}
    rate = (RECORDS_PER_SEC.name,)
    return ExperimentTable("Throughput against stored data", columns, rows, notes, x="stored_bytes", y=rate, marks=mark)


# --- the experiments -------------------------------------------------------------------------------------------------


def _experiment(name: str, title: str, names: Sequence[str], takes_s: float) -> Experiment:
    return experiment(
        partial(_parts, names),
        name=name,
        title=title,
        source=SOURCE,
        scale=0.01,
        takes_s=takes_s,
        views=partial(_views, names),
        options=(STORED,) if _GROWING in names else (),
    )


EXPERIMENTS: Final = (
    _experiment(ALL, "all scenarios of the benchmark", tuple(_TITLES), 110.0),
    *(_experiment(name, title, (name,), 25.0) for name, title in _TITLES.items()),
)
