"""Scenarios: what to deploy, what to vary, for how long, and which table results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from hydra.model.base import DAY_S, MOST_PUBLISHERS, Need, Setting, SettingValue, require, setting
from hydra.model.bounds import Bounded
from hydra.model.cluster import Constraint, Demand
from hydra.model.cpu_lists import parse_cpus
from hydra.model.load import EventSpec, LoadSpec, SloSpec
from hydra.model.settings import Settings, value_of
from hydra.model.sweep import SweepSpec
from hydra.model.system_part import NoOptions, SystemOptions

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
    (``SystemSpec.server_spec``).
    """

    count: int = setting(1, least=1, most=1000)

    def __post_init__(self) -> None:
        RoleSpec.__post_init__(self)
        Bounded.__post_init__(self)


@dataclass(frozen=True, slots=True)
class NativeSpec(Bounded):
    """Options that only native clients support; other implementations accept the defaults only.

    ``system`` has all options of one system's clients: an object of ``SystemSpec.native``.

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

    ``tables`` are the further tables of its system (``SystemSpec.tables``), as dataclasses. If the sweep lists points,
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
