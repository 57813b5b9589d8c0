"""The resources that a system's clients and servers need on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Footprint:
    """The resources of a process with one subscriber; memory is PSS plus the kernel's memory for it.

    Attributes:
        threads: its threads.
        files: its open files.
        memory_bytes: its memory.
        further: the need of each further subscriber in the same process; None: a process has one.
        server: what each server beyond the first adds to every subscriber, packed or not: a library may have a thread
            for each known server.
    """

    threads: int
    files: int
    memory_bytes: int
    further: Footprint | None = None
    server: Footprint | None = None

    def of(self, packed: int, servers: int = 1) -> Footprint:
        """The resources of a process with this many subscribers that know this many servers.

        Raises:
            ValueError: there are several subscribers, and the implementation cannot be packed.
        """
        system = self
        if packed > 1:
            if self.further is None:
                raise ValueError(f"{packed} subscribers in a process of an implementation that takes one")
            system = system._with(self.further, packed - 1)
        if servers > 1 and self.server is not None:
            system = system._with(self.server, packed * (servers - 1))
        return system

    def _with(self, other: Footprint, times: int) -> Footprint:
        return Footprint(
            threads=self.threads + times * other.threads,
            files=self.files + times * other.files,
            memory_bytes=self.memory_bytes + times * other.memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class Implementation:
    """What a client is written with.

    Attributes:
        footprint: the resources of its processes.
        program: ``native`` is Hydra's native program, which has the options of [native]; ``tool`` is a program of the
            system that runs once in every step. Messages of a tool have no header: the log counts them; their
            subscribers and latencies are unknown.
        packed: the default number of connections of a process, which is its number of subscribers if each has one.
        cpus: the default demand of one subscriber.
        ports: the number of connections to one address that share a local address; None: all connections of a host do.
        ordered_topics: whether the messages of several topics arrive in the order in which a publisher sent them. If
            not, a subscriber's account keeps a byte for each message.
        shows_losses: whether subscribers report when a connection was lost, and when it was there again. ``of one
            server``: only without further servers, because a client has a connection to each of them.
    """

    footprint: Footprint
    program: Literal["library", "native", "tool"] = "library"
    packed: int = 1
    cpus: float = 0.0
    ports: int | None = None
    ordered_topics: bool = True
    shows_losses: Literal["never", "of one server", "always"] = "never"


@dataclass(frozen=True, slots=True)
class LogFootprint:
    """The disk space of the messages that a server stores.

    Attributes:
        record_bytes: what is stored for a message in addition to the payload.
        steps_kept: the number of the last steps whose messages are stored.
        late_s: the time until the space of deleted messages is free.
        most_bytes_a_second: the highest measured write rate.
    """

    record_bytes: int
    steps_kept: int = 2
    late_s: float = 10.0
    most_bytes_a_second: int = 0


@dataclass(frozen=True, slots=True)
class ServerTimes:
    """How long a server and its clients usually take, in seconds.

    Attributes:
        start_s: until a started server answers.
        join_s: what new clients need with it beyond the start of their processes.
        back_s: until all clients are connected again after a killed server was started again.
    """

    start_s: float = 0.0
    join_s: float = 0.0
    back_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ServerFootprint:
    """The resources that one server of a system needs on its machine.

    Attributes:
        processes: its processes, with its supervisor.
        threads: its threads.
        files: its open files without clients.
        connections: the number of its descriptors for each client.
        memory: the memory in bytes of each of N servers on one machine.
        own_ports: the local ports that Hydra itself occupies, beside its clients: those of its connections with a
            server, of those that ended less than a minute ago, and those at which a server that it starts listens.
        log: the disk space of its messages; None: it stores none on disk.
        times: how long it usually takes.
    """

    processes: int
    threads: int
    files: int
    connections: int
    memory: Callable[[int], int]
    own_ports: int = 0
    log: LogFootprint | None = None
    times: ServerTimes = ServerTimes()


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The messages that a subscriber's library fetches before the subscriber takes them.

    Attributes:
        messages: the most that it keeps of each place, such as a partition.
        places: the places of a subscriber, or of all subscribers of a group.
        shared: whether the subscribers are a group in every row, whose places are divided among them.
        more: further messages of a place, of the fetch under way.
        message_bytes: memory of each message.
        least: the fewest messages with which a subscriber still works as usual.
        key: the dotted key that limits ``messages``; "": the user has set a limit, and Hydra sets none.
    """

    messages: int
    places: int
    shared: bool
    more: int
    message_bytes: int
    least: int
    key: str = ""
