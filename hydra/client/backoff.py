"""When to say something again: at once, then at doubling distances. Pure, time is passed in.

Every repetition wakes all of thousands of subscribers, so what is said early is said often, and later ever more rarely.
"""

from __future__ import annotations

from typing import Final

FIRST_WAIT_NS: Final = 50_000_000


class Repeats:
    """The times of one thing that is said again and again.

    Args:
        begin_ns: the first time.
        longest_ns: repetitions are never further apart than this; None: however far.
        for_ns: none comes later than this after the first; None: they never end.
    """

    __slots__ = ("_last_ns", "_longest_ns", "_wait_ns", "next_ns")

    def __init__(self, begin_ns: int, *, longest_ns: int | None = None, for_ns: int | None = None) -> None:
        self.next_ns: int | None = begin_ns
        """The next time; None when there is none."""
        self._wait_ns = FIRST_WAIT_NS
        self._longest_ns = longest_ns
        self._last_ns = None if for_ns is None else begin_ns + for_ns

    def due(self, now_ns: int) -> bool:
        """Whether it is time; if so, the next time is fixed, as far from now as it is its turn to be."""
        if self.next_ns is None or now_ns < self.next_ns:
            return False
        next_ns = now_ns + self._wait_ns
        self.next_ns = None if self._last_ns is not None and next_ns > self._last_ns else next_ns
        self._wait_ns *= 2
        if self._longest_ns is not None:
            self._wait_ns = min(self._wait_ns, self._longest_ns)
        return True
