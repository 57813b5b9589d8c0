"""Commands that an engine runs as a whole in its cluster: they are resolved here and carried out there."""

from __future__ import annotations

import json
import lzma
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from hydra.config.plugins import engines
from hydra.config.resolved_scenario import ResolvedCommand
from hydra.engine.specification import Relocation, Shipment
from hydra.model import ClusterSpec
from hydra.options.engine_choice import SelectedEngine
from hydra.store.redaction import Redactor
from hydra.store.stored_scenario import as_stored, stored_scenario
from hydra.system.experiment import ExperimentOptions

_ODD: Final = re.compile(r"[^\w.-]")


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
    engine = SelectedEngine(order_["master"], spec, msgspec.convert(order_["settings"], spec.settings.kind))
    return command, engine, msgspec.convert(order_["cluster"], ClusterSpec)
