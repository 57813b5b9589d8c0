"""Where Hydra keeps things of its own on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """What can be fetched again: ``$XDG_CACHE_HOME/hydra``, or ``~/.cache/hydra``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hydra"


def state_folder() -> Path:
    """What outlives a run: ``$XDG_STATE_HOME/hydra``, or ``~/.local/state/hydra``."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "hydra"
