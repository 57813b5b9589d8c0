"""What a key of a scenario is unless somebody replaces it: what its file says, or else the model."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from hydra.config.validation_error import RefusedError
from hydra.errors import ConfigError


def default_of(scenario: str | Path, key: str) -> Any:
    """What stands under a dotted key of a scenario unless somebody replaces it; None: nothing, or it cannot be read.

    Args:
        scenario: a name or a path.
        key: the dotted key.
    """
    try:
        return _value(scenario, key)
    except (ConfigError, RefusedError):
        return None


def _value(scenario: str | Path, key: str) -> Any:
    """What the scenario's file says, or else the model."""
    data, homes = _known(scenario)
    *path, name = key.split(".")
    table: Any = data
    for part in path:
        table = table.get(part) if isinstance(table, dict) else None
    if isinstance(table, dict) and name in table:
        return table[name]
    for noun in homes.get(".".join(path), ()):
        for each in fields(noun):
            if each.name == name and each.default is not MISSING:
                return each.default
    return None


@cache
def _known(scenario: str | Path) -> tuple[dict[str, Any], dict[str, list[type]]]:
    """What a scenario's file says by the keys that are meant, and the dataclasses behind each of its tables."""
    from hydra.config import plugins
    from hydra.config.file_locations import scenario_path
    from hydra.config.toml import Names, read
    from hydra.model import LoadSpec, NativeSpec, Scenario, SearchSpec, Settings, SloSpec, SweepSpec

    data = read(scenario_path(scenario), lambda: "")
    spec = plugins.system(str(data.get("system")))
    sweep = data.get("sweep")
    searches = isinstance(sweep, dict) and "search" in sweep
    homes: dict[str, list[type]] = {
        "": [Scenario],
        "sweep": [SweepSpec],
        "sweep.search": [SearchSpec] if searches else [],
        "settings": [spec.settings, Settings],
        "native": [*([spec.native] if spec.native else []), NativeSpec],
        "load": [LoadSpec],
        "slo": [SloSpec],
        **{name: [kind] for name, kind in spec.tables.items()},
    }
    _, meant = Names(spec.aliases).resolve("", data)
    return meant if isinstance(meant, dict) else data, homes
