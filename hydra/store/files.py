"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hydra.errors import HydraError


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
