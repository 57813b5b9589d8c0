"""Network in against out: bytes into and out of each broker, compared with the algebra of 2014."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from hydra.kafkatest import record_batch_size
from hydra.kafkatest.experiments.common import (
    IN,
    INTERFACE_IN,
    INTERFACE_OUT,
    MB_TEXT,
    MIB,
    OF_ROW,
    OUT,
    Measured,
    Point,
    Row,
    experiment,
    mean_of,
    measured,
    not_measured,
    of_broker,
    part,
)
from hydra.measure.column import TEXT, Column
from hydra.model import Figure, number
from hydra.system import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult
from hydra.system.experiment import MARKING

SOURCE: Final = "Kafka network utilization (in vs. out), December 2014"

_BYTES: Final = 1000
_RATE: Final = 3000.0
"""Records/s of the producer: one machine can carry it with every number of replicas."""
_WINDOW_S: Final = 60.0
_LEAST_WINDOW_S: Final = 3.0
_HELD: Final = 0.95
"""The part of the rate below which the producer was late for most of the window, not only at its ends."""


class NetworkSetup(NamedTuple):
    """One row: the numbers of brokers, partitions, replicas, and consumers that each read everything."""

    brokers: int
    partitions: int
    replication: int
    consumers: int

    @property
    def name(self) -> str:
        """The row's name."""
        return f"p{self.partitions}-r{self.replication}-c{self.consumers}"


SETUPS: Final = (
    *(NetworkSetup(3, p, r, c) for p in (3, 12) for r in (1, 2, 3) for c in (0, 1)),
    *(NetworkSetup(6, 12, r, c) for r in (1, 2, 3, 6) for c in (0, 2)),
)


class BrokerTraffic(NamedTuple):
    """Bytes/s into and out of one broker."""

    incoming: float
    outgoing: float


def algebra(rate: float, brokers: int, replication: int, consumers: int) -> BrokerTraffic:
    """The traffic of one broker that the document expects, in the unit of ``rate``.

    in = tr/nb + tr/nb·(rf − 1), out = tr/nb·(rf − 1) + what its consumers read; rf is at most the number of brokers.

    Args:
        rate: tr, the rate of all producers together.
        brokers: nb, the number of brokers.
        replication: rf, the number of replicas.
        consumers: the number of consumers of everything; each reads tr/nb from every broker.
    """
    share = rate / brokers
    copies = min(replication, brokers)
    return BrokerTraffic(share * copies, share * (copies - 1 + consumers))


def _parts(order: ExperimentOptions) -> list[ExperimentPart]:
    parts = []
    for brokers in dict.fromkeys(setup.brokers for setup in SETUPS):
        points: list[Point] = [
            {
                "name": setup.name,
                "clients": setup.consumers,
                "partitions": setup.partitions,
                "replication_factor": setup.replication,
                "rate": _RATE,
                "message_size": _BYTES,
                "payload": "random",
                "msg_batch": 100,
                "linger_ms": 20.0,
                "acks": "1",
                "duration_s": max(_WINDOW_S * order.scale, _LEAST_WINDOW_S),
            }
            for setup in SETUPS
            if setup.brokers == brokers
        ]
        about = f"{SOURCE}: {brokers} brokers"
        parts.append(part(f"brokers-{brokers}", points, brokers, 3, about))
    return parts


# --- the tables ------------------------------------------------------------------------------------------------------

_KEYS: Final = tuple(Column(name, "", f"how many {name}") for name in ("brokers", "partitions", "replication"))
_CONSUMERS: Final = Column("consumers", "", "the number of consumers, of which each reads all records")
_SENT: Final = Column("producers_mb_s", "MB/s", f"payload that the producer sent, over the window; {MB_TEXT}", "sent")
_OVERHEAD: Final = Column(
    "record_overhead_pct",
    "%",
    "bytes that Kafka's record batches add to the payload, in %, computed from the batch format and the measured "
    "records per batch",
    "record overhead",
)


def _flow_columns(name: str, what: str, whose: str) -> list[Column]:
    return [
        Column(
            f"{name}_mb_s", "MB/s", f"bytes {what} a broker, mean over brokers; {whose}; {MB_TEXT}", f"{what} ({whose})"
        ),
        Column(f"{name}_deviation_pct", "%", "deviation of the measured bytes from the algebra", "deviation"),
    ]


_COUNTED: Final = (("in", "into", "brokers' metrics", IN), ("out", "out of", "brokers' metrics", OUT))
_SEEN: Final = (
    ("interface_in", "into", "interface", INTERFACE_IN),
    ("interface_out", "out of", "interface", INTERFACE_OUT),
)


