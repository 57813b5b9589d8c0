"""Waits that end on time, although polls take whole milliseconds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


def poll_ms(timeout_s: float) -> int:
    """The whole milliseconds in a wait, rounded down: a poll never goes on beyond what is due."""
    return max(int(timeout_s * 1000), 0)


def wait(
    poll: Callable[[int], int],
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits until something comes, for at most ``timeout_s``.

    The last fraction of a millisecond is slept: what arrives in it is found after it.

    Args:
        poll: waits for at most so many ms (below 0: without end), and says whether something came.
        timeout_s: until when, in seconds from now; infinity: for as long as it takes.
        clock: the time in seconds.
        sleep: sleeps for so many seconds.
    """
    if timeout_s == math.inf:
        poll(-1)
        return
    due = clock() + timeout_s
    # A poll that was cut short by a signal or by a coarse clock is followed by another one.
    while (milliseconds := poll_ms(due - clock())) > 0:
        if poll(milliseconds):
            return
    if (rest := due - clock()) > 0:
        sleep(rest)
