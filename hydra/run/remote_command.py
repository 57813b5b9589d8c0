"""Commands that an engine runs as a whole in its cluster: they are resolved here and carried out there."""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.config.plugins import engines
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.engine.interface import Relocation, Shipment
from hydra.model import ClusterSpec
from hydra.options.engine_choice import SelectedEngine
from hydra.store.redaction import Redactor
from hydra.store.stored_scenario import as_stored, stored_scenario
from hydra.system import ExperimentOptions

_ODD: Final = re.compile(r"[^\w.-]")


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


def run_elsewhere(
    command: ResolvedCommand, engine: SelectedEngine, cluster: ClusterSpec, out: Path, *, resumed: bool
) -> None:
    """Exits with the exit code of the whole command if its engine has run it in its cluster; otherwise returns.

    Every command that runs a scenario calls this after all flags and files are checked, and before anything starts
    here. Programs and the user's own servers are not checked, because only the host that runs the command can do that.

    Args:
        command: the command; its secrets are hidden in errors.
        engine: the selected engine.
        cluster: the agents.
        out: the directory that the command makes.
        resumed: whether the directory exists and the command continues in it.

    Raises:
        HydraError: an error of the engine.
    """
    if engine.spec.relocate is None:
        return
    shipment = partial(_shipment, command, engine, cluster)
    relocation = Relocation(engine.master, engine.settings, sys.argv[1:], out, resumed, command.flags, shipment)
    with Redactor.of_runs(command.scenarios.values(), *engine.secrets()).in_errors():
        code = engine.spec.relocate(relocation)
    if code is not None:
        sys.exit(code)


def _shipment(
    command: ResolvedCommand, engine: SelectedEngine, cluster: ClusterSpec, master: str, folder: str
) -> Shipment:
    paths = dict.fromkeys(command.files().values())
    copies = {path: f"{folder}/{number}/{_ODD.sub('_', Path(path).name)}" for number, path in enumerate(paths)}
    shipped = command.with_files(copies)
    order = {
        "engine": engine.spec.name,
        "master": master,
        "settings": engine.settings,
        "cluster": cluster,
        "kind": shipped.kind,
        "scenarios": {name: as_stored(each.scenario) for name, each in shipped.scenarios.items()},
        "default_constraints": {name: sorted(each.default_constraints) for name, each in shipped.scenarios.items()},
        "replaced": shipped.replaced,
        "flags": shipped.flags,
        "experiment": shipped.experiment,
        "order": shipped.order,
        "sides": shipped.sides,
    }
    # Compressed, because compared scenarios differ in few words, and a recorded load is long.
    return Shipment(lzma.compress(json.dumps(msgspec.to_builtins(order)).encode()), copies)


def received(order: bytes) -> tuple[ResolvedCommand, SelectedEngine, ClusterSpec]:
    """The command of a shipment, its engine and its cluster, on the host that carries it out."""
    order_ = json.loads(lzma.decompress(order))
    spec = engines()[order_["engine"]]
    scenarios = {
        name: replace(
            stored_scenario(each),
            default_constraints=frozenset(order_["default_constraints"][name]),
        )
        for name, each in order_["scenarios"].items()
    }
    its_order = order_["order"] and msgspec.convert(order_["order"], ExperimentOptions)
    command = ResolvedCommand(
        order_["kind"], scenarios, order_["replaced"], order_["flags"], order_["experiment"], its_order, order_["sides"]
    )
    engine = SelectedEngine(order_["master"], spec, msgspec.convert(order_["settings"], spec.settings))
    return command, engine, msgspec.convert(order_["cluster"], ClusterSpec)
