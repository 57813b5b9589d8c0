"""Sets of clients: by process group, agent and subscribed publishers; and the times at which publishers begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pyroaring import BitMap

from hydra.control.id_bitmaps import array, bitmap, runs
from hydra.wire.arrays import publisher_of


class GroupClients:
    """The clients of every group.

    Attributes:
        everyone: the ids of all clients that are in a group.
    """

    def __init__(self) -> None:
        self.everyone = BitMap()
        self._ids: dict[str, BitMap] = {}

    def settle(self, group: str, ids: Iterable[int]) -> None:
        """Adds a new group with these clients."""
        self._ids[group] = BitMap(ids)
        self.everyone |= self._ids[group]

    def leave(self, ids: BitMap) -> None:
        """Removes these clients from their groups."""
        for group, _ in self.parts(ids):
            self._ids[group] -= ids
        self.everyone -= ids

    def end(self, group: str) -> BitMap:
        """Removes a group; returns the clients that were in it."""
        ids = self._ids.pop(group, BitMap())
        self.everyone -= ids
        return ids

    def of(self, group: str) -> BitMap:
        """The clients of a group; empty for an unknown group."""
        return self._ids.get(group, BitMap())

    def parts(self, ids: BitMap) -> list[tuple[str, BitMap]]:
        """Each group that has some of these clients, with those of them that are in it."""
        return [(group, members & ids) for group, members in self._ids.items() if members.intersect(ids)]

    def groups(self) -> Iterator[tuple[str, BitMap]]:
        """Each group with its clients, which may be none."""
        yield from self._ids.items()


class AgentOfClient(Mapping[int, str]):
    """The id of each client's agent, with one pointer for each client.

    Arguments:
        parts: clients, and the agent that they are on.
    """

    def __init__(self, parts: Iterable[tuple[BitMap, str]]) -> None:
        self._clients = BitMap()
        self._agents: list[str] = []
        for ids, agent in parts:
            self._clients |= ids
            for first, last in runs(ids):
                self._agents += [""] * (last + 1 - len(self._agents))
                self._agents[first : last + 1] = [agent] * (last + 1 - first)

    def __getitem__(self, client: int) -> str:
        agent = self._agents[client] if 0 <= client < len(self._agents) else ""
        if not agent:
            raise KeyError(client)
        return agent

    def get(self, client: int, default: Any = None) -> Any:
        """The agent of a client. Mapping's own method is slower (it raises), and a step needs this for every client."""
        return (self._agents[client] or default) if 0 <= client < len(self._agents) else default

    def __iter__(self) -> Iterator[int]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)


Audience = tuple[Sequence[int], BitMap]
"""Publishers, and the subscribers that subscribe to all of them and to no other."""


def subscription_map(subscribers: BitMap, publishers: Sequence[int], *, one: bool) -> list[Audience]:
    """Each subscriber once, grouped by the publishers that it subscribes to.

    Args:
        subscribers: the subscribers of the step.
        publishers: the publishers of the step.
        one: whether each subscribes to one publisher only.
    """
    if not one or len(publishers) == 1:
        return [(publishers, subscribers)] if subscribers else []
    ids = array(subscribers)
    publishers_ = publisher_of(ids, publishers)
    found = (((publisher,), bitmap(ids[publishers_ == publisher].tolist())) for publisher in publishers)
    return [(publisher, listeners) for publisher, listeners in found if listeners]


def turns(
    publishers: Sequence[int], rate: float | Literal["max"], start_ns: int, *, one: bool
) -> list[tuple[Sequence[int], int]]:
    """The times (ns) at which the publishers of a step begin.

    If each subscriber subscribes to one of P publishers, publisher k begins k/P of the time between two messages after
    the first, since otherwise all publishers would send at the same moments.

    Args:
        publishers: the publishers of the step.
        rate: messages/s of each publisher, or ``max``.
        start_ns: the time at which the first one begins.
        one: whether each subscriber subscribes to one publisher only.
    """
    if rate == "max" or not one:
        return [(publishers, start_ns)]
    return [((p,), start_ns + round(k * 1e9 / (rate * len(publishers)))) for k, p in enumerate(publishers)]
