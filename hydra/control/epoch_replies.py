"""What has been received about one epoch. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from mmap import mmap
from typing import Final

from pyroaring import BitMap

from hydra.control.ids import bitmap, runs
from hydra.model import PublisherReport
from hydra.wire.messages import Progress
from hydra.wire.subscriber_table import SubscriberTable, concatenate, decode
from hydra.wire.time_series import CourseSum

_PAGES_FROM: Final = 65_536


class Reported:
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
class EpochAnswers:
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
    subscriber_reports: Reported = field(default_factory=Reported)
    progress: dict[int, Progress] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    sent: CourseSum = field(default_factory=CourseSum)
    received: CourseSum = field(default_factory=CourseSum)
    cohort_received: CourseSum = field(default_factory=CourseSum)
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
