"""What a system does for a run, and what its servers are told to become one."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

from hydra.model import Role, Settings

if TYPE_CHECKING:
    from hydra.events.warnings import HydraWarning

Waiting = Callable[[Callable[[], bool], float], bool]
"""Waits until a condition holds, for at most so many seconds, and says whether it does.

A run waits through its controller (``Controller.wait_until``), so that clients are served meanwhile. The condition is
asked often and returns at once.
"""

_LOOK_EVERY_S: Final = 0.005


def wait_alone(condition: Callable[[], bool], timeout_s: float) -> bool:
    """A :data:`Waiting` for whoever has nobody to serve."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


@dataclass(frozen=True, slots=True)
class Program:
    """How an agent starts a group of one kind: the group's own flags are appended to ``command``.

    ``files`` are what it needs beside Hydra's modules, by their name in the package ``hydra``; ``libraries`` are the
    distributions that it imports beside those of ``hydra.control.LIBRARIES``, with what these need in turn.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, Path] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()

    @classmethod
    def of_module(
        cls, module: str, kind: str, *, files: Mapping[str, Path] | None = None, libraries: tuple[str, ...] = ()
    ) -> Program:
        """A module of ours as a program; numpy must not start threads in a parent that forks."""
        return cls((sys.executable, "-m", module, kind), {"OPENBLAS_NUM_THREADS": "1"}, files or {}, libraries)


class Servers(Protocol):
    """Servers of our own, wherever they run."""

    versions: Mapping[str, str]
    """Of what they run, once started."""

    def start(self) -> str:
        """Brings them up; returns their address for clients. May be called again after ``stop``.

        Raises:
            ServerError, MissingDependencyError, PlacementError: they cannot be.
        """

    def failure(self) -> str:
        """Why they are not all there any more, or ""; returns at once."""

    def endpoints(self) -> Sequence[str]:
        """Where each of them listens, as it told it, in the order in which they were joined."""

    def processes(self) -> Sequence[int]:
        """The ids of those processes that are no groups: of a server by itself on this machine."""

    def kill(self, address: str, when: str) -> None:
        """Kills the one whose address for clients this is, with SIGKILL: that is no failure, and no wait.

        Args:
            address: ``host:port``.
            when: for people.
        """

    def stop(self) -> None:
        """Ends them with all their data; may be called twice."""


class ServerCluster(Protocol):
    """How a system's servers become one, each of which has told where it will listen (``host:port``, with commas).

    Whoever starts servers (:class:`Servers`) is given one of these, and has each server start with what ``join`` says.
    """

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """What each server has to know of the others to start, in their order; a cluster of its own by every call."""

    def address(self, endpoints: Sequence[str]) -> str:
        """Their address for clients."""

    def up(self, address: str) -> bool:
        """Whether those that were joined last all answer there; asked on a thread, may take about a second."""

    def warm_up(self, address: str) -> None:
        """Whatever makes fresh servers as quick as they will be; on a thread, ends by itself within some 55 s.

        Raises:
            ServerError: it did not succeed.
        """


class System:
    """A system under test for the length of a run: derive a class, and override what is different in the system.

    What stands here is right for one that has neither servers nor a log. A class that has all of these methods without
    being derived will do as well.
    """

    def check(self) -> None:
        """Looks whether the system could be brought up at all; starts and writes nothing.

        Raises:
            UsageError: a property cannot be used, or a program is missing.
        """
        self.program("subscriber")

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Brings up what is needed on the side of the servers, with its files under ``folder``.

        Args:
            run: the run's name.
            folder: the run's directory.
            wait: how this and every later call waits for others.
            servers: those on the cluster's agents, where ``server`` has named a program for them.

        Raises:
            ServerError, MissingDependencyError, PlacementError: it cannot.
        """

    def program(self, role: Role) -> Program:
        """The program of a role's clients."""
        raise NotImplementedError

    def server(self) -> Program | None:
        """The program of a server on an agent; None if none are to be there."""
        return None

    def cluster(self) -> ServerCluster | None:
        """How servers on agents become one; None as above."""
        return None

    def configure(self, settings: Settings) -> dict[str, Any] | None:
        """The ``system`` object of the next step's ``configure``: what is the system's own, and where its data goes.

        Asked once whenever a step is begun, before anybody is configured.

        Raises:
            StepError: servers of our own do not tell, and count as failed from now on.
            ServerError: the user's do not.
        """
        return dict(settings.system)

    def finish(self) -> dict[str, Any] | None:
        """The ``system`` object of ``finish``: where this step's data ends, None where nobody knows it but publishers.

        Errors as above.
        """
        return None

    def proof(self, settings: Settings) -> Hashable:
        """What a subscriber's readiness depends on beside the processes at both ends.

        While it stays the same, whoever has received everything of a step is ready for the next one.
        """
        return tuple(sorted(settings.system.items()))

    def log_end(self, settings: Settings) -> int | None:
        """The messages that the servers' log ever took; None with settings with which nobody keeps one.

        Errors as above. Whether nothing but its growth acknowledges messages is told by
        ``SystemSpec.log_acknowledges``.
        """
        return None

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:
        """Called a few times a second in a step's window; returns at once.

        Args:
            settings: the step's.
            elapsed_s: seconds since the window began.
            duration_s: how long it is at most.
        """

    def after_step(self) -> None:
        """A step is over, however it ended: what was broken on purpose in its window counts as a failure now."""

    def server_counters(self) -> Mapping[str, Mapping[str, float]]:
        """Figures of this moment by server and name, {} where nobody tells.

        A name that ends in ``_total`` is of a counter, which only grows; all others are gauges. Asked on a thread of
        its own when a window begins and when it ends; may take about a second.

        Raises:
            HydraError: they cannot be asked.
        """
        return {}

    def server_processes(self) -> Sequence[int]:
        """The processes of a server of our own that is no group: they are looked at by whoever runs the step."""
        return ()

    def failure(self) -> str:
        """Why this system can carry no more steps just now, or ""; returns at once.

        Nothing is said of a server that :meth:`during` ended on purpose, until :meth:`after_step`.
        """
        return ""

    def revive(self) -> None:
        """Recovers from a failure, by a new server for instance, or waits for the recovery.

        Raises:
            ServerError: it did not end.
        """

    def stored_bytes(self) -> int:
        """What servers of our own keep of the last steps on this machine's disk: the next ones take its place."""
        return 0

    def metadata(self) -> dict[str, str]:
        """What to record of it: versions, its configuration, no secrets."""
        return {}

    def warnings(self) -> list[HydraWarning]:
        """What the user has to know of it and was not told yet; empties the list."""
        return []

    def close(self) -> None:
        """Removes all that :meth:`open` made; may be called twice."""


def programs(system: System) -> list[Program]:
    """The programs of all groups of a run: of clients, and of servers if some are groups.

    Raises:
        MissingDependencyError: something that one needs is not there and cannot be fetched.
    """
    server = system.server()
    return [*(system.program(role) for role in get_args(Role)), *([] if server is None else [server])]
