"""What systems do alike when servers fail: a folder for a new one of ours, and waiting until the user's are back."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from hydra.errors import ServerError
from hydra.system import Waiting

COMES_BACK_WITHIN_S: Final = 30.0
"""How long the user's servers have, between two steps, to answer again."""
_ASK_AGAIN_S: Final = 0.5

_T = TypeVar("_T")


def unused_folder(run: Path, stem: str) -> Path:
    """A folder of the run for a server's data that is not there yet.

    What was left behind, by a machine that went down, is not touched.
    """
    return next(folder for n in count(1) if not (folder := run / f"{stem}-{n}").exists())


def await_return(ask: Callable[[], _T], wait: Waiting, ready_timeout_s: float) -> _T:
    """What the servers answer once they do.

    Args:
        ask: raises ServerError as long as they do not.
        wait: how the caller waits meanwhile.
        ready_timeout_s: the scenario's; they get no more than that, and at most ``COMES_BACK_WITHIN_S``.

    Raises:
        ServerError: the last one, when the time is over.
    """
    deadline = time.monotonic() + min(COMES_BACK_WITHIN_S, ready_timeout_s)
    while True:
        try:
            return ask()
        except ServerError:
            if time.monotonic() > deadline:
                raise
        wait(lambda: False, _ASK_AGAIN_S)
