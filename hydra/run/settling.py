"""The servers' log as a count of messages, for publishers that get no acknowledgements."""

from __future__ import annotations

import time
from typing import Final

from hydra.model import Settings
from hydra.system import System, Waiting

_SETTLE_S: Final = 0.2
_SETTLE_AT_MOST_S: Final = 5.0


def settled(system: System, settings: Settings, wait: Waiting) -> int | None:
    """The messages in the log once it has stopped growing: without acknowledgements, a flush waits for no log.

    None where something better counts them; errors as for :meth:`hydra.system.System.log_end`.
    """
    end = system.log_end(settings)
    deadline = time.monotonic() + _SETTLE_AT_MOST_S
    while end is not None and time.monotonic() < deadline:
        wait(lambda: False, _SETTLE_S)
        before, end = end, system.log_end(settings)
        if before == end:
            break
    return end
