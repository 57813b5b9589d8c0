"""Reads a scenario file into the model. Every error is one line that names file, key and remedy."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from hydra.config import plugins
from hydra.config.fields import field_of, system_of
from hydra.config.file_locations import is_shipped, scenario_path, scenarios
from hydra.config.layers import Layers, Toml, read_toml
from hydra.config.needs import refusal, unused
from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.validation import (
    Tables,
    UnknownKeyError,
    build,
    field_names,
    free_text,
    refusals_in,
    refuse_missing,
    refuse_unknown,
    refused_fields,
    with_numbers,
)
from hydra.config.workload import (
    check_connections,
    check_workload,
    refused_traffic,
    with_recorded,
    with_texts,
    without_replaced_size,
)
from hydra.engine.placement import parse_constraint
from hydra.errors import Key, RefusedError, RefusedKeyError
from hydra.model import (
    HEADER_BYTES,
    Constraint,
    Demand,
    EventSpec,
    FieldError,
    Figure,
    GroupRole,
    LoadSpec,
    NativeSpec,
    RoleSpec,
    Scenario,
    ServerSpec,
    Settings,
    SloSpec,
    SweepSpec,
    setting_of,
)
from hydra.sweep import KEYS, NAMES, TABLES, kind_named, kind_of, kind_of_table, kinds, plan_of
from hydra.sweep.plan import RowSettings
from hydra.system import SystemSpec

NATIVE: Final = "native"
"""The table with the options of native clients."""

_NAME: Final = re.compile(r"[^./][^/]*")
_NAME_CHARACTERS: Final = 100
"""The maximum length of a scenario's name; the run's folder is named after the scenario and the time."""

_ROLES: Final[tuple[GroupRole, ...]] = ("publisher", "subscriber", "server")


def load_scenario(name_or_path: str | Path, overrides: Mapping[str, object] | None = None) -> Scenario:
    """The scenario of :func:`resolve`, without its system."""
    return resolve(name_or_path, overrides).scenario


def resolve(
    name_or_path: str | Path, overrides: Mapping[str, object] | None = None, *, alone: bool = True
) -> ResolvedScenario:
    """A scenario from a file, with some of its keys replaced.

    Args:
        name_or_path: a name is ``conf/scenarios/NAME.toml``; a text that ends with .toml or contains a slash is a path.
        overrides: dotted keys (``sweep.clients``) and their values, from ``--set`` and from flags; None removes a key.
        alone: whether no other scenario is run with it: then a setting that it does not use is rejected. Otherwise the
            caller asks :func:`refuse_unused`, because another scenario may use that setting.

    Raises:
        ConfigError: the file is missing, malformed or invalid, or an override is invalid.
    """
    source = scenario_path(name_or_path)
    data = read_toml(source, lambda: f"known scenarios: {', '.join(scenarios())}")
    resolved = resolved_from(str(source), source.stem, data, overrides, given=not is_shipped(source))
    if alone:
        refuse_unused([resolved], str(source))
    return resolved


def refuse_unused(resolved: Sequence[ResolvedScenario], source: str) -> None:
    """Rejects the settings that the user gave and that no row of these scenarios uses.

    Args:
        resolved: one or more.
        source: what errors call the file.

    Raises:
        RefusedKeyError: such a setting exists.
    """
    first, *others = resolved
    kept = [{each.key for each in other.unused} for other in others]
    unused_ = [each for each in first.unused if all(each.key in keys for keys in kept)]
    if unused_:
        with refusals_in(source):
            raise refusal(first.system, unused_)


def resolved_from(
    source: str,
    name: str,
    data: Mapping[str, Any],
    overrides: Mapping[str, object] | None = None,
    *,
    given: bool = False,
) -> ResolvedScenario:
    """Makes a scenario from the content of a file, which need not exist.

    Args:
        source: the name of the file in errors.
        name: the scenario's name, if the file has none.
        data: the content as TOML values.
        overrides: see :func:`resolve`. Precedence: overrides, a preset that they name, the file, a preset that the file
            names.
        given: whether the file is the user's, so its values were given by the user.

    Raises:
        ConfigError: the scenario or an override is invalid.
    """
    replaced = dict(overrides or {})
    layers = Layers()
    try:
        spec = system_of({**data, **replaced})
        layers.lay(spec, data, replaced, by_user=given)
        without_replaced_size(layers)
        layers.data.setdefault("name", name)
        own = layers.given
        scenario = _scenario(spec, layers.data)
    except RefusedError as e:
        label = f"{source} (with {', '.join(replaced)} replaced)" if replaced else source
        raise RefusedKeyError(label, e.dotted, e.what, e.remedy, layers.causes(e)) from e
    defaults = frozenset(role for role in _ROLES if "constraints" not in own.get(role, {}))
    return ResolvedScenario(scenario, spec, unused(spec, scenario, own), defaults)


def _scenario(spec: SystemSpec, data: Toml) -> Scenario:
    _server_demand(spec, data)
    for role in _ROLES:
        _constraints(data, role)
    _free_text(spec, data)
    with_texts(data)
    _sweep(spec, data)
    listed, sweep_table = data.get("events"), data.get("sweep")
    events = len(listed) if isinstance(listed, list) else 0
    try:
        refuse_unknown((), data, _tables(spec, events, sweep_table if isinstance(sweep_table, dict) else ()))
    except UnknownKeyError as e:
        raise _of_another(spec, e) or e from e
    scenario = _built(spec, data)
    scenario = _as_measured(spec, plan_of(scenario).completed(), data)
    _consistent(spec, scenario)
    scenario = with_recorded(scenario)
    check_workload(spec, scenario)
    check_connections(spec, scenario)
    plan = plan_of(scenario)
    _given(spec, plan.given(), data.get("settings", {}))
    for key, what, remedy in plan.refusals():
        raise RefusedError(key, what, remedy)
    _cases(spec, scenario)
    return scenario


# --- the form of a scenario in a file ---------------------------------------------------------------------------------


def _built(spec: SystemSpec, data: Toml) -> Scenario:
    refuse_missing(Scenario, data)
    made = {
        "sweep": _built_sweep(data["sweep"]),
        "settings": build(Settings, data.get("settings", {}), ("settings",), own=spec.settings.step),
        NATIVE: build(NativeSpec, data.get(NATIVE, {}), (NATIVE,), own=spec.settings.native),
        "tables": {name: build(kind, data.get(name, {}), (name,)) for name, kind in spec.settings.tables.items()},
    }
    rest = {name: value for name, value in data.items() if name not in (*made, *spec.settings.tables)}
    return build(Scenario, rest, made=made)


def _built_sweep(table: object) -> SweepSpec:
    """The sweep that a table describes."""
    values = table if isinstance(table, dict) else {}
    written = [name for name, value in values.items() if value or (name in TABLES and isinstance(value, dict))]
    try:
        kind = kind_of_table(written)
    except FieldError as e:
        raise refused_fields(e, ("sweep",)) from e
    # A key of another kind may stand there without a value.
    others = {name for name in NAMES if name not in (*field_names(kind.spec), *written)}
    left = {name: value for name, value in values.items() if name not in others}
    return build(kind.spec, left if isinstance(table, dict) else table, ("sweep",))


def _tables(spec: SystemSpec, events: int = 0, written: Collection[str] = ()) -> Tables:
    tables: dict[Key, tuple[str, ...]] = {
        (): tuple(name for name in (*field_names(Scenario), *spec.settings.tables) if name != "tables"),
        ("settings",): field_names(Settings, spec.settings.step),
        ("sweep",): NAMES,
        **{("sweep", key): field_names(table) for key in TABLES if key in written and (table := kind_named(key).own)},
        ("load",): field_names(LoadSpec),
        ("slo",): field_names(SloSpec),
        **{("events", index): field_names(EventSpec) for index in range(events)},
        **{(role,): field_names(ServerSpec if role == "server" else RoleSpec) for role in _ROLES},
        **{(role, "demand"): field_names(Demand) for role in _ROLES},
        **{(name,): field_names(kind) for name, kind in spec.settings.tables.items()},
        (NATIVE,): field_names(NativeSpec, spec.settings.native),
    }
    if spec.servers:
        return tables
    own = {key: names for key, names in tables.items() if key[:1] != ("server",)}
    return {**own, (): tuple(name for name in own[()] if name != "server")}


def _of_another(spec: SystemSpec, refused: UnknownKeyError) -> RefusedError | None:
    """A better error for an unknown key: a key of another system, or one that needs servers."""
    if refused.belongs_elsewhere:
        return None
    *place, name = map(str, refused.key)
    if refused.key == ("server",):
        return RefusedError(refused.key, f"system {spec.identity.name} has no servers of its own", "remove [server]")
    for other in plugins.systems().values():
        if other.identity.name != spec.identity.name and name in _tables(other).get(tuple(place), ()):
            return RefusedError(
                refused.key, refused.what, f"this is a key of system {other.identity.name}, not of {spec.identity.name}"
            )
    return None


# --- values whose form in a file differs from the model ---------------------------------------------------------------


def _as_measured(spec: SystemSpec, scenario: Scenario, data: Toml) -> Scenario:
    """The scenario with the implementation's subscribers per process, and the measured demand of a subscriber.

    Values that the scenario sets are kept.
    """
    implementation = spec.identity.implementations.get(scenario.client)
    if implementation is None:
        return scenario
    native = scenario.native
    if implementation.packed > 1 and "clients_per_process" not in data.get(NATIVE, {}):
        native = replace(
            native, clients_per_process=max(implementation.packed // spec.resources.connections(scenario), 1)
        )
    demand, written = scenario.subscriber.demand, data.get("subscriber", {}).get("demand", {})
    if "cpus_per_client" not in written:
        demand = replace(demand, cpus_per_client=implementation.cpus)
    if "mem_per_client" not in written:
        footprint = implementation.footprint
        packed = native.clients_per_process if footprint.further else 1
        demand = replace(demand, mem_per_client=footprint.of(packed).memory_bytes / packed / 1e6)
    return replace(scenario, native=native, subscriber=replace(scenario.subscriber, demand=demand))


def _sweep(spec: SystemSpec, data: Toml) -> None:
    """Converts the table of each kind of sweep to the form from which its field is built."""
    sweep = data.get("sweep")
    if not isinstance(sweep, dict):
        return
    read = {key: kind_named(key).read(sweep[key]) for key in KEYS if key in sweep}
    rows = [table for table in (read.get("vary"), *(p["settings"] for p in read.get("points", ()))) if table]
    for table in rows if all(isinstance(table, dict) for table in rows) else ():
        table |= with_numbers(with_numbers(table, Settings), spec.settings.step)
    data["sweep"] = {**sweep, **read}


def _server_demand(spec: SystemSpec, data: Toml) -> None:
    """Fills in the measured demand of a server, where the scenario sets none."""
    server = data.get("server", {})
    if spec.servers is None or not isinstance(server, dict):
        return
    demand = server.get("demand", {})
    if isinstance(demand, dict):
        measured = {name: getattr(spec.servers.demand, name) for name in field_names(Demand)}
        data["server"] = {**server, "demand": {**measured, **demand}}


def _constraints(data: Toml, role: str) -> None:
    """Converts the constraints of a role to those of the model."""
    table = data.get(role)
    if not isinstance(table, dict) or "constraints" not in table:
        return
    key: Key = (role, "constraints")
    written = table["constraints"]
    if not isinstance(written, (list, tuple)):
        raise RefusedError(key, "must be a list of constraints", 'write [["group", "CLUSTER", "cpu4-mem16"]]')
    parsed: list[Constraint] = []
    for index, parts in enumerate(written):
        if isinstance(parts, Constraint):
            parsed.append(parts)
            continue
        if not isinstance(parts, (list, tuple)):
            raise RefusedError((*key, index), f"must be a list of strings, not {parts!r}", "use two pairs of brackets")
        try:
            parsed.append(parse_constraint(parts))
        except ValueError as error:
            raise RefusedError((*key, index), str(error)) from error
    data[role] = {**table, "constraints": parsed}


def _free_text(spec: SystemSpec, data: Toml) -> None:
    """Restores foreign names with dots, which TOML and ``--set`` read as tables."""
    for name, kind in spec.settings.tables.items():
        table = data.get(name)
        if not isinstance(table, dict):
            continue
        for key in free_text(kind):
            if isinstance(table.get(key), dict):
                table = {**table, key: dict(_flat(table[key]))}
        data[name] = table


def _flat(table: Toml, prefix: str = "") -> Iterator[tuple[str, object]]:
    """(name, value) pairs: nested tables become names with dots, and numbers and booleans become text."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, json.dumps(value) if isinstance(value, (bool, int, float)) else value


