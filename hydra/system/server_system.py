"""The base of systems with servers: started by Hydra (local or on agents), or the user's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from hydra.client.server_interface import PROVE
from hydra.client.tls import AccessError
from hydra.errors import ServerError, StepError, UsageError
from hydra.model import ServerFacts, parse_cpus
from hydra.system import KilledServer, Program, RunServers, ServerCluster, Servers, System, Waiting, wait_alone
from hydra.system.local_server import LocalServer
from hydra.system.server_listener import listeners
from hydra.system.worker_thread import WorkerThread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hydra.client.server_interface import ServerProgram
    from hydra.events.warnings import HydraWarning
    from hydra.model import Scenario
    from hydra.system.run_certificates import RunAuthority

COMES_BACK_WITHIN_S: Final = 30.0
"""Time limit for the user's servers to answer again between two steps."""
_ASK_AGAIN_S: Final = 0.5
CHECK_WITHIN_S: Final = 5.0
"""Time limit for the check of the user's servers before a run."""

_S = TypeVar("_S", bound="ServerSystem")
_T = TypeVar("_T")


class Monitor(Protocol):
    """Detects during a step that servers are dead or disconnected."""

    def failure(self) -> str:
        """What was detected, or ""; returns at once."""

    def close(self) -> None:
        """Ends the monitor; may be called twice."""


class ServerSystem(System):
    """What all systems with servers do alike; the private methods below are what each system implements.

    Arguments:
        scenario: the scenario.
        users: the address of the user's servers; "": Hydra starts servers.
        deploy: whether Hydra's servers run as groups on agents; otherwise there is one local server.
        is_local: whether the servers run on this machine.
        tls: whether Hydra's servers use TLS.
    """

    def __init__(
        self, scenario: Scenario, users: str, *, deploy: bool = False, is_local: bool = True, tls: bool = False
    ) -> None:
        self.servers: RunServers = SystemServers(self)
        self._scenario = scenario
        self._users = users
        self._deploy = deploy
        self._is_local = is_local
        self._has_tls = tls and not users
        self._deployed: Servers | None = None
        self._own: Servers | None = None
        self._monitor: Monitor | None = None
        self._mute = ""
        self._listeners: Sequence[int] = ()
        self._is_killed = False  # whether a server was killed on purpose and is not back
        self._warnings: list[HydraWarning] = []
        self._address = ""
        self._run = ""
        self._folder = Path()
        self._wait: Waiting = wait_alone

    def check(self) -> None:
        """Checks the clients' program, and either access to the user's servers or the installed server program."""
        super().check()
        if self._users:
            self._in_time(self._reach)
        elif self._is_local:
            self._server_program().prepare()

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts servers, or connects to the user's."""
        self._run, self._folder, self._wait, self._deployed = self._unique(run), folder, wait, servers
        self._bring_up()

    def after_step(self) -> None:
        """Marks the server as failed if an event has killed it and not started it again."""
        if self._is_killed:
            self._is_killed, self._mute = False, "the step ended before the server that it had killed was back"

    def warnings(self) -> list[HydraWarning]:
        """Warnings about things that this run, or an earlier part of it, has left behind; empties the list."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def close(self) -> None:
        """Removes what the run has made on the user's servers, or ends Hydra's servers."""
        own, self._own, self._is_killed = self._own, None, False
        self._unwatch()
        try:
            self._disconnect()
        finally:
            if own is not None:
                # Everything of the run is deleted with the servers' data.
                own.stop()

    # --- what each system implements ---------------------------------------------------------------------------------

    def _unique(self, run: str) -> str:
        """A unique name for what a run makes on the servers: the run's name with a suffix."""
        raise NotImplementedError

    def _reach(self) -> None:
        """Checks whether the user's servers answer.

        Raises:
            UsageError: the servers do not answer.
        """
        raise NotImplementedError

    def _server_program(self) -> ServerProgram:
        """The program of a server that Hydra starts on this machine."""
        raise NotImplementedError

    def _server_node(self) -> Program:
        """The program of a server on an agent."""
        raise NotImplementedError

    def _server_cluster(self) -> ServerCluster:
        """Joins servers to one cluster."""
        raise NotImplementedError

    def _connect(self) -> None:
        """Prepares what all steps need on the servers at ``_address``, which are up."""
        self._watch()

    def _observed(self) -> Monitor | None:
        """The monitor of the servers that are up from now on; None if the code that started them watches them."""
        return None

    def _return(self) -> None:
        """Prepares again what the user's servers lost while they did not answer.

        Raises:
            ServerError: the servers do not answer yet.
        """
        self._watch()

    def _renew(self) -> None:
        """Connects again to a server that was killed and has returned, with the data that it had written to disk.

        Raises:
            ServerError: it does not answer.
        """
        self._watch()

    def _disconnect(self) -> None:
        """Ends what ``_connect`` began, and removes what the run has made on the user's servers."""

    # --- common ------------------------------------------------------------------------------------------------------

    def _in_time(self, check: Callable[[], object]) -> None:
        """Makes a check of the user's servers on a thread, because the time limits of its parts add up.

        Raises:
            UsageError: the check has not ended within ``CHECK_WITHIN_S``; it also raises what the check raises.
        """
        with contextlib.closing(WorkerThread()) as background:
            checked = background.submit(check)
            futures.wait([checked], CHECK_WITHIN_S)
        if not checked.done():
            silent = AccessError("network", f"no answer in {CHECK_WITHIN_S:g} s", server=f"the server at {self._users}")
            raise UsageError(str(silent), "check --servers")
        checked.result()

    @cached_property
    def _authority(self) -> RunAuthority | None:
        """The CA of Hydra's servers; None: they use no TLS."""
        if not self._has_tls:
            return None
        from hydra.system.run_certificates import RunAuthority

        return RunAuthority()

    def _watch(self) -> None:
        """Starts to monitor the current servers in place of the earlier ones."""
        self._unwatch()
        self._monitor = self._observed()

    def _answered(self, question: Callable[[], _T]) -> _T:
        """The answer of the servers during a step.

        Raises:
            StepError: the servers do not answer; they count as failed from now on.
        """
        try:
            return question()
        except ServerError as e:
            self._mute = self.servers.failure() or e.what
            raise StepError(self._mute) from e

    def _bring_up(self) -> None:
        self._mute = ""
        if self._users:
            self._address, self._listeners = self._users, listeners(self._users)
        else:
            self._own = self._deployed or self._local()
            self._address = self._own.start()
        self._connect()

    def _local(self) -> LocalServer:
        program, cluster = self._server_program(), self._server_cluster()
        cpus = parse_cpus(self._scenario.server.pin)
        return LocalServer(program, cluster, unused_folder(self._folder), wait=self._wait, cpus=cpus)

    def _unwatch(self) -> None:
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.close()


