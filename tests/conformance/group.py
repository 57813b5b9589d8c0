"""A group program under test: started from a command line, watched through /proc, always cleaned up."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence

import psutil

LIFELINE = "HYDRA_LIFELINE"


@contextlib.contextmanager
def no_more_files(pid: int) -> Iterator[None]:
    """The process keeps the files and sockets that it has, and gets no further ones."""
    process = psutil.Process(pid)
    before = process.rlimit(psutil.RLIMIT_NOFILE)
    # No number of a file that may be closed meanwhile is below it.
    process.rlimit(psutil.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.rlimit(psutil.RLIMIT_NOFILE, before)


class GroupProgram:
    """One run of ``COMMAND KIND ARGUMENTS…`` with a lifeline, as the local engine starts it."""

    def __init__(
        self, command: str, arguments: Sequence[str], env: Mapping[str, str], *, lifeline: bool = True
    ) -> None:
        self._read, self._write = os.pipe() if lifeline else (-1, -1)
        own = {key: value for key, value in os.environ.items() if not key.startswith("HYDRA_")}
        given = {LIFELINE: str(self._read)} if lifeline else {}
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed in close()
        self.process = subprocess.Popen(
            [*shlex.split(command), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            env={**own, **given, **env},
            pass_fds=(self._read,) if lifeline else (),
            start_new_session=True,
        )
        if lifeline:
            os.close(self._read)
        self.pid = self.process.pid

    def members(self) -> list[psutil.Process]:
        """Every living process of the group: the program is a session leader, and no process leaves its session."""
        found = []
        for pid in psutil.pids():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(pid) == self.pid and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                    found.append(psutil.Process(pid))
        return found

    def children(self) -> list[psutil.Process]:
        """The living members without the parent."""
        return [process for process in self.members() if process.pid != self.pid]

    def cut_lifeline(self) -> None:
        """What happens when the process that launched the group dies."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def exit_code(self) -> int | None:
        """The parent's exit code, None while it runs."""
        return self.process.poll()

    def stderr(self) -> str:
        """The group's stderr so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def close(self) -> None:
        """Ends whatever is left and frees what this object holds."""
        for process in self.members():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.cut_lifeline()
        self._stderr.close()
