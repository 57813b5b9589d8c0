"""The load tests of Kafka on DC/OS of 2018: record sizes, tuning, consumers, and producers in parallel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from hydra.kafkatest.experiments.common import (
    MB_PER_SEC,
    OF_ROW,
    RECORDS_PER_SEC,
    Point,
    Row,
    compared_table,
    experiment,
    mean,
    measured,
    not_measured,
    of_runs,
    part,
    produced,
    published,
    together,
    total,
    warmed,
)
from hydra.measure.column import MESSAGES, TEXT, Column
from hydra.model import Figure, number
from hydra.system import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult
from hydra.system.experiment import MARKING

PRODUCERS: Final = "dcos_producers.csv"
CONSUMERS: Final = "dcos_consumers.csv"
SOURCE: Final = "Kafka load tests on DC/OS, August 2018"
SEEDS: Final = {3: "9 August", 0: "13 August"}
"""The days of measurement of the two documents, by their number in the published tables; each had its own cluster."""

_RECORDS: Final = 10_000_000
_CONSUMED: Final = 15_000_000
_SIZES: Final = (250, 500, 1000)
_RUNS: Final = 5
_COMMON: Final[Row] = {"rate": "max", "replication_factor": 3, "acks": "1"}
_BASELINE: Final[Row] = {**_COMMON, "batch_bytes": 8196, "linger_ms": 0.0, "compression": "none"}
_LOWER: Final[Row] = {**_COMMON, "batch_bytes": 100_000, "linger_ms": 10.0, "compression": "lz4", "retries": 0}
_UPPER: Final[Row] = {**_LOWER, "batch_bytes": 200_000, "linger_ms": 100.0}
_TUNED: Final[dict[str, Row]] = {"baseline": _BASELINE, "lower": _LOWER, "upper": _UPPER}
_FETCH_MIN: Final = (1, 1_000_000)


class ParallelSetup(NamedTuple):
    """The numbers of brokers, partitions and producers of one row."""

    brokers: int
    partitions: int
    producers: int

    @property
    def name(self) -> str:
        """The row's name."""
        return f"{self.producers}-producers-{self.partitions}-partitions"


SETUPS: Final = (
    *(ParallelSetup(3, 10, producers) for producers in (1, 3, 5)),
    *(ParallelSetup(6, 10, producers) for producers in (1, 3, 5, 10, 15)),
    *(ParallelSetup(6, partitions, 15) for partitions in (20, 30)),
    *(ParallelSetup(6, 30, producers) for producers in (3, 10)),
    ParallelSetup(9, 30, 25),
)
"""The documents' setups on 6 and 9 brokers, and 1, 3 and 5 producers on 3 brokers."""

_ERRATA: Final = (
    "the averages are those of the published output lines. In the document of 13 August the latencies of 500-byte and "
    "1000-byte records are wrong: it prints their MB/s (110.74 and 86.97), but the output lines contain 503.06 ms and "
    "744.74 ms"
)
_PAYLOAD: Final = (
    "Kafka's tool repeats one payload in every record, which compression shrinks to almost nothing; so do the zeros "
    "here, but for the 24 bytes of the header"
)


# --- the runs --------------------------------------------------------------------------------------------------------


def _produced(order: ExperimentOptions, size: int, settings: Row, records: int = _RECORDS, producers: int = 1) -> Point:
    return {**produced(order, records, producers), **settings, "message_size": size}


def _size_parts(order: ExperimentOptions) -> list[ExperimentPart]:
    points = [
        {"name": f"{size}-bytes/{run}", **_produced(order, size, _BASELINE)}
        for size in _SIZES
        for run in range(1, _RUNS + 1)
    ]
    return [part("record-size", warmed(points), 3, 10, f"{SOURCE}: record sizes, {_RUNS} runs of each size")]


def _tuning_parts(order: ExperimentOptions) -> list[ExperimentPart]:
    points = [
        {"name": f"{name}/{run}", **_produced(order, 250, settings)}
        for run in range(1, _RUNS + 1)
        for name, settings in _TUNED.items()
    ]
    return [part("tuning", warmed(points), 3, 10, f"{SOURCE}: tuned for throughput, {_RUNS} runs of each tuning")]


