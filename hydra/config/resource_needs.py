"""Computes the resources that a number of clients needs on one machine. Pure.

The system declares what clients and servers need (:class:`hydra.system.Footprint`, :class:`ServerFootprint`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.model import GroupRole, Scenario
from hydra.sweep import plan_of
from hydra.system import Implementation, LogFootprint, ServerFootprint, SystemSpec

MEGABYTE: Final = 1_000_000

GROUP_PROCESSES: Final = 2
"""Processes of a group in addition to its clients: its parent and its relay."""
_GROUP_MEMORY_BYTES: Final = 30 * MEGABYTE
_RELAY_FILES: Final = 32
_RELAY_BYTES_PER_PROCESS: Final = 60_000
"""Memory of a relay for each process of its group: the connection, and stored replies."""
_CONTROLLER_FILES: Final = 64
CONTROLLER_MEMORY_BYTES: Final = 60 * MEGABYTE
CONTROLLER_BYTES_PER_CLIENT: Final = 4_000
_PROCESS_CPU_S: Final = 0.008
"""CPU time of the start of a client's process: 0.4 s for 101 Python clients on two cores."""
_NO_SERVER: Final = ServerFootprint(processes=0, threads=0, files=0, connections=0, memory=lambda _: 0)


@dataclass(frozen=True, slots=True)
class MachineNeeds:
    """What a step needs in total.

    ``threads`` includes the main thread of each process. ``files`` is the largest number of files that one process
    opens, ``ports`` the largest number of connections from this host to one address, ``backlog`` the number of
    connections that one socket may have to accept at a time. ``disk_bytes`` is the space for the messages that servers
    started by Hydra store; ``disk_guessed`` is True if their rate is not known before.
    """

    processes: int
    threads: int
    files: int
    all_files: int
    ports: int
    backlog: int
    memory_bytes: int
    disk_bytes: int = 0
    disk_guessed: bool = False


