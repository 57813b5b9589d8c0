"""Limits of this process behind an error: then neither a server, a program nor a file of the user is to blame."""

from __future__ import annotations

import errno
import resource
import subprocess
from collections.abc import Iterator
from typing import Final, NamedTuple

from hydra.errors import HydraError


class _Limit(NamedTuple):
    """A limit of a process: its number, what it limits, and the shell's flag that raises it, with its unit."""

    number: int
    what: str
    flag: str
    unit: int = 1


_FILES: Final = _Limit(resource.RLIMIT_NOFILE, "open files", "-n")
_MEMORY: Final = _Limit(resource.RLIMIT_AS, "kB of virtual memory", "-v", 1024)
_PROCESSES: Final = _Limit(resource.RLIMIT_NPROC, "processes of this user", "-u")
_FILE_SIZE: Final = _Limit(resource.RLIMIT_FSIZE, "kB of one file", "-f", 1024)
_BY_ERROR: Final = {errno.EFBIG: _FILE_SIZE, errno.EMFILE: _FILES, errno.ENOMEM: _MEMORY, errno.EAGAIN: _PROCESSES}
_HOST_FILES: Final = (
    "this machine has no more open files (fs.file-max); end other processes, or raise it: sysctl fs.file-max"
)
_NO_MEMORY: Final = "this machine has no more memory; end other processes, or use fewer clients"
_SQLITE_IOERR: Final = 10
"""sqlite3.SQLITE_IOERR: few commands need that module."""
_UNRELATED: Final = (ModuleNotFoundError, subprocess.CalledProcessError, subprocess.TimeoutExpired)
_LACKS_MEMORY: Final = (MemoryError, ImportError, subprocess.SubprocessError)
"""Errors that too little virtual memory causes, in addition to its own: a library or a program cannot be loaded."""


def limit_behind(error: BaseException) -> str:
    """The limit that caused an error, and what to do; "" if no limit did."""
    for each in _chain(error):
        # Errors of ZeroMQ have the number, and are no OSErrors.
        number = getattr(each, "errno", None)
        if number == errno.ENFILE:
            return _HOST_FILES
        limit = _BY_ERROR.get(number) if isinstance(number, int) else None
        if limit is _PROCESSES and isinstance(error, HydraError):
            continue  # a lock that another command holds has this number, too
        # SQLite gives no reason for an error of a file.
        if getattr(each, "sqlite_errorcode", 0) & 0xFF == _SQLITE_IOERR:
            limit = _FILE_SIZE
        if isinstance(each, _LACKS_MEMORY) and not isinstance(each, _UNRELATED):
            limit = _MEMORY if _of(_MEMORY) is not None else None
            if limit is None and isinstance(each, MemoryError):
                return _NO_MEMORY
        if limit is not None:
            most = _of(limit)
            if most is None:
                return _NO_MEMORY if limit is _MEMORY else ""
            return f"ulimit {limit.flag} is {most} ({limit.what}), which is too little for this command; raise it"
    return ""


def _of(limit: _Limit) -> int | None:
    """The value of a limit; None: there is none."""
    soft, _ = resource.getrlimit(limit.number)
    return None if soft == resource.RLIM_INFINITY else soft // limit.unit


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it, the first cause last; a chain may lead back to an error that is in it already."""
    each: BaseException | None = error
    seen = set[int]()
    while each is not None and id(each) not in seen:
        yield each
        seen.add(id(each))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
