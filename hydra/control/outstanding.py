"""Whose answer to a command is awaited, whom to give it again, and for how long. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

RESEND_EVERY_S: Final = 2.0
"""How often anything that may have been lost on the channel is said again, on both of its ends."""
_AT_A_TIME: Final = 100
_AT_A_TIME_IN_SILENCE: Final = 1_000
_BYTES_AT_A_TIME: Final = 16_000_000
"""What a round takes of the network and of the controller's time, whatever the command holds: 1,000 of 16 kB."""


class Outstanding:
    """Clients that were given a command and have not answered it.

    A command or its answer may be lost, so it is given again. Ten thousand clients may well take longer than that to
    answer, and must not be kept from it: while answers keep coming, only a hundred clients are told again at a time,
    in turn; when nobody has answered for 2 s, a thousand, or fewer of a long command: a drain is quiet as well, without
    anything lost.

    Arguments:
        clients: whom the command was given to.
        now_s: when, on the clock of all later calls, in seconds.
        timeout_s: how long to wait for all answers.
        margin_s: the wait is never over before nobody has answered for so long.
        every_s: how often the command is given again.
        command_bytes: the length of the command.
    """

    def __init__(
        self,
        clients: Iterable[int],
        now_s: float,
        timeout_s: float,
        *,
        margin_s: float = 0.0,
        every_s: float = RESEND_EVERY_S,
        command_bytes: int = 1,
    ) -> None:
        self._waiting = list(clients)  # whoever is to be told again first comes first
        self._margin_s = margin_s
        self._every_s = every_s
        self._affordable = max(1, _BYTES_AT_A_TIME // command_bytes)
        self._due_s = now_s + every_s
        self._deadline_s = now_s + timeout_s
        self._answers = 0
        self._heard_s = now_s

    def heard(self, answers: int, now_s: float) -> None:
        """So many have answered by now: if they are more than the last time, the wait goes on for the margin."""
        if answers > self._answers:
            self._answers = answers
            self._heard_s = now_s
            self._deadline_s = max(self._deadline_s, now_s + self._margin_s)

    def over(self, now_s: float) -> bool:
        """Whether those who have not answered are given up."""
        return now_s >= self._deadline_s

    def again(self, answered: Set[int], gone: Set[int], now_s: float) -> list[int]:
        """The clients to give the command again now; none while that is not due.

        Args:
            answered: who has answered.
            gone: who never will.
            now_s: the time.
        """
        if now_s < self._due_s:
            return []
        self._due_s = now_s + self._every_s
        waiting = [client for client in self._waiting if client not in answered and client not in gone]
        most = _AT_A_TIME if now_s < self._heard_s + RESEND_EVERY_S else _AT_A_TIME_IN_SILENCE
        most = min(most, self._affordable)
        chosen = waiting[:most]
        self._waiting = waiting[most:] + chosen
        return chosen
