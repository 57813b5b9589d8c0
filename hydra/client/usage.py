"""What a process used of its host, by getrusage."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

from hydra.model import ProcessUsage

_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = resource.getpagesize()


def resident_bytes() -> int:
    """Memory that this process has resident now."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES


class UsageMeter:
    """CPU since it was made; memory is the process's peak, or the greatest of its children's.

    Args:
        children: whether it is of those children that have ended and been waited for, with theirs.
    """

    def __init__(self, *, children: bool = False) -> None:
        self._who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
        self._begin = resource.getrusage(self._who)

    def read(self) -> ProcessUsage:
        """The usage since the meter was made."""
        now = resource.getrusage(self._who)
        return ProcessUsage(
            cpu_user_s=now.ru_utime - self._begin.ru_utime,
            cpu_system_s=now.ru_stime - self._begin.ru_stime,
            max_rss_bytes=now.ru_maxrss * 1024,
        )
