"""Single keys from a terminal, without Enter and without waiting; the terminal is left as it was."""

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
"""Where the local modes stand in what ``tcgetattr`` returns."""
_BY_LINE: Final = termios.ICANON | termios.ECHO


class Keyboard:
    """The keys that are pressed at a terminal, as long as this process is in its foreground.

    Args:
        descriptor: of what may be a terminal; 0 is standard input.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._before: list[Any] | None = None
        # The thread of a live view asks for keys while another one closes.
        self._lock = threading.RLock()

    def open(self) -> bool:
        """From now on keys come one by one and are not shown; False where there is no terminal to ask.

        What was typed before was not meant for us.
        """
        with self._lock:
            if not (self._ours() and self._by_key()):
                return False
            with contextlib.suppress(termios.error), _in_background_too():
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            return True

    def pressed(self) -> str:
        """The key that was pressed since the last time, once or again and again; does not wait.

        "" if none was, or several: that is a word that was meant for somebody else, or a key that sends a sequence.
        """
        with self._lock:
            if self._before is None or not self._ours():
                return ""
            # A shell that had us stopped for a while has put its own modes back.
            self._by_key()
            try:
                ready, _, _ = select.select([self._descriptor], [], [], 0)
                text = os.read(self._descriptor, _ENOUGH).decode("ascii", "ignore") if ready else ""
            except OSError:  # it is closed
                return ""
            return text[0] if len({*text}) == 1 else ""

    def close(self) -> None:
        """Leaves the terminal as it was; may be called twice, and again where it was interrupted."""
        with self._lock:
            if self._before is not None and self._ours():
                with contextlib.suppress(termios.error), _in_background_too():
                    termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
            self._before = None

    def _ours(self) -> bool:
        """Whether it is a terminal, and this process is in its foreground: others may neither read nor change it."""
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
        # Somebody may have set it so before: then there is nothing to put back.
        self._before = self._before or now
        return True


@contextlib.contextmanager
def _in_background_too() -> Iterator[None]:
    """Nobody stops us for changing a terminal, should we have been sent to the background this very moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
