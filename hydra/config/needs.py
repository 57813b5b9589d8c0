"""What settings need to have an effect, and which of those that a user gave have none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from functools import reduce
from typing import Any, Final, NamedTuple

from hydra.config.fields import field_of, own_tables, shared_table
from hydra.errors import Key, RefusedError
from hydra.model import ADDRESS, Need, Scenario, SettingValue, flag_names, setting_of
from hydra.sweep import TABLES, plan_of
from hydra.system import SystemSpec

_SHARED: Final = ("settings", "native", "load", "server", *(f"sweep.{key}" for key in TABLES))
"""The tables of every system whose fields are settings."""


class UnusedSetting(NamedTuple):
    """A setting that the user gave and no row uses: the path of its key, and what it needs."""

    key: Key
    needs: Sequence[Need]


def needs_of(spec: SystemSpec | None, table: str, field: Field[Any]) -> Sequence[Need]:
    """What a setting needs: what its field states, and what follows from its table and its system.

    Args:
        spec: the system; None: any system.
        table: the dotted name of the table.
        field: the field.
    """
    own = [_absolute(spec, table, need) for need in setting_of(field).needs]
    return (*(need for need in _of_table(spec, table, field.name) if need.key not in {its.key for its in own}), *own)


def _absolute(spec: SystemSpec | None, table: str, need: Need) -> Need:
    """The need with the key of the system's address, or with that of its table."""
    if need.key == ADDRESS:
        return replace(need, key=spec.servers.address_key if spec and spec.servers else "")
    return replace(need, key=f"{table}{need.key}") if need.key.startswith(".") else need


def _of_table(spec: SystemSpec | None, table: str, name: str) -> Iterator[Need]:
    """Needs whose values depend on the system."""
    if table == "native":
        implementations = spec.identity.implementations if spec else {}
        natives = tuple(name for name, each in implementations.items() if each.program == "native")
        yield Need("client", natives or ("native",))
    elif table == "server" and name in ("count", "pin") and spec is not None and spec.servers:
        yield Need(spec.servers.address_key, ("",))


def as_flags(spec: SystemSpec | None, need: Need) -> str:
    """A need as a command line meets it: ``--payload json``, or ``no --load``; keys without a flag by name."""
    of = _field(spec, need.key)
    name = next(iter(flag_names(of) if of is not None else ()), need.key)
    word = name if name.startswith("--") else f"{name} ="
    text = f"{word} {f'{need.least} or more' if need.least else _either(need.values)}"
    if need.absent:
        text = f"no {name}"
    elif need.other_than:
        text = f"{name} other than {_either(need.other_than)}"
    elif need.values == (True,) or not (need.values or need.least):
        text = name
    # A key that must be absent is no flag to add.
    return text if need.other is None or need.other.absent else f"{text} or {as_flags(spec, need.other)}"


def as_keys(need: Need) -> str:
    """A need as a scenario meets it: ``payload = "json"``; a setting by its name alone."""
    name = need.key.removeprefix("settings.").removeprefix("sweep.search.").removeprefix("sweep.held.")
    text = f"{name} = {_either(need.values, quoted=True)}"
    if need.absent:
        text = f"no {need.key}"
    elif need.other_than:
        text = f"{name} other than {_either(need.other_than, quoted=True)}"
    elif need.least:
        text = f"{name} of {need.least} or more"
    elif not need.values:
        text = name
    return text if need.other is None else f"{text} or {as_keys(need.other)}"


def _either(values: Sequence[SettingValue], *, quoted: bool = False) -> str:
    return " or ".join(_written(value, quoted) for value in values)


