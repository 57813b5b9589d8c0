"""Which clients have not answered a command, when to send it again, and when to give up. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyroaring import BitMap

from hydra.wire.protocol_constants import RESEND_EVERY_S

_AT_A_TIME: Final = 100
_AT_A_TIME_IN_SILENCE: Final = 1_000
_BYTES_AT_A_TIME: Final = 16_000_000
"""Limit for the network and the controller's time in one round, however long the command is: 1,000 of 16 kB."""


class Outstanding:
    """Clients that were given a command and have not answered it.

    A command or its answer may be lost between the controller and a relay, so the command is sent again, once for all
    clients of a connection that are still to answer. Many relays may need longer than that to answer, and must not be
    slowed down: while answers arrive, only a hundred of them at a time get it again, in turn; when no answer has come
    for 2 s, a thousand, or fewer if the command is long. During a drain no answers come either, though nothing was
    lost.

    Arguments:
        connections: the clients that the command was sent to, those of each connection.
        now_s: when, on the clock of all later calls, in seconds.
        timeout_s: how long to wait for all answers.
        margin_s: the wait goes on at least until no answer has come for this long.
        every_s: how often the command is sent again.
        command_bytes: the length of the command.
    """

    def __init__(
        self,
        connections: Iterable[BitMap],
        now_s: float,
        timeout_s: float,
        *,
        margin_s: float = 0.0,
        every_s: float = RESEND_EVERY_S,
        command_bytes: int = 1,
    ) -> None:
        self._waiting = list(connections)  # in the order in which they get it again
        self._margin_s = margin_s
        self._every_s = every_s
        self._affordable = max(1, _BYTES_AT_A_TIME // command_bytes)
        self._due_s = now_s + every_s
        self._deadline_s = now_s + timeout_s
        self._answers = 0
        self._heard_s = now_s

    def heard(self, answers: int, now_s: float) -> None:
        """Takes how many have answered by now; if they are more than the last time, the wait goes on for the margin."""
        if answers > self._answers:
            self._answers = answers
            self._heard_s = now_s
            self._deadline_s = max(self._deadline_s, now_s + self._margin_s)

    def over(self, now_s: float) -> bool:
        """Whether to stop waiting for those that have not answered."""
        return now_s >= self._deadline_s

    def again(self, answered: BitMap, gone: BitMap, now_s: float) -> BitMap:
        """The clients to send the command to again now; none while that is not due.

        Args:
            answered: those that have answered.
            gone: those that never will.
            now_s: the time.
        """
        if now_s < self._due_s:
            return BitMap()
        self._due_s = now_s + self._every_s
        done = answered | gone
        waiting = [left for ids in self._waiting if (left := ids - done)]
        most = _AT_A_TIME if now_s < self._heard_s + RESEND_EVERY_S else _AT_A_TIME_IN_SILENCE
        most = min(most, self._affordable)
        chosen = waiting[:most]
        self._waiting = waiting[most:] + chosen
        return BitMap().union(*chosen)
