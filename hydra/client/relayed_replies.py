"""Replies of a relay's clients: missing ones, gathered ones, registrations, and reports as batches. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import msgspec

from hydra.model import GroupRole
from hydra.wire import RESEND_EVERY_S
from hydra.wire.messages import Batch, Configure, EpochCommand, Finish, Start, Stop
from hydra.wire.report_batch import BATCH_BYTES, BatchPart, join

Kind = type[EpochCommand]

RESEND_EVERY_NS: Final = round(RESEND_EVERY_S * 1e9)


@dataclass(slots=True)
class PendingCommand:
    """One command and the clients that have not answered it; the relay resends it to them at ``due_ns``."""

    command: EpochCommand
    due_ns: int
    waiting: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class CommandTargets:
    """The clients that get a command, and those that have answered it.

    ``fresh`` are the clients in ``recipients`` whose last command of this kind was not this one.
    """

    recipients: list[int]
    fresh: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)


class CommandReplies:
    """The commands of one epoch, which is the highest with a ``configure``.

    Args:
        role: the clients' role.
    """

    def __init__(self, role: GroupRole) -> None:
        self.epoch = 0
        self._role = role
        self._pending: list[PendingCommand] = []
        self._latest: dict[Kind, dict[int, PendingCommand]] = {}

    def give(self, command: EpochCommand, clients: Iterable[int], now_ns: int) -> CommandTargets:
        """Records a command to these clients.

        If a client's last command was the same but for the ids, this is a repetition. A ``configure`` of a higher epoch
        discards everything of the previous epoch. A command of another epoch is sent, but no answer is expected.
        """
        if isinstance(command, Configure) and command.epoch > self.epoch:
            self.epoch = command.epoch
            self._pending.clear()
            self._latest.clear()
        if command.epoch != self.epoch:
            return CommandTargets(list(clients))
        entry = self._entry(command, now_ns)
        latest = self._latest.setdefault(type(command), {})
        given = CommandTargets([])
        for client in clients:
            before = latest.get(client)
            if self._is_ignored(command, client):
                given.recipients.append(client)
                continue
            if before is entry:
                (given.recipients if client in entry.waiting else given.answered).append(client)
                continue
            if before is not None:
                before.waiting.discard(client)
            latest[client] = entry
            entry.waiting.add(client)
            given.recipients.append(client)
            given.fresh.append(client)
        if given.recipients:
            entry.due_ns = now_ns + RESEND_EVERY_NS
        return given

    def answered(self, kind: Kind, number: int, clients: Iterable[int]) -> list[int]:
        """Records these clients' answers to the command of this kind and number.

        Returns the clients whose last command of its kind it is; the answers of the others are late, or answer nothing.
        """
        timely = [client for client in clients if not self.is_late(kind, number, client)]
        for client in timely:
            self._latest[kind][client].waiting.discard(client)
        return timely

    def is_late(self, kind: Kind, number: int, client: int) -> bool:
        """Whether the client's last command of this kind, if it has had one, is not the one of this number."""
        last = self._latest.get(kind, {}).get(client)
        return last is None or last.command.number != number

    def left(self, clients: Iterable[int]) -> None:
        """Discards clients that have ended: they will not answer, and their replacements have had no command."""
        for latest in self._latest.values():
            for client in clients:
                if (last := latest.pop(client, None)) is not None:
                    last.waiting.discard(client)

    def awaited(self, kind: Kind) -> bool:
        """Whether a command of this kind is still without an answer from a client."""
        return any(entry.waiting for entry in self._pending if isinstance(entry.command, kind))

    def waits(self, kind: Kind, client: int) -> bool:
        """Whether this client has not answered its command of this kind."""
        last = self._latest.get(kind, {}).get(client)
        return last is not None and client in last.waiting

    def next_ns(self) -> int | None:
        """When the next command has to be resent; None if all clients have answered all commands."""
        return min((entry.due_ns for entry in self._pending if entry.waiting), default=None)

    def resends(self, now_ns: int) -> list[tuple[EpochCommand, list[int]]]:
        """The commands to resend now, each with its clients."""
        due = [entry for entry in self._pending if entry.waiting and now_ns >= entry.due_ns]
        for entry in due:
            entry.due_ns = now_ns + RESEND_EVERY_NS
        return [(entry.command, sorted(entry.waiting)) for entry in due]

    def _is_ignored(self, command: EpochCommand, client: int) -> bool:
        """Whether the client ignores this command.

        The command is not resent: a late copy could be obeyed in another state.
        """
        if isinstance(command, Configure):
            return False
        stops_unstarted = isinstance(command, Stop) and client not in self._latest.get(Start, {})
        if self._role == "publisher" and (isinstance(command, Finish) or stops_unstarted):
            return True
        return client not in self._latest.get(Configure, {})

    def _entry(self, command: EpochCommand, now_ns: int) -> PendingCommand:
        plain = msgspec.structs.replace(command, ids=[])
        for entry in self._pending:
            if entry.command == plain:
                return entry
        self._pending.append(PendingCommand(plain, now_ns))
        return self._pending[-1]


GATHERED_WITHIN_NS: Final = 10_000_000
"""How long the first reply waits for equal replies of other clients, ns."""

K = TypeVar("K", bound=Hashable)


