"""The layers of a scenario's values (preset, file, published sweep, replaced keys), and where each value comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hydra.config.toml import PRESET, PUBLISHED, Toml, override, preset_values, published_values
from hydra.errors import Key, RefusedError
from hydra.system import SystemSpec


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
