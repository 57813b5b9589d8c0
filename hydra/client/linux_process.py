"""What Linux gives and refuses a process: signals, descriptors, CPU time, regular files, and the limits of its host."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import resource
import signal
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from hydra.model import ProcessUsage, parse_cpus
from hydra.model.machine import IN_USE, LOCAL_LIMITS
from hydra.wire import CPUS_VARIABLE

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_TIMERSLACK: Final = 29
_TIMER_SLACK_NS: Final = 1000
_CPUCLOCK_SCHED: Final = 2
"""Of the clocks that the kernel has for each process, the one that counts all its CPU time."""
_libc: Final = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Asks the kernel to kill this process when its parent thread ends; exits at once if ``parent`` has ended."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        os._exit(1)


def confine_to(text: str) -> None:
    """Confines this process, which has one thread, and its children to a list of CPUs; "" is any CPUs.

    Raises:
        ValueError: the text is no list, or this host has not all of these CPUs for the process.
    """
    if not text:
        return
    try:
        cpus = parse_cpus(text)
        os.sched_setaffinity(0, cpus)
    except ValueError as e:
        raise ValueError(f"the environment variable {CPUS_VARIABLE} is {text}: {e}") from None
    except OSError as e:
        raise ValueError(f"the environment variable {CPUS_VARIABLE} is {text}: {e.strerror}") from None
    # The kernel leaves out CPUs that the control group does not have.
    if set(cpus) != os.sched_getaffinity(0):
        raise ValueError(
            f"the environment variable {CPUS_VARIABLE} is {text}: this process has not all of these CPUs here"
        )


@contextlib.contextmanager
def running_on(cpus: Collection[int]) -> Iterator[None]:
    """Confines this thread to these CPUs, and so what it starts meanwhile; does nothing if there are none."""
    before = os.sched_getaffinity(0)
    if cpus:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        if cpus:
            os.sched_setaffinity(0, before)


def exact_timers() -> None:
    """Asks the kernel not to add its 50 µs to this thread's waits with a time limit."""
    if _libc.prctl(_PR_SET_TIMERSLACK, _TIMER_SLACK_NS, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_TIMERSLACK) failed")


def raise_open_files() -> None:
    """Raises this process's soft limit of open files to the hard limit; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def sockets_folder() -> str:
    """The folder in which each group makes a folder for the socket of its clients."""
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108  # only this user can enter the new folder


def process_cpu_ns(pid: int) -> int | None:
    """The CPU time of any process with all its threads, in ns; None if it has ended, or the kernel has no such clock.

    It takes a thirtieth of the time of reading ``/proc/PID/stat``.
    """
    try:
        return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)  # the id of clock_getcpuclockid(3)
    except OSError:
        return None


def thread_count() -> int:
    """The number of threads of this process."""
    return len(list(Path("/proc/self/task").iterdir()))


_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = resource.getpagesize()


def resident_bytes() -> int:
    """The resident memory of this process now, bytes."""
    return int(_STATM.read_text().split()[1]) * _PAGE_BYTES


class UsageMeter:
    """CPU since the meter was made, and the peak of resident memory: of this process, or of its largest child.

    Args:
        children: measures the children that have ended and been waited for, with their descendants.
    """

    def __init__(self, *, children: bool = False) -> None:
        self._who = resource.RUSAGE_CHILDREN if children else resource.RUSAGE_SELF
        self._begin = resource.getrusage(self._who)

    def read(self) -> ProcessUsage:
        """CPU since the meter was made, and memory."""
        now = resource.getrusage(self._who)
        return ProcessUsage(
            cpu_user_s=now.ru_utime - self._begin.ru_utime,
            cpu_system_s=now.ru_stime - self._begin.ru_stime,
            max_rss_bytes=now.ru_maxrss * 1024,
        )


def local_limit(error: BaseException) -> str:
    """The name of the limit of this host that caused an error; "" if another end or the network caused it.

    Some libraries pass on only the kernel's text for its error.
    """
    name = errno.errorcode.get(getattr(error, "errno", None) or 0, "")
    return name if name in LOCAL_LIMITS else local_limit_in(str(error))


def local_limit_in(text: str) -> str:
    """The limit whose name, or whose text as the C library has it, is part of a client's text; "": there is none.

    C++ clients: ``native/src/common/local_limits.cc``.
    """
    # The text of a server's bind that failed is no text of a limit.
    words = {name: os.strerror(getattr(errno, name)) for name in LOCAL_LIMITS if name != IN_USE}
    return next((name for name in LOCAL_LIMITS if name in text or words.get(name, name) in text), "")


def opened(path: str | Path) -> BinaryIO:
    """Opens a regular file to read.

    Nothing else will do: Hydra reads a file again for each of its uses, which finds a pipe empty, and opening a pipe
    would wait for its other end.

    Raises:
        OSError: the file cannot be opened, or it is a pipe or a device.
    """
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file
