"""The events of a run, its servers, clients and steps: a class for each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hydra.events.event import Event, Level
from hydra.events.value_formatting import MARK, between, counted, duration, number
from hydra.model import Figure, StepPlan

_ROWS_NAMED: Final = 6
"""The maximum number of rows that a text names."""


class EngineWaits(Event):
    """An engine waits for something before a run can begin; the text is the engine's."""

    template = "{what}"
    what: str


class RunBegan(Event):
    """A run begins.

    Attributes:
        scenario: the scenario's name.
        out: the run directory.
        rows: number of rows of the table.
        clients: the subscriber counts of these rows.
        expected_s: duration of the steps if nothing is backlogged.
        bound_s: maximum duration of the steps; None: the results decide it.
        servers: the servers that are started before, as in ``3 … servers``; "" if there are none.
        sharp_s: duration of a search if losses begin at one rate; None: the run is no such search.
        three_s: duration of the searches of three subscriber counts; None: the run is no search of one count.
        unfit: the subscriber counts that do not fit the machine or the cluster.
        lack: what the first of these counts lacks.
        largest: the largest count that fits; 0: no count fits.
    """

    kind = "began"
    scenario: str
    out: str
    rows: int
    clients: Sequence[int]
    expected_s: float
    bound_s: float | None = None
    servers: str = ""
    sharp_s: float | None = None
    three_s: float | None = None
    unfit: Sequence[int] = ()
    lack: str = ""
    largest: int = 0

    @property
    def text(self) -> str:
        return f"{self.scenario} into {self.out}: {self._rows}, about {duration(self.expected_s)}{self._more}"

    @property
    def _rows(self) -> str:
        return f"{counted(self.rows, 'row')} ({_counts(self.clients)})"

    @property
    def _more(self) -> str:
        """What limits the time, and what is not included; the rows that do not fit."""
        found = ""
        if self.bound_s is not None:
            found += f" if nothing is backlogged, {duration(self.bound_s)} at most"
        if self.sharp_s is not None and duration(self.sharp_s) != duration(self.expected_s):
            found += f", or {duration(self.sharp_s)} if losses begin at one rate"
        if self.servers:
            found += f"; the start of {self.servers} is not included"
        if self.three_s is not None:
            found += f"; three counts, such as --subscribers 10,30,100, take about {duration(self.three_s)}"
        if self.unfit:
            verb = "does" if sum(self.unfit) == 1 else "do"
            largest = f"the largest count that fits is {self.largest:,}" if self.largest else "no count fits"
            found += f"; {_counts(self.unfit)} {verb} not fit ({self.lack}): {largest}"
        return found


def _counts(clients: Sequence[int]) -> str:
    """Subscriber counts in words; of many the first, the last and how many there are."""
    if len(clients) > _ROWS_NAMED:
        return f"{clients[0]:,} to {clients[-1]:,} subscribers, {len(clients)} counts"
    others = ", ".join(f"{count:,}" for count in clients[:-1])
    return f"{others}{' and ' if others else ''}{counted(clients[-1], 'subscriber')}"


class RolesPinned(Event):
    """The processes of some roles run on certain CPUs of this machine; ``cpus`` has a list of CPUs for each role."""

    template = "{roles}"
    cpus: Mapping[str, str]

    @property
    def roles(self) -> str:
        """The roles with their CPUs."""
        return "; ".join(f"{role}s run on CPUs {cpus}" for role, cpus in self.cpus.items())


class ReadAheadLimited(Event):
    """A run limits what its subscribers read ahead, as they would not fit into the memory of this machine.

    Attributes:
        key: the key of the limit.
        usual, messages: the most messages that a subscriber reads ahead (of a partition) without the limit and with it.
        ahead_bytes: memory of what the subscribers of the largest row could read ahead without the limit.
        available_bytes: the memory of this machine that is available.
    """

    level = Level.NOTE
    summary = "subscribers read fewer messages ahead than usual, in all rows, so that they fit into memory"
    template = (
        "memory: subscribers could read {ahead_bytes:GB} ahead, and {available_bytes:GB} are available; so in all "
        "rows they read at most {messages:,} messages ahead, not {usual:,} ({key})"
    )
    key: str
    usual: int
    messages: int
    ahead_bytes: int
    available_bytes: int

    @property
    def override(self) -> dict[str, int]:
        """The limit as one of the run's overrides, by which a resumed run finds it."""
        return {self.key: self.messages}


class SlowedByMachine(Event):
    """Limits of this machine with which a run begins, but is slower or less exact.

    Attributes:
        limits: each limit, what the run needs, and how to raise it.
    """

    template = "the run fits on this machine, but is slower or less exact: {lines}"
    limits: Sequence[str]

    @property
    def lines(self) -> str:
        """The limits in one line."""
        return "; ".join(self.limits)


