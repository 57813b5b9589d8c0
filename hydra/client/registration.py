"""Which clients the controller has to be told of: those that no welcome has named. Pure, time is passed in."""

from __future__ import annotations

from collections.abc import Iterable

from hydra.client.command_replies import RESEND_EVERY_NS
from hydra.client.reply_aggregation import GATHERED_WITHIN_NS


class Joining:
    """Those that came are told of together; again and again, until they are named or gone."""

    def __init__(self) -> None:
        self._untold: set[int] = set()
        self._unnamed: set[int] = set()
        self._named: set[int] = set()
        # Somebody else with this id left before a welcome named it: one that comes yet may mean that one.
        self._mistakable: set[int] = set()
        self._untold_ns = 0
        self._unnamed_ns = 0

    def add(self, clients: Iterable[int], now_ns: int) -> None:
        """These are there now."""
        if not self._untold:
            self._untold_ns = now_ns + GATHERED_WITHIN_NS
        self._untold.update(set(clients) - self._named)
        self._unnamed.difference_update(clients)

    def named(self, clients: Iterable[int]) -> None:
        """A welcome has named these; one that has not been told of is another process than it means."""
        meant = self._unnamed.intersection(clients) - self._mistakable
        self._mistakable.difference_update(clients)
        self._unnamed -= meant
        self._named |= meant

    def is_named(self, client: int) -> bool:
        """Whether the controller knows of the process that this client is in now."""
        return client in self._named

    def left(self, clients: Iterable[int]) -> None:
        """These are gone."""
        self._mistakable.update(self._unnamed.intersection(clients))
        for some in (self._untold, self._unnamed, self._named):
            some.difference_update(clients)

    def next_ns(self) -> int | None:
        """When somebody is to be told of next; None while nobody is."""
        due = [self._untold_ns] * bool(self._untold) + [self._unnamed_ns] * bool(self._unnamed)
        return min(due, default=None)

    def take(self, now_ns: int, *, complete: bool) -> list[int]:
        """Who is to be told of now, ascending; ``complete``: nobody else is expected to come."""
        found: set[int] = set()
        if self._unnamed and now_ns >= self._unnamed_ns:
            found |= self._unnamed
            self._unnamed_ns = now_ns + RESEND_EVERY_NS
        if self._untold and (complete or now_ns >= self._untold_ns):
            if not self._unnamed:
                self._unnamed_ns = now_ns + RESEND_EVERY_NS
            found |= self._untold
            self._unnamed |= self._untold
            self._untold.clear()
        return sorted(found)
