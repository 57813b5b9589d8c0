"""``[[sweep.points]]``: the rows of a sweep one by one, each with its own settings beside its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, Final

from hydra.config.bounds import out_of_bounds
from hydra.config.fields import field_of
from hydra.config.model_builder import build, check_value
from hydra.config.toml import Toml
from hydra.config.validation_error import Key, RefusedError, field_names, shown, table_of
from hydra.model import Point, Scenario
from hydra.system import SystemSpec

_KEY: Final[Key] = ("sweep", "points")
POINT_KEYS: Final = tuple(name for name in field_names(Point) if name != "settings")
_NAME_CHARACTERS: Final = 100


def split_points(spec: SystemSpec, data: Toml) -> None:
    """Replaces the written points, whose settings stand beside their names, by what the model's are built from."""
    sweep = data.get("sweep")
    if not isinstance(sweep, dict) or "points" not in sweep:
        return
    rows = sweep["points"]
    if not isinstance(rows, list) or not rows:
        raise RefusedError(_KEY, "must be tables", "write each point under its own [[sweep.points]]")
    points = [_split(spec, (*_KEY, index), row) for index, row in enumerate(rows)]
    names: dict[object, int] = {}
    for index, point in enumerate(points):
        name = point.get("name")
        if isinstance(name, str):
            _check_name((*_KEY, index, "name"), name)
        if name is not None and names.setdefault(repr(name), index) != index:
            what = f"{shown(name)} is the name of {'.'.join(map(str, _KEY))}.{names[repr(name)]} already"
            raise RefusedError((*_KEY, index, "name"), what, "give every point a name of its own")
    data["sweep"] = {**sweep, "points": points}


def _split(spec: SystemSpec, key: Key, row: object) -> Toml:
    table = table_of(key, row)
    settings: Toml = {}
    for written, value in table.items():
        if written in POINT_KEYS:
            continue
        name = spec.aliases.get(f"settings.{written}", f"settings.{written}").removeprefix("settings.")
        if name in settings:
            raise RefusedError((*key, written), f"is another name of {name}, which is set too", "remove one of them")
        if not isinstance(value, str | int | float) or (isinstance(value, float) and not isfinite(value)):
            what = f"must be a number, a text, true or false, not {shown(value)}"
            raise RefusedError((*key, written), what, "write the settings of a point beside its name, one a line")
        settings[name] = value
    return {**{name: table[name] for name in POINT_KEYS if name in table}, "settings": settings}


def _check_name(key: Key, name: str) -> None:
    if not name.strip() or len(name) > _NAME_CHARACTERS or not name.isprintable() or "|" in name:
        what = f"must be 1 to {_NAME_CHARACTERS} characters without | and control characters, not {shown(name)}"
        raise RefusedError(key, what, "name the row as it shall stand in the table")


def with_publishers(scenario: Scenario) -> Scenario:
    """The scenario with the publishers of every point filled in, and the greatest number of them as its own."""
    if not scenario.sweep.points:
        return scenario
    points = tuple(
        replace(p, publishers=scenario.publishers if p.publishers is None else p.publishers)
        for p in scenario.sweep.points
    )
    most = max(p.publishers for p in points if p.publishers is not None)
    return replace(scenario, publishers=most, sweep=replace(scenario.sweep, points=points))


def check_points(
    spec: SystemSpec,
    scenario: Scenario,
    settings: Mapping[str, Any],
    kind: type,
    unknown: Callable[[Key, str], RefusedError],
) -> None:
    """Refuses points that no step can be set to.

    Args:
        spec: of the scenario's system.
        scenario: built.
        settings: of the scenario as they are written: a point's stand beside them.
        kind: what settings of this system are.
        unknown: the refusal of a setting that this system does not have, by its key and its name.
    """
    for index, point in enumerate(scenario.sweep.points):
        key = (*_KEY, index)
        for name in point.settings:
            if name not in field_names(kind):
                raise unknown((*key, name), name)
        _check_settings(spec, key, point, settings, kind)
        if point.clients == 0 and not spec.has_log:
            what = f"no subscribers, and system {spec.name} keeps no log that would tell what arrived"
            raise RefusedError((*key, "clients"), what, "use 1 or more")
        for found, what, remedy in spec.check(scenario.at(point)):
            own = len(found) == 2 and found[0] == "settings" and found[1] in point.settings
            raise RefusedError((*key, found[1]) if own else found, what, remedy)


def _check_settings(spec: SystemSpec, key: Key, point: Point, settings: Mapping[str, Any], kind: type) -> None:
    try:
        build(kind, {**settings, **point.settings})
    except RefusedError as together:
        for name, value in point.settings.items():
            # One that is wrong by itself is named; otherwise they do not go together.
            try:
                check_value(kind, settings, name, value)
            except RefusedError as alone:
                raise RefusedError((*key, name), alone.what) from alone
        raise RefusedError(key, together.what) from together
    for name, value in point.settings.items():
        for _, what in out_of_bounds(value, f"settings.{name}", spec.bounds, field_of(name, kind)):
            raise RefusedError((*key, name), what)
