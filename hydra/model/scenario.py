"""Scenarios: what to deploy, what to vary, for how long, and which table results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Final, Literal

from hydra.model.base import DAY_S, MOST_PUBLISHERS, Bounded, Need, Setting, SettingValue, require, setting
from hydra.model.cluster import Constraint, Demand
from hydra.model.machine import parse_cpus
from hydra.model.settings import Settings, value_of
from hydra.model.sweep import SweepSpec
from hydra.model.system_part import NoOptions, SystemOptions

Points = Sequence[tuple[float, float]]
"""Ascending times (s since the start) with the rate (messages/s) at each; two points with one time are a jump."""

MAX_POINTS: Final = 8192

BURST: Final = "burst"
RESTART: Final = "restart_server"
"""The event that kills a server started by Hydra and starts it again."""
IMPAIRMENTS: Final = ("slow", "gone")
"""The kinds of events that impair a part of the subscribers."""
MAX_IMPAIRMENTS: Final = 64
"""The maximum number of impairments of one subscriber in a step."""
EVENT_KINDS: Final = (BURST, *IMPAIRMENTS)
"""The kinds of events of every system."""

LoadShape = Literal["constant", "ramp", "steps", "daily", "recorded"]


def check_points(points: Points) -> None:
    """Checks the points of a load.

    Raises:
        ValueError: the points are invalid; the text gives the reason.
    """
    require(len(points) <= MAX_POINTS, f"a load of {len(points)} points, above the limit of {MAX_POINTS}")
    require(not points or points[0][0] == 0, "a load begins at 0 s")
    require(all(b[0] >= a[0] for a, b in pairwise(points)), "the times of a load rise")
    require(
        all(math.isfinite(t) and 0 <= r <= 1e9 and t <= 1e9 for t, r in points),
        "the rates of a load are 0 to 1e9 messages/s, and its times end at 1e9 s",
    )


def _shape(*shapes: LoadShape) -> Need:
    return Need("load.shape", shapes)


@dataclass(frozen=True, slots=True)
class LoadSpec(Bounded):
    """How the rate of each publisher changes during a step; all parts are parts of ``settings.rate``.

    ``constant``: the rate does not change. ``ramp``: it changes linearly from the part ``low`` to the part ``high``.
    ``steps``: it has each of ``parts`` for an equal time. ``daily``: it is a sine that begins at its minimum ``low``,
    and has the period ``period_s``. ``recorded``: it follows ``file``; its highest rate becomes ``settings.rate``,
    unless that is "max". ``points`` are read from that file: seconds and messages/s.
    """

    shape: LoadShape = setting(
        "constant", "Shape of the rate over time; the table [load] of a scenario has the details.", flag=("--load",)
    )
    low: float = setting(0.1, least=0, most=1, needs=(_shape("ramp", "daily"),))
    high: float = setting(1.0, above=0, most=1, needs=(_shape("ramp", "daily"),))
    parts: tuple[float, ...] = setting((0.25, 0.5, 0.75, 1.0), least=0, most=1, needs=(_shape("steps"),))
    period_s: float = setting(86_400.0, above=0, needs=(_shape("daily"),))
    file: str = setting("", unit="path", needs=(_shape("recorded"),))
    points: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        Bounded.__post_init__(self)
        require(self.shape != "daily" or self.low <= self.high, "low must not be above high", "low", "high", "shape")
        require(0 < len(self.parts) <= MAX_POINTS // 2, f"must have 1 to {MAX_POINTS // 2} shares of the rate", "parts")
        require(any(self.parts), "must have one above 0", "parts")
        require(
            self.shape != "recorded" or bool(self.file or self.points),
            "shape 'recorded' needs a CSV of times or rates: add --set load.file=FILE",
            *("shape", "file"),
        )
        check_points(self.points)


@dataclass(frozen=True, slots=True)
class EventSpec(Bounded):
    """An event during a step.

    ``at_s`` is its begin in seconds since the start of the step, ``for_s`` its duration in seconds. ``burst``
    multiplies the rate by ``factor``. With ``slow`` the part ``fraction`` of the subscribers reads at most ``rate``
    messages/s;
    None: half of the step's mean rate. With ``gone`` these subscribers are disconnected. Other kinds belong to the
    system (``OwnSettings.events``), and have no duration.
    """

    at_s: float = field(metadata=Setting(least=0, most=DAY_S).metadata)
    kind: str
    for_s: float = setting(10.0, above=0, most=DAY_S)
    factor: float = setting(5.0, above=0, most=1000)
    fraction: float = setting(0.1, above=0, below=1)
    rate: float | None = setting(None, above=0)


def _latency(flag: str, what: str) -> Any:
    """The field of a latency objective."""
    return setting(None, f"Limit for the {what} latency, such as 20ms.", flag=(flag,), unit="ms", least=1e-3, most=1e9)


@dataclass(frozen=True, slots=True)
class SloSpec(Bounded):
    """The objectives of a step: latency from the due time, loss, and the recovery time after each event.

    None is no objective. ``loss_pct`` is a percentage of the messages that every subscriber should receive. ``stall_s``
    is no objective: it is the longest stall or burst of losses, in seconds of traffic, that may have been missed.
    """

    p50_ms: float | None = _latency("--p50", "median")
    p90_ms: float | None = _latency("--p90", "90th percentile of the")
    p99_ms: float | None = _latency("--p99", "99th percentile of the")
    p999_ms: float | None = _latency("--p999", "99.9th percentile of the")
    max_ms: float | None = _latency("--max", "highest")
    loss_pct: float | None = setting(
        None,
        "Limit for lost messages, in percent of the expected ones.",
        flag=("--loss",),
        unit="%",
        metavar="PERCENT",
        least=0,
        below=100,
    )
    recovery_s: float | None = setting(
        None,
        "Time after each event within which all other objectives must hold again.",
        flag=("--recovery",),
        unit="s",
        least=1e-3,
        most=1e9,
    )
    stall_s: float = setting(
        1.0,
        "Longest stall to allow for although none was seen; a shorter step can rule out a shorter one.",
        flag=("--stall",),
        unit="s",
        least=1e-6,
        most=3600,
    )

    def objectives(self) -> Mapping[str, float]:
        """The objectives of ``hydra slo`` that are set, such as the highest p99 latency, by name."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "stall_s"}
        return {name: value for name, value in found.items() if value is not None}


