"""Readings of kernel files on other hosts: which relay or server is asked, and its answer. No sockets, no clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from hydra.control.clock_offset import HostKey
from hydra.wire.messages import KernelTexts, Look
from hydra.wire.protocol_constants import RESEND_EVERY_S

_AGAIN_NS: Final = round(RESEND_EVERY_S * 1e9)


@dataclass(slots=True)
class _Question:
    """A command to hosts, and their answers.

    ``due_ns`` has the time of the next command to each host without an answer; ``hosts`` has the hosts that got one.
    """

    look: Look
    due_ns: dict[HostKey, int]
    hosts: set[HostKey] = field(default_factory=set)
    answers: dict[HostKey, KernelTexts] = field(default_factory=dict)


class KernelTextRequests:
    """Asks one relay or server of every host but the controller's own, another one after each 2 s without an answer.

    The one that answered is asked the next time, too: another container of the host sees other processes and limits.
    Times are on the controller's clock, ns.

    Args:
        own: the controller's host, which the controller reads itself.
    """

    def __init__(self, own: HostKey) -> None:
        self._own = own
        self._sources: dict[HostKey, list[bytes]] = {}
        self._host_of: dict[bytes, HostKey] = {}
        self._questions: dict[int, _Question] = {}
        self._count = 0

    def joined(self, identity: bytes, host: HostKey) -> None:
        """Adds a relay or server after its hello."""
        if host != self._own:
            self._sources.setdefault(host, []).append(identity)
            self._host_of[identity] = host

    def left(self, identity: bytes) -> None:
        """Removes a connection."""
        host = self._host_of.pop(identity, None)
        if host is not None:
            self._sources[host].remove(identity)

    def hosts(self) -> list[HostKey]:
        """The other hosts that have a relay or server."""
        return [host for host, sources in self._sources.items() if sources]

    def ask(self, hosts: Iterable[HostKey], patterns: Sequence[str], most_bytes: int, now_ns: int) -> int:
        """Has these files read on these hosts; returns the number of the question."""
        self._count += 1
        look = Look(number=self._count, patterns=list(patterns), most_bytes=most_bytes)
        self._questions[self._count] = _Question(look, dict.fromkeys(hosts, now_ns))
        return self._count

    def due(self, now_ns: int) -> list[tuple[bytes, Look]]:
        """The commands to send now, with the identity of each receiver."""
        messages = []
        for question in self._questions.values():
            for host, due_ns in question.due_ns.items():
                sources = self._sources[host]
                if now_ns >= due_ns and sources:
                    if host in question.hosts:
                        sources.append(sources.pop(0))
                    question.hosts.add(host)
                    question.due_ns[host] = now_ns + _AGAIN_NS
                    messages.append((sources[0], question.look))
        return messages

    def heard(self, identity: bytes, message: KernelTexts) -> None:
        """Adds an answer; one to a question that has ended is ignored."""
        host, question = self._host_of.get(identity), self._questions.get(message.number)
        if host is not None and question is not None and host in question.due_ns:
            del question.due_ns[host]
            question.answers[host] = message

    def answered(self, number: int) -> bool:
        """Whether all hosts that still have a relay or server have answered this question."""
        return not any(self._sources[host] for host in self._questions[number].due_ns)

    def end(self, number: int) -> Mapping[HostKey, KernelTexts]:
        """Ends a question, and returns the answers until now by host."""
        return self._questions.pop(number).answers
