"""What happens to clients and their groups."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import get_args

from hydra.events.event import Event, Level
from hydra.model import Launch, Role
from hydra.wire.protocol_constants import EXIT_STRANDED


class Launched(Event):
    """A group was given to an agent; :meth:`of` leaves out what it was started with, for that is full of secrets."""

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
        """That it was launched."""
        group, agent = launch.group, launch.agent
        return cls(group.id, group.role, group.first_client, group.count, agent.id, agent.hostname)

    @property
    def carried(self) -> str:
        """What the group runs."""
        clients = self.role in get_args(Role)
        return f"{self.count} {self.role}(s) from id {self.first_client}" if clients else f"a {self.role}"

    @property
    def where(self) -> str:
        """The agent's host, where that has another name."""
        return f" ({self.host})" if self.host != self.agent else ""


class Present(Event):
    """All clients have dialled in."""

    template = "{clients} clients after {took_s:.3f} s"
    clients: int
    took_s: float


class Evicted(Event):
    """Clients of a group that are of no use any more are ended."""

    kind = "evict"
    level = Level.NOTE
    summary = "clients that did not answer"
    template = "{group}: {clients:ids} {why}"
    group: str
    clients: Iterable[int]
    why: str


class LaunchedElsewhere(Event):
    """Clients whose group does not replace them get another group."""

    category = Evicted.category
    level = Evicted.level
    template = "{clients:ids}: not replaced by their groups, launched in others"
    clients: Iterable[int]


class ClientExit(Event):
    """A client's process ended; ``status`` is as ``Popen.returncode`` has it, None if nobody knows it."""

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
    """How a process ended, in a sentence."""
    if status is None:
        return f"pid {pid} ended"
    if status == EXIT_STRANDED:
        return f"pid {pid} was stranded (exit code {status}): it had heard nothing of the controller for too long"
    return f"pid {pid} exited with {status}" if status >= 0 else f"pid {pid} was killed by {end_of(status)}"


def end_of(status: int | None) -> str:
    """The same as a row has it: ``SIGKILL``, ``exit code 3``."""
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
