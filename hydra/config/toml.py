"""TOML files, the dotted keys that replace what they say, and presets as layers above or below them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from hydra.errors import ConfigError, RefusedError, shown
from hydra.system import SystemSpec

Toml = dict[str, Any]

_FILE_BYTES: Final = 1_000_000
"""Of a scenario or cluster file at most."""


def read_toml(source: Path, remedy: Callable[[], str]) -> Toml:
    """What a file says.

    Raises:
        ConfigError: it cannot be read, or is not TOML.
    """
    try:
        with source.open("rb") as file:
            data = file.read(_FILE_BYTES + 1)
        if len(data) > _FILE_BYTES:
            raise ConfigError(f"{source}: more than {_FILE_BYTES} bytes, which no such file has", remedy())
        return tomllib.loads(data.decode())
    except FileNotFoundError as error:
        raise ConfigError(f"{source}: no such file", remedy()) from error
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}", remedy()) from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise ConfigError(f"{source}: not TOML: {error}", "mend the line it names") from error


def parse_set(text: str) -> tuple[str, object]:
    """The dotted key and the value of ``--set key=value``; the value is TOML, or a bare word for a string.

    Raises:
        ConfigError: it has no ``=``, no key, or a value that starts like TOML and is not.
    """
    key, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not key or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set {text}: not of the form key=value", "write for example --set sweep.clients=[30,60]")
    try:
        # One line only: a newline could smuggle in a second key.
        if "\n" not in written:
            return key, tomllib.loads(f"value = {written}")["value"]
    except (ValueError, RecursionError) as error:
        if written[:1] in ("[", "{", '"', "'"):
            # The value is not repeated: it may hold a secret.
            raise ConfigError(
                f"--set {key}: not a TOML value: {error}",
                "quote it for your shell, for example --set 'sweep.clients=[30,60]'",
            ) from error
    return key, written


def override(data: Toml, key: str, value: object) -> None:
    """Replaces what stands under a dotted key; None removes it.

    Raises:
        RefusedError: a part of the key is no table.
    """
    *tables, last = key.split(".")
    table = data
    for depth, name in enumerate(tables):
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise RefusedError(tables[: depth + 1], "is a value and not a table", f"use {key.rsplit('.', 1)[0]}=…")
        # A copy: it may be part of another override, which is recorded as it was given.
        table[name] = dict(inner)
        table = table[name]
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


class KeyAliases:
    """Other names of keys: what is read is known by its own name, and refused by the one that the user wrote.

    Args:
        aliases: the dotted key by the dotted alias.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        of_vary = {
            f"sweep.vary.{alias.removeprefix('settings.')}": f"sweep.vary.{key.removeprefix('settings.')}"
            for alias, key in aliases.items()
            if alias.startswith("settings.")
        }
        self._aliases = {**aliases, **of_vary}
        self._used: dict[str, str] = {}

    def resolve(self, key: str, value: object) -> tuple[str, object]:
        """A dotted key and its value ("" and the whole file) by the names that are meant.

        Raises:
            RefusedError: one thing stands there by two names.
        """
        for alias, meant in self._aliases.items():
            if _begins(key, alias):
                key = meant + key[len(alias) :]
                self._used[meant] = alias
            elif isinstance(value, dict) and _begins(alias, key):
                value = self._moved(value, alias, meant, len(key) + 1 if key else 0)
        return key, value

    def written(self, key: str) -> str:
        """The dotted key as the user wrote it."""
        for meant, alias in self._used.items():
            if _begins(key, meant):
                return alias + key[len(meant) :]
        return key

    def worded(self, text: str) -> str:
        """A text about keys with the names that the user wrote."""
        for meant, alias in self._used.items():
            for name, other in ((meant, alias), (meant.rsplit(".", 1)[-1], alias.rsplit(".", 1)[-1])):
                text = re.sub(rf"(?<![\w'\"]){re.escape(name)}(?![\w'\"])", other, text)
        return text

    def _moved(self, table: Toml, alias: str, meant: str, inside: int) -> Toml:
        *path, last = alias[inside:].split(".")
        tables: list[Toml] = [dict(table)]
        for name in path:
            inner = tables[-1].get(name)
            if not isinstance(inner, dict):
                return table
            tables[-1][name] = dict(inner)
            tables.append(tables[-1][name])
        if last not in tables[-1]:
            return table
        own = meant.rsplit(".", 1)[-1]  # an alias stands in the table of what it names
        if own in tables[-1]:
            raise RefusedError(alias.split("."), f"is another name of {meant}, which is set too", "remove one of them")
        tables[-1][own] = tables[-1].pop(last)
        self._used[meant] = alias
        return tables[0]


def _begins(key: str, with_: str) -> bool:
    """Whether a dotted key stands in the table ``with_``, or is that key; everything stands in ""."""
    return not with_ or key == with_ or key.startswith(f"{with_}.")


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
