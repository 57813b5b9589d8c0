"""Converts what earlier versions stored to this version's form, and reads rows that are shown as they were stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.config import plugins
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.toml import KeyAliases
from hydra.errors import RunDirectoryError
from hydra.events.event import EventData, Level
from hydra.events.run_events import SystemFact
from hydra.events.stored_event import kind_named
from hydra.model import SHARED, SKIPPED_BY, USER, Figure, NativeSpec, Scenario
from hydra.sweep import Row, SweepTable, as_table, of_table
from hydra.system import SystemSpec

ROWS: Final = "rows.json"
_PASSED_OVER: Final = "by hand, with the key s"
"""The stored reason of a step that the user skipped; earlier versions stored nothing else about it."""
OWN: Final = "system"
"""The key of model classes for the system's own values."""


def searched_otherwise(scenario: Mapping[str, Any]) -> bool:
    """Whether a stored scenario used an earlier search method; its search table then lacks a key of the current one."""
    search = scenario.get("sweep", {}).get("search")
    return bool(search) and "fresh_steps" not in search


def stored_scenario(stored: Mapping[str, Any]) -> ResolvedScenario:
    """The scenario of a run from its metadata; raises what :func:`upgraded` and ``msgspec.convert`` raise."""
    return ResolvedScenario.of(from_stored(upgraded(stored)))


def from_stored(stored: Mapping[str, Any]) -> Scenario:
    """A scenario from this version's stored form; errors as for ``msgspec.convert``."""
    sweep = of_table(msgspec.convert(stored["sweep"], SweepTable))
    return replace(msgspec.convert(stored, Scenario), sweep=sweep)


def as_stored(scenario: Scenario) -> dict[str, Any]:
    """The stored form of a scenario; its sweep has the keys of all kinds."""
    told: dict[str, Any] = msgspec.to_builtins(scenario)
    return {**told, "sweep": msgspec.to_builtins(as_table(scenario.sweep))}


def upgraded(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a stored scenario to this version's form, which separates the system's own values from the shared ones.

    A scenario that has this form already gets the settings that its system has added since. Values that an earlier
    version stored for other systems are left out.

    Raises:
        ConfigError: the scenario's system is not installed.
        KeyError, TypeError, AttributeError: the value is no scenario.
    """
    if OWN in scenario["settings"]:
        spec = plugins.systems().get(scenario["system"])
        settings, tables = _completed(scenario["settings"], spec), _tables(scenario["tables"], spec)
        return {**scenario, "settings": settings, "tables": tables}
    spec, old = _of_earlier(scenario, scenario["system"])
    new = {key: value for key, value in old.items() if key in _fields(Scenario)}
    new["table"] = plugins.table_kind(old["table"])
    new["settings"] = _apart(old["settings"], SHARED, spec.settings)
    new["native"] = _apart(old.get("native", {}), _fields(NativeSpec), spec.native)
    new["tables"] = _tables({name: old[name] for name in spec.tables if name in old}, spec)
    return new


def upgraded_plan(plan: Mapping[str, Any], system: str) -> dict[str, Any]:
    """Converts a stored plan of a step of this system to this version's form; raises what :func:`upgraded` raises."""
    if OWN in plan["settings"]:
        return {**plan, "settings": _completed(plan["settings"], plugins.systems().get(system))}
    spec, old = _of_earlier({"settings": plan["settings"]}, system)
    return {**plan, "settings": _apart(old["settings"], SHARED, spec.settings)}


def _of_earlier(stored: Mapping[str, Any], system: str) -> tuple[SystemSpec, dict[str, Any]]:
    """The system of an earlier version's data, which must be installed, and the data with aliases replaced by keys."""
    spec = plugins.system(system)
    _, named = KeyAliases(spec.aliases).resolve("", dict(stored))
    return spec, dict(named)  # type: ignore[call-overload]  # a table stays one


def _completed(settings: Mapping[str, Any], spec: SystemSpec | None) -> dict[str, Any]:
    """Settings, completed with the defaults of those that their system has added since."""
    return {**settings, OWN: _usual(spec.settings if spec else None) | settings[OWN]}


def _tables(tables: Mapping[str, Any], spec: SystemSpec | None) -> dict[str, Any]:
    kinds = spec.tables if spec else {}
    return {name: _usual(kinds.get(name)) | table for name, table in tables.items()}


def _apart(values: Mapping[str, Any], shared: Iterable[str], own: type | None) -> dict[str, Any]:
    return {
        **{name: values[name] for name in shared if name in values and name != OWN},
        OWN: _usual(own) | {name: values[name] for name in _fields(own) if name in values},
    }


def _usual(own: type | None) -> dict[str, Any]:
    """The default values of the fields of a system's own dataclass."""
    known = fields(own) if own else ()
    made = {f.name: f.default_factory() for f in known if f.default_factory is not MISSING}
    return made | {f.name: f.default for f in known if f.default is not MISSING}


def _fields(noun: type | None) -> tuple[str, ...]:
    return tuple(f.name for f in fields(noun)) if noun else ()


def skipped_by(status: str, reason: str) -> dict[str, Figure]:
    """The figure that is missing in an earlier version's step that the user skipped."""
    return {SKIPPED_BY: USER} if (status, reason) == ("skipped", _PASSED_OVER) else {}


def event_of(kind: str, text: str) -> EventData:
    """An event of which only the kind and the text are stored."""
    known = kind_named(kind)
    name, _, value = text.partition(": ")
    fields = {"name": name, "value": value} if kind == SystemFact.kind else {}
    # Events of unknown kinds are shown as notes.
    return EventData(kind, known.level if known else Level.NOTE, text, "", fields)


def stored_rows(directory: Path) -> list[Row]:
    """The rows of a run directory as the Hydra that made it wrote them.

    Raises:
        RunDirectoryError: the file with the rows is missing or damaged.
    """
    path = directory / ROWS
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return [dict(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunDirectoryError(f"cannot read {path}: {e}", "use the Hydra that made the run") from e
