"""The part of a cluster file that a command in the cluster needs: what it says of other engines stays here. Pure."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any, Final

_NEEDED: Final = ("cluster", "agents", "kubernetes")


def needed(text: str) -> str:
    """A cluster file with the tables that the command needs, and no others."""
    data = tomllib.loads(text)
    return "".join(f"{name} = {_written(data[name])}\n" for name in _NEEDED if name in data)


def _written(value: Any) -> str:
    """A value as TOML has it, on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quoted(key)} = {_written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    # All that JSON escapes, TOML does in the same way; and it has one more control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
