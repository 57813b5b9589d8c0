"""The script of the container ``files``, which keeps the run directory after the container ``hydra`` has ended.

``keep FOLDER SECONDS`` waits until the command has ended, and then SECONDS more.
``pack FOLDER RUN`` writes a tar archive to standard output: first ``.hydra/state`` (JSON), which contains whether the
command has ended and its exit code, then the run directory with consistent copies of its databases.
"""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import signal
import sqlite3
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

BEGINS_WITHIN_S = 600
DRAINED_S = 30


def keep(folder: str, seconds: str) -> None:
    """Returns when the files need not be kept any more."""
    signal.signal(signal.SIGTERM, leave)
    lock = Path(folder, ".hydra", "lock")
    deadline = time.monotonic() + BEGINS_WITHIN_S
    while not lock.exists():
        if time.monotonic() > deadline:
            sys.exit(f"the command has not begun within {BEGINS_WITHIN_S} s")
        time.sleep(0.2)
    # If the Pod is drained from its node, the command ends cleanly, and its directory may still be fetched.
    drained: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: drained.append(number))
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
    signal.signal(signal.SIGTERM, leave)
    time.sleep(DRAINED_S if drained else float(seconds))


def leave(*_: object) -> None:
    """Ends at once."""
    sys.exit(0)


def pack(folder: str, run: str) -> None:
    """Writes the archive."""
    state = json.dumps(found(Path(folder, ".hydra"))).encode()
    # The lowest level shrinks databases to a third; higher levels take longer than the transfer.
    with gzip.open(sys.stdout.buffer, "wb", 1) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        entry = tarfile.TarInfo(".hydra/state")
        entry.size = len(state)
        archive.addfile(entry, io.BytesIO(state))
        for path in sorted(files(Path(folder, run))):
            with suppress(FileNotFoundError):  # a temporary file
                add(archive, path, str(path.relative_to(folder)))
    sys.stdout.flush()


def found(state: Path) -> dict[str, Any]:
    """Whether the command has ended, and its exit code unless it was killed."""
    try:
        with (state / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        return {"ended": False, "exit": None}
    exit_code = state / "exit"
    return {"ended": True, "exit": int(exit_code.read_text()) if exit_code.exists() else None}


def files(folder: Path) -> Iterator[Path]:
    """All files of a run, without the logs of databases, whose content the copies contain."""
    for path in folder.rglob("*"):
        of_database = path.name.endswith(("-wal", "-shm")) and path.with_name(path.name[:-4]).exists()
        if path.is_file() and not of_database:
            yield path


def add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """Adds a file; of a database it adds a consistent copy, even while another process writes to it."""
    if path.suffix != ".db":
        archive.add(path, name)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        archive.add(copy, name)


if __name__ == "__main__":
    {"keep": keep, "pack": pack}[sys.argv[1]](*sys.argv[2:])
