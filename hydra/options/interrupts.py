"""Handles Ctrl-C and signals like it: the first ends the run in order, a later one ends it at once."""

from __future__ import annotations

import errno
import os
import signal
import sys
import termios
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from hydra.errors import EXIT_INTERRUPTED, Terminated

if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
_OUTPUTS = (1, 2)
_SOON_S = 0.001
_ONE_PRESS_S: Final = 1.0
"""Signals that follow the first within this time are the same request: a key that bounces, or a shell that sends
SIGINT to the process group of a command that gets it from its parent, too."""
_AT_ONCE: Final = "hydra: ended at once"
_BY_THEMSELVES: Final = "the run's processes on its hosts end by themselves within a minute"

Left = Callable[[], Sequence[str]]
"""Returns a line for each thing that would be left if the process ended now, with what removes it; asks no server."""


class CtrlC(KeyboardInterrupt):  # the name has no "Error", because this is none
    """The exception for SIGINT.

    After a plain KeyboardInterrupt inside ``exec`` of a text, as dataclasses use it, Python kills itself with SIGINT
    when it ends, even if that was caught (``unhandled_keyboard_interrupt`` in its sources). A subclass avoids this.
    """


class Interrupts:
    """The handler of this process's signals.

    A signal raises KeyboardInterrupt in the main thread. During a tear-down it waits instead: what the run has made on
    servers of the user is removed first. Another signal ends the process at once if it comes at least a second later.

    Attributes:
        early: what the user reads about an interrupt before a run begins; "" from then on, as the run prints its own
            text.

    Arguments:
        clock_s: a clock in seconds.
        leave: ends the process at once, and prints these lines before.
    """

    def __init__(
        self, clock_s: Callable[[], float] = time.monotonic, leave: Callable[[Sequence[str]], None] | None = None
    ) -> None:
        self.early = ""
        self._clock_s = clock_s
        self._leave = leave or _leave
        self._first_s: float | None = None
        self._waiting: type[KeyboardInterrupt] | None = None
        self._left: Left | None = None
        self._holds = self._ends = False

    def __call__(self, number: int, _: FrameType | None = None) -> None:
        """Handles one signal."""
        first_s, now_s = self._first_s, self._clock_s()
        if first_s is not None and now_s - first_s < _ONE_PRESS_S:
            return
        self._first_s = now_s
        if self._ends or (self._holds and first_s is not None):
            self._leave([] if self._ends else self._lines())
        else:
            self.deliver(CtrlC if number == signal.SIGINT else Terminated)

    def deliver(self, interrupt: type[KeyboardInterrupt]) -> None:
        """Raises an interrupt, or lets it wait for the end of the tear-down."""
        if not self._holds:
            raise interrupt
        self._waiting = interrupt

    def hold(self, left: Left) -> None:
        """Begins a tear-down: an interrupt waits for its end."""
        self._left, self._holds = left, True

    def release(self) -> None:
        """Ends a tear-down."""
        self._left, self._holds = None, False

    def raise_waiting(self) -> None:
        """Raises an interrupt that came during a tear-down."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            raise waiting

    def end(self) -> None:
        """Ends the command: nothing is left to remove, and the next signal ends the process at once."""
        self._ends = True

    def _lines(self) -> list[str]:
        left = self._left() if self._left is not None else []
        return [f"{_AT_ONCE}: {line}" for line in left] or [f"{_AT_ONCE}: {_BY_THEMSELVES}"]


def present() -> Interrupts:
    """The handler of this process; one without an effect in a process that is no command, such as a notebook."""
    handler = signal.getsignal(signal.SIGINT)
    return handler if isinstance(handler, Interrupts) else Interrupts()


def interrupt_on_the_first() -> None:
    """Makes each signal raise KeyboardInterrupt in the main thread; SIGHUP stays ignored if nohup ignores it."""
    interrupts = Interrupts()
    sys.unraisablehook = _delivered_again(sys.unraisablehook, interrupts)
    for number in _SIGNALS:
        signal.signal(number, interrupts)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        terminals = [number for number in _OUTPUTS if os.isatty(number)]
        signal.signal(signal.SIGHUP, lambda number, _: _hung_up(terminals, interrupts, number))


def ignore_signals() -> None:
    """Ignores all signals from now on: during Python's exit a signal could only change the exit code."""
    for number in (*_SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def hung_up() -> bool:
    """Whether the terminal of the output is closed; this can be seen before SIGHUP arrives."""
    for number in _OUTPUTS:
        try:
            termios.tcgetattr(number)
        except termios.error as e:
            if e.args[0] == errno.EIO:
                return True
    return False


def _delivered_again(
    hook: Callable[[UnraisableHookArgs], object], interrupts: Interrupts
) -> Callable[[UnraisableHookArgs], object]:
    """A hook that sends an interrupt again if Python has discarded it.

    A signal may arrive while Python executes ``__del__`` or the callback of a weak reference, as in each import. Python
    prints and discards what such code raises; the command would continue.
    """

    def deliver(unraisable: UnraisableHookArgs) -> None:
        if isinstance(error := unraisable.exc_value, CtrlC | Terminated):
            kind = type(error)
            # Python discards what this hook raises, too: the signal has to arrive after the hook.
            signal.signal(signal.SIGALRM, lambda *_: interrupts.deliver(kind))
            signal.setitimer(signal.ITIMER_REAL, _SOON_S)
        else:
            hook(unraisable)

    return deliver


def _hung_up(terminals: list[int], interrupts: Interrupts, number: int) -> None:
    # Kernel and shell both send SIGHUP when a terminal closes: the second one is not a second request.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # The terminal cannot be written to any more; the run's own tables still can.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for terminal in terminals:
        os.dup2(nowhere, terminal)
    interrupts(number)


def _leave(lines: Sequence[str]) -> None:
    """Ends this process; groups and servers end when their lifelines close."""
    try:
        # Not through sys.stderr: the signal may have come within a call of it.
        os.write(2, "".join(f"{line}\n" for line in lines).encode())
    finally:
        os._exit(EXIT_INTERRUPTED)
