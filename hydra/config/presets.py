"""Presets: the settings that a system recommends for a design goal, as a layer above or below a scenario's own."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from hydra.config.toml import Toml, override
from hydra.errors import RefusedError, shown
from hydra.system import SystemSpec

PRESET: Final = "preset"
"""The key of a scenario that names one."""


def with_preset(spec: SystemSpec, data: Any, given: Mapping[str, object]) -> Toml:
    """What a scenario's file says, with the preset that it or its user names.

    Args:
        spec: the scenario's system.
        data: the file, by the keys that are meant.
        given: what the user replaces: a preset among it goes before the file, one of the file behind it.

    Raises:
        RefusedError: the system has no such preset.
    """
    name = given.get(PRESET, data.get(PRESET))
    if not name:
        return dict(data)
    values = _values(spec, name)
    return _merged(data, values) if given.get(PRESET) else _merged(values, data)


def _values(spec: SystemSpec, name: object) -> Toml:
    if not isinstance(name, str) or name not in spec.presets:
        close = get_close_matches(str(name), spec.presets, n=1)
        known = f"its presets: {', '.join(spec.presets)}" if spec.presets else "it has none"
        raise RefusedError(
            (PRESET,),
            f"system {spec.name} has no preset {shown(name)}",
            f"did you mean {close[0]}?" if close else known,
        )
    values: Toml = {}
    for key, (value, _) in spec.presets[name].values.items():
        override(values, key, value)
    return values


def _merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Toml:
    """Two files as one: what stands in both is the upper one's, but for tables, which are merged."""
    both: Toml = {**lower}
    for name, value in upper.items():
        below = both.pop(name, None)  # what is the upper one's stands behind, where a key is written in two ways
        both[name] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return both
