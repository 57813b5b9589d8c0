"""A cluster file → the model. Every refusal is one line that names file, key and remedy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, TypeVar

from hydra.cluster.resources import parse_attributes, parse_resources
from hydra.config.bounds import out_of_bounds
from hydra.config.building import build
from hydra.config.places import conf_dir
from hydra.config.refusal import Key, RefusedError, field_names, known_keys, refusals_in, table_of
from hydra.config.toml import Toml, read
from hydra.model import ClusterSpec, MesosSpec

T = TypeVar("T")

_CLUSTER_KEYS: Final = tuple(name for name in field_names(ClusterSpec) if name != "agents")
_AGENT_KEYS: Final = ("id", "hostname", "attributes", "resources")


def load_cluster(path: Path | None = None) -> ClusterSpec:
    """The cluster that a file declares; None is ``conf/hydra.toml``.

    Raises:
        ConfigError: the file is missing, malformed or impossible.
    """
    source, data = _read(path)
    with refusals_in(source):
        known_keys((), data, ("cluster", "agents", "mesos"))
        cluster = table_of(("cluster",), data.get("cluster", {}))
        known_keys(("cluster",), cluster, _CLUSTER_KEYS)
        rows = data.get("agents", [])
        if not isinstance(rows, list):
            raise RefusedError(("agents",), "must be tables", "write each agent under its own [[agents]]")
        agents = [_agent(("agents", index), row) for index, row in enumerate(rows)]
        return _built(ClusterSpec, {**cluster, "agents": agents}, dict.fromkeys(_CLUSTER_KEYS, "cluster"))


def load_mesos(path: Path | None = None, overrides: Mapping[str, str | None] | None = None) -> MesosSpec:
    """How Hydra introduces itself to Mesos: the table [mesos] of a cluster file; None is ``conf/hydra.toml``.

    Principal and secret may stand in the environment instead, as HYDRA_MESOS_PRINCIPAL and HYDRA_MESOS_SECRET.

    Args:
        path: the file.
        overrides: values from flags, by key; None leaves the file's.

    Raises:
        ConfigError: the file is missing, malformed or impossible.
    """
    source, data = _read(path)
    with refusals_in(source):
        table = table_of(("mesos",), data.get("mesos", {}))
        known_keys(("mesos",), table, field_names(MesosSpec))
        surroundings = {key: os.environ.get(f"HYDRA_MESOS_{key.upper()}") for key in ("principal", "secret")}
        given = {key: value for key, value in {**surroundings, **(overrides or {})}.items() if value}
        return _built(MesosSpec, {**table, **given}, dict.fromkeys(field_names(MesosSpec), "mesos"))


def _read(path: Path | None) -> tuple[Path, Toml]:
    source = path or conf_dir() / "hydra.toml"
    return source, read(source, "name a file like conf/hydra.toml")


def _built(noun: type[T], data: Mapping[str, object], homes: Mapping[str, str]) -> T:
    """The noun, refused by the keys of the file; ``homes`` are the tables in which some of its fields stand there."""
    try:
        spec = build(noun, data)
        for key, what in out_of_bounds(spec):
            raise RefusedError((key,), what)
    except RefusedError as e:
        home = homes.get(str(e.key[0])) if e.key else None
        raise (RefusedError((home, *e.key), e.what, e.remedy) if home else e) from e
    return spec


def _agent(key: Key, row: object) -> Toml:
    table = table_of(key, row)
    known_keys(key, table, _AGENT_KEYS)
    parsed: Toml = {"hostname": table.get("id"), **table}
    for name, parse in (("attributes", _attributes), ("resources", _resources)):
        written = table.get(name, "")
        if not isinstance(written, str):
            raise RefusedError(
                (*key, name), "must be a string in Mesos' syntax", "write for example 'cpus:4;mem:15000'"
            )
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