# --- checks across several tables -----------------------------------------------------------------------------------


def _consistent(spec: SystemSpec, scenario: Scenario) -> None:
    if not _NAME.fullmatch(scenario.name) or len(scenario.name) > _NAME_CHARACTERS or not scenario.name.isprintable():
        raise RefusedError(
            ("name",),
            f"must be a folder's name of at most {_NAME_CHARACTERS} characters, not {reprlib.repr(scenario.name)}",
            "leave out slashes, control characters and a dot at the beginning",
        )
    if scenario.client not in spec.identity.implementations:
        raise RefusedError(
            ("client",),
            f"{scenario.client!r} is no client of system {scenario.system}",
            f"use {' or '.join(spec.identity.implementations)}",
        )
    program = spec.identity.implementations[scenario.client].program
    usual = _options(NativeSpec(system=spec.settings.native()))
    for name in (name for name, value in _options(scenario.native).items() if value != usual[name]):
        if program != "native" and not _is_shared(spec, name, scenario.client):
            what = f"client {scenario.client} has no such option"
            raise RefusedError((NATIVE, name), what, "use client native", others=[("client",)])
    if program != "tool":
        _room_for_header(scenario)
    own = kind_of(scenario)
    if scenario.table in own.tables:
        return
    possible = [kind for kind in kinds() if scenario.table in kind.tables]
    if all(kind.spec.decided for kind in possible):
        remedy = f"add {' or '.join(f'[sweep.{kind.key}]' for kind in possible)}"
        raise RefusedError(("table",), f"{scenario.table} is the table of a search", remedy)
    what, remedy = f"{scenario.table} has no {own.key}", f"remove [sweep.{own.key}] or use {own.tables[0]}"
    raise RefusedError(("table",), what, remedy, [("sweep", own.key)])