def _consumer_parts(order: ExperimentOptions) -> list[ExperimentPart]:
    points = [
        {
            "name": f"fetch-min-bytes-{fetch}",
            **_produced(order, 250, _BASELINE, _CONSUMED),
            "clients": 1,
            "read": "stored",
            "fetch_min_bytes": fetch,
        }
        for fetch in _FETCH_MIN
    ]
    return [part("consumers", points, 3, 10, f"{SOURCE}: a consumer with and without fetch.min.bytes")]


def _parallel_parts(order: ExperimentOptions) -> list[ExperimentPart]:
    parts = []
    for brokers in dict.fromkeys(setup.brokers for setup in SETUPS):
        setups = [setup for setup in SETUPS if setup.brokers == brokers]
        points = [
            {
                "name": setup.name,
                **_produced(order, 250, _LOWER, producers=setup.producers),
                "partitions": setup.partitions,
            }
            for setup in setups
        ]
        most = max(setup.producers for setup in setups)
        about = f"{SOURCE}: producers in parallel on {brokers} brokers"
        # A host for each producer if there are enough hosts; otherwise they are spread evenly, as always.
        more = {"publisher": {"constraints": [["hostname", "UNIQUE"]]}} if order.hosts >= most else {}
        parts.append(part(f"brokers-{brokers}", warmed(points), brokers, 10, about, **more))
    return parts


# --- the tables ------------------------------------------------------------------------------------------------------

_LATENCIES: Final = (
    Column("avg_latency_ms", "ms", "mean time from send to acknowledgement", "avg latency, ms"),
    Column("max_latency_ms", "ms", "longest time from send to acknowledgement", "max latency, ms"),
    *(
        Column(f"{name}_ms", "ms", f"{title} of the time from send to acknowledgement", f"{title}, ms")
        for name, title in (("p50", "50th"), ("p95", "95th"), ("p99", "99th"), ("p99_9", "99.9th"))
    ),
)
_FIGURES: Final = (RECORDS_PER_SEC, MB_PER_SEC, *_LATENCIES[:2])
_NAMES: Final = tuple(column.name for column in _FIGURES)
_SEED: Final = Column("published", TEXT, "the day of the document with the published figures", "document of")
_LEAST: Final = Column("records_per_sec_min", "records/s", "records a second of the slowest run", "slowest run", "none")
_MOST: Final = Column("records_per_sec_max", "records/s", "records a second of the fastest run", "fastest run", "none")
_RUN_COUNT: Final = Column("runs", "", "the number of runs of which the row is the mean")


def _of_producers(producers: Sequence[Row]) -> dict[str, Figure]:
    """The figures of all producers, as in the documents' totals: sums of rates, means of latencies."""
    return {**together(producers), **{column.name: mean(producers, column.name) for column in _LATENCIES}}


def _mean_of(rows: Sequence[Row]) -> dict[str, Figure]:
    """The mean of each figure over runs, and the least and the greatest rate."""
    rates = [rate for row in rows if (rate := number(row.get(RECORDS_PER_SEC.name))) is not None]
    spread = {_LEAST.name: min(rates), _MOST.name: max(rates)} if rates else {}
    return {_RUN_COUNT.name: len(rows), **{name: mean(rows, name) for name in _NAMES}, **spread}


def _published_rows(**keys: Figure) -> list[Row]:
    return [row for row in published(PRODUCERS) if all(row[name] == value for name, value in keys.items())]


def _in_groups(done: Sequence[PartResult]) -> dict[str, list[dict[str, Figure]]]:
    """The figures of each run's producers, by setting."""
    groups: dict[str, list[dict[str, Figure]]] = {}
    for case in measured(done):
        groups.setdefault(case.name.partition("/")[0], []).append({**_of_producers(case.producers), **case.figures()})
    return groups


