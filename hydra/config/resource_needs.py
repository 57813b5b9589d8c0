"""What a number of clients needs of one machine. Pure.

What clients and servers take is said by their system (:class:`hydra.system.Footprint`, :class:`ServerFootprint`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.model import Scenario
from hydra.sweep import kind_of
from hydra.system import ServerFootprint, SystemSpec

MEGABYTE: Final = 1_000_000

GROUP_PROCESSES: Final = 2
"""A group's parent and its relay."""
_GROUP_MEMORY_BYTES: Final = 30 * MEGABYTE
_RELAY_FILES: Final = 32
_RELAY_BYTES_PER_PROCESS: Final = 60_000
"""Its connection, and what the relay keeps of its answers."""
_CONTROLLER_FILES: Final = 64
CONTROLLER_MEMORY_BYTES: Final = 60 * MEGABYTE
CONTROLLER_BYTES_PER_CLIENT: Final = 4_000
_NO_SERVER: Final = ServerFootprint(processes=0, threads=0, files=0, connections=0, memory_bytes=0)


@dataclass(frozen=True, slots=True)
class MachineNeeds:
    """What a step takes in all.

    ``threads`` counts the processes' first ones too; ``files`` is the most that a single process opens; ``ports`` the
    most connections from this host to one address; ``backlog`` how many may dial in at the same place and moment;
    ``disk_bytes`` what servers of our own keep of the messages, ``disk_guessed`` if nobody knows their rate before.
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
    resolved: ResolvedScenario, clients: int, groups: int, fork_window: int, publishers: int | None = None
) -> MachineNeeds:
    """What a step with this many subscribers needs when all of it runs on one machine.

    Args:
        resolved: names the implementation and the system.
        clients: subscribers.
        groups: groups, publishers' included.
        fork_window: how many clients of a group may be unanswered at a time.
        publishers: how many; None: all of the scenario's.
    """
    scenario, system = resolved.scenario, resolved.system
    publishers = scenario.publishers if publishers is None else publishers
    alone = system.implementations[scenario.client]
    packed = max(min(scenario.native.clients_per_process, clients), 1)
    servers, server = resolved.servers, system.servers or _NO_SERVER
    one = alone.of(packed, servers)
    connections = system.connections_of(scenario)
    files = one.files + packed * (connections - 1)
    # Who listens to a publisher, or talks to a server.
    listeners = -(-clients * connections // max(publishers, 1)) if system.servers is None else clients + publishers
    subscriber_processes = -(-clients // packed)
    everyone = clients + publishers
    client_processes = subscriber_processes + publishers
    # Several have a group each, whose program runs beside them.
    server_processes = server.processes + (servers > 1)
    # A relay holds a connection of every process of its group, the controller one of every relay.
    relayed = -(-subscriber_processes // max(groups - publishers, 1))
    # A publisher without servers holds a connection of every subscriber; a server of ours holds theirs instead.
    widest = max(
        files,
        _CONTROLLER_FILES + 4 * groups,
        _RELAY_FILES + relayed,
        alone.files + listeners if system.servers is None else 0,
    )
    server_files = server.files + server.connections * everyone if servers else 0
    rows = [case.scenario for case in kind_of(scenario).cases(scenario)]
    processes = client_processes + GROUP_PROCESSES * groups + servers * server_processes
    return MachineNeeds(
        processes=processes,
        threads=subscriber_processes * one.threads
        + publishers * alone.of(1, servers).threads
        + GROUP_PROCESSES * groups * 3
        + servers * server.threads,
        files=max(widest, server_files),
        all_files=client_processes * (files + 1) + groups * _RELAY_FILES + widest + servers * server_files,
        ports=listeners if alone.ports is None else min(listeners, alone.ports),
        # Relays dial in at the controller, the clients of each at their own.
        backlog=max(groups, min(fork_window, everyone)),
        memory_bytes=subscriber_processes * one.memory_bytes
        + publishers * (alone.of(1, servers).memory_bytes + listeners * system.listener_bytes)
        + groups * _GROUP_MEMORY_BYTES
        + client_processes * _RELAY_BYTES_PER_PROCESS
        + CONTROLLER_MEMORY_BYTES
        + everyone * CONTROLLER_BYTES_PER_CLIENT
        + servers * server.memory(max(servers, 1)),
        disk_bytes=_kept_bytes(rows, server, system) if servers else 0,
        disk_guessed=any(_highest_rate(row) is None and _messages(row) is None for row in rows),
    )


def _highest_rate(scenario: Scenario) -> float | None:
    """The highest rate (messages/s) of the steps; None where a step, or a search, goes as fast as it can."""
    rates = scenario.values_of("rate")
    if "rate" in scenario.sweep.decided or "max" in rates:
        return None
    return max(float(rate) for rate in rates if rate is not None)


def _messages(scenario: Scenario) -> int | None:
    """How many messages a publisher sends at most in a step; None where a step has no such number."""
    counts = [int(count) for count in scenario.values_of("messages") if count is not None]
    return max(counts) if len(counts) == len(scenario.values_of("messages")) else None


def _kept_bytes(rows: Sequence[Scenario], server: ServerFootprint, system: SystemSpec) -> int:
    """What our servers' logs take on this machine, every copy of each message: of the last steps, or of all."""
    if not server.record_bytes:
        return 0
    if not any(system.keeps(row.settings) for row in rows):
        return max(_disk_bytes(row, server, server.steps_kept, server.late_s) * system.copies_of(row) for row in rows)
    return sum(_disk_bytes(row, server, row.sweep.repeat * row.sweep.rows, 0.0) * system.copies_of(row) for row in rows)


def _disk_bytes(scenario: Scenario, server: ServerFootprint, steps: int, late_s: float) -> int:
    """What so many steps and the seconds after them take, one copy of each message."""
    rate, messages = _highest_rate(scenario), _messages(scenario)
    sizes = scenario.values_of("message_size")
    record = max(int(size) for size in sizes if size is not None) + server.record_bytes
    a_second = server.most_bytes_a_second if rate is None else rate * scenario.publishers * record
    taken = a_second * (steps * scenario.sweep.duration_s + late_s)
    if messages is not None:
        taken = min(taken, steps * messages * scenario.publishers * record)
    return round(taken)