class ConstraintsLeftOut(Event):
    """No agent has an attribute that default constraints of the scenario name, so these do not apply."""

    template = (
        "no agent has the attribute {names}: the scenario's default constraints on it do not apply, and "
        "roles may share hosts"
    )
    attributes: tuple[str, ...]

    @property
    def names(self) -> str:
        """The attributes."""
        return " or ".join(self.attributes)


class RunDone(Event):
    """A run has measured everything."""

    kind = "done"
    template = "done in {took_s:duration}: {out}"
    took_s: float
    out: str


class RunFailed(Event):
    """A run could not continue. The report shows this at its top, so the event is routine."""

    kind = "failed"
    template = "{error}"
    error: str


class RunResumed(Event):
    """A run continues after ``steps`` steps; ``again`` of them failed and are measured again."""

    kind = "resumed"

    level = Level.NOTE
    summary = "the run was resumed"
    template = "after {steps:step|steps}, of which {again:failed one is|failed ones are} measured again"
    steps: int
    again: int


class RunResumeSummary(Event):
    """A run is resumed: the rows that are there, and the steps that are left.

    Attributes:
        out: the run directory.
        there: the names of the rows that were measured or skipped.
        rows: total number of rows.
        again: the names of rows that failed and are measured again.
        steps: maximum number of steps that are left; None if their results decide that.
        left_s: estimated duration of these steps in seconds.
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
        done = f"{len(self.there)} of {counted(self.rows, 'row')} there{_named(self.there)}"
        verb = "is" if len(self.again) == 1 else "are"
        again = f"{len(self.again)} failed and {verb} measured again{_named(self.again)}" if self.again else ""
        decided = "the results decide how many steps are to go"
        to_go = decided if self.steps is None else f"{counted(self.steps, 'step')} to go"
        left = f"{to_go}, about {duration(self.left_s)}"
        return f"{self.out} continues: " + "; ".join(filter(None, (done, again, left)))


class RunComplete(Event):
    """A run is resumed that has measured everything already."""

    kind = "complete"
    template = "{out} is complete: nothing is left to measure, and nothing is started"
    out: str


def _named(rows: Sequence[str]) -> str:
    """The first names, in brackets."""
    more = f"; {len(rows) - _ROWS_NAMED} more" if len(rows) > _ROWS_NAMED else ""
    return f" ({'; '.join(rows[:_ROWS_NAMED])}{more})" if rows else ""


class SystemFact(Event):
    """A fact about the system under test that is known only once the system is running."""

    kind = "fact"
    template = "{name}: {value}"
    name: str
    value: str


class FramesRejected(Event):
    """Frames that the controller rejected for one reason."""

    kind = "refused"

    level = Level.NOTE
    summary = "peers and messages that the controller rejected"
    template = "{count} × {reason}"
    reason: str
    count: int


class SystemRestarted(Event):
    """The system under test had failed and is started again."""

    kind = "revive"
    level = Level.NOTE
    summary = "the system under test was started again"
    template = "{failure}"
    failure: str


class ServersStarting(Event):
    """Servers are being started.

    Attributes:
        what: the servers, as in ``3 … servers``.
        doing: the progress, as in ``1 of 3 dialled in``; "" if unknown.
        for_s: seconds since the start.
    """

    what: str
    doing: str
    for_s: float

    @property
    def text(self) -> str:
        doing = f": {self.doing}" if self.doing else ""
        return f"starting {self.what}{doing} (for {duration(self.for_s)})"


class ServersStarted(Event):
    """Servers were started; ``what`` is as in :class:`ServersStarting`."""

    template = "started {what} in {took_s:duration}"
    what: str
    took_s: float


class ServersUp(Event):
    """The servers that run as groups answer as one cluster."""

    kind = "servers"
    template = "{count} at {address} after {took_s:.3f} s"
    count: int
    address: str
    took_s: float


class ServersRestarted(Event):
    """A server was lost while the servers started: all servers are started again."""

    kind = "servers_again"

    level = Level.NOTE
    summary = "servers that were lost while the servers started; all servers were started again"
    template = "{why}"
    why: str


class ServerExit(Event):
    """A server ended, or reported that it cannot continue."""

    level = Level.NOTE
    summary = "servers that ended in mid-run"
    template = "{why}"
    why: str


class ServerKilled(Event):
    """A server was killed on purpose, by an event of the scenario."""

    level = Level.NOTE
    summary = "servers that were killed on purpose"
    template = "{group} at {address} on {host} was killed with SIGKILL {when}"
    group: str
    host: str
    address: str
    when: str


class ServerRestarted(Event):
    """A server was killed on purpose, by the event ``restart_server`` of the scenario."""

    level = Level.NOTE
    summary = "servers that were killed and started again on purpose"
    template = (
        "the server at {address} was killed with SIGKILL {at_s:.1f} s into the window, to return after {for_s:g} s"
    )
    address: str
    at_s: float
    for_s: float


class StartUnacknowledged(Event):
    """Clients did not acknowledge a step's start in time: the step begins again with the next epoch."""

    kind = "start"
    level = Level.NOTE
    summary = "steps that were started again, because clients had not acknowledged the start in time"
    template = "epoch {epoch}: not acknowledged in time by {missing:ids}"
    epoch: int
    missing: Iterable[int]


