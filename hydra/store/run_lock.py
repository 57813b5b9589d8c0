"""One run at a time in a run directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from hydra.errors import RunDirectoryError


@contextlib.contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Keeps other commands from writing the run in this directory; the lock ends with the process at the latest.

    The directory itself is locked, so that no file is needed. A file system that has no locks is used without.

    Raises:
        RunDirectoryError: another command is writing it.
    """
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunDirectoryError(
                f"another command is writing the run in {directory}", "wait for its end, or choose another folder"
            ) from None
        except OSError:
            pass
        yield
    finally:
        os.close(folder)
