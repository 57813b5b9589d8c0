"""The partition formula of the load tests on DC/OS: the partitions for a target rate, and a run that checks them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from hydra.events.value_formatting import counted
from hydra.kafkatest.experiments.common import (
    MB_TEXT,
    MIB,
    OF_ROW,
    RECORDS_PER_SEC,
    Point,
    familiar_lines,
    measured,
    not_measured,
    of_runs,
    part,
    produced,
    total,
)
from hydra.kafkatest.experiments.network import algebra
from hydra.kafkatest.settings import MOST_PARTITIONS
from hydra.measure.column import TEXT, Column
from hydra.model import Figure
from hydra.options.flag_types import FiniteFloatRange, WholeNumberRange
from hydra.system import Experiment, ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

NAME: Final = "partition-formula"
SOURCE: Final = "Kafka load tests on DC/OS, August 2018"
TARGET_RATE: Final = 10_000_000.0
"""The document's example in records/s, which ``--scale`` multiplies."""

_RECORDS: Final = 10_000_000
_BYTES: Final = 250
_RUNS: Final = 5
_MOST_HERE: Final = 8
"""The most partitions for one host, with a producer for each."""

_MEASURE, _PLANNED = "measure", "planned"
_PRODUCED, _CONSUMED = "one-producer", "one-consumer"

OPTIONS: Final = (
    click.Option(
        ["--target-rate"],
        type=FiniteFloatRange(min=1),
        metavar="RATE",
        help="Records/s that the topic must carry (partition-formula; default: the published rate times --scale).",
    ),
    click.Option(
        ["--most-partitions"],
        type=WholeNumberRange(1, MOST_PARTITIONS),
        metavar="N",
        help=f"Largest number of partitions to run (partition-formula; default: {_MOST_HERE} for each host).",
    ),
    click.Option(
        ["--brokers"],
        type=WholeNumberRange(1, 9),
        metavar="N",
        help="Number of brokers (partition-formula; default: 3).",
    ),
)


@dataclass(frozen=True, slots=True)
class MeanRate:
    """A mean rate of several runs, and half the width of its 95 % confidence interval (Student's), records/s."""

    mean: float
    half: float | None

    def needed(self, target: float) -> tuple[float, float, float]:
        """Partitions for a target rate, and the limits of their interval (inf if it has no upper limit)."""
        half = math.inf if self.half is None else self.half
        low = target / (self.mean + half)
        return target / self.mean, low, target / (self.mean - half) if half < self.mean else math.inf


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """The measured rates, and the partitions that follow: ``planned`` are needed, ``run`` are measured."""

    producer: MeanRate
    consumer: MeanRate
    target: float
    most: int

    @property
    def needed(self) -> tuple[float, float, float]:
        """max(T/P, T/C), and the limits of its interval."""
        pairs = zip(self.producer.needed(self.target), self.consumer.needed(self.target), strict=True)
        figure, low, high = (max(pair) for pair in pairs)
        return figure, low, high

    @property
    def planned(self) -> int:
        """The whole number of partitions that the target needs."""
        return math.ceil(self.needed[0])

    @property
    def run(self) -> int:
        """The number of partitions of the second run."""
        return min(self.planned, self.most)


def _brokers(order: ExperimentOptions) -> int:
    return int(order.options.get("brokers") or 3)


def plan_of(order: ExperimentOptions, done: Sequence[PartResult]) -> PartitionPlan | None:
    """The plan; None until both rates are measured."""
    rates: dict[str, list[float]] = {_PRODUCED: [], _CONSUMED: []}
    for run in measured(done):
        kind = run.name.partition("/")[0]
        if kind in rates:
            rate = total(run.producers if kind == _PRODUCED else run.consumers, RECORDS_PER_SEC.name)
            rates[kind] += [rate] if rate else []
    if not all(rates.values()):
        return None
    most = int(order.options.get("most_partitions") or _MOST_HERE * order.hosts)
    # Imported late, as it loads numpy.
    from hydra.sweep.repetition import mean_and_interval

    producer, consumer = (MeanRate(*mean_and_interval(rates[kind])) for kind in (_PRODUCED, _CONSUMED))
    wanted = order.options.get("target_rate")
    return PartitionPlan(producer, consumer, TARGET_RATE * order.scale if wanted is None else float(wanted), most)


