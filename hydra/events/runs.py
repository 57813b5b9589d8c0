"""What happens to a run as a whole and to its servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hydra.events.event import Event, Level
from hydra.events.formatting import duration

_ROWS_NAMED: Final = 6
"""Rows that are named, of many."""


class EngineWaits(Event):
    """What an engine waits for before a run can begin, in its own words."""

    template = "{what}"
    what: str


class RunBegan(Event):
    """A run begins.

    Attributes:
        scenario: its name.
        out: its directory.
        expected_s: how long its steps take if nothing is backlogged.
        bound_s: how long they take at most.
        servers: those that are started before, as in ``3 … servers``; "" if there are none.
    """

    kind = "began"
    scenario: str
    out: str
    expected_s: float
    bound_s: float
    servers: str = ""

    @property
    def text(self) -> str:
        expected, bound = duration(self.expected_s), duration(self.bound_s)
        more = f"; the start of {self.servers} is not in it" if self.servers else ""
        return f"{self.scenario} into {self.out}: about {expected} if nothing is backlogged, {bound} at most{more}"


class RunDone(Event):
    """A run has measured all that it was to measure."""

    kind = "done"
    template = "done in {took_s:duration}: {out}"
    took_s: float
    out: str


class RunFailed(Event):
    """A run could not go on. The report says so at its top, so that it is routine among the events."""

    kind = "failed"
    template = "{error}"
    error: str


class Resumed(Event):
    """A run goes on after ``steps`` steps; ``again`` failed ones of them are measured again."""

    level = Level.NOTE
    summary = "the run was resumed"
    template = "after {steps} steps, {again} failed ones of which are measured again"
    steps: int
    again: int


class RunGoesOn(Event):
    """A run is resumed: what is there and what is left.

    Attributes:
        out: its directory.
        there: the names of the rows that are measured or were skipped.
        rows: how many it has in all.
        again: the names of those that failed and are tried again.
        steps: how many are to go at most; None where their results decide that.
        left_s: about how many seconds that takes.
    """

    kind = "goes_on"
    out: str
    there: Sequence[str]
    rows: int
    again: Sequence[str]
    steps: int | None
    left_s: float

    @property
    def text(self) -> str:
        there = f"{len(self.there)} of {self.rows} rows are there{_named(self.there)}"
        verb = "is" if len(self.again) == 1 else "are"
        again = f"{len(self.again)} failed and {verb} tried again{_named(self.again)}" if self.again else ""
        some = "the results decide how many steps are to go" if self.steps is None else f"{self.steps} steps to go"
        left = f"{'1 step to go' if self.steps == 1 else some}, about {duration(self.left_s)}"
        return f"{self.out} goes on: " + "; ".join(filter(None, (there, again, left)))


class RunComplete(Event):
    """A run is resumed that has everything already."""

    kind = "complete"
    template = "{out} is complete: nothing is left to measure, and nothing is started"
    out: str


def _named(rows: Sequence[str]) -> str:
    """The first few names in brackets."""
    more = f"; {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
    return f" ({'; '.join(rows[:_ROWS_NAMED])}{more})" if rows else ""


class SystemFact(Event):
    """Something about the system under test that is known only once it runs."""

    kind = "fact"
    template = "{name}: {value}"
    name: str
    value: str


class Refused(Event):
    """Frames that the controller refused for one reason."""

    level = Level.NOTE
    summary = "peers and messages that the controller refused"
    template = "{count} × {reason}"
    reason: str
    count: int


class Revived(Event):
    """The system under test had failed and is brought up again."""

    kind = "revive"
    level = Level.NOTE
    summary = "the system under test was brought up again"
    template = "{failure}"
    failure: str


class ServersStarting(Event):
    """Servers are being started.

    Attributes:
        what: which, as in ``3 … servers``.
        doing: how far they are, as in ``1 of 3 dialled in``; "": nobody knows.
        for_s: for how long by now.
    """

    what: str
    doing: str
    for_s: float

    @property
    def text(self) -> str:
        doing = f": {self.doing}" if self.doing else ""
        return f"starting {self.what}{doing} (for {duration(self.for_s)})"


class ServersStarted(Event):
    """Servers are there, as :class:`ServersStarting` calls them."""

    template = "started {what} in {took_s:duration}"
    what: str
    took_s: float


class ServersUp(Event):
    """The servers that run as groups answer as one."""

    kind = "servers"
    template = "{count} at {address} after {took_s:.3f} s"
    count: int
    address: str
    took_s: float


class ServersAgain(Event):
    """A server was lost while they came up: all are brought up once more."""

    level = Level.NOTE
    summary = "servers that were lost while they came up; all were brought up once more"
    template = "{why}"
    why: str


class ServerExit(Event):
    """A server ended, or said that it cannot go on."""

    level = Level.NOTE
    summary = "servers that ended in mid-run"
    template = "{why}"
    why: str


class ServerKilled(Event):
    """A server was killed on purpose, as its scenario says."""

    level = Level.NOTE
    summary = "servers that were killed on purpose"
    template = "{group} at {address} on {host} was killed with SIGKILL {when}"
    group: str
    host: str
    address: str
    when: str
