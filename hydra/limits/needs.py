"""What a number of clients needs of one machine. Pure.

The footprints were measured on one machine by counting in /proc (docs/limits.md says how); they are rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hydra import plugins
from hydra.model import Scenario

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one subscriber process of an implementation takes: memory as PSS and what the kernel keeps for it.

    ``further`` is what each further subscriber takes that is packed into the same process; None: it cannot be packed.
    """

    threads: int
    files: int
    memory_bytes: int
    further: Footprint | None = None

    def of(self, packed: int) -> Footprint:
        """What a process with so many subscribers takes.

        Raises:
            ValueError: more than one, of an implementation that cannot be packed.
        """
        if packed == 1:
            return self
        if self.further is None:
            raise ValueError(f"{packed} subscribers in a process of an implementation that takes one")
        more = packed - 1
        return Footprint(
            threads=self.threads + more * self.further.threads,
            files=self.files + more * self.further.files,
            memory_bytes=self.memory_bytes + more * self.further.memory_bytes,
        )


FOOTPRINTS: Final[Mapping[tuple[str, str], Footprint]] = {
    ("zmq", "pyzmq"): Footprint(threads=3, files=18, memory_bytes=8 * MEGABYTE),
    ("kafka", "kafka-python"): Footprint(threads=4, files=20, memory_bytes=14 * MEGABYTE),
    ("kafka", "confluent-kafka"): Footprint(threads=7, files=24, memory_bytes=9 * MEGABYTE),
    ("zmq", "native"): Footprint(3, 14, 700_000, further=Footprint(0, 2, 100_000)),
    ("kafka", "native"): Footprint(7, 20, 1_500_000, further=Footprint(3, 6, 300_000)),
}

GROUP_PROCESSES: Final = 2
"""A group's parent and its warden."""
_PARENT_MEMORY_BYTES: Final = 30 * MEGABYTE
_CONTROLLER_FILES: Final = 64
_CONTROLLER_MEMORY_BYTES: Final = 60 * MEGABYTE
_CONTROLLER_BYTES_PER_CLIENT: Final = 50_000
_BROKER_THREADS: Final = 120
_BROKER_FILES: Final = 150
_BROKER_CONNECTIONS: Final = 2
_BROKER_MEMORY_BYTES: Final = 1500 * MEGABYTE
_BROKER_RECORD_BYTES: Final = 10
"""What a broker keeps of a message beside its payload (docs/kafka-batching.md), and of its batch."""
_BROKER_STEPS_KEPT: Final = 2
"""The step that runs and the one before it; see hydra/kafkatest/system.py."""
_BROKER_LATE_S: Final = 10.0
"""How long a broker takes to free what was deleted (``log.retention.check.interval.ms``)."""
_BROKER_MOST_BYTES_A_SECOND: Final = 400 * MEGABYTE
"""The fastest that one was seen to write (docs/limits.md); for rates that nobody knows before."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a step takes in all.

    ``threads`` counts the processes' first ones too; ``files`` is the most that a single process opens; ``ports`` the
    most connections from this host to one address; ``backlog`` how many clients may dial in at the same moment;
    ``disk_bytes`` what brokers of our own keep of the messages, ``disk_guessed`` if nobody knows their rate before.
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


def needs(scenario: Scenario, clients: int, groups: int, fork_window: int) -> Needs:
    """What a step with this many subscribers needs when all of it runs on one machine.

    Args:
        scenario: names the implementation and the system.
        clients: subscribers.
        groups: groups, publishers' included.
        fork_window: how many clients of a group may be unanswered at a time.
    """
    alone = FOOTPRINTS[scenario.system, scenario.client]
    packed = min(scenario.native.clients_per_process, clients)
    one = alone.of(packed)
    subscriber_processes = -(-clients // packed)
    everyone = clients + scenario.publishers
    client_processes = subscriber_processes + scenario.publishers
    brokers = plugins.system(scenario.system).servers_of(scenario)
    # Each is Java and its supervisor; several have a group each, which dials in.
    broker_processes = 2 * brokers if brokers < 2 else 3 * brokers
    # A publisher of raw ZMQ holds a connection of every subscriber; a broker of ours holds theirs instead.
    widest = max(
        one.files,
        _CONTROLLER_FILES + client_processes + 4 * groups,
        alone.files + clients if scenario.system == "zmq" else 0,
    )
    broker_files = _BROKER_FILES + _BROKER_CONNECTIONS * everyone if brokers else 0
    processes = client_processes + GROUP_PROCESSES * groups + broker_processes
    return Needs(
        processes=processes,
        threads=client_processes * one.threads + GROUP_PROCESSES * groups * 3 + brokers * _BROKER_THREADS,
        files=max(widest, broker_files),
        all_files=client_processes * one.files + widest + brokers * broker_files,
        ports=max(everyone, client_processes + groups),
        backlog=min(everyone, groups * fork_window),
        memory_bytes=client_processes * one.memory_bytes
        + groups * _PARENT_MEMORY_BYTES
        + _CONTROLLER_MEMORY_BYTES
        + everyone * _CONTROLLER_BYTES_PER_CLIENT
        + brokers * _BROKER_MEMORY_BYTES,
        disk_bytes=_disk_bytes(scenario) if brokers else 0,
        disk_guessed=_highest_rate(scenario) is None,
    )


def _highest_rate(scenario: Scenario) -> float | None:
    """The highest rate (messages/s) of a grid's steps; None where a step, or a search, goes as fast as it can."""
    rates = scenario.sweep.vary.get("rate", (scenario.settings.rate,))
    if scenario.sweep.search is not None or "max" in rates:
        return None
    return max(float(rate) for rate in rates if rate is not None)


def _disk_bytes(scenario: Scenario) -> int:
    """What our brokers' logs take on this machine, every replica of them."""
    rate = _highest_rate(scenario)
    if rate is None:
        a_second: float = _BROKER_MOST_BYTES_A_SECOND
    else:
        sizes = scenario.sweep.vary.get("message_size", (scenario.settings.message_size,))
        largest = max(int(size) for size in sizes if size is not None)
        a_second = rate * scenario.publishers * (largest + _BROKER_RECORD_BYTES)
    kept_s = _BROKER_STEPS_KEPT * scenario.sweep.duration_s + _BROKER_LATE_S
    return round(a_second * kept_s * plugins.system(scenario.system).copies_of(scenario))
