"""Where Hydra keeps things of its own on this machine, and what its brokers keep there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks`` (stat(2)), whatever the file system's own is."""


def state_folder() -> Path:
    """What outlives a run: ``$XDG_STATE_HOME/hydra``, or ``~/.local/state/hydra``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hydra"


def stored_bytes(folder: Path, topic: str) -> int:
    """What the partitions of a topic take on the disk, of all brokers whose data is somewhere below a folder."""
    total = 0
    for partition, _, names in os.walk(folder):
        if not Path(partition).name.startswith(f"{topic}-"):
            continue
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # the broker has just removed it
                total += Path(partition, name).stat().st_blocks * _BLOCK_BYTES
    return total
