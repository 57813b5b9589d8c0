"""How many messages a slow reader may read: a limit that holds in every second, whatever pauses came before. Pure.

It is a token bucket: a reader with credit for a message may read it, credit grows with time, and a depth bounds it. So
in every interval of T seconds at most depth + rate · T messages are read (docs/control-protocol.md, section 7). The C++
clients have the same (native/src/common/read_limit.h), and tests/golden/readlimit holds both to it.
"""

from __future__ import annotations

import math
from typing import Final

_SECOND_NS: Final = 1e9
_LATE: Final = 0.5
"""The part of a message's time by which a reader may be late without loss of its rate."""


class ReadLimit:
    """The limit of one reader, from a begin on.

    Arguments:
        rate: messages per second; 0: none after the first.
        begin_ns: the begin, on the clock of all times here.
    """

    def __init__(self, rate: float, begin_ns: int) -> None:
        self._rate = rate
        most = math.floor(rate + max(1.0, rate / 10))  # in any second
        self._depth = max(1.0, most - rate + _LATE)
        self._credit = 1.0
        self._at_ns = begin_ns

    def _credit_at(self, now_ns: int) -> float:
        return min(self._credit + max(now_ns - self._at_ns, 0) * self._rate / _SECOND_NS, self._depth)

    def allowance(self, now_ns: int) -> int:
        """The number of messages that may be read now."""
        return max(math.floor(self._credit_at(now_ns)), 0)

    def wait_s(self, now_ns: int) -> float:
        """Seconds until a message may be read; infinity: never."""
        missing = 1.0 - self._credit_at(now_ns)
        if missing <= 0:
            return 0.0
        return missing / self._rate if self._rate > 0 else math.inf

    def read(self, now_ns: int, messages: int) -> None:
        """Notes that messages were read at this time."""
        self._credit = self._credit_at(now_ns) - messages
        self._at_ns = max(now_ns, self._at_ns)
