"""Runs of earlier versions: what they stored as this version has it, and those whose rows are shown as they were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from hydra import plugins
from hydra.config.toml import Names
from hydra.errors import RunDirectoryError
from hydra.model import SHARED, NativeSpec, Scenario
from hydra.sweep import Row

ROWS: Final = "rows.json"
OWN: Final = "system"
"""The key under which nouns have what is a system's own."""


def bisected(scenario: Mapping[str, Any]) -> bool:
    """Whether a stored scenario's rates were searched for by bisection: its search has the key of that."""
    search = scenario.get("sweep", {}).get("search") or {}
    return "ratio" in search


def upgraded(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """A stored scenario as this version stores it: what is the system's own stands apart from what all share.

    One that is like that already is returned as it is. What an earlier version stored of other systems is left out.

    Raises:
        ConfigError: its system is not installed.
        KeyError, TypeError, AttributeError: it is no scenario.
    """
    if OWN in scenario["settings"]:
        return dict(scenario)
    spec = plugins.system(scenario["system"])
    _, named = Names(spec.aliases).resolve("", dict(scenario))
    old: dict[str, Any] = dict(named)  # type: ignore[call-overload]  # a table stays one
    new = {key: value for key, value in old.items() if key in _fields(Scenario)}
    new["table"] = plugins.table_kind(old["table"])
    new["settings"] = _apart(old["settings"], SHARED, spec.settings)
    new["native"] = _apart(old.get("native", {}), _fields(NativeSpec), spec.native)
    new["tables"] = {name: old[name] for name in spec.tables if name in old}
    return new


def upgraded_plan(plan: Mapping[str, Any], system: str) -> dict[str, Any]:
    """A stored plan of a step of this system as this version stores it; errors as for :func:`upgraded`."""
    if OWN in plan["settings"]:
        return dict(plan)
    spec = plugins.system(system)
    _, named = Names(spec.aliases).resolve("", {"settings": plan["settings"]})
    return {**plan, "settings": _apart(named["settings"], SHARED, spec.settings)}  # type: ignore[index]  # see above


def _apart(values: Mapping[str, Any], shared: Iterable[str], own: type | None) -> dict[str, Any]:
    return {
        **{name: values[name] for name in shared if name in values and name != OWN},
        OWN: {name: values[name] for name in _fields(own) if name in values},
    }


def _fields(noun: type | None) -> tuple[str, ...]:
    return tuple(f.name for f in fields(noun)) if noun else ()


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
