"""The servers' log as a count of messages."""

from __future__ import annotations

import time
from typing import Final

from hydra.model import Settings
from hydra.system import System, Waiting

_SETTLE_S: Final = 0.2
_LOOKS_WHERE_MISSING: Final = 10
"""So often alike where messages are known to be missing: a broker on a busy machine rests for longer than 0.2 s."""
_SETTLE_AT_MOST_S: Final = 5.0


def settled(system: System, settings: Settings, wait: Waiting, expected: int | None = None) -> int | None:
    """The messages in the log once it has stopped growing, None where there is no log.

    Without acknowledgements a flush waits for no log, and followers know a moment later than a leader what it has.

    Args:
        system: whose log.
        settings: the step's.
        wait: how to wait.
        expected: with so many in it, nothing more comes; None: nobody knows.

    Raises:
        StepError, ServerError: as for :meth:`hydra.system.System.log_end`.
    """
    end = system.log_end(settings)
    looks = 1 if expected is None else _LOOKS_WHERE_MISSING
    alike, deadline = 0, time.monotonic() + _SETTLE_AT_MOST_S
    while end is not None and end != expected and alike < looks and time.monotonic() < deadline:
        wait(lambda: False, _SETTLE_S)
        before, end = end, system.log_end(settings)
        alike = alike + 1 if before == end else 0
    return end
