"""The registries: which systems can be measured, and on which engines their clients can run.

Both are found by their entry points, in the groups ``hydra.systems`` and ``hydra.engines``, so that a package of
somebody else's adds one without a change to Hydra. An entry point's name is the name that scenarios and flags use; its
object is a :class:`~hydra.system.SystemSpec` or an :class:`~hydra.cluster.engine.EngineSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

from hydra.cluster.engine import EngineSpec
from hydra.errors import ConfigError
from hydra.system import SystemSpec

SYSTEMS: Final = "hydra.systems"
ENGINES: Final = "hydra.engines"


@cache
def systems() -> Mapping[str, SystemSpec]:
    """Every system by its name, in alphabetical order.

    Raises:
        ConfigError: a package's entry point cannot be loaded, or is no specification.
    """
    return {name: _checked(SYSTEMS, name, spec, SystemSpec) for name, spec in _loaded(SYSTEMS).items()}


@cache
def engines() -> Mapping[str, EngineSpec]:
    """Every engine by its name; errors as for :func:`systems`."""
    return {name: _checked(ENGINES, name, spec, EngineSpec) for name, spec in _loaded(ENGINES).items()}


def system(name: str) -> SystemSpec:
    """The system of that name.

    Raises:
        ConfigError: there is none; the text names the nearest one that there is.
    """
    known = systems()
    if name in known:
        return known[name]
    close = get_close_matches(name, known, n=1)
    remedy = f"did you mean {close[0]}?" if close else f"known systems: {', '.join(known)}"
    raise ConfigError(f"no system {name!r} is installed", remedy)


def table_kind(word: str) -> str:
    """The kind of table that a scenario's ``table`` means: systems may have other words for one."""
    return next((spec.table_words[word] for spec in systems().values() if word in spec.table_words), word)


def _loaded(group: str) -> dict[str, Any]:
    found = {}
    for point in sorted(entry_points(group=group), key=lambda p: p.name):
        try:
            found[point.name] = point.load()
        except (ImportError, AttributeError) as e:
            raise ConfigError(
                f"{point.value}, the entry point {point.name!r} of {group}, cannot be loaded: {e}",
                "reinstall the package that brings it, or remove it",
            ) from e
    if not found:  # Hydra's own are installed with it
        raise ConfigError(f"no entry point of {group} is installed", "install Hydra again: make install")
    return found


def _checked(group: str, name: str, spec: Any, kind: type[Any]) -> Any:
    if isinstance(spec, kind) and spec.name == name:
        return spec
    raise ConfigError(
        f"the entry point {name!r} of {group} is no {kind.__name__} of that name", "reinstall its package"
    )
