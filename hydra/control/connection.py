"""One connection of the control channel, and the processes of its clients. No sockets, no clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from hydra.control.id_bitmaps import Array, array
from hydra.wire.messages import ChildExit, Hello, Joined


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a process: the clients in it, and its exit status (None: not known).

    ``replaced``: whether a new process takes its place. ``present``: whether its clients counted as connected until
    then; those of a process that was being ended, or that had not joined yet, did not.
    """

    ids: list[int]
    pid: int
    status: int | None
    replaced: bool
    present: bool


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The effect of a ``joined``: clients to welcome, clients with a wrong process, and processes that ended."""

    welcome: BitMap
    doubtful: BitMap
    ended: list[ProcessExit]


class RelayConnection:
    """A relay's or a server's connection, with arrays about its clients, indexed by id − first id.

    Attributes:
        identity: its identity on the socket.
        hello: its first message.
        ids: the clients that its messages may be about.
        present: its clients that have joined and not ended.
        last_seq: the sequence number of its last message.
    """

    def __init__(self, identity: bytes, hello: Hello, ids: BitMap) -> None:
        self.identity = identity
        self.hello = hello
        self.ids = ids
        self.present = BitMap()
        self.last_seq = hello.seq
        self._first = ids.min()
        clients = ids.max() - self._first + 1
        # The incarnation and pid of each client's last process that has joined; before the first one −1 and 0.
        self._incarnations = np.full(clients, -1, np.int64)
        self._pids = np.zeros(clients, np.uint32)
        # The least incarnation of each client's next process: one more than that of its last process reported to end.
        self._next_incarnations = np.zeros(clients, np.int64)
        # The pid of each client's last process that has ended (-1: none), and whether its exit status is known.
        self._ended_pids = np.full(clients, -1, np.int64)
        self._status_known = np.zeros(clients, np.bool_)

    def incarnation(self, client: int) -> int:
        """The incarnation of the client's present process; if there is none, the least one of its next."""
        known = self._incarnations if client in self.present else self._next_incarnations
        return int(known[client - self._first])

    def process(self, client: int) -> BitMap:
        """All clients of this client's process."""
        return self._carried(int(self._pids[client - self._first]))

    def join(self, message: Joined, ids: BitMap, wanted: BitMap) -> JoinResult:
        """Records clients that have joined.

        Args:
            message: their incarnations and pids.
            ids: the ids of the message.
            wanted: the clients of this connection's group, maybe with others.
        """
        numbers = array(ids)
        at = numbers - self._first
        incarnations, pids = np.array(message.incarnations, np.int64), np.array(message.pids, np.uint32)
        were_present = _among(ids, numbers, self.present)
        again = were_present & (incarnations == self._incarnations[at]) & (pids == self._pids[at])
        new = (incarnations > self._incarnations[at]) & (incarnations >= self._next_incarnations[at])
        expected = _among(ids, numbers, wanted)
        new &= expected
        ended = [self._replaced(pid) for pid in np.unique(self._pids[at[new & were_present]]).tolist()]
        self._incarnations[at[new]] = incarnations[new]
        self._pids[at[new]] = pids[new]
        self.present |= BitMap(numbers[new])
        return JoinResult(
            welcome=BitMap(numbers[expected & (new | again)]),
            doubtful=BitMap(numbers[expected & ~(new | again)]),
            ended=[exit_ for exit_ in ended if self._is_news(exit_)],
        )

    def end(self, message: ChildExit, ids: BitMap) -> tuple[BitMap, ProcessExit | None]:
        """Records the end of a process; ``ids`` are its clients that still belong to the group.

        Returns the clients that were present until now, and the exit unless it is known already.
        """
        numbers = array(ids)
        at = numbers - self._first
        self._next_incarnations[at] = np.maximum(self._next_incarnations[at], message.incarnation + 1)
        # The replacement may have joined before the message about its predecessor's death arrived.
        left = ids & self._carried(message.pid)
        self.present -= left
        exit_ = ProcessExit(list(ids), message.pid, message.status, message.replaced, bool(left))
        return left, exit_ if self._is_news(exit_) else None

    def _carried(self, pid: int) -> BitMap:
        return BitMap(np.flatnonzero(self._pids == pid) + self._first) & self.present

    def _replaced(self, pid: int) -> ProcessExit:
        """The exit of a process without a message about its end, after one of its clients joined in another process."""
        carried = self._carried(pid)
        self.present -= carried
        return ProcessExit(list(carried), pid, None, replaced=True, present=True)

    def _is_news(self, exit_: ProcessExit) -> bool:
        """Records a death, and returns whether it was unknown; the message about it may arrive several times.

        A death that is known from the replacement's arrival is recorded a second time when its cause arrives.
        """
        at = np.array(exit_.ids, np.int64) - self._first
        has_status = exit_.status is not None
        known = (self._ended_pids[at] == exit_.pid) & (self._status_known[at] | (not has_status))
        if known.all():
            return False
        self._ended_pids[at] = exit_.pid
        self._status_known[at] = has_status
        return True


def _among(ids: BitMap, numbers: Array, others: BitMap) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The flags of the ids (given as a bitmap and as numbers) that are among others; usually all or none are."""
    common = ids.intersection_cardinality(others)
    if common in (0, len(ids)):
        return np.full(len(ids), common > 0)
    return np.isin(numbers, array(others))
