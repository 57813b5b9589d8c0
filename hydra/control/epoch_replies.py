"""The replies of one epoch, and the clients to which a command is resent. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count
from mmap import mmap
from typing import Final

import msgspec
from pyroaring import BitMap

from hydra.control.id_bitmaps import runs
from hydra.model import PublisherReport
from hydra.wire import RESEND_EVERY_S
from hydra.wire.messages import MAX_MESSAGE_BYTES, Progress
from hydra.wire.report_validation import MAX_UNACKNOWLEDGED_RANGES, join_beyond
from hydra.wire.subscriber_table import SubscriberTable, concatenate, decode
from hydra.wire.time_series import TimeSeriesSum

_PAGES_FROM: Final = 65_536

MAX_FINISH_RANGES_BYTES: Final = MAX_MESSAGE_BYTES // 2
"""The most bytes of the unacknowledged ranges in one ``finish``; the other half is for ids and end offsets."""


class ReceivedReports:
    """The subscribers' reports in the batches of relays: each batch is a table, and all of them form one table.

    Attributes:
        ids: the subscribers that have reported.
    """

    def __init__(self) -> None:
        self.ids = BitMap()
        self._tables: list[SubscriberTable] = []
        # The digest of each batch by its first client, to recognise a resent one.
        self._digests: dict[int, bytes] = {}

    def add(self, ids: BitMap, columns: Sequence[tuple[str, int]], payload: bytes) -> bool:
        """Adds a batch, or ignores a resent one; False if it differs from the first one of its clients.

        Raises:
            ValueError: the batch is malformed.
        """
        digest = _digest(ids, columns, payload)
        if self.ids.intersect(ids):
            return self._digests.get(ids.min()) == digest
        self._tables.append(decode(ids, columns, _apart(payload)))
        self._digests[ids.min()] = digest
        self.ids |= ids
        return True

    def table(self) -> SubscriberTable:
        """All reports so far, by rising ids; computed once until the next batch arrives."""
        if len(self._tables) != 1:
            # The parts are not kept, since they would take as much memory again.
            self._tables = [concatenate(self._tables)]
        return self._tables[0]


@dataclass(slots=True)
class EpochReplies:
    """The replies of clients in one epoch.

    Attributes:
        ready: publishers and servers that are ready, and subscribers that have proven that they are.
        endpoints: the endpoints of publishers and servers.
        publisher_reports: the reports of publishers by id.
        subscriber_reports: the reports of subscribers as one table.
        progress: the last progress message of each client that sends them.
        errors: the last error of each client.
        sent: the publishers' counts of the step's seconds that the time series does not contain yet.
        received: the same counts of subscribers outside the cohort.
        cohort_received: the same counts of the cohort.
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
    _acks: dict[int, BitMap] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def next_number(self) -> int:
        """The number of the next command of this epoch."""
        return next(self._numbers)

    def acknowledge(self, number: int, clients: BitMap) -> None:
        """Records that these clients have acknowledged the command of this number."""
        acked = self._acks.setdefault(number, BitMap())
        acked |= clients

    def acked(self, number: int) -> BitMap:
        """The clients that acknowledged the command of this number."""
        return self._acks.get(number, BitMap())


def _apart(payload: bytes) -> bytes | mmap:
    """The payload in memory pages of its own if it is large, which are freed as soon as it is in a table.

    The memory of many megabytes of bytes objects would stay with the process, without use for the next table.
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
"""The most bytes of a command in one round of resends, 1,000 of 16 kB, to limit the load of network and controller."""


class CommandRetry:
    """Clients that got a command and have not answered it.

    A command or its answer may be lost between the controller and a relay, so the command is resent, once for all
    clients of a connection that have not answered. Many relays may need longer to answer, and resends must not slow
    them down: while answers arrive, only a hundred relays at a time get it again, in turn; if no answer has arrived for
    2 s, a thousand get it, or fewer if the command is long. During a drain no answers arrive either, although nothing
    is lost.

    Arguments:
        connections: the clients that the command was sent to, by connection.
        now_s: the time of sending in seconds, on the clock of all later calls.
        timeout_s: the time limit for all answers in seconds.
        margin_s: the wait continues for at least this many seconds after the last new answer.
        every_s: the seconds between two resends.
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
        """Records how many have answered; a higher number than before extends the wait by the margin."""
        if answers > self._answers:
            self._answers = answers
            self._heard_s = now_s
            self._deadline_s = max(self._deadline_s, now_s + self._margin_s)

    def expired(self, now_s: float) -> bool:
        """Whether the wait for the remaining answers is over."""
        return now_s >= self._deadline_s

    def due(self, answered: BitMap, ended: BitMap, now_s: float) -> BitMap:
        """The clients to which the command is resent now; empty if that is not due.

        Args:
            answered: the clients that have answered.
            ended: the clients that will never answer.
            now_s: the present time in seconds.
        """
        if now_s < self._due_s:
            return BitMap()
        self._due_s = now_s + self._every_s
        done = answered | ended
        waiting = [left for ids in self._waiting if (left := ids - done)]
        most = _AT_A_TIME if now_s < self._heard_s + RESEND_EVERY_S else _AT_A_TIME_IN_SILENCE
        most = min(most, self._affordable)
        chosen = waiting[:most]
        self._waiting = waiting[most:] + chosen
        return BitMap().union(*chosen)


def fit_unacknowledged(reports: Mapping[int, PublisherReport]) -> dict[int, PublisherReport]:
    """The publishers' reports, with their unacknowledged ranges limited so that all of them fit into one ``finish``.

    Clients ignore a longer message. Reports with joined ranges are marked.
    """
    most = MAX_UNACKNOWLEDGED_RANGES
    while True:
        bounded = {p: join_beyond(r.unacknowledged, most) for p, r in reports.items()}
        if most == 1 or sum(len(msgspec.json.encode(r)) for r, _ in bounded.values()) <= MAX_FINISH_RANGES_BYTES:
            break
        most //= 2
    return {
        p: replace(reports[p], unacknowledged=ranges, unacknowledged_joined=joined or reports[p].unacknowledged_joined)
        for p, (ranges, joined) in bounded.items()
    }
