"""Real-time priority for what is timed to a fraction of a millisecond, where that may be had (as root, mostly)."""

from __future__ import annotations

import os
import subprocess
from functools import cache

_PREFIX = ("chrt", "--fifo", "1")


@cache
def _allowed() -> bool:
    try:
        return subprocess.run([*_PREFIX, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def first(command: str) -> str:
    """The command so that it runs before all else on this machine; as it is where that is not allowed."""
    return " ".join([*_PREFIX, command]) if _allowed() else command


def first_thread() -> None:
    """The same for the calling thread."""
    if _allowed():
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