def _views(_: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    known = {(setup.brokers, setup.name): setup for setup in SETUPS}
    rows: list[Row] = []
    each: list[Row] = []
    late: list[str] = []
    for run in measured(done):
        count = run.done.scenario.server.count
        setup = known.get((count, run.name))
        sent = number(run.row.get("sent"))
        if setup is None or sent is None:
            continue
        rate = sent * _BYTES / run.done.scenario.sweep.length_s(run.name)
        if (held := number(run.row.get("avg_tx_rate_pps"))) is not None and held < _HELD * _RATE:
            late.append(f"{count} brokers {setup.name} ({held:.0f}/s)")
        rows.append({**setup._asdict(), **_row(setup, rate, run)})
        each += [
            {
                **setup._asdict(),
                "broker": name,
                **{f"{key}_mb_s": _mib(of_broker(its, of)) for key, _, _, of in _FLOWS},
                **run.marked,
            }
            for name, its in sorted(run.brokers.items())
        ]
    columns = [
        *_KEYS,
        _CONSUMERS,
        _SENT,
        Column("expected_in_mb_s", "MB/s", f"bytes into a broker by the algebra; {MB_TEXT}", "in by the algebra"),
        *_flow_columns(*_COUNTED[0][:3]),
        Column("expected_out_mb_s", "MB/s", f"bytes out of a broker by the algebra; {MB_TEXT}", "out by the algebra"),
        *_flow_columns(*_COUNTED[1][:3]),
        _OVERHEAD,
        *(
            column
            for flow in _SEEN
            if any(f"{flow[0]}_mb_s" in row for row in rows)
            for column in _flow_columns(*flow[:3])
        ),
        *OF_ROW,
    ]
    notes = [
        "algebra: in = tr/nb + tr/nb·(rf − 1), out = tr/nb·(rf − 1) + tr/nb for each consumer that reads all records; "
        "tr is the payload that the producer sent, nb the brokers, rf the replicas, at most nb",
        "the brokers' metrics count record batches: payload and record overhead, after compression. The other part of "
        "the deviation is the backlog of producers, followers and consumers at the window's ends",
        "an interface counts all traffic, with requests, fetch responses, acknowledgements and the headers of TCP and "
        "IP. The interface's figures are known if each broker's agent has its own network namespace",
        *([f"{_NOT_CARRIED}: {', '.join(late)}"] if late else []),
        *not_measured(done),
    ]
    singles = [
        *_KEYS,
        _CONSUMERS,
        Column("broker", TEXT, "its name"),
        *(
            _flow_columns(*flow[:3])[0]
            for flow in _FLOWS
            if any(row.get(f"{flow[0]}_mb_s") is not None for row in each)
        ),
        *MARKING,
    ]
    return [
        ExperimentTable("Network in against out", columns, rows, notes),
        ExperimentTable("Every broker", singles, each),
    ]


_FLOWS: Final = (*_COUNTED, *_SEEN)
_NOT_CARRIED: Final = f"the machine did not carry {_RATE:g} records/s, and much traffic followed the window"


def _row(setup: NetworkSetup, rate: float, run: Measured) -> dict[str, Figure]:
    flow = algebra(rate, setup.brokers, setup.replication, setup.consumers)
    found: dict[str, Figure] = {
        _SENT.name: _mib(rate),
        "expected_in_mb_s": _mib(flow.incoming),
        "expected_out_mb_s": _mib(flow.outgoing),
        _OVERHEAD.name: _overhead_pct(number(run.row.get("records_per_batch"))),
        **run.figures(),
    }
    for key, what, _, names in _FLOWS:
        seen = mean_of(run.brokers, names)
        expected = flow.incoming if what == "into" else flow.outgoing
        if seen is not None:
            found[f"{key}_mb_s"] = _mib(seen)
            found[f"{key}_deviation_pct"] = 100 * (seen / expected - 1) if expected else None
    return found


def _overhead_pct(records: float | None) -> float | None:
    """The overhead of a batch of ``records`` records over their payload, in percent."""
    if not records:
        return None
    # A record's own overhead hardly depends on its position; all records share the header.
    one = record_batch_size.record_bytes(_BYTES, round(records) // 2) + record_batch_size.BATCH_HEADER_BYTES / records
    return 100 * (one / _BYTES - 1)


def _mib(value: float | None) -> float | None:
    return None if value is None else value / MIB


EXPERIMENTS: Final = (
    experiment(
        _parts,
        name="network-in-out",
        title="bytes into and out of each broker against the algebra, over brokers, partitions and replicas",
        source=SOURCE,
        scale=0.05,
        takes_s=115.0,
        views=_views,
    ),
)
