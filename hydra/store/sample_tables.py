"""The tables of a run's database, and those of samples and time series in it."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, Final

import msgspec

from hydra.measure.observation import Observation
from hydra.model import (
    BusyThread,
    Histogram,
    HostCounters,
    HostSample,
    MachineActivity,
    StepPlan,
    TcpConnections,
    ThreadSample,
    TimeSeriesFacts,
    TimeSeriesInterval,
)
from hydra.store.client_rows import STORED
from hydra.wire.histogram import merge

FORMAT: Final = 5
"""``user_version`` of the database. Runs with another number are rejected; earlier numbers were never released."""

_REPORTED: Final = {name: "REAL" if column.items == "fraction" else "INTEGER" for name, column in STORED.items()}

SCHEMA: Final = (
    """
CREATE TABLE run (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL              -- JSON: scenario (redacted), versions, machines, limits, command line, times
) WITHOUT ROWID;
CREATE TABLE columns (               -- what the names in steps.figures mean
    name TEXT PRIMARY KEY,
    unit TEXT NOT NULL,
    help TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE steps (
    epoch INTEGER PRIMARY KEY,
    status TEXT NOT NULL CHECK (status IN ('ok', 'failed', 'skipped')),
    reason TEXT NOT NULL,
    plan TEXT NOT NULL,              -- JSON of model.StepPlan
    figures TEXT NOT NULL,           -- JSON object by name of the column; evidence is an object itself
    start_ns INTEGER NOT NULL,       -- the window, on the step's clock (wall time, ns)
    stop_ns INTEGER NOT NULL
);
CREATE TABLE clients (               -- one row per client per step
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    client INTEGER NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('publisher', 'subscriber')),
    state TEXT NOT NULL CHECK (state IN ('ok', 'dead', 'silent')),
    agent TEXT NOT NULL,             -- where it ran; the launch events have the agent's host name
    cohort INTEGER NOT NULL,         -- 1: member of the step's cohort
    -- What it reported, NULL without a report; first_ns and last_ns since the window's start.
    -- subscriber: messages are distinct expected ones received; in_window those received by the end of the step;
    --     missing those never received; p50_us, p99_us and max_us are of latency
    -- publisher: messages are those sent; in_window those acknowledged; missing those that failed; p50_us, p99_us and
    --     max_us are of send time - due time
"""
    + "".join(f"    {name} {kind},\n" for name, kind in _REPORTED.items())
    + """\
    missing_ranges TEXT,             -- JSON {publisher: [[first, last], ...]}, capped; NULL: none
    truncated INTEGER NOT NULL,      -- 1: there were more ranges than that
    more TEXT,                       -- JSON of what only few clients have (absent, drain, ...); NULL: nothing
    PRIMARY KEY (epoch, client)
) WITHOUT ROWID;
CREATE TABLE histograms (
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    name TEXT NOT NULL,              -- latency, cohort_latency, lag, ack
    min_us INTEGER NOT NULL,
    max_us INTEGER NOT NULL,
    hdr BLOB NOT NULL,               -- HdrHistogram V2, compressed: the values from 0 on
    below_zero TEXT,                 -- JSON [index, count, ...] of the others; NULL: none
    PRIMARY KEY (epoch, name)
) WITHOUT ROWID;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    time_ns INTEGER NOT NULL,        -- wall time
    epoch INTEGER,                   -- the step in which it happened, NULL between steps
    kind TEXT NOT NULL,              -- its category: several kinds may share one
    detail TEXT NOT NULL,            -- text and remedy
    data TEXT NOT NULL               -- JSON of hydra.events.event.EventData
);
CREATE TABLE servers (               -- what servers reported for a step
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    server TEXT NOT NULL,
    figures TEXT NOT NULL,           -- JSON object: rates (x_per_s) and means of gauges by name
    PRIMARY KEY (epoch, server)
);
CREATE TABLE clocks (                -- CLOCK_MONOTONIC of each agent's host
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    agent TEXT NOT NULL,
    offset_ns INTEGER NOT NULL,      -- the host's - the controller's when the step was started
    rate_ppb INTEGER NOT NULL,       -- how much faster than the controller's it was taken to run, in 1e-9
    error_ns INTEGER NOT NULL,       -- how wrong the step's clock can have been there in the window
    rtt_min_ns INTEGER NOT NULL,     -- the shortest round trip that this is known from
    same_host INTEGER NOT NULL,      -- 1: the controller's own clock
    jumps INTEGER NOT NULL,          -- how often what was known had to be given up
    PRIMARY KEY (epoch, agent)
) WITHOUT ROWID;
CREATE TABLE agent_hosts (
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    agent TEXT NOT NULL,
    host TEXT NOT NULL,              -- name of the controller's own host, or the first agent of the same host
    PRIMARY KEY (epoch, agent)
) WITHOUT ROWID;
CREATE TABLE host_counters (
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    host TEXT NOT NULL,
    time_ns INTEGER NOT NULL,        -- on the step's clock
    counters TEXT NOT NULL           -- JSON of model.HostCounters: since boot
);
CREATE INDEX host_counters_of_step ON host_counters (epoch, host, time_ns);
CREATE TABLE threads (
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    agent TEXT NOT NULL,
    time_ns INTEGER NOT NULL,        -- on the step's clock
    group_id TEXT NOT NULL,
    busiest TEXT NOT NULL,           -- JSON [model.BusyThread, ...]: % of the time since the sample before
    role TEXT NOT NULL,              -- publisher, subscriber or server
    connections TEXT                 -- JSON of model.Connections since the sample before; NULL: not known
);
CREATE INDEX threads_of_step ON threads (epoch, agent, time_ns);
CREATE TABLE machine_activity (
    epoch INTEGER NOT NULL REFERENCES steps (epoch),
    host TEXT NOT NULL,
    activity TEXT NOT NULL,          -- JSON of model.MachineActivity: what happened apart from the run
    PRIMARY KEY (epoch, host)
) WITHOUT ROWID;
CREATE TABLE courses (               -- steps whose seconds are kept, also those that never ended
    epoch INTEGER PRIMARY KEY,
    plan TEXT NOT NULL,              -- JSON of model.StepPlan, as it was carried out
    facts TEXT NOT NULL              -- JSON of model.TimeSeriesFacts
);
CREATE TABLE seconds (               -- counts of each second of a step, stored while the step is running
    epoch INTEGER NOT NULL,
    begin_s INTEGER NOT NULL,        -- since the start of the window; courses.facts has the length (interval_s)
    due INTEGER NOT NULL,            -- messages of all publishers
    sent INTEGER NOT NULL,
    received INTEGER NOT NULL,       -- by subscribers outside the cohort, by the time of arrival
    cohort_received INTEGER NOT NULL,
    lost INTEGER,                    -- copies that were due then and were lost; NULL: not known
    latency BLOB NOT NULL,           -- JSON of model.Histogram, zlib
    cohort_latency BLOB NOT NULL,
    PRIMARY KEY (epoch, begin_s)
) WITHOUT ROWID;
"""
)


_json: Final = msgspec.json.Encoder()
_counters: Final = msgspec.json.Decoder(HostCounters)
_connections: Final = msgspec.json.Decoder(TcpConnections)
_busiest: Final = msgspec.json.Decoder(list[BusyThread])
_activity: Final = msgspec.json.Decoder(MachineActivity)


def add(db: sqlite3.Connection, epoch: int, o: Observation) -> None:
    """Writes the samples of a step in the current transaction."""
    db.executemany("INSERT INTO agent_hosts VALUES (?, ?, ?)", [(epoch, *pair) for pair in o.host_of.items()])
    counters = ((epoch, host, s.time_ns, _text(s.counters)) for host, samples in o.hosts.items() for s in samples)
    db.executemany("INSERT INTO host_counters VALUES (?, ?, ?, ?)", counters)
    activities = ((epoch, host, _text(activity)) for host, activity in o.machines.items())
    db.executemany("INSERT INTO machine_activity VALUES (?, ?, ?)", activities)
    threads = (
        (epoch, agent, s.time_ns, s.group, _text(s.threads), s.role, _text(s.connections) if s.connections else None)
        for agent, samples in o.threads.items()
        for s in samples
    )
    db.executemany("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?, ?)", threads)


def host_of(db: sqlite3.Connection, epoch: int) -> dict[str, str]:
    """The host of each agent in a step."""
    return dict(db.execute("SELECT agent, host FROM agent_hosts WHERE epoch = ? ORDER BY agent", (epoch,)).fetchall())


def of_hosts(db: sqlite3.Connection, epoch: int) -> dict[str, list[HostSample]]:
    """The counters of each host in a step, oldest first."""
    found: dict[str, list[HostSample]] = {}
    rows = db.execute(
        "SELECT host, time_ns, counters FROM host_counters WHERE epoch = ? ORDER BY host, time_ns", (epoch,)
    )
    for host, time_ns, counters in rows:
        found.setdefault(host, []).append(HostSample(time_ns, _counters.decode(counters)))
    return found


def of_machines(db: sqlite3.Connection, epoch: int) -> dict[str, MachineActivity]:
    """What happened on each host in a step apart from the run."""
    rows = db.execute("SELECT host, activity FROM machine_activity WHERE epoch = ? ORDER BY host", (epoch,))
    return {host: _activity.decode(text) for host, text in rows}


def of_threads(db: sqlite3.Connection, epoch: int) -> dict[str, list[ThreadSample]]:
    """The groups' samples of their threads and connections in a step, oldest first, by agent."""
    found: dict[str, list[ThreadSample]] = {}
    rows = db.execute("SELECT * FROM threads WHERE epoch = ? ORDER BY agent, time_ns", (epoch,))
    for _, agent, time_ns, group, busiest, role, encoded in rows:
        connections = None if encoded is None else _connections.decode(encoded)
        found.setdefault(agent, []).append(ThreadSample(time_ns, group, _busiest.decode(busiest), role, connections))
    return found


