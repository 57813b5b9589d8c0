"""The registries of plug-ins: systems that Hydra measures, engines that run clients, and the commands of both.

Plug-ins are found by entry points in the groups ``hydra.systems``, ``hydra.engines`` and ``hydra.commands``, so
another package can add one without a change to Hydra. An entry point's name is the name that scenarios, flags and
command lines use; its object is a :class:`~hydra.system.SystemSpec`, an
:class:`~hydra.engine.specification.EngineSpec` or a click command with this name. An object is imported when it is
looked up; listing the names imports nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from hydra.errors import ConfigError

if TYPE_CHECKING:
    import click

    from hydra.engine.specification import EngineSpec
    from hydra.system import Greeting, SystemSpec

T = TypeVar("T")

SYSTEMS: Final = "hydra.systems"
ENGINES: Final = "hydra.engines"
COMMANDS: Final = "hydra.commands"


@cache
def systems() -> Mapping[str, SystemSpec]:
    """Every system by its name, in alphabetical order.

    Raises:
        ConfigError: no system is installed, or two packages add the same name; on look-up: the system cannot be
            imported, or is no specification.
    """
    from hydra.system import SystemSpec

    return _Registry(SYSTEMS, SystemSpec)


def greetings() -> list[Greeting]:
    """How the servers of all systems are known that can be used."""
    found = []
    for name in systems():
        with contextlib.suppress(ConfigError):
            servers = systems()[name].servers
            found += [servers.greeting] if servers and servers.greeting else []
    return found


@cache
def engines() -> Mapping[str, EngineSpec]:
    """Every engine by its name; raises the same exceptions as :func:`systems`."""
    from hydra.engine.specification import EngineSpec

    return _Registry(ENGINES, EngineSpec)


@cache
def commands() -> Mapping[str, click.Command]:
    """Every command of systems and engines by its name; raises the same exceptions as :func:`systems`."""
    import click

    return _Registry(COMMANDS, click.Command)


def entry_points(group: str) -> dict[str, str]:
    """The entry points of a group, ``module:attribute`` by name, in alphabetical order; imports nothing.

    Raises:
        ConfigError: two packages bring the same name.
    """
    return {name: point.value for name, point in _points(group, tuple(sys.path)).items()}


def without_commands() -> list[str]:
    """The engines whose packages have no entry point in ``hydra.commands``: these are in their specifications."""
    listed = {point.package for point in _points(COMMANDS, tuple(sys.path)).values()}
    return [name for name, point in _points(ENGINES, tuple(sys.path)).items() if point.package not in listed]


def system(name: str) -> SystemSpec:
    """The system with this name.

    Raises:
        ConfigError: there is no such system; the remedy names the nearest one.
    """
    known = systems()
    if name in known:
        return known[name]
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    remedy = f"did you mean {close[0]}?" if close else f"known systems: {', '.join(known)}"
    raise ConfigError(f"no system {name!r} is installed", remedy)


class _Registry(Mapping[str, T]):
    """The objects of a group of entry points; each is imported when it is looked up."""

    def __init__(self, group: str, kind: type[T]) -> None:
        self._group, self._kind = group, kind
        self._points = _points(group, tuple(sys.path))
        self._loaded: dict[str, T] = {}
        if not self._points:  # Hydra's installation includes its own entry points
            raise ConfigError(f"no entry point of {group} is installed", "install Hydra again: make install")

    def __iter__(self) -> Iterator[str]:
        return iter(self._points)

    def __len__(self) -> int:
        return len(self._points)

    def __contains__(self, name: object) -> bool:
        return name in self._points

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        value = self._points[name].value
        module, _, attribute = value.partition(":")
        try:
            found: Any = getattr(import_module(module), attribute)
        except (ImportError, AttributeError, TypeError) as e:  # TypeError: an argument that a specification has not
            raise ConfigError(
                f"{value}, the entry point {name!r} of {self._group}, cannot be loaded: {e}",
                "reinstall the package that adds this entry point, or remove the package",
            ) from e
        if not isinstance(found, self._kind) or getattr(getattr(found, "identity", found), "name", "") != name:
            raise ConfigError(
                f"the entry point {name!r} of {self._group} is no {self._kind.__name__} of that name",
                "reinstall the package that adds this entry point",
            )
        for unchecked in _unchecked(found):
            what = f"{value}, the entry point {name!r} of {self._group}: nothing checks the bounds of {unchecked}"
            raise ConfigError(what, f"derive {unchecked} from hydra.model.Bounded")
        return found


def _unchecked(spec: object) -> Iterator[str]:
    """The names of the classes of a specification whose fields have bounds, and that do not check them."""
    own = getattr(spec, "settings", None)
    classes = [getattr(own, name, None) for name in ("step", "native", "kind")]
    kinds = (*classes, *getattr(own, "tables", {}).values())
    if not any(kinds):  # a command: the list of commands does without the imports
        return
    from dataclasses import fields, is_dataclass

    from hydra.model import Bounded, setting_of

    for kind in kinds:
        if isinstance(kind, type) and is_dataclass(kind) and not issubclass(kind, Bounded):
            yield from [kind.__name__] if any(setting_of(each).is_bounded for each in fields(kind)) else []


# --- entry points ----------------------------------------------------------------------------------------------------


class _Point(NamedTuple):
    """An entry point: ``module:attribute``, and the package that adds it."""

    value: str
    package: str


@cache
def _points(group: str, path: tuple[str, ...]) -> Mapping[str, _Point]:
    """The entry points of a group by name, in alphabetical order.

    Args:
        group: the group's name.
        path: the folders that modules are imported from.

    Raises:
        ConfigError: two packages add the same name.
    """
    found: dict[str, _Point] = {}
    for package, text in _installed(path).items():
        for name, value in _entries(text, group):
            if name in found:
                raise ConfigError(
                    f"{package} adds {name!r} to {group}, which {found[name].package} adds already",
                    "remove one of the packages",
                )
            found[name] = _Point(value, package)
    return dict(sorted(found.items()))


@cache
def _installed(path: tuple[str, ...]) -> dict[str, str]:
    """The text of each installed package's entry points, by the package's name.

    This replaces importlib.metadata, whose import takes as long as all else that ``hydra --help`` needs. As there, a
    package's first folder on the path counts.

    Args:
        path: the folders that modules are imported from.
    """
    found: dict[str, str] = {}
    for folder in path:
        try:
            names = sorted(os.listdir(folder or "."))  # noqa: PTH208  # one Path less for each of hundreds
        except OSError:
            continue  # not a folder, but an archive of the standard library
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            package = name.rpartition(".")[0].partition("-")[0].lower()
            if package not in found:
                try:
                    found[package] = Path(folder, name, "entry_points.txt").read_text(encoding="utf-8")
                except OSError:
                    found[package] = ""  # the package has no entry points
    return found


def _entries(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Name and value of each entry of a group in the text of an ``entry_points.txt``."""
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and not line.startswith(("#", ";")):
            name, equals, value = line.partition("=")
            if equals:
                yield name.strip(), value.partition("[")[0].strip()  # extras follow [, an old notation
