"""TOML → model: the cluster and the scenarios. Every refusal is one line that names file, key and remedy."""

from __future__ import annotations

import json
import os
import re
import reprlib
import tomllib
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from hydra.cluster.constraints import parse_constraint
from hydra.cluster.resources import parse_attributes, parse_resources
from hydra.config.bounds import out_of_bounds
from hydra.errors import ConfigError
from hydra.limits.needs import FOOTPRINTS
from hydra.model import (
    BrokerSpec,
    ClusterSpec,
    Constraint,
    Demand,
    KafkaSpec,
    NativeSpec,
    Resources,
    RoleSpec,
    Scenario,
    SearchSpec,
    Settings,
    SweepSpec,
    System,
)
from hydra.plugins import engines

NATIVE: Final = "native"
_NATIVE_ZMQ: Final = ("io_threads", "sndbuf", "rcvbuf", "transport", "secure")
"""What of the native options is of ZMQ's sockets."""
CLIENTS: Final[Mapping[System, tuple[str, ...]]] = {
    "zmq": ("pyzmq", NATIVE),
    "kafka": ("kafka-python", "confluent-kafka", NATIVE),
}
"""The client implementations of each system, the published experiments' default first."""

SEARCH_TABLES: Final = ("zmqrate", "rate")
"""The tables whose figures are searched for."""

_NAME: Final = re.compile(r"[^./][^/]*")
_NAME_CHARACTERS: Final = 100
"""Of a scenario's name: the run's folder is called by it, and a time."""

_FILE_BYTES: Final = 1_000_000
"""Of a scenario or cluster file at most."""

Toml = dict[str, Any]
Key = tuple[str | int, ...]
T = TypeVar("T")

SECRETS: Final[Collection[Key]] = (("kafka", "properties"),)
"""The keys of a scenario whose values may be secrets."""

_STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

_SCENARIO_TABLES: Final[Mapping[Key, type]] = {
    (): Scenario,
    ("settings",): Settings,
    ("sweep",): SweepSpec,
    ("sweep", "search"): SearchSpec,
    ("publisher",): RoleSpec,
    ("publisher", "demand"): Demand,
    ("subscriber",): RoleSpec,
    ("subscriber", "demand"): Demand,
    ("broker",): BrokerSpec,
    ("broker", "demand"): Demand,
    ("kafka",): KafkaSpec,
    ("native",): NativeSpec,
}
_CLUSTER_KEYS: Final = tuple(f.name for f in fields(ClusterSpec) if f.name != "agents")
_AGENT_KEYS: Final = ("id", "hostname", "attributes", "resources")