def _is_shared(spec: SystemSpec, name: str, client: str) -> bool:
    """Whether an implementation that is no native one has an option of native clients, too."""
    of = field_of(f"{NATIVE}.{name}", spec.settings.native)
    return of is not None and any(need.key == "client" and client in need.values for need in setting_of(of).needs)


def _options(native: NativeSpec) -> dict[str, Figure]:
    """The options of native clients by name, the system's own among them."""
    return {**{name: getattr(native, name) for name in field_names(NativeSpec)}, **native.system.values()}


def _room_for_header(scenario: Scenario) -> None:
    """Rejects messages that are shorter than their header."""
    sizes: list[tuple[Key, Figure]] = [(("settings", "message_size"), scenario.settings.message_size)]
    sizes += [
        (given.place("message_size"), given.settings["message_size"])
        for given in plan_of(scenario).given()
        if "message_size" in given.settings
    ]
    for key, size in sizes:
        if isinstance(size, int) and size < HEADER_BYTES:
            raise RefusedError(key, f"message_size must be {HEADER_BYTES} (the header) to 67108864 bytes, not {size}")


def _unknown_setting(spec: SystemSpec, key: Key, name: str, known: Sequence[str]) -> RefusedError:
    refused = UnknownKeyError(("settings", name), known)
    return RefusedError(key, refused.what, (_of_another(spec, refused) or refused).remedy)


