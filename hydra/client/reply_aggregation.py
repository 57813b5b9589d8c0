"""Answers of many clients in few messages: those that are alike wait for each other. Pure, time is passed in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar

GATHERED_WITHIN_NS: Final = 10_000_000
"""How long the first of them waits for the others."""

K = TypeVar("K", bound=Hashable)


class Gathering(Generic[K]):
    """What clients have said and nobody has been told yet, by what it is (``K``)."""

    def __init__(self) -> None:
        self._waiting: dict[K, tuple[int, set[int]]] = {}

    def add(self, said: K, clients: Iterable[int], now_ns: int) -> None:
        """Takes what these clients have said."""
        self._waiting.setdefault(said, (now_ns + GATHERED_WITHIN_NS, set()))[1].update(clients)

    def next_ns(self) -> int | None:
        """When the next of it has waited long enough; None when nothing waits."""
        return min((due_ns for due_ns, _ in self._waiting.values()), default=None)

    def take(self, now_ns: int, complete: Callable[[K], bool]) -> list[tuple[K, list[int]]]:
        """What need not wait any longer, in the order in which it came first, each with its clients, ascending.

        Args:
            now_ns: the time.
            complete: whether nobody else is expected to say this.
        """
        ready = [said for said, (due_ns, _) in self._waiting.items() if now_ns >= due_ns or complete(said)]
        return [(said, sorted(self._waiting.pop(said)[1])) for said in ready]

    def clear(self) -> None:
        """Forgets what waits."""
        self._waiting.clear()
