"""An engine whose connection to its cluster is held by a process, so that no row waits for the cluster.

Between rows, before groups are placed, an engine may wait for what is new of the agents: 2 s at most.

The engine moves messages between that process, its driver, and a state, which decides and has no clock of its own.
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
    """The process and the channel to it: the engine says calls, the process what has happened.

    Attributes:
        process: it ends by itself when the engine hangs up, having ended what belongs to the run.
    """

    def __init__(self, module: str, log: Path) -> None:
        """Starts ``python -m MODULE FD``, FD being its end of a socket pair.

        Args:
            module: its program.
            log: where it writes.
        """
        self._module, self._log = module, log
        ours, theirs = socket.socketpair()
        self._channel = DriverPipe(ours)
        try:
            with theirs, log.open("ab") as output:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", module, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except BaseException:
            self._channel.close()
            raise

    @property
    def closed(self) -> bool:
        """Whether it has ended, or nobody speaks to it any more."""
        return self._channel.closed

    def ended(self) -> str:
        """What to say of an end that nobody asked for."""
        return f"the process {self._module} ended with {self.process.poll()}; see {self._log}"

    def send(self, calls: Iterable[Message]) -> None:
        """Sends these, and what could not go before."""
        for call in calls:
            self._channel.send(call)
        self._channel.flush()

    def receive(self, wait_s: float = 0.0) -> list[Message]:
        """What it has said; waits for something if there is a time for that."""
        if wait_s:
            self._channel.wait(wait_s)
        return list(self._channel.receive())

    def close(self) -> None:
        """Hangs up, and gives it a second to end."""
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)


class EngineState(Protocol):
    """What is known of a run's groups, and decided about them; times are in s.

    Attributes:
        calls: what the driver shall do, oldest first; taken by the engine.
        events: what happened to groups, oldest first; taken by the engine.
    """

    calls: list[Message]
    events: list[GroupEvent]

    def agents(self) -> list[Agent]:
        """The agents with what is free on each as far as is known."""

    def kill(self, groups: Iterable[str], now: float) -> None:
        """Ends these groups; an unknown one is ignored."""

    def handle(self, message: Message, now: float) -> None:
        """Takes note of one message of the driver."""

    def tick(self, now: float) -> None:
        """Gives up what has waited for too long, and repeats what was not answered."""

    def driver_ended(self, why: str) -> None:
        """Takes note that the driver has ended, though nobody asked it to; called again and again from then on."""


_State = TypeVar("_State", bound=EngineState)


class DriverEngine(Generic[_State]):
    """What engines with a driver have in common; see :class:`hydra.engine.interface.Engine`.

    ``launch`` places groups on what is known to be free and returns; they start afterwards, and ``events`` tells of it.

    Attributes:
        address: the address of this machine that groups reach.
    """

    is_local: Final = False

    def __init__(
        self, driver: DriverProcess, state: _State, address: str, stop_within_s: float, clock: Callable[[], float]
    ) -> None:
        """An engine that owns its driver.

        Args:
            driver: it ends what belongs to the run when it is told to stop.
            state: of the run.
            address: the address of this machine that groups reach.
            stop_within_s: how long the driver may take to stop.
            clock: s.
        """
        self.address = address
        self._driver = driver
        self._state = state
        self._stop_within_s = stop_within_s
        self._clock = clock
        self._closed = False

    def agents(self) -> list[Agent]:
        """The agents with what is free on each as far as is known."""
        self._refresh()
        return self._state.agents()

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        """Places the groups, either all or none.

        A group that cannot be started after all is reported by ``events``.

        Raises:
            PlacementError: a group fits nowhere; the text names the group and the constraint or resource.
            ClusterError: the run is no more, or an id cannot be used.
        """
        if self._closed:
            raise ClusterError("the engine is closed", "make a new one")
        self._refresh()
        launches = self._launch(groups, self._clock())
        self._send()
        return launches

    def kill(self, groups: Iterable[str]) -> None:
        """Ends these groups: SIGTERM, and SIGKILL after a grace; an unknown or ended one is ignored."""
        self._state.kill(groups, self._clock())
        self._send()

    def events(self) -> list[GroupEvent]:
        """What happened since the last call, oldest first."""
        self._pump()
        events, self._state.events = self._state.events, []
        return events

    def close(self) -> None:
        """Has the driver end everything of the run, and waits for that."""
        if self._closed:
            return
        self._closed = True
        try:
            self._driver.send([{"call": "stop"}])
            deadline = self._clock() + self._stop_within_s
            while not self._driver.closed and self._clock() < deadline:
                self._hear(0.1)
                self._driver.send(())  # what could not go before: nothing else is asked any more
        finally:  # also when a second Ctrl-C cuts the wait short: the driver goes on by itself
            self._release()

    def _refresh(self) -> None:
        """Hears what is new of the agents, before they are told of and groups are placed on them; 2 s at most."""
        self._pump()

    def _launch(self, groups: Sequence[Group], now: float) -> list[Launch]:
        """Has the state launch the groups, as they are started on agents."""
        raise NotImplementedError

    def _heard(self, message: Message, now: float) -> None:
        self._state.handle(message, now)

    def _release(self) -> None:
        """Gives back what the engine holds on this machine."""
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
