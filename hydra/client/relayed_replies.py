"""Answers of a relay's clients: who has not answered, which are gathered, who is new, reports as batches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec

from hydra.model import GroupRole, SubscriberReport
from hydra.wire import report_batch
from hydra.wire.messages import Batch, Configure, EpochCommand, Finish, Start, Stop
from hydra.wire.protocol_constants import RESEND_EVERY_S

Kind = type[EpochCommand]

RESEND_EVERY_NS: Final = round(RESEND_EVERY_S * 1e9)


@dataclass(slots=True)
class PendingCommand:
    """One command, and those of its clients that have not answered it; it is said to them again at ``due_ns``."""

    command: EpochCommand
    due_ns: int
    waiting: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class CommandTargets:
    """Which clients get a command, and which have answered it.

    ``new`` are those of ``tell`` that had not been told it last; ``changed`` those of ``new`` that had been told
    another one of its kind: an answer to that may still be on its way.
    """

    tell: list[int]
    new: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)


class CommandReplies:
    """The commands of one epoch, the highest of which there was a ``configure``.

    Args:
        role: of the clients.
    """

    def __init__(self, role: GroupRole) -> None:
        self.epoch = 0
        self._role = role
        self._told: list[PendingCommand] = []
        self._latest: dict[Kind, dict[int, PendingCommand]] = {}

    def give(self, command: EpochCommand, clients: Iterable[int], now_ns: int) -> CommandTargets:
        """Takes note of a command to these clients.

        One that a client had been told last, but for the ids, is a repetition. A ``configure`` of a higher epoch makes
        everything of the one before forgotten. What belongs to another epoch is told, and nobody waits for an answer.
        """
        if isinstance(command, Configure) and command.epoch > self.epoch:
            self.epoch = command.epoch
            self._told.clear()
            self._latest.clear()
        if command.epoch != self.epoch:
            return CommandTargets(list(clients))
        told = self._entry(command, now_ns)
        latest = self._latest.setdefault(type(command), {})
        given = CommandTargets([])
        for client in clients:
            before = latest.get(client)
            if self._unheeded(command, client):
                given.tell.append(client)
                continue
            if before is told:
                (given.tell if client in told.waiting else given.answered).append(client)
                continue
            if before is not None:
                before.waiting.discard(client)
                given.changed.append(client)
            latest[client] = told
            told.waiting.add(client)
            given.tell.append(client)
            given.new.append(client)
        if given.tell:
            told.due_ns = now_ns + RESEND_EVERY_NS
        return given

    def answered(self, kind: Kind, clients: Iterable[int]) -> None:
        """These clients have answered the command of this kind."""
        latest = self._latest.get(kind, {})
        for client in clients:
            if client in latest:
                latest[client].waiting.discard(client)

    def left(self, clients: Iterable[int]) -> None:
        """These clients are gone: nobody waits for them, and whoever replaces them has been told nothing."""
        for latest in self._latest.values():
            for client in clients:
                if (told := latest.pop(client, None)) is not None:
                    told.waiting.discard(client)

    def awaited(self, kind: Kind) -> bool:
        """Whether an answer to a command of this kind is still to come."""
        return any(told.waiting for told in self._of(kind))

    def waits(self, kind: Kind, client: int) -> bool:
        """Whether this client's answer to a command of this kind is still to come."""
        told = self._latest.get(kind, {}).get(client)
        return told is not None and client in told.waiting

    def next_ns(self) -> int | None:
        """When something has to be said again; None when everybody has answered everything."""
        return min((told.due_ns for told in self._told if told.waiting), default=None)

    def again(self, now_ns: int) -> list[tuple[EpochCommand, list[int]]]:
        """What is to be said again now, and to whom."""
        due = [told for told in self._told if told.waiting and now_ns >= told.due_ns]
        for told in due:
            told.due_ns = now_ns + RESEND_EVERY_NS
        return [(told.command, sorted(told.waiting)) for told in due]

    def _unheeded(self, command: EpochCommand, client: int) -> bool:
        """Whether this client ignores it. Said again later, it might be heeded when it is no longer meant."""
        if isinstance(command, Configure):
            return False
        stops_unstarted = isinstance(command, Stop) and client not in self._latest.get(Start, {})
        if self._role == "publisher" and (isinstance(command, Finish) or stops_unstarted):
            return True
        return client not in self._latest.get(Configure, {})

    def _entry(self, command: EpochCommand, now_ns: int) -> PendingCommand:
        plain = msgspec.structs.replace(command, ids=[])
        for told in self._told:
            if told.command == plain:
                return told
        self._told.append(PendingCommand(plain, now_ns))
        return self._told[-1]

    def _of(self, kind: Kind) -> Iterator[PendingCommand]:
        return (told for told in self._told if isinstance(told.command, kind))


GATHERED_WITHIN_NS: Final = 10_000_000
"""How long the first of them waits for the others."""

K = TypeVar("K", bound=Hashable)


class ReplyAggregator(Generic[K]):
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


class PendingRegistrations:
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


BATCHED_WITHIN_NS: Final = 500_000_000
"""How long the first report waits for the others."""


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """One batch: its first frame (but for ``seq``) and its second."""

    head: Batch
    payload: bytes


class ReportBatches:
    """The reports of one epoch: those that wait for a batch, and the batches."""

    def __init__(self) -> None:
        self._waiting: dict[int, SubscriberReport] = {}
        self._bytes = 0
        self._due_ns = 0
        self._made: dict[int, ReportBatch] = {}

    def add(
        self, epoch: int, client: int, report: SubscriberReport, cohort: Container[int], now_ns: int
    ) -> list[ReportBatch]:
        """Takes a client's report, the first of which counts; what has to be sent now."""
        if client in self._made or client in self._waiting:
            return []
        size = report_batch.report_bytes(report)
        full = self.flush(epoch, cohort) if self._waiting and self._bytes + size > report_batch.BATCH_BYTES else []
        if not self._waiting:
            self._due_ns = now_ns + BATCHED_WITHIN_NS
        self._waiting[client] = report
        self._bytes += size
        return full + (self.flush(epoch, cohort) if self._bytes >= report_batch.BATCH_BYTES else [])

    def flush(self, epoch: int, cohort: Container[int]) -> list[ReportBatch]:
        """The batch of what waits; none if nothing does."""
        if not self._waiting:
            return []
        reports = sorted(self._waiting.items(), key=lambda one: one[0])
        columns, payload = report_batch.encode(reports, cohort)
        ids = [client for client, _ in reports]
        made = ReportBatch(Batch(ids=ids, seq=1, epoch=epoch, columns=columns), payload)
        self._made.update(dict.fromkeys(ids, made))
        self._waiting.clear()
        self._bytes = 0
        return [made]

    def next_ns(self) -> int | None:
        """When what waits has waited long enough; None when nothing waits."""
        return self._due_ns if self._waiting else None

    def of(self, clients: Iterable[int]) -> list[ReportBatch]:
        """The batches that hold these clients' reports, each once."""
        return list({id(made): made for client in clients if (made := self._made.get(client))}.values())

    def clear(self) -> None:
        """Forgets everything: another epoch has begun."""
        self._waiting.clear()
        self._bytes = 0
        self._made.clear()
