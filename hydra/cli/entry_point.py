"""The entry point of the installed program ``hydra``."""

from __future__ import annotations

import os
import signal

from hydra.errors import EXIT_INTERRUPTED, INTERRUPTED_EARLY


def main() -> None:
    """Runs the command; an interrupt ends it with one line from the first moment."""
    # The import takes a tenth of a second; then the command has handlers of its own.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
            signal.signal(number, _leave)
    from hydra.cli.main import main as command

    command()


def _leave(*_: object) -> None:
    try:
        os.write(2, f"hydra: {INTERRUPTED_EARLY}\n".encode())
    finally:
        os._exit(EXIT_INTERRUPTED)