TableKind = Literal["rates", "rate", "fixed", "batch", "connections"]


APART: Final = "apart"
"""The value of ``pin`` that gives a role cores which no other role uses."""


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """Where the groups of one role may run, and what they need there.

    Attributes:
        pin: the CPUs on which the processes of the role run, such as ``0-3,8``; ``"apart"``: whole cores that no other
            role uses; ``""``: any CPUs.
    """

    constraints: tuple[Constraint, ...] = ()
    demand: Demand = Demand()
    pin: str = ""

    def __post_init__(self) -> None:
        try:
            parse_cpus("" if self.pin == APART else self.pin)
        except ValueError:
            require(False, f'must be a list of CPUs, such as "0-3,8", or "apart", not {self.pin!r}', "pin")


@dataclass(frozen=True, slots=True)
class ServerSpec(RoleSpec, Bounded):
    """The servers that Hydra starts if the user names none: where each may run, what it needs, and how many there are.

    On agents each server is a group, and all together are one cluster. The system has the default demand of a server
    (``ServerKind.demand``).
    """

    count: int = setting(1, least=1, most=1000)

    def __post_init__(self) -> None:
        RoleSpec.__post_init__(self)
        Bounded.__post_init__(self)


@dataclass(frozen=True, slots=True)
class NativeSpec(Bounded):
    """Options that only native clients support; other implementations accept the defaults only.

    ``system`` has all options of one system's clients: an object of ``OwnSettings.native``.

    Attributes:
        clients_per_process: the number of subscribers in one process, each with its own connection, id and ledger.
        pacing: ``"smooth"`` spaces messages evenly; ``"bursty"`` sends all messages of a second at its start.
    """

    clients_per_process: int = setting(1, "Number of subscribers in one process.", metavar="K", least=1, most=100_000)
    pacing: Literal["smooth", "bursty"] = setting(
        "smooth",
        "`smooth` spaces messages evenly; `bursty` sends all messages of a second at its start.",
        needs=(Need("settings.rate", other_than=("max",)),),
    )
    system: SystemOptions = field(default_factory=NoOptions)


