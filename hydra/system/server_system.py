"""A system that has servers: ours, embedded or on agents, which are replaced when they fail, or the user's."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from hydra.errors import ServerError, StepError
from hydra.system import Program, ServerCluster, Servers, System, Waiting, wait_alone
from hydra.system.embedded_server import EmbeddedServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hydra.client.server_interface import ServerProgram
    from hydra.events.warnings import HydraWarning
    from hydra.model import Scenario

COMES_BACK_WITHIN_S: Final = 30.0
"""How long the user's servers have, between two steps, to answer again."""
_ASK_AGAIN_S: Final = 0.5

_T = TypeVar("_T")


class Monitor(Protocol):
    """Notices while a step goes on that servers are gone."""

    def failure(self) -> str:
        """That they are, or ""; returns at once."""

    def close(self) -> None:
        """Ends it; may be called twice."""


class ServerSystem(System):
    """What systems do alike for their servers; what each does by itself are the methods behind the public ones.

    Arguments:
        scenario: what is run.
        theirs: the address of servers of the user's own; "": they are ours.
        deploy: whether ours run as groups on agents; otherwise there is one, embedded.
        is_local: whether they run on this machine.
    """

    def __init__(self, scenario: Scenario, theirs: str, *, deploy: bool = False, is_local: bool = True) -> None:
        self._scenario = scenario
        self._theirs = theirs
        self._deploy = deploy
        self._is_local = is_local
        self._deployed: Servers | None = None
        self._own: Servers | None = None
        self._monitor: Monitor | None = None
        self._mute = ""
        self._warnings: list[HydraWarning] = []
        self._address = ""
        self._run = ""
        self._folder = Path()
        self._wait: Waiting = wait_alone

    def check(self) -> None:
        """The clients' program is there; the user's servers let us in, or ours are installed if they run here."""
        super().check()
        if self._theirs:
            self._reach()
        elif self._is_local:
            self._server_program().prepare()

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts our servers or reaches the user's."""
        self._run, self._folder, self._wait, self._deployed = self._unique(run), folder, wait, servers
        self._bring_up()

    def server(self) -> Program | None:
        """One of ours by itself, where they are groups."""
        return self._server_node() if self._deploy else None

    def cluster(self) -> ServerCluster | None:
        """Of those."""
        return self._server_cluster() if self._deploy else None

    def server_processes(self) -> Sequence[int]:
        """Of an embedded server."""
        return self._own.processes() if self._own else ()

    def failure(self) -> str:
        """Servers that did not answer, ended, or are gone."""
        own = self._own.failure() if self._own and not self._mute else ""
        return self._mute or own or (self._monitor.failure() if self._monitor else "")

    def revive(self) -> None:
        """New servers in the place of our own that failed or were killed; the user's are waited for.

        Raises:
            ServerError: the user's did not answer within ``COMES_BACK_WITHIN_S``, or ``ready_timeout_s`` where that is
                less.
        """
        if not self.failure():
            return
        if self._own is not None:
            self.close()
            self._bring_up()
        else:
            self._mute = ""
            # Nobody tells of their silence again while they are waited for.
            self._unwatch()
            await_return(self._return, self._wait, self._scenario.ready_timeout_s)

    def warnings(self) -> list[HydraWarning]:
        """What is left behind, and what became of what earlier parts of the run have left."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def close(self) -> None:
        """Removes what the run has on the user's servers, or ends ours."""
        own, self._own = self._own, None
        self._unwatch()
        try:
            self._disconnect()
        finally:
            if own is not None:
                # What is the run's goes with their data.
                own.stop()

    # --- what each system does by itself -----------------------------------------------------------------------------

    def _unique(self, run: str) -> str:
        """How what a run has on the servers is called: a suffix keeps two runs of the same name on them apart."""
        raise NotImplementedError

    def _reach(self) -> None:
        """Looks whether the user's servers answer.

        Raises:
            UsageError: they do not.
        """
        raise NotImplementedError

    def _server_program(self) -> ServerProgram:
        """How a server of ours is started."""
        raise NotImplementedError

    def _server_node(self) -> Program:
        """The same as a program on an agent."""
        raise NotImplementedError

    def _server_cluster(self) -> ServerCluster:
        """How several become one."""
        raise NotImplementedError

    def _connect(self) -> None:
        """The servers at ``_address`` are up, or the user's: prepares there whatever all steps need."""
        self._watch()

    def _observed(self) -> Monitor | None:
        """What looks after the servers that are up from now on; None: whoever has started them does."""
        return None

    def _return(self) -> None:
        """Prepares anew what the user's servers have lost while they were gone.

        Raises:
            ServerError: they do not answer yet.
        """
        self._watch()

    def _disconnect(self) -> None:
        """Ends what was begun in ``_connect``, and removes what the run has on the user's servers."""

    # --- for them ----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Looks after the servers as they are now, and no more as they were."""
        self._unwatch()
        self._monitor = self._observed()

    def _asked(self, question: Callable[[], _T]) -> _T:
        """The servers' answer in a step.

        Raises:
            StepError: there is none; they count as failed from now on.
        """
        try:
            return question()
        except ServerError as e:
            self._mute = self.failure() or e.what
            raise StepError(self._mute) from e

    def _bring_up(self) -> None:
        self._mute = ""
        if self._theirs:
            self._address = self._theirs
        else:
            self._own = self._deployed or self._embedded()
            self._address = self._own.start()
        self._connect()

    def _embedded(self) -> EmbeddedServer:
        program, cluster = self._server_program(), self._server_cluster()
        return EmbeddedServer(program, cluster, unused_folder(self._folder), wait=self._wait)

    def _unwatch(self) -> None:
        monitor, self._monitor = self._monitor, None
        if monitor is not None:
            monitor.close()


def unused_folder(run: Path) -> Path:
    """A folder of the run for a server's data that is not there yet.

    What was left behind, by a machine that went down, is not touched.
    """
    return next(folder for n in count(1) if not (folder := run / f"server-{n}").exists())


def await_return(ask: Callable[[], _T], wait: Waiting, ready_timeout_s: float) -> _T:
    """What the servers answer once they do.

    Args:
        ask: raises ServerError as long as they do not.
        wait: how the caller waits meanwhile.
        ready_timeout_s: the scenario's; they get no more than that, and at most ``COMES_BACK_WITHIN_S``.

    Raises:
        ServerError: the last one, when the time is over.
    """
    deadline = time.monotonic() + min(COMES_BACK_WITHIN_S, ready_timeout_s)
    while True:
        try:
            return ask()
        except ServerError:
            if time.monotonic() > deadline:
                raise
        wait(lambda: False, _ASK_AGAIN_S)