class ReplyAggregator(Generic[K]):
    """Replies of clients that were not sent to the controller yet, by their common content (``K``)."""

    def __init__(self) -> None:
        self._waiting: dict[K, tuple[int, set[int]]] = {}

    def add(self, content: K, clients: Iterable[int], now_ns: int) -> None:
        """Adds a reply of these clients."""
        self._waiting.setdefault(content, (now_ns + GATHERED_WITHIN_NS, set()))[1].update(clients)

    def next_ns(self) -> int | None:
        """When the next reply has waited long enough; None if no reply waits."""
        return min((due_ns for due_ns, _ in self._waiting.values()), default=None)

    def take(self, now_ns: int, complete: Callable[[K], bool]) -> list[tuple[K, list[int]]]:
        """Removes and returns the replies that need not wait longer, oldest first, each with its clients, ascending.

        Args:
            now_ns: the present time.
            complete: whether no other client is expected to send this reply.
        """
        ready = [content for content, (due_ns, _) in self._waiting.items() if now_ns >= due_ns or complete(content)]
        return [(content, sorted(self._waiting.pop(content)[1])) for content in ready]

    def clear(self) -> None:
        """Discards all replies that wait."""
        self._waiting.clear()


class PendingRegistrations:
    """Clients that have joined: their registrations are sent together, and resent until a welcome names the client."""

    def __init__(self) -> None:
        self._unsent: set[int] = set()
        self._unnamed: set[int] = set()
        self._named: set[int] = set()
        # An earlier process with this id left before a welcome named it: a welcome that follows may mean that process.
        self._mistakable: set[int] = set()
        self._unsent_ns = 0
        self._unnamed_ns = 0

    def add(self, clients: Iterable[int], now_ns: int) -> None:
        """Records that these clients have joined."""
        if not self._unsent:
            self._unsent_ns = now_ns + GATHERED_WITHIN_NS
        self._unsent.update(set(clients) - self._named)
        self._unnamed.difference_update(clients)

    def named(self, clients: Iterable[int]) -> None:
        """Records a welcome for these clients; a welcome before the registration was sent means an earlier process."""
        meant = self._unnamed.intersection(clients) - self._mistakable
        self._mistakable.difference_update(clients)
        self._unnamed -= meant
        self._named |= meant

    def is_named(self, client: int) -> bool:
        """Whether the controller knows the present process of this client."""
        return client in self._named

    def left(self, clients: Iterable[int]) -> None:
        """Discards clients that have ended."""
        self._mistakable.update(self._unnamed.intersection(clients))
        for some in (self._unsent, self._unnamed, self._named):
            some.difference_update(clients)

    def next_ns(self) -> int | None:
        """When the next registration has to be sent; None if there is none."""
        due = [self._unsent_ns] * bool(self._unsent) + [self._unnamed_ns] * bool(self._unnamed)
        return min(due, default=None)

    def take(self, now_ns: int, *, complete: bool) -> list[int]:
        """The clients to register now, ascending; ``complete``: no other client is expected to join."""
        found: set[int] = set()
        if self._unnamed and now_ns >= self._unnamed_ns:
            found |= self._unnamed
            self._unnamed_ns = now_ns + RESEND_EVERY_NS
        if self._unsent and (complete or now_ns >= self._unsent_ns):
            if not self._unnamed:
                self._unnamed_ns = now_ns + RESEND_EVERY_NS
            found |= self._unsent
            self._unnamed |= self._unsent
            self._unsent.clear()
        return sorted(found)


BATCHED_WITHIN_NS: Final = 500_000_000
"""How long the first report of a batch waits for others, ns."""


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """One batch: its first frame (without ``seq``) and its second."""

    head: Batch
    payload: bytes


class ReportBatches:
    """The reports of one epoch: the parts that wait for a batch, and the finished batches."""

    def __init__(self) -> None:
        self._waiting: list[BatchPart] = []
        self._bytes = 0
        self._due_ns = 0
        self._made: dict[int, ReportBatch | None] = {}  # None: the client's report waits

    def holds(self, client: int) -> bool:
        """Whether the client has reported."""
        return client in self._made

    def add(self, epoch: int, part: BatchPart, now_ns: int) -> list[ReportBatch]:
        """Adds the reports of clients that have not reported; returns the batches to send now."""
        full = self.flush(epoch) if self._bytes + part.size > BATCH_BYTES else []
        if not self._waiting:
            self._due_ns = now_ns + BATCHED_WITHIN_NS
        self._waiting.append(part)
        self._bytes += part.size
        self._made.update(dict.fromkeys(part.ids))
        return full + (self.flush(epoch) if self._bytes >= BATCH_BYTES else [])

    def flush(self, epoch: int) -> list[ReportBatch]:
        """The batch of all reports that wait; empty if none waits."""
        if not self._waiting:
            return []
        ids, columns, payload = join(self._waiting)
        made = ReportBatch(Batch(ids=ids, seq=1, epoch=epoch, columns=columns), payload)
        self._made.update(dict.fromkeys(ids, made))
        self._waiting.clear()
        self._bytes = 0
        return [made]

    def next_ns(self) -> int | None:
        """When the first report that waits has waited long enough; None if none waits."""
        return self._due_ns if self._waiting else None

    def of(self, clients: Iterable[int]) -> list[ReportBatch]:
        """The batches with these clients' reports, each batch once."""
        return list({id(made): made for client in clients if (made := self._made.get(client))}.values())

    def clear(self) -> None:
        """Discards everything at the start of another epoch."""
        self._waiting.clear()
        self._bytes = 0
        self._made.clear()