@dataclass(frozen=True, slots=True)
class Scenario(Bounded):
    """A scenario: what to deploy, what to vary, for how long, and which table results.

    ``tables`` are the further tables of its system (``OwnSettings.tables``), as dataclasses. If the sweep lists points,
    ``publishers`` is the largest number of any row. ``load`` is how the rate changes during a step, ``events`` are the
    events during each step, and ``slo`` the objectives of each step.

    Attributes:
        system: the system under test.
        client: the implementation of the clients.
        table: the kind of the result table: ``"rates"`` and ``"rate"`` (searches), ``"fixed"``, ``"batch"`` (client
            count × ``msg_batch``), or ``"connections"`` (subscriber count × ``connect_rate``).
        name: the name of run directories: at most 100 characters, no slash, no dot at the beginning.
        description: one line for lists of scenarios.
        published: whether the values of the file's table ``[published]`` replace the others of the file; in a file it
            is that table, and the flag ``--published`` selects it.
        preset: the settings that are recommended for a design goal; keys of the file override them.
        publishers: the number of publishers, each of which sends at the rate of the step.
        warmup_s: seconds of traffic before the first step of a deployment, which no result counts.
        warmup_max_s: if above ``warmup_s``, the warm-up of a grid continues in parts of ``warmup_s``, at the rate of
            the step, until two parts in a row were received alike (5 %), for at most this number of seconds.
        drain_max_s: the longest drain after a step in seconds; unset: the length of the step + 5 s.
        ready_timeout_s: the longest wait in seconds until all clients are connected and ready; after a quarter of it
            without progress, missing clients are replaced.
        publisher_memory_mb: a publisher whose process takes more resident memory (MB) ends its step early, and the
            row has a warning.
    """

    name: str
    system: str
    client: str = field(
        metadata=Setting(
            help="Implementation of the clients. If none is named, native clients replace the default where their "
            "program is there and can do what the scenario asks.",
            flag=("--implementation", "--client"),
        ).metadata
    )
    table: TableKind
    sweep: SweepSpec
    settings: Settings = Settings()
    publishers: int = setting(
        1, "Number of publishers, each of which sends at the rate.", metavar="N", least=1, most=MOST_PUBLISHERS
    )
    publisher: RoleSpec = RoleSpec()
    subscriber: RoleSpec = RoleSpec()
    server: ServerSpec = ServerSpec()
    native: NativeSpec = NativeSpec()
    tables: Mapping[str, Any] = field(default_factory=dict, hash=False)
    warmup_s: float = setting(1.0, least=0, most=3600)
    warmup_max_s: float = setting(0.0, least=0, most=3600)
    drain_max_s: float | None = setting(None, above=0, most=DAY_S)
    ready_timeout_s: float = setting(120.0, above=0, most=DAY_S)
    publisher_memory_mb: float = setting(2048.0, above=0, most=1e9)
    load: LoadSpec = field(default_factory=LoadSpec)
    events: tuple[EventSpec, ...] = ()
    slo: SloSpec = field(default_factory=SloSpec)
    preset: str = setting(
        "", "Use the settings recommended for a design goal; other flags override them.", metavar="GOAL"
    )
    description: str = ""
    published: bool = setting(
        False, "Measure the published sweep: its subscriber counts, step lengths, searches and table headings."
    )

    def values_of(self, name: str) -> tuple[SettingValue, ...]:
        """Every value that a setting, shared or of the system, has in some row."""
        return self.sweep.values_of(name, value_of(self.settings, name))

    def whole_values(self, name: str, unset: int = 0) -> tuple[int, ...]:
        """Every value that a setting, a whole number, has in some row; ``unset`` if a row leaves it unset."""
        return tuple(value if isinstance(value, int) else unset for value in self.values_of(name))

    @property
    def largest_bytes(self) -> int:
        """The size of the largest message of any row."""
        return max(
            replace(self.settings, message_size=size).largest_bytes
            for size in self.values_of("message_size")
            if isinstance(size, int)
        )

    @property
    def loss_target(self) -> float:
        """The loss (a fraction) within which a step passes: the objective's, otherwise the sweep's."""
        return self.sweep.loss_target if self.slo.loss_pct is None else self.slo.loss_pct / 100

    @property
    def keeps_seconds(self) -> bool:
        """Whether time series are stored: if needed, and without stored reads and ``messages``, to find stops."""
        stored = any(value == "stored" for value in self.values_of("read"))
        return self.has_time_series or not (stored or self.settings.messages is not None)

    @property
    def has_time_series(self) -> bool:
        """Whether the scenario needs the time series of each step."""
        uses = self.sweep.seconds or self.events or self.slo.objectives() or self.load.shape != "constant"
        return bool(uses)

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """See :meth:`hydra.model.sweep.SweepSpec.sizes`."""
        return self.sweep.sizes(self.publishers)
