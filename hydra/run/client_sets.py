"""Sets of clients: who is in which group and on which agent, who listens to which publishers, and when these begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from pyroaring import BitMap

from hydra.control.id_bitmaps import array, bitmap, runs
from hydra.wire.arrays import publisher_of


class GroupClients:
    """The clients of every group.

    Attributes:
        everyone: all clients that are in a group.
    """

    def __init__(self) -> None:
        self.everyone = BitMap()
        self._ids: dict[str, BitMap] = {}

    def settle(self, group: str, ids: Iterable[int]) -> None:
        """These clients are in this new group."""
        self._ids[group] = BitMap(ids)
        self.everyone |= self._ids[group]

    def leave(self, ids: BitMap) -> None:
        """These clients are in no group any more."""
        for group, _ in self.parts(ids):
            self._ids[group] -= ids
        self.everyone -= ids

    def end(self, group: str) -> BitMap:
        """The group is gone; those that were in it."""
        ids = self._ids.pop(group, BitMap())
        self.everyone -= ids
        return ids

    def of(self, group: str) -> BitMap:
        """The clients of a group, none of one that is not there."""
        return self._ids.get(group, BitMap())

    def parts(self, ids: BitMap) -> list[tuple[str, BitMap]]:
        """Each group that has some of these clients, with those."""
        return [(group, members & ids) for group, members in self._ids.items() if members.intersect(ids)]

    def groups(self) -> Iterator[tuple[str, BitMap]]:
        """Each group with its clients; one may have none left."""
        yield from self._ids.items()


class AgentOfClient(Mapping[int, str]):
    """The id of the agent that each client is on, as a pointer a client.

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
        """Without the exception that Mapping's takes: it is asked for every client of a step."""
        return (self._agents[client] or default) if 0 <= client < len(self._agents) else default

    def __iter__(self) -> Iterator[int]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)


Audience = tuple[Sequence[int], BitMap]
"""Publishers, and who listens to all of them and to no other."""


def subscription_map(subscribers: BitMap, publishers: Sequence[int], *, one: bool) -> list[Audience]:
    """Everybody once, with their publishers; nobody's are left out.

    Args:
        subscribers: of the step.
        publishers: of the step.
        one: whether each listens to one publisher only.
    """
    if not one or len(publishers) == 1:
        return [(publishers, subscribers)] if subscribers else []
    ids = array(subscribers)
    theirs = publisher_of(ids, publishers)
    found = (((publisher,), bitmap(ids[theirs == publisher].tolist())) for publisher in publishers)
    return [(publisher, listeners) for publisher, listeners in found if listeners]


def turns(
    publishers: Sequence[int], rate: float | Literal["max"], start_ns: int, *, one: bool
) -> list[tuple[Sequence[int], int]]:
    """When the publishers of a step begin.

    Where each subscriber has one of P publishers, number k sends k/P of the time between two messages later than the
    first. Otherwise all would send to everybody at the same moments.

    Args:
        publishers: of the step.
        rate: messages/s of each, or as fast as it can.
        start_ns: when the first one begins.
        one: whether each subscriber listens to one publisher only.
    """
    if rate == "max" or not one:
        return [(publishers, start_ns)]
    return [((p,), start_ns + round(k * 1e9 / (rate * len(publishers)))) for k, p in enumerate(publishers)]
