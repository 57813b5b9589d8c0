"""An engine's settings: its table in the cluster file, the environment, and flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.config.cluster import built, read_cluster
from hydra.config.plugins import engines
from hydra.config.validation_error import field_names, known_keys, refusals_in, table_of
from hydra.errors import RefusedError

if TYPE_CHECKING:
    from hydra.engine.interface import EngineSpec


def load_engine(name: str, path: Path | None = None, given: Mapping[str, object] | None = None) -> Any:
    """The settings of an engine: flags go before the environment, and that before the table [NAME] of a cluster file.

    Args:
        name: the engine's.
        path: the cluster file; None is ``conf/hydra.toml``.
        given: values from flags, by field; None leaves the file's.

    Raises:
        ConfigError: the file is missing, malformed or impossible, or a flag is.
    """
    spec = engines()[name]
    source, data = read_cluster(path)
    with refusals_in(source):
        written = table_of((name,), data.get(name, {}))
        known_keys((name,), written, field_names(spec.settings))
        surroundings = {key: os.environ[v] for key, v in spec.environment.items() if os.environ.get(v)}
    flags = {key: value for key, value in (given or {}).items() if value is not None}
    try:
        return _built(spec, {**written, **surroundings, **flags})
    except RefusedError as e:
        words = {str(flag.name): flag.opts[0] for flag in spec.all_flags}
        field = str(e.key[1]) if len(e.key) > 1 else ""
        # What a flag brought is not the file's fault.
        with refusals_in(words.get(field, field), lambda _: "") if field in flags else refusals_in(source):
            raise


def _built(spec: EngineSpec, values: Mapping[str, object]) -> Any:
    names = field_names(spec.settings)
    try:
        return built(spec.settings, values, dict.fromkeys(names, spec.name), spec.bounds)
    except RefusedError as e:
        if e.key:
            raise
        # A check of the settings' own; its text begins with the field, if it is about one.
        field, _, what = e.what.partition(" ")
        if field.partition(".")[0] in names:
            raise RefusedError((spec.name, field), what, e.remedy) from e
        raise RefusedError((spec.name,), e.what, e.remedy) from e
