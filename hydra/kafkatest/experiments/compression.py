"""Partitions against compression: the effect of more partitions on brokers with compressed batches, as in 2014."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import click

from hydra.kafkatest.experiments.common import (
    IN,
    OF_ROW,
    OUT,
    RECORDS_PER_SEC,
    Point,
    Row,
    T,
    compared_table,
    experiment,
    mean_of,
    measured,
    not_measured,
    of_broker,
    part,
    published,
    total,
    warm_up,
)
from hydra.measure.column import TEXT, Column
from hydra.model import Figure
from hydra.model.base import MOST_PUBLISHERS
from hydra.options.flag_types import WholeNumberRange
from hydra.system import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult
from hydra.system.experiment import MARKING

FILE: Final = "partitions_compression.csv"
SOURCE: Final = "Kafka partitions when using compression, December 2014"

_PARTITIONS: Final = (6, 9, 12, 15)
_CODECS: Final = ("snappy", "gzip", "lz4", "zstd", "none")
_BROKERS: Final = 3
_PRODUCERS: Final = 300
_FEWEST_PRODUCERS: Final = 6
_WINDOW_S: Final = 300.0
_LEAST_WINDOW_S: Final = 2.0
_RATIO: Final = 4.0
_WARM_UP_RECORDS: Final = 100_000
_BUFFER_BYTES: Final = 2_097_152
"""Buffer of each producer: messages that wait at the window's end are sent within 1 to 2 s, and accounted for."""
_KB: Final = 1000.0

PRODUCERS: Final = click.Option(
    ["--producers"],
    type=WholeNumberRange(1, MOST_PUBLISHERS),
    metavar="N",
    help="Number of producers (partitions-compression).",
)


def _producers(order: ExperimentOptions) -> int:
    given = order.options.get("producers")
    return int(given) if given is not None else max(round(_PRODUCERS * order.scale), _FEWEST_PRODUCERS)


def _parts(order: ExperimentOptions) -> list[ExperimentPart]:
    settings = {
        "rate": "max",
        "acks": "1",
        "batch_bytes": 8192,
        "linger_ms": 5.0,
        "buffer_memory": _BUFFER_BYTES,
        "replication_factor": 2,
        "payload": "json",
        "payload_ratio": _RATIO,
        "message_size_min": 2000,
        "message_size": 2500,
    }
    step = {"publishers": _producers(order), "duration_s": max(_WINDOW_S * order.scale, _LEAST_WINDOW_S)}
    points: list[Point] = [
        {"name": f"{codec}/{partitions}", **settings, **step, "compression": codec, "partitions": partitions}
        for codec in _CODECS
        for partitions in _PARTITIONS
    ]
    listed = [warm_up(points[0], _WARM_UP_RECORDS), *points]
    return [part("compression", listed, _BROKERS, _PARTITIONS[0], f"{SOURCE}: codecs and partitions")]


# --- the tables ------------------------------------------------------------------------------------------------------

_CODEC: Final = Column("compression", TEXT, "the producers' codec")
_COUNT: Final = Column("partitions", "", "partitions of the topic, with two replicas each", axis="partitions")
_CPU: Final = Column("avg_cpu_pct", "%", "mean CPU of a broker; of one core here, of eight as published", "broker CPU")
_NETWORK: Final = Column(
    "network_kbytes_per_sec", "kB/s", "mean record batches into a broker, from producers and replicas", "broker in"
)
_SENT: Final = Column("out_kbytes_per_sec", "kB/s", "mean record batches out of a broker", "broker out")
_MESSAGES: Final = Column("messages_per_sec_per_broker", "records/s", "mean, into a broker", "records/s per broker")
_ACHIEVED: Final = Column("compression_ratio", "", "payload over compressed bytes, by the producers' counts", "ratio")
_BATCH: Final = Column("records_per_batch", "records", "mean records in a batch that was sent", "records/batch")
_FIGURES: Final = (_CPU, _NETWORK, _MESSAGES)
_OF_BROKER: Final = {
    _CPU.name: (("cpu_seconds_per_s",), 100.0),
    _NETWORK.name: (IN, 1 / _KB),
    _SENT.name: (OUT, 1 / _KB),
    _MESSAGES.name: (("messages_per_s",), 1.0),
}
"""The brokers' metrics for each figure, and the factor to its unit."""


def _views(order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    published_rows = {(row["compression"], row["partitions"]): row for row in published(FILE)}
    rows: list[tuple[Row, Row | None]] = []
    each: list[Row] = []
    for run in measured(done):
        codec, _, partitions = run.name.partition("/")
        key: dict[str, Figure] = {"compression": codec, "partitions": int(partitions)}
        rate = total(run.producers, RECORDS_PER_SEC.name)
        known = {
            **key,
            RECORDS_PER_SEC.name: rate,
            **run.figures(_ACHIEVED.name, _BATCH.name),
            **_of(run.brokers, mean_of),
        }
        rows.append((known, published_rows.get((codec, int(partitions)))))
        each += [
            {**key, "broker": name, **_of(its, of_broker), **run.marked} for name, its in sorted(run.brokers.items())
        ]
    notes = [
        f"{_producers(order)} producers (--producers) instead of the published {_PRODUCERS}; JSON records of 2,000 to "
        f"2,500 bytes made to compress {_RATIO:g} times in large batches; a batch of 8,192 bytes holds three or four; "
        "the measured ratio is in the table",
        "published with snappy only, on brokers of eight cores behind a link of 125,000 kB/s, in peaks for 12 and 15 "
        "partitions",
        *not_measured(done),
    ]
    columns = [_CODEC, _COUNT, RECORDS_PER_SEC, _BATCH, _ACHIEVED, *_FIGURES, _SENT, *OF_ROW]
    picture = {"x": "partitions", "y": (RECORDS_PER_SEC.name,)}
    singles = [_CODEC, _COUNT, Column("broker", TEXT, "its name"), _CPU, _NETWORK, _SENT, _MESSAGES, *MARKING]
    return [
        compared_table("Partitions against compression", columns, _FIGURES, rows, notes, **picture),
        ExperimentTable("Every broker", singles, each),
    ]


def _of(measured_: T, figure: Callable[[T, Sequence[str]], float | None]) -> dict[str, Figure]:
    """The figures of one broker, or of all brokers."""
    found = {name: (figure(measured_, counted), unit) for name, (counted, unit) in _OF_BROKER.items()}
    return {name: None if value is None else value * unit for name, (value, unit) in found.items()}


EXPERIMENTS: Final = (
    experiment(
        _parts,
        name="partitions-compression",
        title="five codecs on 6 to 15 partitions, many producers",
        source=SOURCE,
        scale=0.01,
        takes_s=130.0,
        views=_views,
        options=(PRODUCERS,),
    ),
)
