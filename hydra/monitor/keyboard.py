"""Single key presses at a terminal, read without Enter and without waiting."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import threading
from collections.abc import Iterator
from typing import Any, Final

_ENOUGH: Final = 64
_LOCAL: Final = 3
"""The position of the local modes in the list that ``tcgetattr`` returns."""
_BY_LINE: Final = termios.ICANON | termios.ECHO


class Keyboard:
    """The keys pressed at a terminal while this process is in its foreground.

    Args:
        descriptor: a file descriptor, which need not be a terminal; 0 is standard input.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = None
        # The thread of the live view asks for keys while another thread closes the keyboard.
        self._lock = threading.RLock()

    def open(self) -> bool:
        """Makes the terminal deliver keys one by one without echo; False if there is no terminal.

        Input typed before is dropped, since it was not meant for Hydra.
        """
        with self._lock:
            if not (self._is_foreground() and self._by_key()):
                return False
            with contextlib.suppress(termios.error), _in_background_too():
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            return True

    def pressed(self) -> str:
        """The key that was pressed since the last call, once or several times; does not wait.

        "" if no key was pressed, or different ones: they are text for another program, or one key that sends several
        characters.
        """
        with self._lock:
            if self._before is None or not self._is_foreground():
                return ""
            # A shell restores its own terminal modes while it has this process stopped.
            self._by_key()
            try:
                ready, _, _ = select.select([self._descriptor], [], [], 0)
                text = os.read(self._descriptor, _ENOUGH).decode("ascii", "ignore") if ready else ""
            except OSError:  # it is closed
                return ""
            return text[0] if len({*text}) == 1 else ""

    def close(self) -> None:
        """Restores the modes of the terminal; may be called twice, and again if it was interrupted."""
        with self._lock:
            if self._before is not None and self._is_foreground():
                with contextlib.suppress(termios.error), _in_background_too():
                    termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
            self._before = None

    def _is_foreground(self) -> bool:
        """Whether it is a terminal with this process in the foreground; others may neither read nor change it."""
        try:
            return os.isatty(self._descriptor) and os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False

    def _by_key(self) -> bool:
        try:
            now = termios.tcgetattr(self._descriptor)
            if now[_LOCAL] & _BY_LINE:
                self._before = self._before or [*now]
                now[_LOCAL] &= ~_BY_LINE
                with _in_background_too():
                    termios.tcsetattr(self._descriptor, termios.TCSANOW, now)
        except termios.error:
            return False
        # If the terminal had these modes before, they are also the ones to restore.
        self._before = self._before or now
        return True


@contextlib.contextmanager
def _in_background_too() -> Iterator[None]:
    """Blocks SIGTTOU, which stops a background process that changes the terminal: this one may just have become one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
