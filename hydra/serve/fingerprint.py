"""Whether what a page is made of has changed, told by the times and sizes of its files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

import hydra
from hydra.report.experiments import TABLE
from hydra.store import interleaved
from hydra.store.folders import DATABASE, RECORD

# A run that goes on writes into the second of these first.
_OF_A_RUN: Final = (DATABASE, f"{DATABASE}-wal")
_OF_SEVERAL: Final = (RECORD, TABLE, interleaved.RECORD)

_SOURCES: Final = (".py", ".j2", ".css")


def stamp(directories: Iterable[Path]) -> str:
    """Changes when one of the runs does, or one of the runs in it."""
    told = sha256()
    for directory in directories:
        own = [directory / name for name in (*_OF_A_RUN, *_OF_SEVERAL)]
        for path in [*own, *(part for name in _OF_A_RUN for part in sorted(directory.glob(f"*/{name}")))]:
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            # A reader leaves an empty file beside the database for a moment.
            if found.st_size:
                told.update(os.fsencode(path) + f" {found.st_mtime_ns} {found.st_size}\n".encode())
    return told.hexdigest()[:16]


@cache
def code() -> int:
    """The newest change of Hydra's own files: a page is made anew by newer code, also where the version is the same."""
    files = (path for path in Path(hydra.__file__).parent.rglob("*") if path.suffix in _SOURCES)
    return max(path.stat().st_mtime_ns for path in files)
