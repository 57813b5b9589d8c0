"""Handles Ctrl-C, SIGTERM and a closed terminal: the first ends the run in order, a second Ctrl-C exits at once."""

from __future__ import annotations

import errno
import os
import signal
import sys
import termios
from collections.abc import Callable
from typing import TYPE_CHECKING

from hydra.errors import EXIT_INTERRUPTED, Terminated

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_OUTPUTS = (1, 2)
_SOON_S = 0.001


class _CtrlC(KeyboardInterrupt):  # the name has no "Error", because this is none
    """The exception for SIGINT.

    After a plain KeyboardInterrupt inside ``exec`` of a text, as dataclasses use it, Python kills itself with SIGINT
    when it ends, even if that was caught (``unhandled_keyboard_interrupt`` in its sources). A subclass avoids this.
    """


def interrupt_on_the_first() -> None:
    """Makes each signal raise KeyboardInterrupt in the main thread; SIGHUP stays ignored if nohup ignores it."""
    sys.unraisablehook = _delivered_again(sys.unraisablehook)
    signal.signal(signal.SIGINT, _raising(_CtrlC))
    signal.signal(signal.SIGTERM, _raising(Terminated))
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        terminals = [number for number in _OUTPUTS if os.isatty(number)]
        signal.signal(signal.SIGHUP, lambda *_: _hung_up(terminals))


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


def leave_at_once_on_the_next() -> None:
    """Makes the next signal end this process at once; groups and servers end when their lifelines close."""
    for number in _SIGNALS:
        signal.signal(number, _leave)


def _delivered_again(hook: Callable[[UnraisableHookArgs], object]) -> Callable[[UnraisableHookArgs], object]:
    """A hook that sends an interrupt again if Python has discarded it.

    A signal may arrive while Python executes ``__del__`` or the callback of a weak reference, as in each import. Python
    prints and discards what such code raises; the command would continue.
    """

    def deliver(unraisable: UnraisableHookArgs) -> None:
        if isinstance(unraisable.exc_value, _CtrlC | Terminated):
            # Python discards what this hook raises, too: the signal has to arrive after the hook.
            signal.signal(signal.SIGALRM, _raising(type(unraisable.exc_value)))
            signal.setitimer(signal.ITIMER_REAL, _SOON_S)
        else:
            hook(unraisable)

    return deliver


def _hung_up(terminals: list[int]) -> None:
    # Kernel and shell both send SIGHUP when a terminal closes: the second one is not a second request.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # The terminal cannot be written to any more; the run's own tables still can.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in terminals:
        os.dup2(nowhere, number)
    raise Terminated


def _raising(interrupt: type[KeyboardInterrupt]) -> Callable[..., None]:
    """A signal handler that raises this interrupt."""

    def handle(*_: object) -> None:
        raise interrupt

    return handle


def _leave(*_: object) -> None:
    os._exit(EXIT_INTERRUPTED)
