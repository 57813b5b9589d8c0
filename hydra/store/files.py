"""Files that are there as a whole or not at all, and records that are kept in one."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TypeVar

import msgspec

from hydra.errors import HydraError, RunDirectoryError

T = TypeVar("T")


def write_whole(path: Path, text: str, remedy: str) -> Path:
    """Writes a file under its final name only when it is whole; returns its path.

    Raises:
        HydraError: it cannot be written; the error has this remedy.
    """
    draft = path.with_name(f".{path.name}.new")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.rename(path)
    except OSError as e:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise HydraError(f"cannot write {path}: {e.strerror or e}", remedy) from e
    return path


def json_of(value: object) -> str:
    """A record as a file of its own has it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode() + "\n"


def read_json(path: Path, kind: type[T]) -> T:
    """A record of this kind.

    Raises:
        RunDirectoryError: it cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, ValueError) as e:
        raise RunDirectoryError(f"cannot read {path}: {e}", "it is damaged, or of another version of Hydra") from e
