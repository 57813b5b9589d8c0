"""The interfaces that a system implements for a run, and by which its servers become one cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

from hydra.errors import StepError
from hydra.model import Role, ServerFacts, Settings

if TYPE_CHECKING:
    from hydra.events.warnings import CleanupFailed, HydraWarning

Waiting = Callable[[Callable[[], bool], float], bool]
"""Waits until a condition holds, for at most the given seconds, and returns whether it does.

A run waits through its controller (``Controller.wait_until``), so clients are served meanwhile. The condition is
called often and returns at once.
"""

_LOOK_EVERY_S: Final = 0.005


def wait_alone(condition: Callable[[], bool], timeout_s: float) -> bool:
    """A :data:`Waiting` for a process without clients to serve."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


@dataclass(frozen=True, slots=True)
class Program:
    """The program of one kind of group: an agent appends the group's flags to ``command``.

    ``files`` are files that it needs in addition to Hydra's modules, by their path in the package ``hydra``.
    ``libraries`` are distributions that it imports in addition to ``hydra.control.LIBRARIES``, with their dependencies.
    ``proof`` are the arguments with which it checks that a host has what it needs, and ends; () if it has none.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    proof: tuple[str, ...] = ()

    @classmethod
    def of_module(
        cls, module: str, kind: str, *, files: Mapping[str, Path] | None = None, libraries: tuple[str, ...] = ()
    ) -> Program:
        """A module of Hydra as a program; numpy must not start threads in a parent that forks."""
        return cls((sys.executable, "-m", module, kind), {"OPENBLAS_NUM_THREADS": "1"}, files or {}, libraries)


class Servers(Protocol):
    """The servers that Hydra starts, on this machine or on agents."""

    versions: Mapping[str, str]
    """Versions of the servers' programs, once they are started."""
    sources: Mapping[str, str]
    """Where these programs were found (``hydra.client.server_interface.InstalledProgram``)."""

    def start(self) -> str:
        """Starts the servers and returns their address for clients. May be called again after ``stop``.

        Raises:
            ServerError, MissingDependencyError, PlacementError: the servers cannot be started.
        """

    def failure(self) -> str:
        """Why a server failed, "" if none did; returns at once."""

    def endpoints(self) -> Sequence[str]:
        """The endpoint that each server reported, in the order in which they were joined."""

    def processes(self) -> Sequence[int]:
        """The ids of server processes that are no groups: that of a local server."""

    def kill(self, address: str, when: str) -> None:
        """Kills the server with this address for clients by SIGKILL; this counts as no failure, and returns at once.

        Args:
            address: ``host:port``.
            when: text for the event.
        """

    def halt(self) -> str:
        """Kills the last server by SIGKILL and keeps its data; returns its endpoint.

        This counts as no failure, and returns at once. :meth:`start_again` undoes it.
        """

    def start_again(self) -> None:
        """Starts the halted server again with the same settings, data and endpoint; returns at once."""

    def is_back(self) -> bool:
        """Whether all servers answer again; False before :meth:`start_again`. Returns at once.

        Raises:
            ServerError: one failed.
        """

    def stop(self) -> None:
        """Ends the servers and deletes their data; may be called twice."""


class ServerCluster(Protocol):
    """Joins a system's servers to one cluster; each has reported where it will listen (``host:port``, comma-separated).

    The code that starts servers (:class:`Servers`) gets this object, and passes each server what ``join`` returns.
    """

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """What each server has to know of the others to start, in order; each call makes a new cluster."""

    def address(self, endpoints: Sequence[str]) -> str:
        """The cluster's address for clients."""

    def up(self, address: str) -> bool:
        """Whether all servers that were joined last answer; called on a thread, may take some seconds."""

    def warm_up(self, address: str) -> None:
        """Warms up new servers until they reach their full speed; called on a thread, ends within about 55 s.

        Raises:
            ServerError: the warm-up failed.
        """


class KilledServer(Protocol):
    """A server that Hydra has started and killed on purpose."""

    address: str
    """Its address for clients."""

    def start(self) -> None:
        """Starts the server again at its address; returns at once."""

    def is_back(self) -> bool:
        """Whether the server answers again; False before :meth:`start`. Returns at once.

        Raises:
            StepError: it cannot be started.
        """


