"""Runs of earlier versions whose steps this one would not ask for: their rows are shown as they were stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hydra.errors import RunDirectoryError
from hydra.sweep import Row

ROWS: Final = "rows.json"


def bisected(scenario: Mapping[str, Any]) -> bool:
    """Whether a stored scenario's rates were searched for by bisection: its search has the key of that."""
    search = scenario.get("sweep", {}).get("search") or {}
    return "ratio" in search


def stored_rows(directory: Path) -> list[Row]:
    """The rows of a run directory as the Hydra that made it wrote them.

    Raises:
        RunDirectoryError: they are not there, or are none.
    """
    path = directory / ROWS
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        return [dict(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunDirectoryError(f"cannot read {path}: {e}", "use the Hydra that made the run") from e
