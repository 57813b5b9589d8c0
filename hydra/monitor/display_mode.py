"""How a command shows its run, by its flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_plain(flags: Mapping[str, Any]) -> bool:
    """Whether lines are shown and no live view: it is asked for, or a program reads what is printed."""
    return bool(flags["plain"] or flags["as_json"])