# --- the runs --------------------------------------------------------------------------------------------------------


_TUNED: Final[Point] = {
    "message_size": _BYTES,
    "acks": "1",
    "batch_bytes": 100_000,
    "linger_ms": 10.0,
    "compression": "lz4",
}


def _measure(order: ExperimentOptions) -> ExperimentPart:
    step = produced(order, _RECORDS, **_TUNED)
    points: list[Point] = [
        point
        for run in range(1, _RUNS + 1)
        for point in (
            {"name": f"{_PRODUCED}/{run}", **step},
            {"name": f"{_CONSUMED}/{run}", **step, "clients": 1, "read": "stored"},
        )
    ]
    about = f"{SOURCE}: one producer to one partition, one partition to one consumer"
    return part(_MEASURE, points, _brokers(order), 1, about)


def _planned(order: ExperimentOptions, plan: PartitionPlan) -> ExperimentPart:
    step = produced(order, _RECORDS, plan.run, partitions=plan.run, **_TUNED)
    points: list[Point] = [
        {"name": "producers", **step},
        {"name": "consumers", **step, "clients": plan.run, "read": "stored", "group": "plan"},
    ]
    about = f"{SOURCE}: {counted(plan.run, 'partition')}, a producer and a consumer for each"
    return part(_PLANNED, points, _brokers(order), plan.run, about)


