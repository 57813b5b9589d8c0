"""An engine's settings: its table in the cluster file, the environment, and flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from hydra.config.bounds import out_of_bounds
from hydra.config.scenario import Key, _build, _known_keys, _read, _table, _wrong, conf_dir
from hydra.plugins import engines


def load_engine(name: str, path: Path | None = None, given: Mapping[str, object] | None = None) -> Any:
    """The settings of an engine: flags go before the environment, and that before the table [NAME] of a cluster file.

    Args:
        name: the engine's.
        path: the cluster file; None is ``conf/hydra.toml``.
        given: values from flags, by field; None leaves the file's.

    Raises:
        ConfigError: the file is missing, malformed or impossible.
    """
    spec = engines()[name]
    source = path or conf_dir() / "hydra.toml"
    written = _table(source, (name,), _read(source, "name a file like conf/hydra.toml").get(name, {}))
    names = [field.name for field in fields(spec.settings)]
    _known_keys(source, (name,), written, names)
    surroundings = {key: os.environ[v] for key, v in spec.environment.items() if os.environ.get(v)}
    flags = {key: value for key, value in (given or {}).items() if value is not None}
    hidden: set[Key] = {(field.name,) for field in fields(spec.settings) if not field.repr}
    homes: dict[str | int, str] = dict.fromkeys(names, name)
    settings: Any = _build(spec.settings, {**written, **surroundings, **flags}, str(source), {}, homes, hidden)
    for key, what in out_of_bounds(settings, bounds=spec.bounds):
        raise _wrong(source, (name, key), what)
    return settings