def _size_views(order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    groups = _in_groups(done)
    rows: list[tuple[Row, Row | None]] = []
    for size in _SIZES:
        runs = groups.get(f"{size}-bytes", [])
        for seed, day in SEEDS.items() if runs else ():
            published_row = _mean_of(_published_rows(seed=seed, section="record_size", record_bytes=size))
            known = {"record_bytes": size, "published": day, **_mean_of(runs), **of_runs(runs)}
            rows.append((known, published_row))
    size_column = Column("record_bytes", "bytes", "size of a record", "record bytes", axis="bytes of a record")
    figures = (RECORDS_PER_SEC, _LEAST, _MOST, *_FIGURES[1:])
    columns = [size_column, _SEED, _RUN_COUNT, *figures, *OF_ROW]
    notes = [f"mean of {_RUNS} runs of {order.records(_RECORDS):,} records", _ERRATA, *not_measured(done)]
    return [
        compared_table("Record sizes", columns, figures, rows, notes, x="record_bytes", y=_NAMES[:2]),
        _runs_view(done, lambda name: f"{name.partition('-')[0]} bytes"),
    ]


def _runs_view(done: Sequence[PartResult], called: Callable[[str], str]) -> ExperimentTable:
    rows: list[Row] = []
    for case in measured(done):
        name, _, run = case.name.partition("/")
        rows.append({"setting": called(name), "run": int(run), **_of_producers(case.producers), **case.marked})
    columns = [Column("setting", TEXT), Column("run"), *_FIGURES[:2], *_LATENCIES, *MARKING]
    return ExperimentTable("Every run", columns, rows)


def _tuning_views(order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    groups = _in_groups(done)
    base = mean(groups.get("baseline", []), RECORDS_PER_SEC.name)
    sections = {"baseline": "record_size", "lower": "tuned_lower", "upper": "tuned_upper"}
    gain = Column("gain_pct", "%", "increase of the records/s over the baseline", "gain, %")
    rows: list[tuple[Row, Row | None]] = []
    for name, runs in groups.items():
        for seed, day in SEEDS.items():
            means = _mean_of(runs)
            published_row = _mean_of(_published_rows(seed=seed, section=sections[name], record_bytes=250))
            published_row[gain.name] = _gain(
                published_row,
                mean(_published_rows(seed=seed, section="record_size", record_bytes=250), RECORDS_PER_SEC.name),
            )
            known = {"setting": name, "published": day, **means, gain.name: _gain(means, base), **of_runs(runs)}
            rows.append((known, published_row))
    figures = (RECORDS_PER_SEC, gain, *_FIGURES[1:])
    columns = [Column("setting", TEXT), _SEED, _RUN_COUNT, *figures, *OF_ROW]
    notes = [
        "baseline: batch.size 8196, linger.ms 0, no compression; lower: 100,000, 10, lz4; upper: 200,000, 100, lz4",
        f"{order.records(_RECORDS):,} records of 250 bytes in each run; {_PAYLOAD}",
        *not_measured(done),
    ]
    return [compared_table("Tuned for throughput", columns, figures, rows, notes), _runs_view(done, str)]


def _gain(row: Row, base: float | None) -> float | None:
    rate = number(row.get(RECORDS_PER_SEC.name))
    return (rate / base - 1) * 100 if rate is not None and base else None


_CONSUMED_FIGURES: Final = (
    RECORDS_PER_SEC,
    MB_PER_SEC,
    Column("rebalance_ms", "ms", "time until the group gave the consumer its partitions", "rebalance, ms", "none"),
    Column("fetch_records_per_sec", "records/s", "records/s after the rebalance", "fetch records/s", "none"),
    Column("fetch_mb_per_sec", "MB/s", "MB/s after the rebalance", "fetch MB/s"),
)


def _consumer_views(order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    rows: list[tuple[Row, Row | None]] = []
    for case in measured(done):
        fetch = int(case.name.removeprefix("fetch-min-bytes-"))
        figures = {name: total(case.consumers, name) for name in ("messages", *(c.name for c in _CONSUMED_FIGURES))}
        for seed, day in SEEDS.items():
            published_row = next(r for r in published(CONSUMERS) if (r["seed"], r["fetch_min_bytes"]) == (seed, fetch))
            rows.append(({"fetch_min_bytes": fetch, "published": day, **figures, **case.figures()}, published_row))
    columns = [
        Column("fetch_min_bytes", "bytes", "bytes for which a broker waits to answer a fetch", "fetch.min.bytes"),
        _SEED,
        Column("messages", MESSAGES, "messages that were read"),
        *_CONSUMED_FIGURES,
        *OF_ROW,
    ]
    notes = [
        f"the log of {order.records(_CONSUMED):,} records of 250 bytes is written first and read afterwards",
        "the rebalance takes 0 ms here unless the consumer is in a group: it has its partitions before its time begins",
        "the published second run of 13 August read records of 356 bytes; its MB/s are therefore those of larger "
        "records",
        *not_measured(done),
    ]
    return [compared_table("A consumer", columns, _CONSUMED_FIGURES, rows, notes)]


def _parallel_views(order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    totals: list[tuple[Row, Row | None]] = []
    singles: list[Row] = []
    placed: list[str] = []
    for case in measured(done):
        brokers = case.done.scenario.server.count
        setup = next(s for s in SETUPS if s.name == case.name and s.brokers == brokers)
        keys = setup._asdict()
        figures = _of_producers(case.producers)
        for day, lines in _published_of(setup).items() or [(None, [])]:
            known = {**keys, "published": day, **figures, **case.figures()}
            totals.append((known, _of_producers(lines) if lines else None))
        singles += [{**keys, "producer": n, **producer, **case.marked} for n, producer in enumerate(case.producers, 1)]
        placed.append(f"{setup.producers} producers on {setup.brokers} brokers: {_put(case.producers)}")
    keys_columns = [Column(name, "", f"the number of {name}") for name in ParallelSetup._fields]
    notes = [
        "rates are added up, latencies are means over producers, as in the documents' totals",
        f"each producer sent {order.records(_RECORDS):,} records of 250 bytes; {_PAYLOAD}",
        "the document of 9 August prints 15,193,932 records/s and 3,983.42 MB/s for its 25 producers on 15 brokers, "
        "where its lines add up to 16,329,284 and 3,893.42; this experiment goes up to nine brokers",
        *dict.fromkeys(placed),
        *not_measured(done),
    ]
    columns = [*keys_columns, _SEED, *_FIGURES, *OF_ROW]
    each = [*keys_columns, Column("producer"), Column("agent", TEXT, "its agent"), *_FIGURES[:2], *_LATENCIES, *MARKING]
    return [
        compared_table("Producers in parallel", columns, _FIGURES, totals, notes, x="producers", y=_NAMES[:1]),
        ExperimentTable("Every producer", each, singles),
    ]


def _published_of(setup: ParallelSetup) -> dict[str | None, list[Row]]:
    """The published lines of this setup with the same tuning, by the day of the document."""
    keys = {**setup._asdict(), "record_bytes": 250, "batch_size_bytes": 100_000}
    found = {day: _published_rows(seed=seed, **keys) for seed, day in SEEDS.items()}
    return {day: lines for day, lines in found.items() if lines}


def _put(producers: Sequence[Row]) -> str:
    """The agents on which the producers ran."""
    agents = Counter(str(producer.get("agent")) for producer in producers)
    if all(count == 1 for count in agents.values()):
        return "each on its own agent"
    return "several on an agent: " + ", ".join(f"{agent} {n}" for agent, n in sorted(agents.items()))


# --- the experiments -------------------------------------------------------------------------------------------------


_SHOWN: Final = (
    ("dcos-record-size", "250, 500 and 1000 bytes, five runs", 0.02, 120.0, _size_parts, _size_views),
    ("dcos-tuning", "batch, linger and lz4 against the baseline", 0.05, 95.0, _tuning_parts, _tuning_views),
    ("dcos-consumer", "fetch.min.bytes 1 and 1,000,000", 0.05, 55.0, _consumer_parts, _consumer_views),
    ("dcos-producers", "1 to 25 producers on 3 to 9 brokers", 0.002, 110.0, _parallel_parts, _parallel_views),
)
EXPERIMENTS: Final = tuple(
    experiment(parts, name=name, title=title, source=SOURCE, scale=scale, takes_s=takes_s, views=views)
    for name, title, scale, takes_s, parts, views in _SHOWN
)
