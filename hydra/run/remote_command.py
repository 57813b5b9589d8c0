"""Commands that an engine runs elsewhere than here, as a whole: they are resolved here and carried out there."""

from __future__ import annotations

import json
import lzma
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.config.plugins import engines
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.engine.interface import Relocation, Shipment
from hydra.model import ClusterSpec
from hydra.options.engine_choice import SelectedEngine
from hydra.store.format_upgrade import as_stored, from_stored
from hydra.store.redaction import Redactor
from hydra.system import ExperimentOptions

_ODD: Final = re.compile(r"[^\w.-]")


@dataclass(frozen=True, slots=True)
class ResolvedCommand:
    """What a command is to do: nothing of it depends on the machine on which that is done.

    Attributes:
        kind: which kind of measurement it is (``cli/handed_over.py``).
        scenarios: what is measured, by name: one, or each side of a comparison; of an experiment its first part.
        replaced: what the command replaces in each of them, by dotted key.
        flags: those that say how it shows what it measures, by name (``options.shown``).
        experiment: the name of what is run; "" for none.
        order: with what; None where there is no experiment.
    """

    kind: str
    scenarios: Mapping[str, ResolvedScenario]
    replaced: Mapping[str, object]
    flags: Mapping[str, Any]
    experiment: str = ""
    order: ExperimentOptions | None = None

    @property
    def first(self) -> ResolvedScenario:
        """The scenario that stands for all."""
        return next(iter(self.scenarios.values()))

    def files(self) -> dict[str, str]:
        """The files of this machine that are read while it measures, by dotted key.

        What a recorded load says is in its scenario by now; the later parts of an experiment read theirs then.
        """
        found = {key: path for each in self.scenarios.values() for key, path in each.files.items()}
        kept = found if self.order else {key: path for key, path in found.items() if not key.startswith("load.")}
        return {key: path for key, path in kept.items() if Path(path).is_file()}

    def with_files(self, copies: Mapping[str, str]) -> ResolvedCommand:
        """With copies of its files, whose paths are given by those that it has."""
        replaced = self.replaced
        if self.order:
            named = {key: copies[path] for key, path in self.files().items()}
            replaced = {**{key: value for key, value in replaced.items() if key not in named}, **named}
        scenarios = {name: each.with_files(copies) for name, each in self.scenarios.items()}
        return replace(self, scenarios=scenarios, replaced=replaced)


def run_elsewhere(
    command: ResolvedCommand, engine: SelectedEngine, cluster: ClusterSpec, out: Path, *, resumed: bool
) -> None:
    """Leaves with the exit code of the whole command if its engine has run it elsewhere; it may never.

    Every command that runs a scenario asks once all that its user gave is checked, and before anything starts here.
    What only the machine can tell on which it runs is not looked at: programs, and servers of the user's own.

    Args:
        command: what is done; its secrets are hidden in errors.
        engine: the one that is asked.
        cluster: what it runs on.
        out: the directory that the command makes.
        resumed: whether it is there, and the command goes on in it.

    Raises:
        HydraError: as the engine says.
    """
    if engine.spec.relocate is None:
        return
    shipment = partial(_shipment, command, engine, cluster)
    asked = Relocation(engine.master, engine.settings, sys.argv[1:], out, resumed, command.flags, shipment)
    with Redactor.of_run(command.first, *engine.secrets()).in_errors():
        code = engine.spec.relocate(asked)
    if code is not None:
        sys.exit(code)


def _shipment(
    command: ResolvedCommand, engine: SelectedEngine, cluster: ClusterSpec, master: str, folder: str
) -> Shipment:
    paths = dict.fromkeys(command.files().values())
    copies = {path: f"{folder}/{number}/{_ODD.sub('_', Path(path).name)}" for number, path in enumerate(paths)}
    there = command.with_files(copies)
    order = {
        "engine": engine.spec.name,
        "master": master,
        "settings": engine.settings,
        "cluster": cluster,
        "kind": there.kind,
        "scenarios": {name: as_stored(each.scenario) for name, each in there.scenarios.items()},
        "replaced": there.replaced,
        "flags": there.flags,
        "experiment": there.experiment,
        "order": there.order,
    }
    # As JSON has it: implementations that are compared have all but a word in common, and a recorded load is long.
    return Shipment(lzma.compress(json.dumps(msgspec.to_builtins(order)).encode()), copies)


def received(order: bytes) -> tuple[ResolvedCommand, SelectedEngine, ClusterSpec]:
    """The command of a shipment, its engine and its cluster, where it is carried out."""
    told = json.loads(lzma.decompress(order))
    spec = engines()[told["engine"]]
    scenarios = {name: ResolvedScenario.of(from_stored(each)).with_tables() for name, each in told["scenarios"].items()}
    its_order = told["order"] and msgspec.convert(told["order"], ExperimentOptions)
    command = ResolvedCommand(told["kind"], scenarios, told["replaced"], told["flags"], told["experiment"], its_order)
    engine = SelectedEngine(told["master"], spec, msgspec.convert(told["settings"], spec.settings))
    return command, engine, msgspec.convert(told["cluster"], ClusterSpec)