def needs(
    resolved: ResolvedScenario,
    clients: int,
    groups: int,
    fork_window: int,
    publishers: int | None = None,
    rate: float | None = None,
) -> MachineNeeds:
    """What a step with this many subscribers needs if all of it runs on one machine.

    Args:
        resolved: the scenario, with its implementation and system.
        clients: number of subscribers.
        groups: number of process groups, those of publishers included.
        fork_window: number of clients of a group that may be connecting at a time.
        publishers: number of publishers; None: all of the scenario's.
        rate: messages/s of each publisher, for the accounts of subscribers; None: the highest of the scenario.
    """
    scenario, system = resolved.scenario, resolved.system
    publishers = scenario.publishers if publishers is None else publishers
    implementation = system.identity.implementations[scenario.client]
    alone = implementation.footprint
    packed = _packed(scenario, clients)
    servers, server = resolved.servers, _server(system)
    one = alone.of(packed, servers)
    files, listeners = _client_files(resolved, clients), _listeners(resolved, publishers, clients)
    subscriber_processes = -(-clients // packed)
    everyone = clients + publishers
    client_processes = subscriber_processes + publishers
    # If there are several servers, each has a group, whose program is one more process.
    server_processes = server.processes + (servers > 1)
    # A relay has a connection to every process of its group, and the controller one to every relay.
    relayed = -(-subscriber_processes // max(groups - publishers, 1))
    widest = max(
        files,
        _CONTROLLER_FILES + 4 * groups,
        _RELAY_FILES + relayed,
        _publisher_files(resolved, publishers, clients),
    )
    server_files = _server_files(resolved, publishers, clients) if servers else 0
    rows = [case.scenario for case in plan_of(scenario).cases()]
    processes = client_processes + GROUP_PROCESSES * groups + servers * server_processes
    return MachineNeeds(
        processes=processes,
        threads=subscriber_processes * one.threads
        + publishers * alone.of(1, servers).threads
        + GROUP_PROCESSES * groups * 3
        + servers * server.threads,
        files=max(widest, server_files),
        all_files=client_processes * (files + 1) + groups * _RELAY_FILES + widest + servers * server_files,
        ports=listeners if implementation.ports is None else min(listeners, implementation.ports),
        # Relays connect to the controller, and the clients of a group to its relay.
        backlog=max(groups, min(fork_window, everyone)),
        memory_bytes=subscriber_processes * one.memory_bytes
        + clients * _account_bytes(scenario, implementation, publishers, rate)
        + ahead_bytes(resolved, publishers, clients, rate)
        + publishers * (alone.of(1, servers).memory_bytes + listeners * system.resources.listener_bytes)
        + groups * _GROUP_MEMORY_BYTES
        + client_processes * _RELAY_BYTES_PER_PROCESS
        + CONTROLLER_MEMORY_BYTES
        + everyone * CONTROLLER_BYTES_PER_CLIENT
        + servers * server.memory(max(servers, 1)),
        disk_bytes=_kept_bytes(rows, server.log, system) if servers and server.log else 0,
        disk_guessed=any(_highest_rate(row) is None and _messages(row) is None for row in rows),
    )


def _server(system: SystemSpec) -> ServerFootprint:
    return _NO_SERVER if system.servers is None else system.servers.footprint


def group_files(resolved: ResolvedScenario, role: GroupRole, count: int) -> int:
    """The most files that one process of a group opens in any row of the scenario: a client, a server, or the relay.

    Args:
        resolved: the scenario.
        role: the role of the group.
        count: the number of its clients.
    """
    if role == "subscriber":
        return max(_client_files(resolved, count), _RELAY_FILES + -(-count // _packed(resolved.scenario, count)))
    files = _publisher_files if role == "publisher" else _server_files
    return max(_RELAY_FILES + count, *(files(resolved, *size) for size in resolved.scenario.sizes))


def _packed(scenario: Scenario, clients: int) -> int:
    """The number of subscribers in a process, of this number of subscribers."""
    return max(min(scenario.native.clients_per_process, clients), 1)


def _client_files(resolved: ResolvedScenario, clients: int) -> int:
    """The number of files that a process of subscribers opens."""
    scenario, system = resolved.scenario, resolved.system
    packed = _packed(scenario, clients)
    one = system.identity.implementations[scenario.client].footprint.of(packed, resolved.servers)
    return one.files + packed * (system.resources.connections(scenario) - 1)


def _publisher_files(resolved: ResolvedScenario, publishers: int, clients: int) -> int:
    """The number of files that a publisher opens; without servers it has a connection to every subscriber."""
    files = resolved.system.identity.implementations[resolved.scenario.client].footprint.of(1, resolved.servers).files
    return files + _listeners(resolved, publishers, clients) if resolved.system.servers is None else files


def _server_files(resolved: ResolvedScenario, publishers: int, clients: int) -> int:
    """The number of files that a server opens, if every client connects to it."""
    server = _server(resolved.system)
    return server.files + server.connections * (clients + publishers)


def _listeners(resolved: ResolvedScenario, publishers: int, clients: int) -> int:
    """The number of connections to one publisher, or to one server."""
    if resolved.system.servers is not None:
        server = resolved.system.servers.footprint
        return server.connections * (clients + publishers) + server.own_ports
    return -(-clients * resolved.system.resources.connections(resolved.scenario) // max(publishers, 1))


def expected_start_s(resolved: ResolvedScenario, cores: int) -> float:
    """About how many seconds the start of servers and of all clients takes on one machine with this many cores."""
    scenario, times = resolved.scenario, _server(resolved.system).times
    packed = max(scenario.native.clients_per_process, resolved.system.identity.implementations[scenario.client].packed)
    publishers, clients = (max(counts) for counts in zip(*scenario.sizes, strict=True))
    servers_s: float = times.start_s * max(resolved.servers / cores, 1) if resolved.servers else 0.0
    clients_s: float = (publishers + -(-clients // packed)) * _PROCESS_CPU_S / cores
    return servers_s + len(scenario.sizes) * times.join_s + clients_s


def topic_share(scenario: Scenario) -> float:
    """The share of the messages that a subscriber receives: its topics, of all topics.

    If rows differ, the share is the smallest one.
    """
    every, own = scenario.whole_values("topics"), scenario.whole_values("topics_per_client")
    return min(min(some or topics, topics) / topics for topics in every for some in own)


def _account_bytes(scenario: Scenario, alone: Implementation, publishers: int, rate: float | None) -> int:
    """Memory of a subscriber's account, if topics or keys need more than ranges of missing messages.

    It is a byte for each message of its publishers, and eight for each key of each topic.
    """
    topics, keys = (max(scenario.whole_values(name)) for name in ("topics", "keys"))
    rate, messages = _highest_rate(scenario) if rate is None else rate, _messages(scenario)
    by_message = topic_share(scenario) < 1 or keys > 0 or (topics > 1 and not alone.ordered_topics)
    if not by_message or (rate is None and messages is None):
        return 0
    due = math.inf if rate is None else rate * scenario.sweep.longest_s
    return round(publishers * (min(due, math.inf if messages is None else messages) + 8 * topics * keys))


def ahead_bytes(resolved: ResolvedScenario, publishers: int, clients: int, rate: float | None = None) -> int:
    """Memory of what all subscribers read ahead if they take messages more slowly than these are sent.

    Args:
        resolved: the scenario.
        publishers: their number.
        clients: the number of subscribers.
        rate: messages/s of each publisher; None: the highest of the scenario.
    """
    scenario = resolved.scenario
    if (ahead := resolved.system.resources.read_ahead(scenario)) is None:
        return 0
    rate, messages = _highest_rate(scenario) if rate is None else rate, _messages(scenario)
    due = math.inf if rate is None else rate * scenario.sweep.longest_s
    due = publishers * min(due, math.inf if messages is None else messages)
    return round((1 if ahead.shared else clients) * min(ahead.places * (ahead.messages + ahead.more), due)) * (
        ahead.message_bytes
    )


def _highest_rate(scenario: Scenario) -> float | None:
    """The highest rate (messages/s) of the steps; None if a step, or a search, sends as fast as it can."""
    rates = scenario.values_of("rate")
    if "rate" in scenario.sweep.decided or "max" in rates:
        return None
    return max(float(rate) for rate in rates if rate is not None)


def _messages(scenario: Scenario) -> int | None:
    """The largest number of messages that a publisher sends in a step; None if a step has no such limit."""
    counts = [int(count) for count in scenario.values_of("messages") if count is not None]
    return max(counts) if len(counts) == len(scenario.values_of("messages")) else None


def _kept_bytes(rows: Sequence[Scenario], log: LogFootprint, system: SystemSpec) -> int:
    """Disk space for the logs of servers started by Hydra, with all copies: for the last steps, or for all steps."""
    copies, logs = system.resources.copies, (system.delivery(row, row.settings).log for row in rows)
    if not any(each is not None and each.keeps_all for each in logs):
        return max(_disk_bytes(row, log, log.steps_kept, log.late_s) * copies(row) for row in rows)
    return sum(_disk_bytes(row, log, row.sweep.repeat * row.sweep.rows, 0.0) * copies(row) for row in rows)


def _disk_bytes(scenario: Scenario, log: LogFootprint, steps: int, late_s: float) -> int:
    """Disk space for this many steps and the seconds after them, for one copy of each message."""
    rate, messages = _highest_rate(scenario), _messages(scenario)
    sizes = [float(size) for size in scenario.values_of("message_size") if size is not None]
    if scenario.settings.message_sizes:
        sizes = [scenario.settings.mean_bytes]
    record = round(max(sizes)) + log.record_bytes
    a_second = log.most_bytes_a_second if rate is None else rate * scenario.publishers * record
    taken = a_second * (steps * scenario.sweep.duration_s + late_s)
    if messages is not None:
        taken = min(taken, steps * messages * scenario.publishers * record)
    return round(taken)