def _text(value: object) -> str:
    return _json.encode(value).decode()


_histogram: Final = msgspec.json.Decoder(Histogram)
_COLUMNS: Final = [each.name for each in fields(TimeSeriesInterval)]
"""The columns of the table after ``epoch``."""


def begin_series(db: sqlite3.Connection, epoch: int, plan: StepPlan, facts: TimeSeriesFacts) -> None:
    """Writes the plan and the facts of a step's time series in the current transaction."""
    row = (epoch, _json.encode(plan).decode(), _json.encode(facts).decode())
    db.execute("INSERT OR REPLACE INTO courses VALUES (?, ?, ?)", row)


def put_intervals(db: sqlite3.Connection, epoch: int, intervals: Iterable[TimeSeriesInterval]) -> None:
    """Writes intervals in the current transaction; replaces stored ones."""
    rows = [(epoch, *(_packed(getattr(i, name)) for name in _COLUMNS)) for i in intervals]
    db.executemany(f"INSERT OR REPLACE INTO seconds VALUES (?{', ?' * len(_COLUMNS)})", rows)  # noqa: S608  # marks


def put_lost(db: sqlite3.Connection, epoch: int, lost: Mapping[int, int]) -> None:
    """Writes how many of the copies due in each interval were lost, by the interval's begin."""
    rows = [(count, epoch, begin_s) for begin_s, count in lost.items()]
    db.executemany("UPDATE seconds SET lost = ? WHERE epoch = ? AND begin_s = ?", rows)


