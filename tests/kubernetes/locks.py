"""Locks between processes: on files, so that they end with whoever holds them."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MACHINE: Final = Path("/run/lock/hydra-rig")
"""Locks for what this machine has only once."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits until nobody else holds the lock of that file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
