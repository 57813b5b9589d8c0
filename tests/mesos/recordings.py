"""Answers of a real Mesos 1.11.0 (recordings/README.md), and how to compare something with it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recordings"
FRAMEWORK = "672b714d-49ff-4baf-aa9f-103883e6bdcd-0000"
STREAM = "52fbe2a0-a0a8-4165-81be-6de4d47d4419"


@cache
def lines() -> list[dict[str, Any]]:
    """Every recorded line, in order."""
    return [json.loads(line) for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text().splitlines()]


def exchange(note: str) -> dict[str, Any]:
    """The recorded call with this note."""
    (found,) = (line for line in lines() if line.get("note") == note)
    return found


def events(kind: str) -> list[dict[str, Any]]:
    """The bodies of all recorded events of a type."""
    found = (line["body"] for line in lines() if line["dir"] == "event" and line["body"]["type"] == kind)
    return [body.get(kind.lower(), {}) for body in found]


def statuses(state: str) -> list[dict[str, Any]]:
    """All recorded task statuses of a state."""
    return [update["status"] for update in events("UPDATE") if update["status"]["state"] == state]


def shape(value: Any) -> Any:
    """What is left without the values: names, nesting and types; of a list, the shapes that occur in it."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in sorted(value.items())}
    if isinstance(value, list):
        found: list[Any] = []
        for inner in map(shape, value):
            if inner not in found:
                found.append(inner)
        return sorted(found, key=json.dumps)
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
