"""The small process between Hydra and a server that Hydra started: however Hydra ends, nothing is left behind.

The owner runs this program by its path, isolated and without site-packages, so the program imports the standard library
only. It reads its standard input, a pipe whose other end only the owner holds:

- ``Q``: SIGTERM to the server, SIGKILL after a grace, remove the folder, exit.
- ``D``: detach; from now on only SIGTERM ends it (a server that outlives its command).
- end of file, or another parent than at the start: the owner has ended. SIGKILL, remove the folder, exit.

It writes ``pid N`` once to standard output, and ``exit STATUS`` if the server ends by itself; then it keeps the folder,
so that the owner can read the log, until the owner has ended or sends ``Q``.

A server starts only after this program has, so it imports little: ``argparse``, ``subprocess``, ``pathlib`` and
``shutil`` together take twice as long as the start of Python.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

PR_SET_PDEATHSIG = 1
POLL_S = 0.2
LOOK_EVERY_S = 0.005
NOT_STARTED = 127
"""The exit status of a command that could not be started; the reason is in its log."""


def main(folder: str, log: str, owner: str, grace_s: str, *words: str) -> int:
    """Starts the command and waits for its end.

    Args:
        folder: working folder of the command; removed at the end.
        log: file for the output of the command.
        owner: pid of the process that started this one.
        grace_s: seconds between SIGTERM and SIGKILL.
        words: the command.
    """
    is_stopping = False

    def stop(*_: object) -> None:
        nonlocal is_stopping
        is_stopping = True

    signal.signal(signal.SIGTERM, stop)
    # The owner handles Ctrl-C and a closed terminal, and sends what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    command = CommandProcess(words, folder, log)
    _report(f"pid {command.pid}")
    gently = _watch(command, int(owner), lambda: is_stopping)
    command.end(float(grace_s) if gently else 0.0)

    import shutil  # not needed before

    shutil.rmtree(folder, ignore_errors=True)
    return 0


class CommandProcess:
    """The running command.

    Attributes:
        pid: its process id.
        status: its exit status in the form of ``subprocess``; None: it is not known to have ended.
    """

    def __init__(self, words: tuple[str, ...], folder: str, log: str) -> None:
        self.status: int | None = None
        libc, supervisor = ctypes.CDLL(None), os.getpid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self.pid = os.fork()
        if self.pid:
            os.close(output)
            return
        try:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:  # the supervisor died before the line above took effect
                os._exit(1)
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
                signal.signal(ignored, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(folder)
            # Java decodes names with its locale; in plain C it cannot even open a folder with an umlaut in its name.
            os.execvpe(words[0], words, {**os.environ, "LC_ALL": "C.UTF-8"})  # noqa: S606  # the owner's command
        except OSError as e:
            os.write(output, f"{words[0]}: {e.strerror}\n".encode())
        finally:
            os._exit(NOT_STARTED)

    def has_ended(self) -> bool:
        """Whether the command has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def end(self, grace_s: float) -> None:
        """Ends the command, by SIGKILL if SIGTERM has not ended it after ``grace_s``."""
        if grace_s > 0 and not self.has_ended():
            os.kill(self.pid, signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while not self.has_ended() and time.monotonic() < deadline:
                time.sleep(LOOK_EVERY_S)
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def _watch(command: CommandProcess, owner: int, is_stopping: Callable[[], bool]) -> bool:
    """Waits until the server has to end; returns whether it has time to end in order."""
    attached, reported = True, False
    while not is_stopping():
        if attached:
            readable, _, _ = select.select([0], [], [], POLL_S)
            word = os.read(0, 1) if readable else None
            if word == b"Q":
                return True
            if word == b"D":
                attached = False
                # A process that waits for the end of the owner's standard error must not wait for this process.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            elif word is not None or os.getppid() != owner:
                return False
        else:
            time.sleep(POLL_S)
        if not reported and command.has_ended():
            _report(f"exit {command.status}")
            reported = True
            if not attached:
                return False
    return True


def _report(line: str) -> None:
    with suppress(OSError):  # the owner has ended, which the loop will notice
        os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