class RunServers:
    """The servers of a system during a run, Hydra's or the user's.

    The default methods are for a system that has neither servers nor a log.
    """

    def groups(self) -> tuple[Program, ServerCluster] | None:
        """The program of a server on an agent, and what joins servers to one cluster; None: no servers run there."""
        return None

    def facts(self) -> ServerFacts | None:
        """What is known of the servers since the system was opened; None if the system has no servers."""
        return None

    def processes(self) -> Sequence[int]:
        """The processes of servers on this host that are no groups; the process that runs the step samples them."""
        return ()

    def connections(self) -> int | None:
        """The connections that Hydra itself keeps with the servers, beside those of clients; None: not known."""
        return None

    def counters(self) -> Mapping[str, Mapping[str, float]]:
        """Current figures by server and name; {} if servers report none.

        A name that ends with ``_total`` is a counter, which only grows; all others are gauges. The method is called on
        a separate thread when a window begins and when it ends; it may take about a second.

        Raises:
            HydraError: the servers cannot be queried.
        """
        return {}

    def log_end(self, settings: Settings) -> int | None:
        """The total number of messages that the servers' log has accepted; None if these settings have no log.

        Errors as for :meth:`System.configure`. ``DeliveryRules.log_acknowledges`` is whether only its growth
        acknowledges messages.
        """
        return None

    def stored_bytes(self) -> int:
        """Bytes that Hydra's servers store on this machine's disk for the last steps; the next steps replace them."""
        return 0

    def left(self) -> Sequence[CleanupFailed]:
        """What stays on the user's servers if this process ends now, without :meth:`System.close`; returns at once."""
        return ()

    def failure(self) -> str:
        """Why the servers cannot serve a step now, "" if they can; returns at once.

        A server that was ended on purpose is not reported before :meth:`System.after_step`.
        """
        return ""

    def revive(self) -> None:
        """Recovers from a failure, for instance by a new server, or waits for the recovery.

        Raises:
            ServerError: the servers did not recover.
        """

    def kill(self) -> KilledServer:
        """Kills the last server that Hydra started by SIGKILL, which counts as no failure; returns at once.

        Only for systems with the event ``restart_server``.

        Raises:
            StepError: Hydra has started no server.
        """
        raise StepError("the system has no server that Hydra could end")


class System:
    """A system under test during a run: derive a class, and override what differs for the system.

    Attributes:
        servers: its servers.
    """

    servers: RunServers = RunServers()

    def check(self) -> None:
        """Checks whether the system could be started; starts and writes nothing.

        Raises:
            UsageError: a property cannot be used, or a program is missing.
        """
        self.program("subscriber")

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts what the servers need, with its files in ``folder``.

        Args:
            run: the run's name.
            folder: the run's directory.
            wait: how this and every later call waits.
            servers: the servers on the cluster's agents, if ``servers.groups`` has named a program for them.

        Raises:
            ServerError, MissingDependencyError, PlacementError: the system cannot be started.
        """

    def program(self, role: Role) -> Program:
        """The program of the clients of a role."""
        raise NotImplementedError

    def configure(self, settings: Settings) -> dict[str, Any] | None:
        """The ``system`` object of the next step's ``configure``: the system's own settings, and where its data goes.

        The run calls this method once for each start of a step, before any client is configured.

        Raises:
            StepError: servers started by Hydra do not answer; they count as failed from now on.
            ServerError: the user's servers do not answer.
        """
        return settings.system.values()

    def proof(self, settings: Settings) -> Hashable:
        """What a subscriber's readiness depends on, in addition to the processes at both ends.

        As long as this value is the same, a subscriber that received all messages of a step is ready for the next one.
        """
        return settings.system

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:
        """Called a few times a second in a step's window; returns at once.

        Args:
            settings: the settings of the step.
            elapsed_s: seconds since the window began.
            duration_s: maximum length of the window in seconds.
        """

    def finish(self) -> dict[str, Any] | None:
        """The ``system`` object of ``finish``: where this step's data ends; None if only publishers know that.

        Errors as above.
        """
        return None

    def after_step(self) -> None:
        """Called after a step, however it ended: a server that was killed on purpose counts as failed from now on."""

    def metadata(self) -> dict[str, str]:
        """Facts to store with the run: versions and configuration, without secrets."""
        return {}

    def warnings(self) -> list[HydraWarning]:
        """Warnings about the system that were not returned yet; empties the list."""
        return []

    def close(self) -> None:
        """Removes everything that :meth:`open` made; may be called twice."""


def programs(system: System) -> list[Program]:
    """The programs of all groups of a run: those of publishers and subscribers, and of servers if they are groups.

    Raises:
        MissingDependencyError: a program needs something that is missing and cannot be fetched.
    """
    groups = system.servers.groups()
    return [*(system.program(role) for role in get_args(Role)), *([] if groups is None else groups[:1])]
