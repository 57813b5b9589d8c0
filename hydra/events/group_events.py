"""Events of process groups and their clients: launches, ends and replacements."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Final, get_args

from hydra.events.event import Event, Level
from hydra.events.value_formatting import counted
from hydra.model import Launch, Role
from hydra.wire import EXIT_STRANDED

_ROWS_NAMED: Final = 6
"""The maximum number of rows that a text names."""


class Launched(Event):
    """A group was launched on an agent; :meth:`of` leaves out its command and environment, which may hold secrets."""

    kind = "launch"
    template = "{group}: {carried} on {agent}{where}"
    group: str
    role: str
    first_client: int
    count: int
    agent: str
    host: str

    @classmethod
    def of(cls, launch: Launch) -> Launched:
        """The event for a launch."""
        group, agent = launch.group, launch.agent
        return cls(group.id, group.role, group.first_client, group.count, agent.id, agent.hostname)

    @property
    def carried(self) -> str:
        """The clients or the server that the group runs."""
        clients = self.role in get_args(Role)
        return f"{counted(self.count, self.role)} from id {self.first_client}" if clients else f"a {self.role}"

    @property
    def where(self) -> str:
        """The agent's host in brackets, if its name differs from the agent's."""
        return f" ({self.host})" if self.host != self.agent else ""


class ClientsConnected(Event):
    """All clients have connected."""

    kind = "present"

    template = "{clients:client|clients} after {took_s:.3f} s"
    clients: int
    took_s: float


class Evicted(Event):
    """Clients of a group that cannot be used any more are ended."""

    kind = "evict"
    level = Level.NOTE
    summary = "clients that did not answer"
    template = "{group}: {clients:ids} {why}"
    group: str
    clients: Iterable[int]
    why: str


class GroupRelaunched(Event):
    """Clients that their group does not replace are launched in another group."""

    kind = "launched_elsewhere"

    category = Evicted.category
    level = Evicted.level
    template = "{clients:ids}: their process groups did not replace them, so they were started in other groups"
    clients: Iterable[int]


class ClientExit(Event):
    """A client's process ended; ``status`` is as in ``Popen.returncode``, None if unknown."""

    level = Level.NOTE
    summary = "clients that ended in mid-run"
    client: int
    pid: int
    status: int | None
    replaced: bool

    @property
    def text(self) -> str:
        return f"client {self.client}: {cause(self.pid, self.status)}{', replaced' if self.replaced else ''}"


def cause(pid: int, status: int | None) -> str:
    """How a process ended, as a clause."""
    if status is None:
        return f"pid {pid} ended"
    if status == EXIT_STRANDED:
        return f"pid {pid} exited with {status}, because the process received nothing from the controller for too long"
    return f"pid {pid} exited with {status}" if status >= 0 else f"pid {pid} was killed by {end_of(status)}"


def end_of(status: int | None) -> str:
    """How a process ended, in the form of a row's column: ``SIGKILL``, ``exit code 3``."""
    if status is None:
        return "of unknown cause"
    if status >= 0:
        return f"exit code {status}"
    known = {s.value: s.name for s in signal.Signals}
    return known.get(-status, f"signal {-status}")


class GroupExit(Event):
    """A whole group ended in mid-run; the fields are those of :class:`~hydra.model.GroupEvent`."""

    level = Level.NOTE
    summary = "groups that ended in mid-run"
    template = "{group} on {agent} {state}: {detail}"
    group: str
    state: str
    agent: str
    detail: str


class ClientError(Event):
    """A client reported an error."""

    level = Level.NOTE
    summary = "errors that clients reported"
    template = "client {client}: {error}"
    client: int
    error: str
