"""The four design goals of the load tests on DC/OS: the speed of each preset, and the cost of a killed broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hydra.kafkatest.experiments.common import (
    ACCOUNT,
    EXACT,
    MB_PER_SEC,
    RECORDS_PER_SEC,
    Point,
    below_bound,
    experiment,
    measured,
    not_measured,
    part,
    produced,
    thousandth,
    together,
)
from hydra.kafkatest.presets import PRESETS
from hydra.measure.column import MESSAGES, TEXT, Column
from hydra.model import Figure, number
from hydra.system import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult
from hydra.system.experiment import MARKING

NAME: Final = "design-goals"
SOURCE: Final = "Kafka load tests on DC/OS, August 2018"

_RECORDS: Final = 10_000_000
_BYTES: Final = 250
_BROKERS: Final = 3
_PARTITIONS: Final = 6
_RATE: Final = 2000.0
"""Records/s in the steps with a killed broker and with measured latencies: far below the cluster's capacity."""
_WINDOW_S: Final = 600.0
_LEAST_WINDOW_S: Final = 15.0
"""The shortest window in s: partitions have new leaders some seconds after the kill."""
_KILLED_AT: Final = 0.3

_FAST, _PACED, _KILLED = "full-speed", "paced", "broker-killed"


def _points(order: ExperimentOptions) -> list[Point]:
    window_s = max(_WINDOW_S * order.scale, _LEAST_WINDOW_S)
    paced = {"rate": _RATE, "clients": 1, "message_size": _BYTES}
    return [
        {"name": _FAST, **produced(order, _RECORDS, message_size=_BYTES)},
        {"name": _PACED, **paced, "duration_s": window_s / 3},
        {"name": _KILLED, **paced, "duration_s": window_s, "kill_broker_at": _KILLED_AT},
    ]


def _parts(order: ExperimentOptions) -> list[ExperimentPart]:
    more: dict[str, Any] = {"kafka": {"partitions": _PARTITIONS, "replication_factor": 3}, "drain_max_s": 60.0}
    return [
        part(name, _points(order), _BROKERS, _PARTITIONS, f"{SOURCE}: {preset.about}", preset=name, **more)
        for name, preset in PRESETS.items()
    ]


# --- the tables ------------------------------------------------------------------------------------------------------

_PRESET: Final = Column("preset", TEXT, "the design goal")
_US: Final = {
    "ack_p50_ms": "ack_p50_us",
    "ack_p99_ms": "ack_p99_us",
    "p50_ms": "latency_p50_us",
    "p99_ms": "latency_p99_us",
}
_KILLED_LATENCY: Final = "latency_p999_us"
_LATENCIES: Final = (
    Column("ack_p50_ms", "ms", "median time from send to acknowledgement at the paced rate", "ack p50"),
    Column("ack_p99_ms", "ms", "99th percentile of that time", "ack p99"),
    Column("p50_ms", "ms", "median time from a record's due time to its consumer at the paced rate", "consumed p50"),
    Column("p99_ms", "ms", "99th percentile of that time", "consumed p99"),
)
_FAULT: Final = (
    Column("killed_sent", MESSAGES, "messages sent in the step with a killed broker", "sent"),
    Column("killed_acknowledged", MESSAGES, "messages of that step that were acknowledged", "acknowledged"),
    Column("killed_refused", MESSAGES, "messages of that step that were not acknowledged", "not acknowledged"),
    Column("killed_lost", MESSAGES, "messages that were acknowledged but that the consumer did not receive", "lost"),
    Column("killed_duplicates", MESSAGES, "messages that the consumer received more than once", "duplicates"),
    Column("killed_p999_ms", "ms", "99.9th percentile of the time to the consumer", "consumed p99.9"),
)


def _views(_: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    rows = [{"preset": each.part.name, **_of_preset(each)} for each in done]
    notes = [
        f"three brokers, each a KRaft voter; one of them, the leader of a partition, was killed with SIGKILL after "
        f"{100 * _KILLED_AT:.0f} % of the window, at {_RATE:g} records/s",
        "SIGKILL tests replication, not fsync: the data that a killed process has written stays in the host's page "
        "cache, which a power cut would delete",
        *below_bound(done, (*_US.values(), _KILLED_LATENCY)),
        *not_measured(done),
    ]
    columns = [_PRESET, RECORDS_PER_SEC, MB_PER_SEC, *_LATENCIES, *_FAULT, EXACT, *MARKING]
    return [ExperimentTable("Design goals", columns, rows, notes), *([_settings_view()] if done else [])]


def _of_preset(done: PartResult) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for run in measured([done]):
        if run.name == _FAST:
            found |= together(run.producers)
        elif run.name == _PACED:
            found |= {ms: thousandth(run.row.get(us)) for ms, us in _US.items()}
        elif run.name == _KILLED:
            sent, acknowledged = number(run.row.get("sent")), number(run.row.get("total_tx"))
            found |= {
                "killed_sent": sent,
                "killed_acknowledged": acknowledged,
                "killed_refused": None if sent is None or acknowledged is None else sent - acknowledged,
                "killed_lost": run.row.get("lost"),
                "killed_duplicates": run.row.get("duplicates"),
                "killed_p999_ms": thousandth(run.row.get(_KILLED_LATENCY)),
                ACCOUNT: run.row.get(ACCOUNT),
            }
    for column in MARKING:
        reasons = [f"{run.name}: {why}" for run in measured([done]) if (why := run.marked[column.name])]
        found[column.name] = "; ".join(reasons) or None
    return found


def _settings_view() -> ExperimentTable:
    """The settings of each preset, with the reasons."""
    rows = [
        {"preset": name, "key": key, "value": str(value), "reason": why}
        for name, preset in PRESETS.items()
        for key, (value, why) in preset.values.items()
    ]
    columns = [
        _PRESET,
        Column("key", TEXT, "the key in a scenario"),
        Column("value", TEXT, "the key's value"),
        Column("reason", TEXT, "the reason for the value"),
    ]
    return ExperimentTable("What each preset sets", columns, rows)


EXPERIMENTS: Final = (
    experiment(
        _parts,
        name=NAME,
        title="throughput, latency, durability, availability: speed, and what a killed broker costs",
        source=SOURCE,
        scale=0.02,
        takes_s=165.0,
        views=_views,
    ),
)
