"""The layers of a scenario's values (preset, file, published sweep, replaced keys), and where each value comes from."""

from __future__ import annotations

import codecs
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from hydra.client.linux_process import opened
from hydra.errors import ConfigError, Key, RefusedError, shown
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
    presets = spec.settings.presets
    if not isinstance(name, str) or name not in presets:
        close = get_close_matches(str(name), presets, n=1)
        known = f"presets of this system: {', '.join(presets)}" if presets else "this system has no presets"
        raise RefusedError(
            (PRESET,),
            f"system {spec.identity.name} has no preset {shown(name)}",
            f"did you mean {close[0]}?" if close else known,
        )
    values: Toml = {}
    for key, (value, _) in presets[name].values.items():
        override(values, key, value)
    return values


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from.

    Attributes:
        replaced: the replaced key that gave it, by a flag or ``--set``; "": it is of a file or of its preset.
        by_user: whether it was given by the user, and not by Hydra's file, a preset or a published sweep.
    """

    replaced: str = ""
    by_user: bool = False


@dataclass(slots=True)
class Layers:
    """The values of a scenario, merged from layers.

    Attributes:
        data: the values.
        origins: the origin of each value by the path of its key; a list is one value.
    """

    data: Toml = field(default_factory=dict)
    origins: dict[Key, Origin] = field(default_factory=dict)

    def lay(
        self, spec: SystemSpec, data: Mapping[str, object], replaced: Mapping[str, object], *, by_user: bool
    ) -> None:
        """Merges the layers of a scenario.

        Args:
            spec: the scenario's system.
            data: the file's content.
            replaced: the keys that the user replaces; a preset among them overrides the file, and the file overrides
                its own preset.
            by_user: whether the file is the user's.

        Raises:
            RefusedError: a preset, a published sweep or a replaced key is invalid.
        """
        published = published_values(data, replaced)
        file = {key: value for key, value in data.items() if key != PUBLISHED}
        name = replaced.get(PRESET, published.get(PRESET, file.get(PRESET)))
        preset, is_replaced = preset_values(spec, name), bool(replaced.get(PRESET))
        layers = [(file, Origin(by_user=by_user)), (published, Origin(PUBLISHED))]
        layers.insert(len(layers) if is_replaced else 0, (preset, Origin(PRESET if is_replaced else "")))
        for values, origin in layers:
            self._merge(self.data, values, (), origin)
        for key, value in replaced.items():
            self._replace(key, value)

    def _merge(self, table: Toml, values: Mapping[str, object], path: Key, origin: Origin) -> None:
        for name, value in values.items():
            key = (*path, name)
            below = table.pop(name, None)  # the upper layer's keys come last
            if isinstance(value, Mapping) and (below is None or isinstance(below, dict)):
                table[name] = below or {}
                self._merge(table[name], value, key, origin)
                if value or below:
                    # The table's values have origins of their own; an empty table may be filled by the next layer.
                    self.origins.pop(key, None)
                    continue
            else:
                self._forget(key)
                table[name] = value
            self.origins[key] = origin

    def remove(self, *path: str) -> None:
        """Removes a value."""
        self._forget(path)
        override(self.data, ".".join(path), None)

    def _replace(self, key: str, value: object) -> None:
        path = tuple(part.strip() for part in key.split("."))
        self._forget(path)
        for leaf in _leaves(path, value):
            self.origins[leaf] = Origin(key, by_user=value is not None)
        override(self.data, ".".join(path), value)

    def _forget(self, path: Key) -> None:
        for key in [key for key in self.origins if key[: len(path)] == path]:
            del self.origins[key]

    @property
    def given(self) -> Toml:
        """The values that the user gave, by the keys of a file."""
        found: Toml = {}
        for *path, last in (map(str, path) for path, origin in self.origins.items() if origin.by_user):
            table, values = found, self.data
            for name in path:
                table, values = table.setdefault(name, {}), values[name]
            table[last] = values[last]
        return found

    def is_replaced(self, *path: str) -> bool:
        """Whether the user replaced a key, or its table."""
        origin = self.origins.get(path, Origin())
        return origin.by_user and bool(origin.replaced)

    def causes(self, refused: RefusedError) -> tuple[str, ...]:
        """The replaced keys that gave the values that were rejected; (): they are of a file."""
        within = any(other[: len(refused.key)] == refused.key for other in refused.others)
        own = () if within else self._behind(refused.key)
        return own or tuple(key for other in refused.others for key in self._behind(other))

    def _behind(self, key: Key) -> tuple[str, ...]:
        """The replaced keys that gave values in a table, or a value of which the key is a part."""
        path = _parts(key)
        found = ((_parts(each), origin.replaced) for each, origin in self.origins.items() if origin.replaced)
        both = ((each, replaced, min(len(each), len(path))) for each, replaced in found)
        return tuple(dict.fromkeys(replaced for each, replaced, n in both if each[:n] == path[:n]))


def _parts(key: Key) -> list[str]:
    """A path in which each name has no dots."""
    return ".".join(map(str, key)).split(".")


def _leaves(path: Key, value: object) -> Iterator[Key]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves((*path, name), inner)
    else:
        yield path
