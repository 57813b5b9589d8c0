"""The fields behind the dotted keys of a scenario, and their default values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from hydra.errors import ConfigError, RefusedError, shown
from hydra.model import LoadSpec, NativeSpec, RoleSpec, Scenario, ServerSpec, Settings, SloSpec, SweepSpec, flag_names
from hydra.system import SystemSpec

_SHARED: Mapping[str, type] = {
    "": Scenario,
    "sweep": SweepSpec,
    "settings": Settings,
    "native": NativeSpec,
    "load": LoadSpec,
    "slo": SloSpec,
}
"""The tables that scenarios of every system have, by dotted name."""


_ROLES: Mapping[str, type] = {"publisher": RoleSpec, "subscriber": RoleSpec, "server": ServerSpec}
"""The tables of the roles, whose keys have flags with the name of the role."""


def shared_table(path: str) -> type | None:
    """The dataclass of a table that scenarios of every system can have, by its dotted name; None: there is none."""
    if not path.startswith("sweep."):
        return _SHARED.get(path) or _ROLES.get(path)
    from hydra.sweep import TABLES, kind_named  # whose flags are of no kind does not wait for them

    key = path.removeprefix("sweep.")
    return kind_named(key).own if key in TABLES else None


def own_tables(spec: SystemSpec) -> dict[str, type]:
    """The dataclasses with a system's own keys, by table: its own tables, and its part of the shared tables."""
    return {**spec.settings.tables, "settings": spec.settings.step, "native": spec.settings.native}


def system_of(data: Mapping[str, object]) -> SystemSpec:
    """Returns the system that a scenario file names.

    Raises:
        RefusedError: the file names no installed system.
    """
    from hydra.config import plugins

    known = plugins.systems()
    if "system" not in data:
        raise RefusedError(("system",), "is missing", "add it")
    name = data["system"]
    if not isinstance(name, str) or name not in known:
        raise RefusedError(("system",), f"must be {' or '.join(map(repr, known))}, not {shown(name)}")
    return known[name]


def field_of(key: str, noun: type | None) -> Field[Any] | None:
    """The field for the last part of a dotted key in the dataclass of its table; None if there is no such field."""
    name = key.rpartition(".")[2]
    return next((each for each in fields(noun) if each.name == name), None) if noun is not None else None


_UNITS: Final = ("", "_s", "_ms", "_mb", "_bytes")
"""What a flag's name leaves out of the name of its key."""
_NO_SETTINGS: Final = ("system", "table", "tables", "settings.system", "native.system", "preset", "published")
"""Keys that are no settings, or that a scenario without their flag does not have."""


def key_named(name: str, spec: SystemSpec, tables: Iterable[str] = ()) -> str:
    """The dotted key that a name, with or without the unit, belongs to in a scenario; "" if there is none.

    Args:
        name: the last part of the key, such as ``acks`` or ``warmup``, or of its flag in other commands.
        spec: the system.
        tables: the tables of the scenario's sweep beside ``[sweep]``, by dotted name.
    """
    own = own_tables(spec)
    places = dict.fromkeys((*_SHARED, *own, *tables))
    no_settings = (*places, *_NO_SETTINGS)
    names = [f"{name}{unit}" for unit in _UNITS]
    for table in sorted(places, key=lambda each: each != "settings"):
        for noun in filter(None, (own.get(table), shared_table(table))):
            for of in fields(noun):
                is_named = of.name in names or f"--{name.replace('_', '-')}" in flag_names(of)
                if is_named and (key := f"{table}.{of.name}".lstrip(".")) not in no_settings:
                    return key
    return ""


def default_of(scenario: str | Path, key: str) -> Any:
    """The value of a dotted key in a scenario, or its default; None if there is none, or the scenario cannot be read.

    Args:
        scenario: a name or a path.
        key: the dotted key.
    """
    try:
        return _value(scenario, key)
    except (ConfigError, RefusedError):
        return None


def _value(scenario: str | Path, key: str) -> Any:
    """The value in the scenario's file, or else the model's default."""
    data, spec = _known(scenario)
    path, _, name = key.rpartition(".")
    table: Any = data
    for part in path.split(".") if path else ():
        table = table.get(part) if isinstance(table, dict) else None
    if isinstance(table, dict) and name in table:
        return table[name]
    if path.startswith("sweep.") and table is None:
        return None  # the scenario has another kind of sweep
    found = [field_of(key, table) for table in (own_tables(spec).get(path), shared_table(path))]
    return next((each.default for each in found if each is not None and each.default is not MISSING), None)


def words_of(scenario: str | Path, key: str) -> tuple[object, ...]:
    """The possible values of a dotted key if the model lists them, else ()."""
    try:
        _, spec = _known(scenario)
    except (ConfigError, RefusedError):
        return ()
    path, _, name = key.rpartition(".")
    tables = [table for table in (own_tables(spec).get(path), shared_table(path)) if table is not None]
    hints = [hint for table in tables if (hint := get_type_hints(table).get(name)) is not None]
    return get_args(hints[0]) if hints and get_origin(hints[0]) is Literal else ()


@cache
def _known(scenario: str | Path) -> tuple[dict[str, Any], SystemSpec]:
    """The content of a scenario's file, and its system."""
    from hydra.config.file_locations import scenario_path
    from hydra.config.layers import read_toml

    data = read_toml(scenario_path(scenario), lambda: "")
    return data, system_of(data)
