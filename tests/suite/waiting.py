"""Waiting for a condition: the only place of the tests that sleeps, and the one that states how long is too long."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

TIME_FACTOR: Final = float(os.environ.get("HYDRA_TEST_PATIENCE", "1"))
"""Each deadline is multiplied by this: HYDRA_TEST_PATIENCE=5 where others use the machine."""
SOON_S: Final = 30 * TIME_FACTOR
"""For what takes milliseconds on an idle machine: a message, an answer, the end of a process."""
LONG_S: Final = 120 * TIME_FACTOR
"""For what takes seconds: a server starts, a whole command, a step of a run."""
TEST_S: Final = 300 * TIME_FACTOR
"""No test takes longer; pytest-timeout ends it then, unless it states another time itself."""

T = TypeVar("T")


def nap() -> None:
    """What is done between two looks at a condition, if there is nothing better to do."""
    time.sleep(0.01)  # noqa: TID251  # the one place


def wait_until(
    condition: Callable[[], T],
    what: str,
    within_s: float = SOON_S,
    *,
    between: Callable[[], object] = nap,
    saw: Callable[[], object] | None = None,
) -> T:
    """Waits until the condition gives something true, and returns that.

    Args:
        condition: looked at again and again.
        what: what is waited for, for the message.
        within_s: the deadline, in seconds.
        between: called between two looks; it serves a channel, or only sleeps.
        saw: what the message shows of the last look; the condition's last value if it is None.

    Raises:
        AssertionError: the deadline is over; the message has what was waited for, and what was seen.
    """
    __tracebackhide__ = True
    deadline = time.monotonic() + within_s
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {within_s:g} s for {what}; saw {saw() if saw else repr(value)}")
        between()
    return value