def conf_dir() -> Path:
    """Where ``conf/`` is: the package data of an installed Hydra, otherwise the repository's."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "conf"
    return installed if (installed / "hydra.toml").is_file() else package.parent / "conf"


def scenarios() -> list[str]:
    """The names of the scenarios that come with Hydra, in order."""
    return sorted(path.stem for path in (conf_dir() / "scenarios").glob("*.toml"))


def load_cluster(path: Path | None = None) -> ClusterSpec:
    """The cluster that a file declares; None is ``conf/hydra.toml``.

    Raises:
        ConfigError: the file is missing, malformed or impossible.
    """
    source = path or conf_dir() / "hydra.toml"
    data = _read(source, "name a file like conf/hydra.toml")
    _known_keys(source, (), data, ("cluster", "agents", *engines()))
    cluster = _table(source, ("cluster",), data.get("cluster", {}))
    _known_keys(source, ("cluster",), cluster, _CLUSTER_KEYS)
    rows = data.get("agents", [])
    if not isinstance(rows, list):
        raise _wrong(source, ("agents",), "must be tables", "write each agent under its own [[agents]]")
    agents = [_agent(source, ("agents", index), row) for index, row in enumerate(rows)]
    homes: dict[str | int, str] = dict.fromkeys(_CLUSTER_KEYS, "cluster")
    spec = _build(ClusterSpec, {**cluster, "agents": agents}, str(source), {}, homes)
    _sensible(str(source), spec, "cluster")
    return spec


def load_scenario(name_or_path: str | Path, overrides: Mapping[str, object] | None = None) -> Scenario:
    """A scenario from a file, with some of its keys replaced.

    Args:
        name_or_path: a bare name is ``conf/scenarios/NAME.toml``; what ends in .toml or holds a slash is a path.
        overrides: dotted keys (``sweep.clients``) and their values, from ``--set`` and from flags; None removes a key.

    Raises:
        ConfigError: the file is missing, malformed or impossible, or an override is.
    """
    source = _scenario_path(name_or_path)
    data = _read(source, f"known scenarios: {', '.join(scenarios())}")
    label = str(source)
    if overrides:
        label += f" (with {', '.join(overrides)} replaced)"
        for key, value in overrides.items():
            _override(label, data, key, value)
    data.setdefault("name", source.stem)
    _measured_demand(data)
    _broker_demand(data)
    for role in ("publisher", "subscriber", "broker"):
        _constraints(label, data, role)
    kafka = data.get("kafka")
    if isinstance(kafka, dict) and isinstance(kafka.get("properties"), dict):
        data["kafka"] = {**kafka, "properties": dict(_flat(kafka["properties"]))}
    scenario = _build(Scenario, data, label, _SCENARIO_TABLES)
    _consistent(label, scenario, data)
    return scenario


def parse_set(text: str) -> tuple[str, object]:
    """The dotted key and the value of ``--set key=value``; the value is TOML, or a bare word for a string.

    Raises:
        ConfigError: it has no ``=``, no key, or a value that starts like TOML and is not.
    """
    key, equals, written = (part.strip() for part in text.partition("="))
    if not equals or not key or not all(part.strip() for part in key.split(".")):
        raise ConfigError(f"--set {text}: not of the form key=value", "write for example --set sweep.clients=[30,60]")
    try:
        # One line only: a newline could smuggle in a second key.
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


# --- reading -------------------------------------------------------------------------------------------------------


def _scenario_path(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or text.endswith(".toml") or os.sep in text:
        return Path(text)
    known = scenarios()
    if text not in known:
        close = get_close_matches(text, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise ConfigError(
            f"no scenario {text!r} in {conf_dir() / 'scenarios'}",
            f"{hint}known scenarios: {', '.join(known)}; a file of your own needs its path",
        )
    return conf_dir() / "scenarios" / f"{text}.toml"


def _read(source: Path, remedy: str) -> Toml:
    try:
        with source.open("rb") as file:
            data = file.read(_FILE_BYTES + 1)
        if len(data) > _FILE_BYTES:
            raise ConfigError(f"{source}: more than {_FILE_BYTES} bytes, which no such file has", remedy)
        return tomllib.loads(data.decode())
    except FileNotFoundError as error:
        raise ConfigError(f"{source}: no such file", remedy) from error
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}", remedy) from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number of thousands of digits
        raise ConfigError(f"{source}: not TOML: {error}", "mend the line it names") from error


def _override(label: str, data: Toml, key: str, value: object) -> None:
    *tables, last = (part.strip() for part in key.split("."))
    table = data
    for depth, name in enumerate(tables):
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise _wrong(label, tables[: depth + 1], "is a value and not a table", f"use {key.rsplit('.', 1)[0]}=…")
        # A copy: it may be part of another override, which is recorded as it was given.
        table[name] = dict(inner)
        table = table[name]
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


def _agent(source: Path, key: Key, row: object) -> Toml:
    table = _table(source, key, row)
    _known_keys(source, key, table, _AGENT_KEYS)
    parsed: Toml = {"hostname": table.get("id"), **table}
    for name, parse in (("attributes", _attributes), ("resources", _resources)):
        written = table.get(name, "")
        if not isinstance(written, str):
            raise _wrong(source, (*key, name), "must be a string", "write for example 'cpus:4;mem:15000'")
        try:
            parsed[name] = parse(written)
        except ValueError as error:
            raise _wrong(source, (*key, name), str(error)) from error
    return parsed


def _attributes(text: str) -> Toml:
    return dict(parse_attributes(text))


def _resources(text: str) -> Toml:
    return _plain(parse_resources(text))


def _constraints(label: str, data: Toml, role: str) -> None:
    """Replaces the written constraints of a role by what the model's ``Constraint`` is built from."""
    table = data.get(role)
    if not isinstance(table, dict) or "constraints" not in table:
        return
    key: Key = (role, "constraints")
    written = table["constraints"]
    if not isinstance(written, (list, tuple)):
        raise _wrong(label, key, "must be a list of constraints", 'write [["group", "CLUSTER", "cpu4-mem16"]]')
    parsed: list[Toml] = []
    for index, parts in enumerate(written):
        if isinstance(parts, Constraint):
            parsed.append(_plain(parts))
            continue
        if not isinstance(parts, (list, tuple)):
            raise _wrong(label, (*key, index), f"must be a list of strings, not {parts!r}", "use two pairs of brackets")
        try:
            parsed.append(_plain(parse_constraint(parts)))
        except ValueError as error:
            raise _wrong(label, (*key, index), str(error)) from error
    data[role] = {**table, "constraints": parsed}


