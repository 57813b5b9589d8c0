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
import subprocess
import termios
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.integration.command import Hydra
from tests.suite.waiting import LONG_S, wait_until

_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LOCAL: Final = 3


class Terminal:
    """A command that has a terminal of this many columns and rows.

    Attributes:
        raw: what it has printed so far.
    """

    def __init__(self, arguments: tuple[object, ...], columns: int, rows: int) -> None:
        self.raw = ""
        # Its end is kept open, so that the modes can be read when the command has ended.
        self._end, self._its_end = pty.openpty()
        fcntl.ioctl(self._its_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._before = self.modes()
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        self._process = subprocess.Popen(
            [*Hydra, *map(str, arguments)],
            env={**environment, "TERM": "xterm-256color"},
            preexec_fn=lambda: os.login_tty(self._its_end),
        )

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

    def wait_for(self, text: str, after: int = 0) -> int:
        """Reads until the text has been printed behind this many characters of :attr:`text`; where it ends there."""
        self._until(lambda: self.text.find(text, after) >= 0, repr(text))
        return self.text.find(text, after) + len(text)

    def press(self, keys: str) -> None:
        """Presses these."""
        os.write(self._end, keys.encode())

    def signal(self, number: signal.Signals) -> None:
        """Sends the command a signal."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Its exit code, when it has ended by itself."""
        self._until(lambda: self._process.poll() is not None, "the end of the command")
        return self._process.wait()

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, LONG_S, between=self._read, saw=lambda: self.text[-2000:])
        self._read()

    def close(self) -> None:
        """Ends it, if it continues."""
        self._process.kill()
        self._process.wait()
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