def facts_of(
    db: sqlite3.Connection, epoch: int, plans: msgspec.json.Decoder[StepPlan]
) -> tuple[StepPlan, TimeSeriesFacts] | None:
    """The plan and the facts of a step's time series; None if none was stored."""
    row = db.execute("SELECT plan, facts FROM courses WHERE epoch = ?", (epoch,)).fetchone()
    if row is None:
        return None
    return plans.decode(row[0]), msgspec.json.decode(row[1], type=TimeSeriesFacts)


def intervals_of(db: sqlite3.Connection, epoch: int, begin_s: int | None = None) -> list[TimeSeriesInterval]:
    """The intervals of a step, oldest first; only the one that begins at ``begin_s`` if it is given."""
    only = "" if begin_s is None else " AND begin_s = ?"
    rows = db.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM seconds WHERE epoch = ?{only} ORDER BY begin_s",  # noqa: S608  # names
        (epoch,) if begin_s is None else (epoch, begin_s),
    )
    return [TimeSeriesInterval(*map(_unpacked, row)) for row in rows]


def epochs_with_series(db: sqlite3.Connection) -> list[int]:
    """The epochs of the steps with a time series."""
    return [epoch for (epoch,) in db.execute("SELECT epoch FROM courses ORDER BY epoch")]


def added(first: TimeSeriesInterval, second: TimeSeriesInterval) -> TimeSeriesInterval:
    """The sum of two reports of one interval; the number of due messages is that of the later report."""
    return replace(
        second,
        sent=first.sent + second.sent,
        received=first.received + second.received,
        cohort_received=first.cohort_received + second.cohort_received,
        lost=first.lost if second.lost is None else second.lost,
        latency=merge((first.latency, second.latency)),
        cohort_latency=merge((first.cohort_latency, second.cohort_latency)),
    )


def _packed(value: int | Histogram | None) -> int | bytes | None:
    return zlib.compress(_json.encode(value)) if isinstance(value, Histogram) else value


def _unpacked(value: Any) -> Any:
    return _histogram.decode(zlib.decompress(value)) if isinstance(value, bytes) else value
