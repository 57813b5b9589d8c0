"""The JSON Schema of what ``--json`` prints and ``rows.json`` holds, made from the columns of scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hydra.config.fields import default_of
from hydra.config.file_locations import scenarios
from hydra.config.scenario import resolve
from hydra.events.event import Level
from hydra.measure.column import COUNT, HIGH, INTERVAL, LOW, STATUS, TEXT, YES_NO, Column
from hydra.measure.traffic_columns import CLIENTS

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SCALAR: Final = ["number", "string", "boolean", "null"]
_REQUIRED: Final = (CLIENTS, STATUS)
_SUFFIXES: Final[Mapping[str, str]] = {
    INTERVAL: "the mean over the repeats ± this figure is the 95 % confidence interval of the mean",
    COUNT: "number of repeats that have the figure, if some repeats do not have the figure",
    LOW: "the lowest of the repeats' figures",
    HIGH: "the highest of the repeats' figures",
}


def rows_schema(columns: Iterable[Column], *, complete: bool) -> dict[str, Any]:
    """The schema of rows with these columns.

    Args:
        columns: columns that a row can have.
        complete: whether a row can have no other columns.
    """
    suffixes = () if complete else tuple(_SUFFIXES)  # these have a pattern
    properties = {column.name: _of(column) for column in columns if not (suffixes and column.name.endswith(suffixes))}
    patterns = {f"{suffix}$": {"type": ["number", "null"], "description": text} for suffix, text in _SUFFIXES.items()}
    row: dict[str, Any] = {"type": "object", "properties": properties, "required": list(_REQUIRED)}
    if complete:
        row["additionalProperties"] = False
    else:
        row["patternProperties"] = patterns
        row["additionalProperties"] = {"type": _SCALAR}
    return {
        "$schema": DIALECT,
        "title": "Rows of a run",
        "description": "What hydra --json prints, and rows.json in a run's directory.",
        "type": "object",
        "required": ["scenario", "system", "client", "setup", "rows", "warnings"],
        "additionalProperties": False,
        "properties": {
            "scenario": {"type": "string", "description": "name of the scenario"},
            "system": {"type": "string", "description": "name of the measured system"},
            "client": {"type": "string", "description": "implementation of the clients"},
            "setup": _SETUP,
            "rows": {"type": "array", "items": row},
            "warnings": {"type": "array", "items": _WARNING},
            "error": {"type": "string", "description": "why the run could not continue (exit code 1); only then"},
        },
    }


def text(schema: Mapping[str, Any]) -> str:
    """The schema as the text of a file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _list_of(kind: str, about: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": kind}, "description": about}


def _objects(about: str, **properties: Any) -> dict[str, Any]:
    item = {"type": "object", "required": list(properties), "additionalProperties": False, "properties": properties}
    return {"type": "array", "items": item, "description": about}


_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_SETUP_PARTS: Final[Mapping[str, Any]] = {
    "text": {"type": "string", "description": "the line above the table, made of the parts"},
    "publishers": _list_of("integer", "numbers of publishers of the rows"),
    "subscribers": _list_of("integer", "numbers of subscribers of the rows"),
    "message_bytes": _objects(
        "sizes of messages in bytes, headers included", least={"type": "integer"}, most={"type": "integer"}
    ),
    "clients": _objects(
        "implementations of the clients, with the versions of their libraries; role null: of all roles",
        role={"enum": ["publisher", "subscriber", None]},
        implementation={"type": "string"},
        versions=_TEXTS,
    ),
    "clients_per_process": _list_of("integer", "number of subscribers in a process"),
    "settings": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": _SCALAR}},
        "description": "the values of settings of the traffic and of the system, by name",
    },
    "servers": _objects(
        "servers; count null: the user's, versions empty or tls null: unknown; sources: where Hydra found the programs",
        title={"type": "string"},
        count={"type": ["integer", "null"]},
        versions=_TEXTS,
        tls={"type": ["boolean", "null"]},
        sources=_TEXTS,
    ),
    "hosts": _objects(
        "hosts; local: everything ran on the host of the command",
        local={"type": "boolean"},
        names=_list_of("string", "names of the hosts"),
        cores={"type": ["integer", "null"]},
        pins=_TEXTS,
    ),
    "step_s": _list_of("number", "lengths of the steps in seconds"),
    "step_messages": _list_of("integer", "messages after which a publisher ends its step"),
}
_SETUP: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "what was measured; a list is empty if its values are unknown",
    "required": list(_SETUP_PARTS),
    "additionalProperties": False,
    "properties": _SETUP_PARTS,
}
_WARNING: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["row", "clients", "step", "kind", "level", "text", "remedy", "fields"],
    "additionalProperties": False,
    "properties": {
        "row": {"type": ["integer", "null"], "minimum": 0, "description": "place in rows, from 0; null: the whole run"},
        "clients": {"type": ["integer", "null"], "description": "subscribers of that row"},
        "step": {"type": ["integer", "null"], "description": "number of the step; null: no step, or several"},
        "kind": {"type": "string", "description": "name of the kind of warning; it stays when the text changes"},
        "level": {
            "enum": [str(level) for level in Level if level is not Level.ROUTINE],
            "description": "fail: something was not measured; loss: the figures show less than they seem to; "
            "note: read it before you use the figures",
        },
        "text": {"type": "string", "description": "what happened, and how much"},
        "remedy": {"type": "string", "description": "what to try; empty: nothing has to be done"},
        "fields": {"type": "object", "description": "values in the text"},
    },
}


def _of(column: Column) -> dict[str, Any]:
    about = {"title": column.title, "description": column.help} if column.help else {"title": column.title}
    if column.name == CLIENTS:
        return {"type": "integer", **about, "unit": column.unit}
    if column.name == STATUS:
        return {"enum": ["ok", "partial", "failed", "skipped"], **about}
    if column.unit == TEXT:
        return {"type": ["string", "null"], **about}
    if column.unit == YES_NO:
        return {"type": ["boolean", "null"], **about}
    # A setting may be a word, such as the rate max.
    kind = ["number", "null"] if column.unit and column.repeats != "common" else _SCALAR
    return {"type": kind, **about, **({"unit": column.unit} if column.unit else {})}


def schema_of(scenario: str | None) -> str:
    """The schema as text.

    Args:
        scenario: a name or a path; None: the columns of all of Hydra's scenarios, and any others.

    Raises:
        ConfigError: there is no such scenario, or it is invalid.
    """
    names = scenarios() if scenario is None else [scenario]
    columns: dict[str, Column] = {}
    for name in names:
        columns = {**resolve(name).columns, **columns}
        if default_of(name, "published"):
            columns = {**resolve(name, {"published": True}).columns, **columns}
    return text(rows_schema(columns.values(), complete=scenario is not None))
