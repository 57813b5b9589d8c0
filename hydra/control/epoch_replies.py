"""What has been received about one epoch, and which clients are told a command again. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from mmap import mmap
from typing import Final

from pyroaring import BitMap

from hydra.control.id_bitmaps import bitmap, runs
from hydra.model import PublisherReport
from hydra.wire.messages import Progress
from hydra.wire.protocol_constants import RESEND_EVERY_S
from hydra.wire.subscriber_table import SubscriberTable, concatenate, decode
from hydra.wire.time_series import TimeSeriesSum

_PAGES_FROM: Final = 65_536


class ReceivedReports:
    """The subscribers' reports, as relays send them: a batch is a table, and all of them together are one.

    Attributes:
        ids: who has reported.
    """

    def __init__(self) -> None:
        self.ids = BitMap()
        self._tables: list[SubscriberTable] = []
        # What each batch said, by its first client: enough to know it again.
        self._digests: dict[int, bytes] = {}

    def add(self, ids: BitMap, columns: Sequence[tuple[str, int]], payload: bytes) -> bool:
        """Takes a batch, or one that came before once more; False if it says something else than before.

        Raises:
            ValueError: it is not what a correct relay sends.
        """
        digest = _digest(ids, columns, payload)
        if self.ids.intersect(ids):
            return self._digests.get(ids.min()) == digest
        self._tables.append(decode(ids, columns, _apart(payload)))
        self._digests[ids.min()] = digest
        self.ids |= ids
        return True

    def table(self) -> SubscriberTable:
        """All reports so far, by rising ids; made once, until the next batch comes."""
        if len(self._tables) != 1:
            # The parts are not kept: they would take as much memory once more.
            self._tables = [concatenate(self._tables)]
        return self._tables[0]


@dataclass(slots=True)
class EpochReplies:
    """What has been received about one epoch.

    Attributes:
        ready: publishers and servers that are ready, and subscribers that have proven that they are.
        endpoints: of publishers and servers.
        publisher_reports: by client.
        subscriber_reports: as one table.
        progress: the last of each client that tells it.
        errors: the last text of each client.
        sent: what publishers have told of the seconds of the step, and nobody has taken yet.
        received: likewise of subscribers, but for those of the cohort.
        cohort_received: of the cohort.
    """

    epoch: int
    ready: BitMap = field(default_factory=BitMap)
    endpoints: dict[int, str] = field(default_factory=dict)
    publisher_reports: dict[int, PublisherReport] = field(default_factory=dict)
    subscriber_reports: ReceivedReports = field(default_factory=ReceivedReports)
    progress: dict[int, Progress] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    sent: TimeSeriesSum = field(default_factory=TimeSeriesSum)
    received: TimeSeriesSum = field(default_factory=TimeSeriesSum)
    cohort_received: TimeSeriesSum = field(default_factory=TimeSeriesSum)
    _acks: dict[str, BitMap] = field(default_factory=dict)

    def acknowledge(self, command: str, clients: BitMap) -> None:
        """These clients have acknowledged this command."""
        acked = self._acks.setdefault(command, BitMap())
        acked |= clients

    def acked(self, command: str) -> BitMap:
        """The clients that acknowledged this command."""
        return self._acks.get(command, BitMap())

    def configured(self) -> BitMap:
        """The publishers that took their settings and named their endpoints."""
        return self.acked("configure") & self.ready

    def forget(self, command: str, clients: Iterable[int]) -> None:
        """Drops these clients' acknowledgements: they get the command once more and have to acknowledge it again."""
        self._acks[command] = self.acked(command) - bitmap(clients)


def _apart(payload: bytes) -> bytes | mmap:
    """The payload in pages of its own, where it has many: they go back to the system as soon as it is in a table.

    What many megabytes of bytes objects took stays with the process, though the next table has no use for it.
    """
    if len(payload) < _PAGES_FROM:
        return payload
    pages = mmap(-1, len(payload))
    pages.write(payload)
    return pages


def _digest(ids: BitMap, columns: Sequence[tuple[str, int]], payload: bytes) -> bytes:
    found = blake2b(repr((runs(ids), columns)).encode(), digest_size=16)
    found.update(payload)
    return found.digest()


_AT_A_TIME: Final = 100
_AT_A_TIME_IN_SILENCE: Final = 1_000
_BYTES_AT_A_TIME: Final = 16_000_000
"""Limit for the network and the controller's time in one round, however long the command is: 1,000 of 16 kB."""


class CommandRetry:
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

    def expired(self, now_s: float) -> bool:
        """Whether to stop waiting for those that have not answered."""
        return now_s >= self._deadline_s

    def due(self, answered: BitMap, gone: BitMap, now_s: float) -> BitMap:
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
