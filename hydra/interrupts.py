"""What Ctrl-C and SIGTERM do: the first ends the run in order, a second one leaves at once."""

from __future__ import annotations

import os
import signal

from hydra.errors import EXIT_INTERRUPTED

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def interrupt_on_the_first() -> None:
    """Both signals raise KeyboardInterrupt in the main thread."""
    for number in _SIGNALS:
        signal.signal(number, signal.default_int_handler)


def leave_at_once_on_the_next() -> None:
    """Another one ends this process; groups and broker notice by their lifelines that it is gone."""
    for number in _SIGNALS:
        signal.signal(number, _leave)


def _leave(*_: object) -> None:
    os._exit(EXIT_INTERRUPTED)
