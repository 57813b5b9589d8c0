"""Which client of a group was told what in an epoch, and who has not answered. Pure, time is passed in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from hydra.model import GroupRole
from hydra.wire.messages import Configure, EpochCommand, Finish, Start, Stop
from hydra.wire.protocol_constants import RESEND_EVERY_S

Kind = type[EpochCommand]

RESEND_EVERY_NS: Final = round(RESEND_EVERY_S * 1e9)


@dataclass(slots=True)
class Told:
    """One command, and those of its clients that have not answered it; it is said to them again at ``due_ns``."""

    command: EpochCommand
    due_ns: int
    waiting: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Given:
    """Which clients get a command, and which have answered it.

    ``new`` are those of ``tell`` that had not been told it last; ``changed`` those of ``new`` that had been told
    another one of its kind: an answer to that may still be on its way.
    """

    tell: list[int]
    new: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)


class Commands:
    """The commands of one epoch, the highest of which there was a ``configure``.

    Args:
        role: of the clients.
    """

    def __init__(self, role: GroupRole) -> None:
        self.epoch = 0
        self._role = role
        self._told: list[Told] = []
        self._latest: dict[Kind, dict[int, Told]] = {}

    def give(self, command: EpochCommand, clients: Iterable[int], now_ns: int) -> Given:
        """Takes note of a command to these clients.

        One that a client had been told last, but for the ids, is a repetition. A ``configure`` of a higher epoch makes
        everything of the one before forgotten. What belongs to another epoch is told, and nobody waits for an answer.
        """
        if isinstance(command, Configure) and command.epoch > self.epoch:
            self.epoch = command.epoch
            self._told.clear()
            self._latest.clear()
        if command.epoch != self.epoch:
            return Given(list(clients))
        told = self._entry(command, now_ns)
        latest = self._latest.setdefault(type(command), {})
        given = Given([])
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

    def _entry(self, command: EpochCommand, now_ns: int) -> Told:
        plain = msgspec.structs.replace(command, ids=[])
        for told in self._told:
            if told.command == plain:
                return told
        self._told.append(Told(plain, now_ns))
        return self._told[-1]

    def _of(self, kind: Kind) -> Iterator[Told]:
        return (told for told in self._told if isinstance(told.command, kind))
