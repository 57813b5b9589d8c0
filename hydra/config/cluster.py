"""Reads a cluster file and the settings of engines. Every error is one line that names file, key and remedy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hydra.config.file_locations import conf_dir
from hydra.config.layers import Toml, read_toml
from hydra.config.plugins import engines
from hydra.config.validation import build, field_names, known_keys, refusals_in, table_of
from hydra.engine.resources import parse_attributes, parse_resources
from hydra.errors import Key, RefusedError, RefusedKeyError
from hydra.model import ClusterSpec

if TYPE_CHECKING:
    from hydra.engine.specification import EngineSpec


T = TypeVar("T")

_CLUSTER_KEYS: Final = tuple(name for name in field_names(ClusterSpec) if name != "agents")
_AGENT_KEYS: Final = ("id", "hostname", "attributes", "resources", "netns")


def load_cluster(path: Path | None = None) -> ClusterSpec:
    """The cluster that a file declares; None is ``conf/hydra.toml``.

    Raises:
        ConfigError: the file is missing, malformed or invalid.
    """
    source, data = read_cluster(path)
    with refusals_in(source):
        if "system" in data:
            raise RefusedError((), "is a scenario, and no cluster file", f"run it with hydra run {quote(str(source))}")
        arrays = (name for spec in engines().values() for name in spec.settings.arrays)
        known_keys((), data, ("cluster", "agents", *engines(), *arrays))
        cluster = table_of(("cluster",), data.get("cluster", {}))
        known_keys(("cluster",), cluster, _CLUSTER_KEYS)
        rows = data.get("agents", [])
        if not isinstance(rows, list):
            raise RefusedError(("agents",), "must be tables", "write each agent under its own [[agents]]")
        agents = [_agent(("agents", index), row) for index, row in enumerate(rows)]
        return built(ClusterSpec, {**cluster, "agents": agents}, dict.fromkeys(_CLUSTER_KEYS, "cluster"))


def read_cluster(path: Path | None) -> tuple[Path, Toml]:
    """The path and the content of a cluster file; None is ``conf/hydra.toml``. Errors as for a scenario's file."""
    source = path or conf_dir() / "hydra.toml"
    return source, read_toml(source, lambda: "name a file like conf/hydra.toml")


def built(noun: type[T], data: Mapping[str, object], homes: Mapping[str, str]) -> T:
    """Builds a model class; errors name the keys of the file.

    Args:
        noun: a dataclass.
        data: values of its fields.
        homes: the file's table that holds each field, if the dataclass is not the whole file.
    """
    try:
        return build(noun, data)
    except RefusedError as e:
        home = homes.get(str(e.key[0])) if e.key else None
        raise (RefusedError((home, *e.key), e.what, e.remedy) if home else e) from e


def _agent(key: Key, row: object) -> Toml:
    table = table_of(key, row)
    known_keys(key, table, _AGENT_KEYS)
    if "id" not in table:
        raise RefusedError((*key, "id"), "is missing", "add it")
    parsed: Toml = {"hostname": table["id"], **table}
    for name, parse in (("attributes", _attributes), ("resources", _resources)):
        written = table.get(name, "")
        if not isinstance(written, str):
            raise RefusedError((*key, name), "must be a string", "write for example 'cpus:4;mem:15000'")
        try:
            parsed[name] = parse(written)
        except ValueError as error:
            raise RefusedError((*key, name), str(error)) from error
    return parsed


def _attributes(text: str) -> dict[str, Any]:
    return dict(parse_attributes(text))


def _resources(text: str) -> dict[str, Any]:
    resources = parse_resources(text)
    return {f.name: getattr(resources, f.name) for f in fields(resources)}


def load_engine(name: str, path: Path | None = None, given: Mapping[str, object] | None = None) -> Any:
    """The settings of an engine, from flags, else the environment, else the table [NAME] of a cluster file.

    Args:
        name: the engine's name.
        path: the cluster file; None is ``conf/hydra.toml``.
        given: values from flags, by field; None keeps the file's value.

    Raises:
        ConfigError: the file is missing, malformed or invalid, or a flag is invalid.
    """
    spec = engines()[name]
    own = spec.settings
    source, data = read_cluster(path)
    with refusals_in(source):
        written = table_of((name,), data.get(name, {}))
        known_keys((name,), written, [key for key in field_names(own.kind) if key not in own.arrays])
        written |= {key: data[key] for key in own.arrays if key in data}
        surroundings = {key: os.environ[v] for key, v in own.environment.items() if os.environ.get(v)}
    flags = {key: value for key, value in (given or {}).items() if value is not None}
    try:
        return _built(spec, {**written, **surroundings, **flags})
    except RefusedError as e:
        words = {str(flag.name): flag.opts[0] for flag in spec.flags.of_settings}
        field = str(e.key[1]) if len(e.key) > 1 else ""
        if field in flags:
            raise RefusedKeyError(words.get(field, field), "", e.what, e.remedy) from e
        with refusals_in(source):
            raise


def _built(spec: EngineSpec, values: Mapping[str, object]) -> Any:
    own = spec.settings
    homes = {name: spec.name for name in field_names(own.kind) if name not in own.arrays}
    try:
        return built(own.kind, values, homes)
    except RefusedError as e:
        # What is wrong with several keys together is wrong with the table.
        raise (e if e.key else RefusedError((spec.name,), e.what, e.remedy)) from e
