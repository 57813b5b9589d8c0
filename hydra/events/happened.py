"""Everything that a run notes: one class for each event, whose fields say what happened and whose text says it."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, get_args

from hydra.events.event import Event, Level
from hydra.events.warnings import HydraWarning
from hydra.events.words import describe, duration, named, number
from hydra.model import Figure, Group, GroupEvent, Launch, Role, StepPlan
from hydra.wire.program import EXIT_STRANDED

# --- the run as a whole ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunBegan(Event):
    """A run begins; ``expected_s`` is how long it takes if nothing is backlogged, ``bound_s`` at most."""

    kind = "began"
    scenario: str
    out: str
    expected_s: float
    bound_s: float

    @property
    def text(self) -> str:
        expected, bound = duration(self.expected_s), duration(self.bound_s)
        return f"{self.scenario} into {self.out}: about {expected} if nothing is backlogged, {bound} at most"


@dataclass(frozen=True, slots=True)
class RunDone(Event):
    """A run has measured all that it was to measure."""

    kind = "done"
    took_s: float
    out: str

    @property
    def text(self) -> str:
        return f"done in {duration(self.took_s)}: {self.out}"


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """A run could not go on. The report says so at its top, so that it is routine among the events."""

    kind = "failed"
    error: str

    @property
    def text(self) -> str:
        return self.error


@dataclass(frozen=True, slots=True)
class Resumed(Event):
    """A run goes on after ``steps`` steps; ``again`` failed ones of them are measured again."""

    kind = "resumed"
    level = Level.NOTE
    summary = "the run was resumed"
    steps: int
    again: int

    @property
    def text(self) -> str:
        return f"after {self.steps} steps, {self.again} failed ones of which are measured again"


@dataclass(frozen=True, slots=True)
class SystemFact(Event):
    """Something about the system under test that is known only once it runs."""

    kind = "fact"
    name: str
    value: str

    @property
    def text(self) -> str:
        return f"{self.name}: {self.value}"


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """Frames that the controller refused for one reason."""

    kind = "refused"
    level = Level.NOTE
    summary = "peers and messages that the controller refused"
    reason: str
    count: int

    @property
    def text(self) -> str:
        return f"{self.count} × {self.reason}"


@dataclass(frozen=True, slots=True)
class Revived(Event):
    """The system under test had failed and is brought up again."""

    kind = "revive"
    level = Level.NOTE
    summary = "the system under test was brought up again"
    failure: str

    @property
    def text(self) -> str:
        return self.failure


# --- groups and clients ----------------------------------------------------------------------------------------------


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
    clients: Set[int]
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
    clients: Set[int]

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


# --- servers of our own ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServersUp(Event):
    """The servers that run as groups answer as one."""

    kind = "servers"
    count: int
    address: str
    took_s: float

    @property
    def text(self) -> str:
        return f"{self.count} at {self.address} after {self.took_s:.3f} s"


@dataclass(frozen=True, slots=True)
class ServersAgain(Event):
    """A server was lost while they came up: all are brought up once more."""

    kind = "servers_again"
    level = Level.NOTE
    summary = "servers that were lost while they came up; all were brought up once more"
    why: str

    @property
    def text(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class ServerExit(Event):
    """A server ended, or said that it cannot go on."""

    kind = "server_exit"
    level = Level.NOTE
    summary = "servers that ended in mid-run"
    why: str

    @property
    def text(self) -> str:
        return self.why


# --- steps -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartUnacknowledged(Event):
    """Clients had not acknowledged a step's start in time: the step begins anew under the next epoch."""

    kind = "start"
    level = Level.NOTE
    summary = "steps that were begun anew, because clients had not acknowledged the start in time"
    epoch: int
    missing: Set[int]

    @property
    def text(self) -> str:
        return f"epoch {self.epoch}: not acknowledged in time by {named(self.missing)}"


@dataclass(frozen=True, slots=True)
class WindowOpened(Event):
    """Everybody knows when a step's window begins."""

    kind = "window"
    epoch: int

    @property
    def text(self) -> str:
        return f"epoch {self.epoch} runs"


@dataclass(frozen=True, slots=True)
class PhasesTimed(Event):
    """How long each part of a step took, in the order of their ends."""

    kind = "phases"
    epoch: int
    took_s: Sequence[tuple[str, float]]

    @property
    def text(self) -> str:
        return f"epoch {self.epoch}: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in self.took_s)


@dataclass(frozen=True, slots=True)
class StepStored(Event):
    """A step's figures were computed and committed."""

    kind = "stored"
    epoch: int
    took_s: float

    @property
    def text(self) -> str:
        return f"epoch {self.epoch}: {self.took_s:.3f} s"


@dataclass(frozen=True, slots=True)
class StepMeasured(Event):
    """A step is done; ``number`` counts the steps of this command from 1."""

    kind = "step"
    number: int
    plan: StepPlan
    figures: Mapping[str, Figure]

    @property
    def text(self) -> str:
        shown = (
            ("Tx", "avg_tx_rate_pps", "/s"),
            ("Rx", "avg_rx_rate_pps", "/s"),
            ("aggregate", "aggregate_pps", "/s"),
            ("loss", "client_loss_pct", " %"),
        )
        told = ", ".join(f"{name} {number(self.figures.get(column))}{unit}" for name, column, unit in shown)
        return f"step {self.number}: {describe(self.plan)}: {told}"


EVENTS: Final[tuple[type[Event], ...]] = (
    *(RunBegan, RunDone, RunFailed, Resumed, SystemFact, Refused, Revived, HydraWarning),
    *(Launched, Present, Evicted, LaunchedElsewhere, ClientExit, GroupExit, ClientError),
    *(ServersUp, ServersAgain, ServerExit),
    *(StartUnacknowledged, WindowOpened, PhasesTimed, StepStored, StepMeasured),
)
_BY_KIND: Final = {event.kind: event for event in EVENTS}


def level_of(kind: str) -> Level:
    """How much a stored event matters; one of a kind that this version does not know is worth a look."""
    return _BY_KIND[kind].level if kind in _BY_KIND else Level.NOTE


def summary_of(kind: str) -> str:
    """What is said of several stored events of a kind."""
    return _BY_KIND[kind].summary if kind in _BY_KIND else Event.summary
