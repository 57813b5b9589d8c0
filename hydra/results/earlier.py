"""Runs of earlier versions: what they stored is read as if this version had stored it.

Where this version would ask for other steps, their rows are shown as they were stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from hydra.errors import RunDirectoryError
from hydra.model import SHARED
from hydra.plugins import system
from hydra.sweep import Row
from hydra.system import SystemSpec

ROWS: Final = "rows.json"
BISECTED: Final = (
    "an earlier Hydra searched for them by bisection of single steps. Whether a step passes is chance, so another run "
    "may have found rates several times as high or as low; no interval is known"
)
OTHERWISE: Final = (
    "another version of Hydra searched for them, and this one would have asked for other steps: they are shown as that "
    "version stored them"
)


def bisected(scenario: Mapping[str, Any]) -> bool:
    """Whether a stored scenario's rates were searched for by bisection: its search has the key of that."""
    search = scenario.get("sweep", {}).get("search") or {}
    return "ratio" in search


def stored_rows(directory: Path) -> list[Row]:
    """The rows of a run directory as the Hydra that made it wrote them.

    Raises:
        RunDirectoryError: they are not there, or are none.
    """
    path = directory / ROWS
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return [dict(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunDirectoryError(f"cannot read {path}: {e}", "use the Hydra that made the run") from e


def upgraded(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A stored scenario in the form of this version.

    Earlier versions stored the settings and the tables of all systems side by side, and the size of a burst under the
    name of a batch.
    """
    found = dict(scenario)
    if "system" in found["settings"]:
        return found
    spec = system(found["system"])
    found["table"] = spec.table_words.get(found["table"], found["table"])
    found["settings"] = _settings(found["settings"], spec)
    vary = {_name(name, spec): values for name, values in found["sweep"]["vary"].items()}
    found["sweep"] = {**found["sweep"], "vary": vary}
    native = found["native"]
    own = {field.name: native[field.name] for field in fields(spec.native)} if spec.native else {}
    found["native"] = {"clients_per_process": native["clients_per_process"], "pacing": native["pacing"], "system": own}
    found["tables"] = {name: found.pop(name) for name in spec.tables}
    servers = found.pop("broker")
    if spec.servers is not None:
        found["server"] = servers
    return found


def upgraded_plan(plan: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The stored plan of a step of this system, in the form of this version."""
    if "system" in plan["settings"]:
        return dict(plan)
    return {**plan, "settings": _settings(plan["settings"], system(name))}


def _settings(stored: Mapping[str, Any], spec: SystemSpec) -> dict[str, Any]:
    named = {_name(name, spec): value for name, value in stored.items()}
    own = {field.name: named[field.name] for field in fields(spec.settings) if field.name in named}
    shared = {name: named[name] for name in SHARED if name in named}
    if shared.get("burst") == spec.burst(own):
        # Every stored scenario named it, also where nobody had asked for it.
        shared["burst"] = None
    return {**shared, "system": own}


def _name(setting: str, spec: SystemSpec) -> str:
    """What a setting is called now."""
    return spec.aliases.get(f"settings.{setting}", setting).removeprefix("settings.")
