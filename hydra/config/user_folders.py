"""Hydra's folders for its user, on the controller's machine and on agents; imports the standard library only."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder for files that can be made again: ``$XDG_CACHE_HOME/hydra``, or ``~/.cache/hydra``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "hydra"


def state_folder() -> Path:
    """The folder for files that outlive a run: ``$XDG_STATE_HOME/hydra``, or ``~/.local/state/hydra``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hydra"