def _measured_demand(data: Toml) -> None:
    """A subscriber asks for the memory that its implementation is known to take, unless the scenario says more."""
    named = (data.get("system"), data.get("client"))
    footprint = next((f for names, f in FOOTPRINTS.items() if names == named), None)
    subscriber = data.setdefault("subscriber", {})
    demand = subscriber.setdefault("demand", {}) if isinstance(subscriber, dict) else None
    if footprint and isinstance(demand, dict):
        demand.setdefault("mem_per_client", footprint.memory_bytes / 1e6)


def _broker_demand(data: Toml) -> None:
    """A broker asks for what one is known to take, unless the scenario says otherwise."""
    broker = data.get("broker")
    demand = broker.setdefault("demand", {}) if isinstance(broker, dict) else None
    if isinstance(demand, dict):
        for field in fields(Demand):
            demand.setdefault(field.name, getattr(BrokerSpec().demand, field.name))


def _flat(table: Toml, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Kafka's own names have dots, which TOML and ``--set`` take for tables; numbers and booleans become text."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.dumps(value) if isinstance(value, (bool, int, float)) else value


def _plain(noun: Constraint | Resources) -> Toml:
    return {field.name: getattr(noun, field.name) for field in fields(noun)}


# --- building and explaining ---------------------------------------------------------------------------------------


@cache
def _adapter(noun: Hashable) -> TypeAdapter[Any]:
    # A stdlib dataclass takes no configuration of its own, but inherits that of what it stands in: hence the tuple.
    return TypeAdapter(cast("Any", tuple[noun]), config=_STRICT)  # type: ignore[valid-type]


def _build(
    noun: type[T],
    data: Mapping[str, object],
    label: str,
    tables: Mapping[Key, type],
    homes: Mapping[str | int, str] | None = None,
    hidden: Collection[Key] = SECRETS,
) -> T:
    """The noun built from the data, with every check of its own.

    Args:
        noun: a dataclass of the model.
        data: as TOML has it, by the noun's field names.
        label: what to call the file in an error.
        tables: which noun each table of the file is, to find the right place of a misplaced key.
        homes: the table that a field stands in, where file and noun differ.
        hidden: keys whose values may be secrets, which no error repeats.
    """
    # By way of JSON: strict validation takes an object for a dataclass and an array for a tuple only from there.
    text = json.dumps([data], default=str)
    try:
        return cast("T", _adapter(cast("Hashable", noun)).validate_json(text)[0])
    except ValidationError as error:
        raise _explain(label, error.errors(), data, tables, homes or {}, hidden) from error


def _explain(
    label: str,
    errors: Sequence[ErrorDetails],
    data: Mapping[str, object],
    tables: Mapping[Key, type],
    homes: Mapping[str | int, str],
    hidden: Collection[Key] = SECRETS,
) -> ConfigError:
    """The first refusal as one line; an unknown key goes before a missing one, which it probably is misspelt."""
    first = min(errors, key=lambda e: {"unexpected_keyword_argument": 0, "missing": 2}.get(e["type"], 1))
    key = tuple(first["loc"][1:])
    match first["type"]:
        case "unexpected_keyword_argument":
            return _unknown(label, key, _field_names(tables.get(key[:-1])), tables)
        case "missing":
            return _wrong(label, key, "is missing", "add it")
        case "value_error":
            return _wrong(label, key, first["msg"].removeprefix("Value error, "))
        case "dataclass_type":
            return _wrong(label, key, "must be a table", f"write [{'.'.join(map(str, key))}] and its keys below")
        case _:
            # Members of a union report one by one, each with its own name at the end of the location.
            key = _existing(key, data)
            wants = [e["msg"] for e in errors if _existing(tuple(e["loc"][1:]), data) == key]
            text = " or ".join(dict.fromkeys(w.removeprefix("Input should be ") for w in wants))
            is_hidden = any(key[: len(secret)] == secret for secret in hidden)
            if key and key[0] in homes:
                key = (homes[key[0]], *key)
            if is_hidden:
                return _wrong(label, key, f"must be {text}")
            given = first["input"]
            # What stands in a table or a list is not repeated: it may be a secret in the wrong place.
            shown = (
                "a table" if isinstance(given, dict) else "a list" if isinstance(given, list) else reprlib.repr(given)
            )
            return _wrong(label, key, f"must be {text}, not {shown}")


def _existing(key: Key, data: object) -> Key:
    found: list[str | int] = []
    for part in key:
        match data:
            case Mapping() if part in data:
                data = data[part]
            case list() | tuple() if isinstance(part, int) and part < len(data):
                data = data[part]
            case _:
                break
        found.append(part)
    return tuple(found)


def _wrong(label: str | Path, key: Iterable[str | int], what: str, remedy: str = "") -> ConfigError:
    where = ".".join(map(str, key))
    return ConfigError(f"{label}: {where}: {what}" if where else f"{label}: {what}", remedy)


def _unknown(
    label: str | Path, key: Key, known: Sequence[str], tables: Mapping[Key, type] | None = None
) -> ConfigError:
    name = str(key[-1])
    homes = [home for home, noun in (tables or {}).items() if name in _field_names(noun)]
    close = get_close_matches(name, known, n=1)
    if homes:
        # The very name in another table is nearer than a name that is like it in this one.
        home = ".".join(map(str, homes[0]))
        remedy = f"it belongs into [{home}]" if home else "it belongs to the top of the file"
    elif close:
        remedy = f"did you mean {close[0]}?"
    else:
        remedy = f"known here: {', '.join(known)}"
    return _wrong(label, key, "unknown key", remedy)


def _known_keys(source: Path, key: Key, table: Mapping[str, object], known: Sequence[str]) -> None:
    for name in table:
        if name not in known:
            raise _unknown(source, (*key, name), known)


def _table(source: Path, key: Key, value: object) -> Toml:
    if not isinstance(value, dict):
        raise _wrong(source, key, "must be a table")
    return value


def _field_names(noun: type | None) -> tuple[str, ...]:
    return tuple(f.name for f in fields(noun)) if noun is not None else ()


# --- what no single noun can see -----------------------------------------------------------------------------------


def _consistent(label: str, scenario: Scenario, data: Mapping[str, Any]) -> None:
    _sensible(label, scenario)
    if not _NAME.fullmatch(scenario.name) or len(scenario.name) > _NAME_CHARACTERS or not scenario.name.isprintable():
        raise _wrong(
            label,
            ("name",),
            f"must be a folder's name of at most {_NAME_CHARACTERS} characters, not {reprlib.repr(scenario.name)}",
            "leave out slashes, control characters and a dot at the beginning",
        )
    if scenario.kafka.bootstrap:
        _addresses(label, scenario.kafka.bootstrap)
    clients = CLIENTS[scenario.system]
    if scenario.client not in clients:
        raise _wrong(
            label,
            ("client",),
            f"{scenario.client!r} is no client of system {scenario.system}",
            f"use {' or '.join(clients)}",
        )
    if scenario.native != NativeSpec() and scenario.client != NATIVE:
        raise _wrong(label, ("native",), f"client {scenario.client} has none of these options", "use client native")
    if scenario.system != "zmq":
        for name in _NATIVE_ZMQ:
            if getattr(scenario.native, name) != getattr(NativeSpec(), name):
                raise _wrong(label, ("native", name), f"system {scenario.system} has no ZMQ sockets", "remove it")
    searches = scenario.table in SEARCH_TABLES
    if searches and scenario.sweep.search is None:
        raise _wrong(label, ("table",), f"{scenario.table} is the table of a search", "add [sweep.search]")
    if not searches and scenario.sweep.search is not None:
        raise _wrong(
            label, ("table",), f"{scenario.table} has no search", f"remove [sweep.search] or use {SEARCH_TABLES[0]}"
        )
    series = scenario.sweep.search.series if scenario.sweep.search else ()
    if len(set(series)) < len(series):
        raise _wrong(label, ("sweep", "search", "series"), f"a series stands twice in {list(series)}")
    if scenario.publishers > 1 and scenario.settings.acks == "0":
        raise _wrong(
            label,
            ("settings", "acks"),
            "acks 0 with several publishers: nobody can tell whose messages the broker took",
            "use one publisher, or acks 1",
        )
    for name in ("kafka", "broker"):
        if scenario.system == "zmq" and name in data:
            raise _wrong(label, (name,), "system zmq has no broker", f"remove [{name}]")
    if not scenario.kafka.bootstrap and scenario.kafka.replication_factor > scenario.broker.count:
        raise _wrong(
            label,
            ("kafka", "replication_factor"),
            f"{scenario.kafka.replication_factor} replicas need as many brokers, and broker.count is "
            f"{scenario.broker.count}",
            "raise broker.count, or name a cluster of yours with --bootstrap",
        )
    settings = data.get("settings", {})
    for name, values in scenario.sweep.vary.items():
        if name not in _field_names(Settings):
            raise _unknown(label, ("sweep", "vary", name), _field_names(Settings))
        if len(set(values)) < len(values):
            raise _wrong(label, ("sweep", "vary", name), f"a value stands twice in {list(values)}")
        for index, value in enumerate(values):
            key = ("sweep", "vary", name, index)
            try:
                _adapter(Settings).validate_json(json.dumps([{**settings, name: value}]))
            except ValidationError as error:
                refusal = _explain("", error.errors(), {**settings, name: value}, {}, {})
                raise _wrong(label, key, refusal.what.removeprefix(": ").removeprefix(f"{name}: ")) from error
            for _, what in out_of_bounds(value, f"settings.{name}"):
                raise _wrong(label, key, what)


def _sensible(label: str, noun: object, table: str = "") -> None:
    """Refuses the first number that is out of bounds; ``table`` is where the noun's keys stand in the file."""
    for key, what in out_of_bounds(noun):
        raise _wrong(label, (*([table] if table else []), key), what)


def _addresses(label: str, bootstrap: str) -> None:
    """Refuses what is not ``host`` or ``host:port``, several with commas."""
    for address in bootstrap.split(","):
        try:
            parts = urlsplit(f"//{address.strip()}")
            fine = parts.netloc == address.strip() and bool(parts.hostname) and parts.port != 0
        except ValueError:  # the port is no number up to 65535
            fine = False
        if not fine or not address.isprintable() or " " in address.strip() or "@" in address:
            raise _wrong(
                label,
                ("kafka", "bootstrap"),
                f"{reprlib.repr(address)} is no address",
                "write host:port, ports are 1 to 65535",
            )
