"""Reads and writes samples of a step's hosts in the run's database."""

from __future__ import annotations

import sqlite3
from typing import Final

import msgspec

from hydra.measure.observation import Observation
from hydra.model import BusyThread, HostCounters, HostSample, MachineActivity, TcpConnections, ThreadSample

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