class SystemServers(RunServers, Generic[_S]):
    """The servers of a :class:`ServerSystem`, which has their state; a system derives its own."""

    def __init__(self, system: _S) -> None:
        self._system = system

    def groups(self) -> tuple[Program, ServerCluster] | None:
        """The program of one server and its cluster, if servers run as groups."""
        system = self._system
        if not system._deploy:
            return None
        return replace(system._server_node(), proof=(PROVE,)), system._server_cluster()

    def facts(self) -> ServerFacts:
        """The versions and sources of Hydra's servers, and whether they use TLS."""
        own = self._system._own
        if own is None:
            return ServerFacts({}, self._system._has_tls)
        return ServerFacts(dict(own.versions), self._system._has_tls, dict(own.sources))

    def processes(self) -> Sequence[int]:
        """The processes of a local server, or of the user's servers that listen on this host."""
        return self._system._own.processes() if self._system._own else self._system._listeners

    def failure(self) -> str:
        """The failure of servers that did not answer, ended or disconnected; "" if there is none."""
        system = self._system
        if system._is_killed:
            return ""  # it was killed on purpose, and is about to return
        own = system._own.failure() if system._own and not system._mute else ""
        return system._mute or own or (system._monitor.failure() if system._monitor else "")

    def revive(self) -> None:
        """Replaces Hydra's servers if one failed or was killed; waits for the user's servers.

        Raises:
            ServerError: the user's servers did not answer within ``COMES_BACK_WITHIN_S``, or ``ready_timeout_s`` if
                that is less.
        """
        system = self._system
        if not self.failure():
            return
        if system._own is not None:
            system.close()
            system._bring_up()
        else:
            system._mute = ""
            # The monitor would report the same silence again during the wait.
            system._unwatch()
            await_return(system._return, system._wait, system._scenario.ready_timeout_s)
            system._listeners = listeners(system._users)

    def kill(self) -> KilledServer:
        """Kills the last of Hydra's servers."""
        system = self._system
        if system._own is None:
            return super().kill()
        system._unwatch()
        system._is_killed = True
        return _EndedServer(system, system._own.halt())


class _EndedServer:
    """See :class:`hydra.system.KilledServer`."""

    def __init__(self, system: ServerSystem, address: str) -> None:
        self._system = system
        self.address = address

    def start(self) -> None:
        """Starts the killed server again."""
        if self._system._is_killed and self._system._own is not None:
            self._system._own.start_again()

    def is_back(self) -> bool:
        """Whether the killed server answers again; then it is watched like before."""
        system = self._system
        try:
            if system._own is None or not system._own.is_back():
                return False
            system._is_killed = False
            system._renew()
        except ServerError as e:
            system._is_killed, system._mute = False, e.what
            raise StepError(e.what) from e
        return True


def unused_folder(run: Path) -> Path:
    """A folder of the run for a server's data that does not exist yet.

    Data that was left behind, for instance by a machine that crashed, is not touched.
    """
    return next(folder for n in count(1) if not (folder := run / f"server-{n}").exists())


def await_return(ask: Callable[[], _T], wait: Waiting, ready_timeout_s: float) -> _T:
    """Waits until the servers answer, and returns their answer.

    Args:
        ask: queries the servers; raises ServerError as long as they do not answer.
        wait: how the caller waits meanwhile.
        ready_timeout_s: the scenario's value; the time limit is the smaller of it and ``COMES_BACK_WITHIN_S``.

    Raises:
        ServerError: the servers did not answer within the time limit.
    """
    deadline = time.monotonic() + min(COMES_BACK_WITHIN_S, ready_timeout_s)
    while True:
        try:
            return ask()
        except ServerError:
            if time.monotonic() > deadline:
                raise
        wait(lambda: False, _ASK_AGAIN_S)
