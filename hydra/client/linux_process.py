"""The few facts of Linux processes that a group, and the command that starts it, live by."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_TIMERSLACK: Final = 29
_TIMER_SLACK_NS: Final = 1000
_libc: Final = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when its parent thread ends; exits at once if ``parent`` is gone already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def exact_timers() -> None:
    """Asks the kernel not to add its 50 µs to every wait of this thread for a time that is due."""
    if _libc.prctl(_PR_SET_TIMERSLACK, _TIMER_SLACK_NS, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_TIMERSLACK) failed")


def raise_open_files() -> None:
    """Raises this process's limit of open files to the hard one; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def thread_count() -> int:
    """Threads of this process."""
    return len(list(Path("/proc/self/task").iterdir()))
