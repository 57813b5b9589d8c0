"""Scenarios with their systems' specifications, made once from file and flags, or from a stored run; and commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hydra.config import plugins
from hydra.config.needs import UnusedSetting
from hydra.errors import ConfigError
from hydra.measure.column import BATCH, Column, SystemColumns
from hydra.measure.step_result import step_columns
from hydra.model import Constraint, GroupRole, Scenario, ServerSpec, setting_of
from hydra.sweep import Sweep, for_scenario
from hydra.sweep.kind import columns_of
from hydra.system import SystemSpec

if TYPE_CHECKING:
    from hydra.system.experiment import ExperimentOptions

_SPREAD: Final = Constraint("hostname", "GROUP_BY")


@dataclass(frozen=True)
class ResolvedScenario:
    """A scenario to run, or one that was run.

    Attributes:
        scenario: the scenario.
        system: the specification of its system.
        unused: the settings that the user gave and no row uses.
        default_constraints: the roles whose constraints are those of a file of Hydra or of a system, not the user's.
        named: the scenario as the user named it, if :meth:`adapted` changed it.
    """

    scenario: Scenario
    system: SystemSpec
    unused: Sequence[UnusedSetting] = field(default=(), compare=False)
    default_constraints: frozenset[GroupRole] = field(default=frozenset(), compare=False)
    named: Scenario | None = field(default=None, compare=False)

    @classmethod
    def of(cls, scenario: Scenario) -> ResolvedScenario:
        """Resolves a scenario that was not read from its file.

        Raises:
            ConfigError: the scenario's system is not installed.
        """
        return cls(scenario, plugins.system(scenario.system))

    def adapted(self, scenario: Scenario) -> ResolvedScenario:
        """The scenario as its run measures it, for example with lists of CPUs in place of ``apart``."""
        return replace(self, scenario=scenario, named=self.named or self.scenario)

    @property
    def as_named(self) -> Scenario:
        """The scenario as the user named it, which the run's directory keeps, so that the run can be resumed."""
        return self.named or self.scenario

    @cached_property
    def added(self) -> SystemColumns:
        """The columns that the system adds; raises the same exceptions as :func:`added_by`."""
        return added_by(self.system)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Every column that a row can have: see :func:`hydra.sweep.kind.columns_of`."""
        return columns_of(self.scenario, self.added)

    @cached_property
    def sweep(self) -> Sweep:
        """The sweep, which decides the next step. The first use of a search imports scipy, which takes long."""
        return for_scenario(self.scenario, self.columns)

    @property
    def servers(self) -> int:
        """The number of servers that Hydra starts for the scenario."""
        return 0 if self.system.servers is None or self.users_servers else self.scenario.server.count

    @property
    def users_servers(self) -> str:
        """The address of the user's servers; "" if there are none, or Hydra starts them."""
        table, _, name = self.system.servers.address_key.rpartition(".") if self.system.servers else ("", "", "")
        return str(getattr(self.scenario.tables[table], name)) if table in self.scenario.tables else ""

    def server_groups(self, *, is_local: bool) -> ServerSpec | None:
        """The servers that the scenario needs as process groups; None if there are none.

        Args:
            is_local: whether groups run on this host. Then a single server is local, which is faster. All agents are
                one host and may declare the same ports, so servers take any free ones. A limit of servers for each host
                (``MAX_PER``) cannot be kept, so servers are spread evenly over the agents.
        """
        spec = self.scenario.server
        if not self.servers or (is_local and self.servers == 1):
            return None
        if not is_local:
            return spec
        spread = tuple(_SPREAD if (c.field, c.operator) == ("hostname", "MAX_PER") else c for c in spec.constraints)
        return replace(spec, constraints=spread, demand=replace(spec.demand, ports=0))

    @property
    def files(self) -> dict[str, str]:
        """The files of this machine that the scenario names, by dotted key: fields whose unit is ``path``."""
        tables = {"load": self.scenario.load, **self.scenario.tables}
        return {
            f"{name}.{field.name}": path
            for name, table in tables.items()
            for field in fields(table)
            if setting_of(field).unit == "path" and (path := getattr(table, field.name))
        }

    def with_files(self, copies: Mapping[str, str]) -> ResolvedScenario:
        """The scenario with the paths of its system's files replaced by those of copies.

        Args:
            copies: the path of each copy, by the path in the scenario.
        """
        tables = dict(self.scenario.tables)
        for key, path in self.files.items():
            name, _, field = key.partition(".")
            if name in tables and path in copies:
                tables[name] = replace(tables[name], **{field: copies[path]})
        return replace(self, scenario=replace(self.scenario, tables=tables))


@cache
def _of_every_system() -> frozenset[str]:
    return frozenset(column.name for column in step_columns())


def added_by(spec: SystemSpec) -> SystemColumns:
    """The columns that a system adds.

    Raises:
        ConfigError: the system has a column with the name of a column of every system.
    """
    columns = spec.published.columns
    own = (*([] if columns.batch == BATCH else [columns.batch]), *columns.reported)
    if taken := {column.name for column in own} & _of_every_system():
        raise ConfigError(
            f"the system {spec.identity.name!r} has columns by names that every system's rows have: "
            f"{', '.join(sorted(taken))}",
            "rename them in its specification",
        )
    return columns


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """A resolved command, which does not depend on the host that carries it out.

    Attributes:
        kind: the kind of measurement (``cli/resolved_command.py``).
        scenarios: the scenarios by name: one, or each side of a comparison; the first part of an experiment.
        replaced: the values that the command replaces in each scenario, by dotted key.
        flags: the flags for the display of results, by name (``options.shown``).
        experiment: the name of the experiment; "": none.
        sides: of a comparison, the scenario, the own keys and the command of each run, by its name.
        order: the options of the experiment; None: there is no experiment.
    """

    kind: str
    scenarios: Mapping[str, ResolvedScenario]
    replaced: Mapping[str, object]
    flags: Mapping[str, Any]
    experiment: str = ""
    order: ExperimentOptions | None = None
    sides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def first(self) -> ResolvedScenario:
        """The first scenario."""
        return next(iter(self.scenarios.values()))

    def files(self) -> dict[str, str]:
        """The files of this host that the measurement reads, by dotted key.

        Without an experiment, the scenario already contains its recorded load. The later parts of an experiment read
        the files of their loads when they begin.
        """
        found = {key: path for each in self.scenarios.values() for key, path in each.files.items()}
        kept = found if self.order else {key: path for key, path in found.items() if not key.startswith("load.")}
        return {key: path for key, path in kept.items() if Path(path).is_file()}

    def with_files(self, copies: Mapping[str, str]) -> ResolvedCommand:
        """The command with other paths of its files; ``copies`` gives each new path by the present one."""
        replaced = self.replaced
        if self.order:
            named = {key: copies[path] for key, path in self.files().items()}
            replaced = {**{key: value for key, value in replaced.items() if key not in named}, **named}
        scenarios = {name: each.with_files(copies) for name, each in self.scenarios.items()}
        return replace(self, scenarios=scenarios, replaced=replaced)