def _written(value: SettingValue, quoted: bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if quoted and isinstance(value, str) else str(value)


def _field(spec: SystemSpec | None, key: str) -> Field[Any] | None:
    table = key.rpartition(".")[0]
    own = own_tables(spec).get(table) if spec is not None else None
    return field_of(key, own) or field_of(key, shared_table(table))


def unused(spec: SystemSpec, scenario: Scenario, given: Mapping[str, Any]) -> list[UnusedSetting]:
    """The settings that a user gave and no row uses.

    Args:
        spec: the system.
        scenario: all that was asked for.
        given: what the user gave of it, by the keys of a file.
    """
    found = []
    cases = [case.scenario for case in plan_of(scenario).cases()]
    for key, needs in _given(spec, given):
        if not any(all(_met(need, case) for need in needs) for case in cases):
            # Each need may be met by a row of its own, and all of them by none.
            missing = [need for need in needs if not any(_met(need, case) for case in cases)]
            found.append(UnusedSetting(key, missing or needs))
    return found


def refusal(spec: SystemSpec, unused_: Sequence[UnusedSetting]) -> RefusedError:
    """The refusal of settings that no row uses: its key is the first setting, and its text names the others.

    Args:
        spec: the system.
        unused_: one or more.
    """
    key, needs = unused_[0]
    others: dict[tuple[Need, ...], list[str]] = {}
    for other in unused_[1:]:
        others.setdefault(tuple(other.needs), []).append(str(other.key[-1]))
    same = others.pop(tuple(needs), [])
    parts = [f"it needs {_listed(map(as_keys, needs))}"]
    parts[0] += f" (so {'does' if len(same) == 1 else 'do'} {_listed(same)})" if same else ""
    parts += [
        f"{_listed(names)} {'needs' if len(names) == 1 else 'need'} {_listed(map(as_keys, missing))}"
        for missing, names in others.items()
    ]
    to_do = {
        "add": [as_flags(spec, need) for need in needs if not (need.absent or need.other_than)],
        "choose": [as_flags(spec, need) for need in needs if need.other_than],
        "remove": [as_flags(spec, need).removeprefix("no ") for need in needs if need.absent],
    }
    cure = " and ".join(f"{verb} {_listed(texts)}" for verb, texts in to_do.items() if texts)
    what = f"has no effect in this run: {', '.join(parts)}"
    return RefusedError(key, what, f"{cure}, or remove {'this setting' if len(unused_) == 1 else 'these settings'}")


def _given(spec: SystemSpec, given: Mapping[str, Any]) -> Iterator[tuple[Key, Sequence[Need]]]:
    """Every setting that was given, and what it needs."""
    own = own_tables(spec)
    for table in dict.fromkeys((*_SHARED, *own)):
        written: object = reduce(_within, table.split("."), given)
        if not isinstance(written, Mapping):
            continue
        for of in _fields(table, own):
            if of.name in written:
                yield (*table.split("."), of.name), needs_of(spec, table, of)
    sweep = given.get("sweep")
    if not isinstance(sweep, Mapping):
        return
    settings = {of.name: needs_of(spec, "settings", of) for of in _fields("settings", own)}
    points, vary = sweep.get("points"), sweep.get("vary")
    if isinstance(vary, Mapping):
        yield from ((("sweep", "vary", name), settings[name]) for name in vary if name in settings)
    if isinstance(points, Sequence):
        named = {name: index for index, point in reversed([*enumerate(points)]) for name in point}
        yield from ((("sweep", "points", index, n), settings[n]) for n, index in named.items() if n in settings)


def _within(table: object, name: str) -> Any:
    return table.get(name) if isinstance(table, Mapping) else None


def _fields(table: str, own: Mapping[str, type]) -> list[Field[Any]]:
    nouns = filter(None, (shared_table(table), own.get(table)))
    return [of for noun in nouns for of in fields(noun) if of.name != "system"]


def _met(need: Need, scenario: Scenario) -> bool:
    values = _values(need.key, scenario)
    if need.least:
        met = any(isinstance(value, int) and value >= need.least for value in values)
    elif need.other_than:
        # The values that a search decides are not known before.
        name = need.key.removeprefix("settings.")
        met = name in scenario.sweep.decided or any(value not in need.other_than for value in values)
    elif need.values:
        met = any(value in need.values and type(value) in map(type, need.values) for value in values)
    else:
        met = any(values)
    return met or (need.other is not None and _met(need.other, scenario))


def _values(key: str, scenario: Scenario) -> tuple[SettingValue, ...]:
    """All values that a key has in the rows of a scenario."""
    table, _, name = key.rpartition(".")
    if table == "settings":
        return scenario.values_of(name)
    noun: Any = scenario.tables.get(table, scenario)
    for part in filter(None, table.split(".") if noun is scenario else ()):
        noun = getattr(noun, part, None)
    value = getattr(noun, name, None)
    return value if isinstance(value, tuple) else (True if is_dataclass(value) else value,)


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return " and ".join(filter(None, (", ".join(first), last)))
