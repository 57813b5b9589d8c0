"""A command under the supervisor process (see supervisor.py), as its owner controls it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hydra.client import supervisor
from hydra.client.linux_process import running_on

START_TIMEOUT_S: Final = 10.0
KILL_TIMEOUT_S: Final = 2.0
LOG_LINES: Final = 8
_STACK: Final = ("\tat ", "\t... ")


def tail(log: Path) -> str:
    """The last lines of a command's log, joined to one, without Java's stack traces."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.is_file() else []
    causes = [line for line in lines if not line.startswith(_STACK)]
    return " / ".join(causes[-LOG_LINES:]) or "the log of the process is empty"


class SupervisedProcess:
    """A running command that ends with its owner; its folder is removed then.

    Arguments:
        command: the program and its arguments.
        folder: the command's working directory, removed when it is stopped or its owner has ended.
        log: file for the command's output.
        grace_s: seconds that ``stop`` leaves the command between SIGTERM and SIGKILL.
        cpus: the CPUs on which the command runs; (): those of this thread.

    Attributes:
        status: exit status of a command that ended by itself, in the form of ``subprocess``.

    Raises:
        OSError: the supervisor or the command could not start.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, log: Path, grace_s: float = 1.5, cpus: Sequence[int] = ()
    ) -> None:
        self._grace_s = grace_s
        self.status: int | None = None
        self._heard = b""
        # By its path, isolated and without site: it starts soon and cannot import the wrong hydra. In a session of its
        # own, neither it nor the command receives Ctrl-C.
        with running_on(cpus):
            self._guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", supervisor.__file__),
                    *(str(folder), str(log), str(os.getpid()), str(grace_s), *command),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        self.pid: Final = self._guard.pid
        """The supervisor's process id."""
        self.command_pid: Final = self._first_word()

    def wait_for_end(self, timeout_s: float) -> bool:
        """Waits at most ``timeout_s`` for the command to end by itself; returns whether it has."""
        self._listen(timeout_s)
        return self.status is not None

    def detach(self) -> None:
        """Lets supervisor and command outlive this process: from now on SIGTERM to the supervisor ends them."""
        self._send(b"D")

    def kill(self) -> None:
        """Kills the command by SIGKILL and waits for its end; the supervisor stays, and still removes the folder."""
        # The kernel may have given the id of a command that has ended to another process.
        if not self.wait_for_end(0.0):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.command_pid, signal.SIGKILL)
            self.wait_for_end(KILL_TIMEOUT_S)

    def abandon(self) -> None:
        """Kills command and supervisor at once by SIGKILL, if they have not ended; keeps the folder."""
        # PR_SET_PDEATHSIG ends the command too.
        self._guard.kill()
        self._guard.wait()
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                pipe.close()

    def stop(self) -> None:
        """Ends command and supervisor, with SIGKILL after the grace; may be called twice."""
        if self._guard.poll() is None:
            self._send(b"Q")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._guard.wait(self._grace_s + 2.0)
        self.abandon()

    def _first_word(self) -> int:
        deadline = time.monotonic() + START_TIMEOUT_S
        while b"\n" not in self._heard and time.monotonic() < deadline:
            if not self._listen(deadline - time.monotonic()):
                break
        if not self._heard.startswith(b"pid "):
            self.stop()
            raise OSError("the supervisor of the server did not start")
        return int(self._heard.split()[1])

    def _listen(self, timeout_s: float) -> bool:
        """Reads the supervisor's output; False if there was none, or the supervisor has ended."""
        out = self._guard.stdout
        if out is None or out.closed or self.status is not None:
            return False
        readable, _, _ = select.select([out], [], [], max(0.0, timeout_s))
        reply = os.read(out.fileno(), 256) if readable else b""
        self._heard += reply
        words = self._heard.split()
        if b"exit" in words and len(words) > words.index(b"exit") + 1:
            self.status = int(words[words.index(b"exit") + 1])
        elif readable and not reply:
            self.status = -1  # the supervisor has ended, and the command with it
        return bool(reply)

    def _send(self, word: bytes) -> None:
        pipe = self._guard.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(OSError):  # the supervisor has ended already
                pipe.write(word)
