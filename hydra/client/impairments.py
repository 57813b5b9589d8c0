"""Parts of a step in which a subscriber reads slowly, or has no connection. Pure, time is passed in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from hydra.wire.messages import Spell

Change = Literal["", "leave", "return"]

NO_LIMIT: Final = 2**31
_SECOND_NS: Final = 1e9


class Spells:
    """The spells of one subscriber and one step.

    Of several at once, the first of the list counts.

    Attributes:
        gone: whether it has no connection.
    """

    def __init__(self, spells: Sequence[Spell]) -> None:
        self.gone = False
        self._spells = list(spells)
        self._now: Spell | None = None
        self._messages = 0  # that had been read when the present one began

    def __bool__(self) -> bool:
        return bool(self._spells)

    def at(self, since_start_ns: int, messages: int) -> Change:
        """What has to be done now.

        Args:
            since_start_ns: since the start of the window.
            messages: that it has read so far.
        """
        now = next((s for s in self._spells if s.begin_s * _SECOND_NS <= since_start_ns < s.end_s * _SECOND_NS), None)
        if now is self._now:
            return ""
        self._now, self._messages = now, messages
        if now is not None and now.kind == "gone":
            left, self.gone = self.gone, True
            return "" if left else "leave"
        return "return" if self.gone else ""

    def allowance(self, since_start_ns: int, messages: int) -> tuple[int, float]:
        """How many messages may be read now; and for how long nothing changes, in seconds."""
        now = self._now
        since_s = since_start_ns / _SECOND_NS
        next_s = min((e for s in self._spells for e in (s.begin_s, s.end_s) if e > since_s), default=math.inf) - since_s
        if now is None:
            return NO_LIMIT, next_s
        if now.kind == "gone":
            return 0, next_s
        read = messages - self._messages
        allowed = math.floor((since_s - now.begin_s) * now.rate) + 1 - read
        if allowed > 0:
            return allowed, next_s
        return 0, min(next_s, (1 - allowed) / now.rate if now.rate > 0 else math.inf)
