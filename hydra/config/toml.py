"""Reads TOML files, replaces values by dotted keys, and returns those of presets and published sweeps."""

from __future__ import annotations

import codecs
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from hydra.client.regular_file import opened
from hydra.errors import ConfigError, RefusedError, shown
from hydra.system import SystemSpec

Toml = dict[str, Any]

_FILE_BYTES: Final = 1_000_000
"""The maximum size of a scenario or cluster file."""


def read_toml(source: Path, remedy: Callable[[], str]) -> Toml:
    """The content of a TOML file.

    Raises:
        ConfigError: the file cannot be read, or is not TOML.
    """
    try:
        with opened(source) as file:
            data = file.read(_FILE_BYTES + 1)
        if len(data) > _FILE_BYTES:
            raise ConfigError(f"{source}: more than {_FILE_BYTES} bytes, which no such file has", remedy())
        return tomllib.loads(data.removeprefix(codecs.BOM_UTF8).decode())
    except FileNotFoundError as error:
        raise ConfigError(f"{source}: no such file", remedy()) from error
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}", remedy()) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{source}: line {line} is not UTF-8", "save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:  # not TOML, a number of thousands of digits
        raise ConfigError(f"{source}: not TOML: {error}", "correct the line that the error names") from error


def parse_set(text: str) -> tuple[str, object]:
    """The dotted key and the value of ``--set key=value``; the value is TOML, or a bare word for a string.

    Raises:
        ConfigError: the text has no ``=``, no key, or a value that begins like TOML but is not TOML.
    """
    key, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not key or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set {text}: not of the form key=value", "write for example --set sweep.clients=[30,60]")
    try:
        # Only one line is parsed: a second line could set another key.
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
    """Replaces the value of a dotted key; None removes the key.

    Raises:
        RefusedError: a part of the key is not a table.
    """
    *tables, last = key.split(".")
    table = data
    for depth, name in enumerate(tables):
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise RefusedError(tables[: depth + 1], "is a value and not a table", f"use {key.rsplit('.', 1)[0]}=…")
        # A copy, because the table may belong to another override, which is recorded as the user gave it.
        table[name] = dict(inner)
        table = table[name]
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


PUBLISHED: Final = "published"
"""The table of a scenario's file with the values of the published sweep, and the key that selects it."""


def published_values(data: Mapping[str, Any], replaced: Mapping[str, object]) -> Toml:
    """The values of a file's table ``[published]`` if the user wants them, otherwise none.

    Args:
        data: the file.
        replaced: the keys that the user replaces, ``published`` among them or not.

    Raises:
        RefusedError: the file has no such table, or something else under its name.
    """
    table = data.get(PUBLISHED, {})
    if not isinstance(table, dict):
        raise RefusedError((PUBLISHED,), "must be a table", f"write [{PUBLISHED}.sweep] and its keys below")
    if replaced.get(PUBLISHED) is not True:
        return {}
    if not table:
        raise RefusedError((PUBLISHED,), "the scenario has no published sweep", "leave out --published")
    return table


PRESET: Final = "preset"
"""The key of a scenario that names a preset."""


def preset_values(spec: SystemSpec, name: object) -> Toml:
    """The values of a preset, none without a name.

    Raises:
        RefusedError: the system has no such preset.
    """
    if not name:
        return {}
    if not isinstance(name, str) or name not in spec.presets:
        close = get_close_matches(str(name), spec.presets, n=1)
        known = f"presets of this system: {', '.join(spec.presets)}" if spec.presets else "this system has no presets"
        raise RefusedError(
            (PRESET,),
            f"system {spec.name} has no preset {shown(name)}",
            f"did you mean {close[0]}?" if close else known,
        )
    values: Toml = {}
    for key, (value, _) in spec.presets[name].values.items():
        override(values, key, value)
    return values