class WindowOpened(Event):
    """All clients know when a step's window begins."""

    kind = "window"
    template = "epoch {epoch} runs"
    epoch: int


class PhasesTimed(Event):
    """The duration of each part of a step, in the order of their ends."""

    kind = "phases"
    epoch: int
    took_s: Sequence[tuple[str, float]]

    @property
    def text(self) -> str:
        return f"epoch {self.epoch}: " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in self.took_s)


class StepStored(Event):
    """A step's figures were computed and stored."""

    kind = "stored"
    template = "epoch {epoch}: {took_s:.3f} s"
    epoch: int
    took_s: float


class StepMeasured(Event):
    """A step was measured; ``position`` names it, such as ``step 3 of 6: 30 subscribers, 1,000/s``.

    ``not_clean`` is why its row is not clean; "" if it is clean, or if the step is of a search.
    """

    kind = "step"
    position: str
    plan: StepPlan
    figures: Mapping[str, Figure]
    not_clean: str = ""

    @property
    def text(self) -> str:
        sent = [("Tx", "avg_tx_rate_pps", "/s")]
        received = [
            ("Rx", "avg_rx_rate_pps", "/s"),
            ("aggregate", "aggregate_pps", "/s"),
            ("loss", "client_loss_pct", " %"),
        ]
        # At rate ``max`` a publisher may send more than subscribers receive: what they received is the result.
        both = received + sent if self.plan.settings.rate == "max" else sent + received
        shown = both if self.plan.clients else sent
        shown_figures = ", ".join(f"{name} {number(self.figures.get(column))}{unit}" for name, column, unit in shown)
        return f"{self.position}: {shown_figures}{f' {MARK} not clean: {self.not_clean}' if self.not_clean else ''}"


class SearchStepMeasured(Event):
    """A step of a search for a rate within a loss target is done.

    Attributes:
        position: as of :class:`StepMeasured`.
        target_pct: the highest shortfall (%) of a step that passes.
        shortfall_pct: the shortfall (%) of the step; None: not known.
        parts: what the shortfall is made of: % and a word each, the largest first.
        low, high: the rates (messages/s) between which the answer of the search is so far; None: no limit is known.
    """

    kind = "search_step"
    category = StepMeasured.category
    position: str
    target_pct: float
    shortfall_pct: float | None
    parts: Sequence[tuple[float, str]]
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        target = number(self.target_pct)
        if self.shortfall_pct is None:
            return f"{self.position}: shortfall not known (target {target} %){self._so_far}"
        shortfall = number(self.shortfall_pct)
        if self.shortfall_pct <= self.target_pct:
            return f"{self.position}: passed, shortfall {shortfall} % (target {target} %){self._so_far}"
        parts = ", ".join(f"{number(pct)} % {part}" for pct, part in self.parts)
        return f"{self.position}: short, shortfall {shortfall} % (target {target} %): {parts}{self._so_far}"

    @property
    def _so_far(self) -> str:
        """The rates between which the answer is."""
        known = between(self.low, self.high, "/s")
        return f"; the answer is {known} so far" if known else ""


class LadderStepMeasured(Event):
    """A step on a ladder of rates is done.

    Attributes:
        position: as of :class:`StepMeasured`.
        step_s: how long the step sent, in seconds.
        not_clean: why the step is not clean; "" if it is.
        parts: the shares (%) of the messages that a clean step lost or had late, and the name of each.
        low, high: the rates (messages/s) of the highest rung that is held so far and the lowest one that is not.
    """

    kind = "ladder_step"
    category = StepMeasured.category
    position: str
    step_s: float
    not_clean: str
    parts: Sequence[tuple[float, str]]
    low: float | None
    high: float | None

    @property
    def text(self) -> str:
        parts = ", ".join(f"{number(pct)} % {part}" for pct, part in self.parts)
        clean = f"clean ({parts})" if parts else "clean"
        outcome = f"not clean, {self.not_clean}" if self.not_clean else clean
        known = between(self.low, self.high, "/s")
        so_far = f"; the answer is {known} so far" if known else ""
        return f"{self.position} for {number(self.step_s)} s: {outcome}{so_far}"
