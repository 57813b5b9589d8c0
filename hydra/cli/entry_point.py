"""The entry point of the installed program ``hydra``."""

from __future__ import annotations

import os
import signal

from hydra.errors import EXIT_INTERRUPTED


def main() -> None:
    """Runs the command; Ctrl-C ends it without a traceback from the first moment."""
    # The import takes a tenth of a second; then the command has handlers of its own.
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    from hydra.cli.main import main as command

    command()
