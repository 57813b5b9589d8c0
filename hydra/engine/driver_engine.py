"""An engine with a second process, its driver, for the connection to the cluster, so no row waits for the cluster.

Between rows, before it places groups, an engine may wait at most 2 s for a new list of agents.

The engine moves messages between the driver and a state, which decides and has no clock of its own.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from hydra.engine.driver_pipe import DriverPipe, Message
from hydra.errors import ClusterError
from hydra.model import Agent, Group, GroupEvent, Launch


class DriverProcess:
    """The driver's process and the channel to it: the engine sends calls, the driver reports events.

    Attributes:
        process: the process; when the engine closes the channel, it ends the run's groups and then itself.
    """

    def __init__(self, module: str, log: Path) -> None:
        """Starts ``python -m MODULE FD``; FD is the process's end of a socket pair.

        Args:
            module: the module to run.
            log: the file for its output.
        """
        self._module, self._log = module, log
        near_end, far_end = socket.socketpair()
        self._channel = DriverPipe(near_end)
        try:
            with far_end, log.open("ab") as output:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", module, str(far_end.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(far_end.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            self._channel.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether the process has ended, or the engine has closed the channel."""
        return self._channel.closed

    def ended(self) -> str:
        """The message about a process that ended although the engine did not stop it."""
        return f"the process {self._module} ended with {self.process.poll()}; see {self._log}"

    def send(self, calls: Iterable[Message]) -> None:
        """Sends these calls, and earlier ones that the channel could not take."""
        for call in calls:
            self._channel.send(call)
        self._channel.flush()

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        """The driver's messages; waits up to ``wait_s`` seconds for the first one."""
        if wait_s:
            self._channel.wait(wait_s)
        return list(self._channel.receive())

    def close(self) -> None:
        """Closes the channel, and gives the process 1 s to end."""
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)


class EngineState(Protocol):
    """The state of a run's groups, and the decisions about them; times are in s.

    Attributes:
        calls: calls for the driver, oldest first; the engine takes them.
        events: events of groups, oldest first; the engine takes them.
    """

    calls: list[Message]
    events: list[GroupEvent]

    def agents(self) -> list[Agent]:
        """The agents with their known free resources."""

    def kill(self, groups: Iterable[str], now: float) -> None:
        """Ends these groups; an unknown one is ignored."""

    def handle(self, message: Message, now: float) -> None:
        """Takes one message of the driver."""

    def tick(self, now: float) -> None:
        """Gives up groups that have waited for too long, and repeats calls without an answer."""

    def driver_ended(self, why: str) -> None:
        """Records that the driver has ended although the engine did not stop it; the engine repeats this call."""


_State = TypeVar("_State", bound=EngineState)


class DriverEngine(Generic[_State]):
    """What engines with a driver have in common; see :class:`hydra.engine.interface.Engine`.

    ``launch`` places groups by the known free resources and returns; they start later, and ``events`` reports that.

    Attributes:
        address: the address of this machine that groups reach.
    """

    is_local: Final = False

    def __init__(
        self, driver: DriverProcess, state: _State, address: str, stop_within_s: float, clock: Callable[[], float]
    ) -> None:
        """An engine that owns its driver.

        Args:
            driver: the driver, which ends the run's groups when the engine stops it.
            state: the state of the run.
            address: the address of this machine that groups reach.
            stop_within_s: how long the driver may take to stop, in s.
            clock: a clock in seconds.
        """
        self.address = address
        self._driver = driver
        self._state = state
        self._stop_within_s = stop_within_s
        self._clock = clock
        self._closed = False

    def agents(self) -> list[Agent]:
        """The agents with their known free resources."""
        self._refresh()
        return self._state.agents()

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups, either all or none.

        If a placed group cannot be started, ``events`` reports it.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: the run has ended, or an id cannot be used.
        """
        if self._closed:
            raise ClusterError("the engine is closed", "make a new one")
        self._refresh()
        launches = self._launch(groups, self._clock())
        self._send()
        return launches

    def kill(self, groups: Iterable[str]) -> None:
        """Ends these groups: SIGTERM, and SIGKILL after a grace period; ignores unknown and ended ones."""
        self._state.kill(groups, self._clock())
        self._send()

    def events(self) -> list[GroupEvent]:
        """The events since the last call, oldest first."""
        self._pump()
        events, self._state.events = self._state.events, []
        return events

    def close(self) -> None:
        """Has the driver end all groups of the run, and waits for that."""
        if self._closed:
            return
        self._closed = True
        try:
            self._driver.send([{"call": "stop"}])
            deadline = self._clock() + self._stop_within_s
            while not self._driver.closed and self._clock() < deadline:
                self._hear(0.1)
                self._driver.send(())  # sends calls that the channel could not take before
        finally:  # also after a second Ctrl-C: the driver continues by itself
            self._release()

    def _refresh(self) -> None:
        """Takes news of the agents before a caller gets them and before a placement; waits at most 2 s."""
        self._pump()

    def _launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        """Has the state launch the groups, with the commands that start them on agents."""
        raise NotImplementedError

    def _heard(self, message: Message, now: float) -> None:
        self._state.handle(message, now)

    def _release(self) -> None:
        """Frees the engine's resources on this machine."""
        self._driver.close()

    def _hear(self, wait_s: float = 0.0) -> None:
        messages = self._driver.receive(wait_s)
        now = self._clock()
        for message in messages:
            self._heard(message, now)

    def _pump(self, wait_s: float = 0.0) -> None:
        self._hear(wait_s)
        if not self._closed and self._driver.closed:
            self._state.driver_ended(self._driver.ended())
        self._state.tick(self._clock())
        self._send()

    def _send(self) -> None:
        calls, self._state.calls = self._state.calls, []
        self._driver.send(calls)
