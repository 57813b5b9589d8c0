"""An engine's settings: its table in the cluster file, the environment, and flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.config.cluster import built, read_cluster
from hydra.config.refusal import field_names, known_keys, refusals_in, table_of
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
    source, data = read_cluster(path)
    names = field_names(spec.settings)
    with refusals_in(source):
        written = table_of((name,), data.get(name, {}))
        known_keys((name,), written, names)
        surroundings = {key: os.environ[v] for key, v in spec.environment.items() if os.environ.get(v)}
        flags = {key: value for key, value in (given or {}).items() if value is not None}
        return built(spec.settings, {**written, **surroundings, **flags}, dict.fromkeys(names, name), spec.bounds)
