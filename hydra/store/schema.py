"""The tables of a run's database."""

from __future__ import annotations

from typing import Final

from hydra.store.client_rows import STORED

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
