"""When a controller that cannot be dialled again is gone for good. Pure, time is passed in."""

from __future__ import annotations

from typing import Final

_KNOCK_EVERY_NS: Final = 1_000_000_000
_REFUSALS: Final = 3
"""So many in a row, a second apart: a network that refuses for a moment is not the end of a group."""


class Refusal:
    """What is known of a connection that has been lost.

    Whoever has lost it knocks at the controller's port once a second. As long as its process lives, the kernel takes
    the knock; where nothing listens any more, the kernel of that host refuses it at once.

    Attributes:
        due_ns: when to knock next; None while there is a connection.
    """

    def __init__(self) -> None:
        self.due_ns: int | None = None
        self._refusals = 0

    @property
    def gone(self) -> bool:
        """Whether the controller's process has ended."""
        return self._refusals >= _REFUSALS

    def lost(self, now_ns: int) -> None:
        """The connection has been lost."""
        if self.due_ns is None:
            self.due_ns = now_ns + _KNOCK_EVERY_NS

    def found(self) -> None:
        """There is a connection again."""
        self.due_ns = None
        self._refusals = 0

    def knocked(self, now_ns: int, *, refused: bool) -> None:
        """Takes what became of a knock."""
        self.due_ns = now_ns + _KNOCK_EVERY_NS
        self._refusals = self._refusals + 1 if refused else 0