def _given(spec: SystemSpec, rows: Iterable[RowSettings], settings: Mapping[str, Any]) -> None:
    """Rejects settings of rows that no step can have.

    Args:
        spec: the specification of the scenario's system.
        rows: the settings of rows.
        settings: the scenario's settings as they are written; a row's settings are merged into them.
    """
    known = field_names(Settings, spec.settings.step)
    for given in rows:
        for name in given.settings:
            if name not in known:
                raise _unknown_setting(spec, (*given.key, name), name, (*given.keys, *known))
        try:
            build(Settings, {**settings, **given.settings}, own=spec.settings.step)
        except RefusedError as e:
            # Values that are wrong in combination are named only if the row has one of them alone.
            names = [name for name in given.settings if (name,) in (e.key, *e.others)]
            raise RefusedError(given.place(names[0]) if len(names) == 1 else given.key, e.what, e.remedy) from e


def _cases(spec: SystemSpec, scenario: Scenario) -> None:
    """Rejects rows that the system cannot measure."""
    for case in plan_of(scenario).cases():
        log = spec.delivery(case.scenario, case.scenario.settings).log
        if log is None and not all(clients for _, clients in case.scenario.sizes):
            what = f"no subscribers, and system {spec.identity.name} keeps no log that shows what arrived"
            raise RefusedError((*case.key, "clients"), what, "use 1 or more")
        for found, what, remedy, *others in (
            *refused_traffic(spec, case.scenario),
            *spec.settings.check(case.scenario),
        ):
            own = len(found) == 2 and found[0] == "settings" and found[1] in case.settings
            concerned = [each for keys in others for each in keys]
            raise RefusedError((*case.key, found[1]) if own else found, what, remedy, [*concerned, ("client",)])
