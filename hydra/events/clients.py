"""What happens to clients and their groups."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from hydra.events.event import Event, Level
from hydra.events.formatting import named
from hydra.model import Group, GroupEvent, Launch, Role
from hydra.wire.protocol_constants import EXIT_STRANDED


@dataclass(frozen=True, slots=True)
class Launched(Event):
    """A group was given to an agent."""

    kind = "launch"
    launch: Launch

    @property
    def text(self) -> str:
        group, agent = self.launch.group, self.launch.agent
        host = f" ({agent.hostname})" if agent.hostname != agent.id else ""
        return f"{group.id}: {_carried(group)} on {agent.id}{host}"


def _carried(group: Group) -> str:
    if group.role in get_args(Role):
        return f"{group.count} {group.role}(s) from id {group.first_client}"
    return f"a {group.role}"


@dataclass(frozen=True, slots=True)
class Present(Event):
    """All clients have dialled in."""

    kind = "present"
    clients: int
    took_s: float

    @property
    def text(self) -> str:
        return f"{self.clients} clients after {self.took_s:.3f} s"


@dataclass(frozen=True, slots=True)
class Evicted(Event):
    """Clients of a group that are of no use any more are ended."""

    kind = "evict"
    level = Level.NOTE
    summary = "clients that did not answer"
    group: str
    clients: Iterable[int]
    why: str

    @property
    def text(self) -> str:
        return f"{self.group}: {named(self.clients)} {self.why}"


@dataclass(frozen=True, slots=True)
class LaunchedElsewhere(Event):
    """Clients whose group does not replace them get another group."""

    kind = Evicted.kind
    level = Evicted.level
    summary = Evicted.summary
    clients: Iterable[int]

    @property
    def text(self) -> str:
        return f"{named(self.clients)}: not replaced by their groups, launched in others"


@dataclass(frozen=True, slots=True)
class ClientExit(Event):
    """A client's process ended; ``status`` is as ``Popen.returncode`` has it, None if nobody knows it."""

    kind = "client_exit"
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
    """How a process ended."""
    if status is None:
        return f"pid {pid} ended"
    if status == EXIT_STRANDED:
        return f"pid {pid} was stranded (exit code {status}): it had heard nothing of the controller for too long"
    if status >= 0:
        return f"pid {pid} exited with {status}"
    return f"pid {pid} was killed by {signal.Signals(-status).name}"


@dataclass(frozen=True, slots=True)
class GroupExit(Event):
    """A whole group ended in mid-run."""

    kind = "group_exit"
    level = Level.NOTE
    summary = "groups that ended in mid-run"
    event: GroupEvent

    @property
    def text(self) -> str:
        return f"{self.event.group} on {self.event.agent} {self.event.state}: {self.event.detail}"


@dataclass(frozen=True, slots=True)
class ClientError(Event):
    """A client reported an error."""

    kind = "client_error"
    level = Level.NOTE
    summary = "errors that clients reported"
    client: int
    error: str

    @property
    def text(self) -> str:
        return f"client {self.client}: {self.error}"
