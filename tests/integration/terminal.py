"""Runs the ``hydra`` command at a terminal, as a person would, and presses keys."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator
from typing import Any, Final

from tests.integration.command import Hydra

_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LOCAL: Final = 3


class Terminal:
    """A command that has a terminal of so many columns and rows.

    Attributes:
        raw: what it has printed so far.
    """

    def __init__(self, arguments: tuple[object, ...], columns: int, rows: int) -> None:
        self.raw = ""
        self._code: int | None = None
        self._end, its_end = pty.openpty()
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._before = self.modes()
        self._pid = os.fork()
        if self._pid == 0:  # pragma: no cover  # the command from here on
            try:
                os.login_tty(its_end)
                environment = {**os.environ, "TERM": "xterm-256color"}
                environment.pop("COLUMNS", None)
                os.execve(Hydra[0], [*Hydra, *map(str, arguments)], environment)
            finally:
                os._exit(127)
        # Kept open, so that the modes can be read when the command has ended.
        self._its_end = its_end

    def modes(self) -> list[Any]:
        """The terminal's modes, as ``termios.tcgetattr`` has them."""
        return termios.tcgetattr(self._end)

    @property
    def text(self) -> str:
        """What it has printed so far, without what moves the cursor and sets colours."""
        return _CONTROL.sub("", self.raw)

    @property
    def takes_keys(self) -> bool:
        """Whether a key is taken at once, and not shown."""
        return not self.modes()[_LOCAL] & (termios.ICANON | termios.ECHO)

    @property
    def is_as_before(self) -> bool:
        """Whether modes and cursor are as they were."""
        return self.modes() == self._before and self.raw.rfind("\x1b[?25h") >= self.raw.rfind("\x1b[?25l")

    def wait_for(self, text: str, within_s: float = 60.0, after: int = 0) -> int:
        """Reads until the text has been printed behind so many characters of :attr:`text`; where it ends there."""
        end = time.monotonic() + within_s
        while (found := self.text.find(text, after)) < 0:
            assert time.monotonic() < end, f"after {within_s} s still waiting for {text!r}:\n{self.text[-2000:]}"
            self._read()
        return found + len(text)

    def press(self, keys: str) -> None:
        """Presses these."""
        os.write(self._end, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """Sends the command a signal."""
        os.kill(self._pid, number)

    def wait(self, within_s: float = 60.0) -> int:
        """Its exit code, when it has ended by itself."""
        end = time.monotonic() + within_s
        while self._code is None:
            assert time.monotonic() < end, f"after {within_s} s still going on:\n{self.text[-2000:]}"
            self._read()
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        self._read()
        return self._code

    def close(self) -> None:
        """Ends it, if it goes on."""
        if self._code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._end)
        os.close(self._its_end)

    def _read(self) -> None:
        while select.select([self._end], [], [], 0.05)[0]:
            self.raw += os.read(self._end, 65_536).decode(errors="replace")


@contextlib.contextmanager
def terminal(*arguments: object, columns: int = 80, rows: int = 24) -> Iterator[Terminal]:
    """Starts a command at a terminal; nothing of it is left when the test ends."""
    its = Terminal(arguments, columns, rows)
    try:
        yield its
    finally:
        its.close()
