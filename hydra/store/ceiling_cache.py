"""Stores the ceilings that were measured on this machine in a file in the user's cache."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from hydra.config.user_folders import cache_folder
from hydra.errors import UsageError
from hydra.measure.verdict import Ceiling

_FILE: Final = "ceilings.json"


class _Stored(msgspec.Struct):
    """The content of the file; the ceilings are valid only for this ``machine``."""

    machine: dict[str, str]
    ceilings: list[Ceiling]


def machine() -> dict[str, str]:
    """The facts on which ceilings depend: processor and cores, kernel, and the versions of Hydra and Python."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    models = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(len(models)),
        "kernel": platform.release(),
        "host": platform.node(),
        "hydra": version("hydra-scale"),
        "python": sys.version.split()[0],
    }


def path() -> Path:
    """The path of the file with the ceilings."""
    return cache_folder() / _FILE


def load() -> list[Ceiling]:
    """The ceilings of this machine; [] if none were measured, or the file cannot be read."""
    try:
        stored = msgspec.json.decode(path().read_bytes(), type=_Stored)
    except (OSError, msgspec.MsgspecError):
        return []
    return stored.ceilings if stored.machine == machine() else []


def add(ceilings: Iterable[Ceiling]) -> None:
    """Stores ceilings with the others of this machine; a ceiling that was measured again is replaced.

    Raises:
        UsageError: the cache cannot be written.
    """
    kept = {(c.language, c.role, c.clients, c.message_size): c for c in (*load(), *ceilings)}
    ordered = [kept[key] for key in sorted(kept)]
    file = path()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(_Stored(machine(), ordered)))
        new.replace(file)
    except OSError as e:
        raise UsageError(f"cannot write {file}: {e.strerror}", "set XDG_CACHE_HOME") from e
