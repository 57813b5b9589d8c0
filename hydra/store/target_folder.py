"""Which folder a command writes into."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.errors import UsageError


def resumed_folder(flags: Mapping[str, Any]) -> Path | None:
    """The folder that ``--resume`` names.

    Raises:
        UsageError: ``--out`` names another one.
    """
    resumed: Path | None = flags["resume"]
    if resumed is not None and flags["out"] is not None:
        raise UsageError("--resume and --out name two run directories", "leave out --out")
    return resumed


def target_folder(name: str, flags: Mapping[str, Any]) -> Path:
    """Where a command goes on or begins.

    Args:
        name: what it runs.
        flags: of ``options.run_flags``.
    """
    folder: Path | None = resumed_folder(flags) or flags["out"]
    return folder or fresh_folder(name)


def fresh_folder(name: str) -> Path:
    """Where a run of this name goes unless the user says so."""
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"  # local time
