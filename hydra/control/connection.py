"""One connection of the channel and the processes whose clients it carries. No sockets, no clock."""

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
    then; those of a process that we were ending, or that had not joined yet, did not.
    """

    ids: list[int]
    pid: int
    status: int | None
    replaced: bool
    present: bool


@dataclass(frozen=True, slots=True)
class JoinResult:
    """What a ``joined`` means: who is there now, who cannot be the one it says, and which processes are gone."""

    welcome: BitMap
    doubtful: BitMap
    gone: list[ProcessExit]


class RelayConnection:
    """A relay's or a server's connection; of its clients it keeps arrays, indexed by id − first id.

    Attributes:
        identity: names it on the socket.
        hello: its first message.
        ids: the clients that it may speak for.
        present: those of them that are there.
        last_seq: of its messages.
        echo_ns: the time in the last ping that it has answered.
    """

    def __init__(self, identity: bytes, hello: Hello, ids: BitMap) -> None:
        self.identity = identity
        self.hello = hello
        self.ids = ids
        self.present = BitMap()
        self.last_seq = hello.seq
        self.echo_ns = 0
        self._first = ids.min()
        clients = ids.max() - self._first + 1
        # Of each client's last process that has joined; before the first one, an incarnation below all.
        self._incarnations = np.full(clients, -1, np.int64)
        self._pids = np.zeros(clients, np.uint32)
        # The least incarnation that its next process can have: one more than that of the last whose end was told.
        self._next_incarnations = np.zeros(clients, np.int64)
        # The pid of its last process that has ended (below all: of none), and whether its exit status is known.
        self._ended_pids = np.full(clients, -1, np.int64)
        self._status_known = np.zeros(clients, np.bool_)

    def incarnation(self, client: int) -> int:
        """Of the process that carries this client, or will."""
        known = self._incarnations if client in self.present else self._next_incarnations
        return int(known[client - self._first])

    def process(self, client: int) -> BitMap:
        """All clients of the process that carries this one."""
        return self._carried(int(self._pids[client - self._first]))

    def join(self, message: Joined, ids: BitMap, wanted: BitMap) -> JoinResult:
        """Takes who has joined.

        Args:
            message: says with which incarnations and pids.
            ids: those of the message.
            wanted: those that belong to this connection's group, maybe with others.
        """
        numbers = array(ids)
        at = numbers - self._first
        incarnations, pids = np.array(message.incarnations, np.int64), np.array(message.pids, np.uint32)
        there = _among(ids, numbers, self.present)
        again = there & (incarnations == self._incarnations[at]) & (pids == self._pids[at])
        new = (incarnations > self._incarnations[at]) & (incarnations >= self._next_incarnations[at])
        expected = _among(ids, numbers, wanted)
        new &= expected
        gone = [self._replaced(pid) for pid in np.unique(self._pids[at[new & there]]).tolist()]
        self._incarnations[at[new]] = incarnations[new]
        self._pids[at[new]] = pids[new]
        self.present |= BitMap(numbers[new])
        return JoinResult(
            welcome=BitMap(numbers[expected & (new | again)]),
            doubtful=BitMap(numbers[expected & ~(new | again)]),
            gone=[exit_ for exit_ in gone if self._is_news(exit_)],
        )

    def end(self, message: ChildExit, ids: BitMap) -> tuple[BitMap, ProcessExit | None]:
        """Takes the end of a process, of whose clients these still belong to the group.

        Returns those that were there until now, and the exit unless it is known.
        """
        numbers = array(ids)
        at = numbers - self._first
        self._next_incarnations[at] = np.maximum(self._next_incarnations[at], message.incarnation + 1)
        # The replacement may have joined before the message about its predecessor's death came.
        left = ids & self._carried(message.pid)
        self.present -= left
        exit_ = ProcessExit(list(ids), message.pid, message.status, message.replaced, bool(left))
        return left, exit_ if self._is_news(exit_) else None

    def _carried(self, pid: int) -> BitMap:
        return BitMap(np.flatnonzero(self._pids == pid) + self._first) & self.present

    def _replaced(self, pid: int) -> ProcessExit:
        """A client of this process has come back in another: all of it is gone, though nobody has told its end."""
        carried = self._carried(pid)
        self.present -= carried
        return ProcessExit(list(carried), pid, None, replaced=True, present=True)

    def _is_news(self, exit_: ProcessExit) -> bool:
        """Records a death once, however often the message about it comes.

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
    """Which of the ids, as a bitmap and as numbers, are among others; nearly always all or none are."""
    common = ids.intersection_cardinality(others)
    if common in (0, len(ids)):
        return np.full(len(ids), common > 0)
    return np.isin(numbers, array(others))