def _next_part(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentPart | None:
    names = {each.part.name for each in done}
    if _MEASURE not in names:
        return _measure(order)
    plan = plan_of(order, done)
    return None if plan is None or _PLANNED in names else _planned(order, plan)


# --- the tables ------------------------------------------------------------------------------------------------------

_WHAT: Final = Column("what", TEXT, "the rate")
_INTERVAL: Final = Column("interval", "records/s", "half the width of Student's 95 % confidence interval", "±")
_PARTITIONS: Final = Column("partitions", "", "partitions that the target needs by this rate")
_LOW: Final = Column(
    "partitions_low", "", "the lower limit of the confidence interval of the rate with these partitions", "at least"
)
_HIGH: Final = Column(
    "partitions_high", "", "the upper limit of the confidence interval of the rate with these partitions", "at most"
)


def _views(order: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    plan = plan_of(order, done)
    if plan is None:
        return [ExperimentTable("Partition formula", [_WHAT, RECORDS_PER_SEC], [], not_measured(done))]
    return [_formula(plan, done), _brokers_need(order, plan), _comparison(plan, done)]


def _formula(plan: PartitionPlan, done: Sequence[PartResult]) -> ExperimentTable:
    runs = [(run.name.partition("/")[0], run.figures()) for run in measured(done)]
    rows: list[dict[str, Figure]] = [
        {
            "what": what,
            RECORDS_PER_SEC.name: estimate.mean,
            "interval": estimate.half,
            **_limits(estimate.needed(plan.target)),
            **of_runs([figures for name, figures in runs if name == kind]),
        }
        for kind, what, estimate in (
            (_PRODUCED, "P: one producer to one partition", plan.producer),
            (_CONSUMED, "C: one partition to one consumer", plan.consumer),
        )
    ]
    rows.append({"what": "max(T/P, T/C)", RECORDS_PER_SEC.name: plan.target, **_limits(plan.needed)})
    notes = [
        f"T = {plan.target:,.0f} records/s of {_BYTES} bytes need {counted(plan.planned, 'partition')}; P and C are "
        f"means of {_RUNS} runs, tuned for throughput (batches of 100,000 bytes, linger 10 ms, lz4, acks 1)",
        "the document: T of 10 million and P of 330,000 make 30 partitions",
    ]
    return ExperimentTable(
        "Partition formula", [_WHAT, RECORDS_PER_SEC, _INTERVAL, _PARTITIONS, _LOW, _HIGH, *OF_ROW], rows, notes
    )


def _limits(needed: tuple[float, float, float]) -> dict[str, Figure]:
    figure, low, high = needed
    return {
        "partitions": figure,
        "partitions_low": low,
        "partitions_high": high if math.isfinite(high) else None,
    }


def _brokers_need(order: ExperimentOptions, plan: PartitionPlan) -> ExperimentTable:
    """Network and disk that the target needs on each broker, by the algebra of ``network.py`` with one consumer."""
    brokers = _brokers(order)
    rate = plan.target * _BYTES
    rows: list[dict[str, Figure]] = []
    for replication in range(1, min(brokers, 3) + 1):
        flow = algebra(rate, brokers, replication, 1)
        rows.append(
            {
                "brokers": brokers,
                "replication": replication,
                "in_mb_s": flow.incoming / MIB,
                "out_mb_s": flow.outgoing / MIB,
                "disk_mb_s": flow.incoming / MIB,
                "disk_gb_hour": flow.incoming * 3600 / 1e9,
            }
        )
    columns = [
        Column("brokers", "", "the number of brokers"),
        Column("replication", "", "replicas of each partition"),
        Column("in_mb_s", "MB/s", f"bytes into each broker; {MB_TEXT}", "network in"),
        Column(
            "out_mb_s", "MB/s", f"bytes out of each broker if every record is consumed once; {MB_TEXT}", "network out"
        ),
        Column("disk_mb_s", "MB/s", f"bytes written by each broker; {MB_TEXT}", "disk"),
        Column("disk_gb_hour", "GB", "bytes kept by each broker for every hour of retention", "disk an hour"),
    ]
    notes = ["the figures are upper limits for the payload: before compression, without the overhead of records"]
    return ExperimentTable("Network and disk that each broker needs for the target rate", columns, rows, notes)


def _comparison(plan: PartitionPlan, done: Sequence[PartResult]) -> ExperimentTable:
    rows: list[dict[str, Figure]] = []
    for run in measured(done):
        which = {"producers": (plan.producer, run.producers), "consumers": (plan.consumer, run.consumers)}.get(run.name)
        if which is None:
            continue
        one, clients = which
        predicted, reached = plan.run * one.mean, total(clients, RECORDS_PER_SEC.name)
        rows.append(
            {
                "what": run.name,
                "partitions": plan.run,
                "predicted": predicted,
                RECORDS_PER_SEC.name: reached,
                "share": reached / predicted if reached is not None else None,
                **run.figures(),
            }
        )
    notes = [
        f"run with {counted(plan.run, 'partition')}"
        + (f" of the {plan.planned} planned, the most that --most-partitions allows" if plan.run < plan.planned else "")
        + ", a producer and a member of one consumer group for each",
        "the formula assumes that the rates of partitions add up: the ratio shows how well this is true",
        *not_measured(done),
    ]
    columns = [
        _WHAT,
        Column("partitions", "", "partitions of the run"),
        Column("predicted", "records/s", "partitions times P or C"),
        RECORDS_PER_SEC,
        Column("share", "", "measured / predicted", "ratio"),
        *OF_ROW,
    ]
    return ExperimentTable("Predicted beside measured", columns, rows, notes)


EXPERIMENTS: Final = (
    Experiment(
        name=NAME,
        title="max(T/P, T/C): partitions for a target rate, then a run with that number",
        source=SOURCE,
        scale=0.05,
        takes_s=90.0,
        next_part=_next_part,
        views=_views,
        options=OPTIONS,
        lines=familiar_lines,
    ),
)
