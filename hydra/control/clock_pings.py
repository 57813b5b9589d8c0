"""Which relay is asked for its host's time, and when. No sockets, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from hydra.control.clock_offset import Exchange, HostClockEstimate, HostKey

_PINGS: Final = 8
_BURST_EVERY_NS: Final = 1_000_000_000
_LOST_AFTER_NS: Final = 250_000_000


@dataclass(slots=True)
class _Host:
    """One host's relays and servers, the first of which is asked, and the burst that is under way.

    Attributes:
        asked: the times of the burst's pings that were not answered yet.
        last_ns: that of the last of them.
        due_ns: when the next ping is sent, unless the last is answered before.
    """

    due_ns: int
    estimate: HostClockEstimate = field(default_factory=HostClockEstimate)
    posts: list[bytes] = field(default_factory=list)
    bursts: int = 0
    begun_ns: int = 0
    sent: int = 0
    last_ns: int = 0
    asked: set[int] = field(default_factory=set)
    answers: list[Exchange] = field(default_factory=list)

    def ping(self, now_ns: int) -> None:
        if not self.sent:
            self.begun_ns = now_ns
        self.sent += 1
        self.last_ns = now_ns
        self.asked.add(now_ns)
        self.due_ns = now_ns + _LOST_AFTER_NS

    def end_burst(self) -> None:
        """Takes what was answered; who answered nothing is asked last from now on."""
        if self.answers:
            self.estimate.add(self.answers)
            self.bursts += 1
        else:
            self.posts = self.posts[1:] + self.posts[:1]
        self.due_ns = self.begun_ns + _BURST_EVERY_NS
        self.sent = 0
        self.asked = set()
        self.answers = []


class Timekeeper:
    """Whom to ask for the time and when: one relay or server of each host, eight times in a row, each second or sooner.

    Each of the eight is sent when the one before is answered, or after 0.25 s. Times are the controller's, ns.

    Args:
        own: the controller's host, which is never asked.
    """

    def __init__(self, own: HostKey) -> None:
        self._own = own
        self._hosts: dict[HostKey, _Host] = {}
        self._host_of: dict[bytes, _Host] = {}

    def joined(self, identity: bytes, host_key: HostKey, now_ns: int) -> None:
        """A relay or server said hello; the first of its host is asked at once. Saying it again changes nothing."""
        if host_key == self._own or identity in self._host_of:
            return
        host = self._hosts.setdefault(host_key, _Host(now_ns))
        host.posts.append(identity)
        self._host_of[identity] = host

    def left(self, identity: bytes) -> None:
        """A connection is gone: another of its host takes its place, if it was one that was asked."""
        host = self._host_of.pop(identity, None)
        if host is None:
            return
        asked = host.posts[0] == identity
        if asked and host.sent:
            host.end_burst()
            host.due_ns = host.last_ns
        host.posts.remove(identity)

    def due(self, now_ns: int) -> list[tuple[bytes, int]]:
        """The pings to send right now: to whom, and with which time."""
        pings: list[tuple[bytes, int]] = []
        for host in self._hosts.values():
            if host.posts and now_ns >= host.due_ns and host.sent == _PINGS:
                host.end_burst()
            if host.posts and now_ns >= host.due_ns:
                host.ping(now_ns)
                pings.append((host.posts[0], now_ns))
        return pings

    def hurry(self) -> None:
        """The next burst of every host begins now, unless one is under way."""
        for host in self._hosts.values():
            if not host.sent:
                host.due_ns = 0

    def next_due_ns(self, now_ns: int) -> int:
        """When :meth:`due` has something to do next; a second from now where nobody is asked."""
        return min((h.due_ns for h in self._hosts.values() if h.posts), default=now_ns + _BURST_EVERY_NS)

    def heard(self, identity: bytes, echo: int, remote_ns: int, received_ns: int) -> None:
        """Takes an answer: the time in the ping, what the host's clock showed, and when the answer came.

        What was not asked in the burst under way is ignored.
        """
        host = self._host_of.get(identity)
        if host is None or host.posts[0] != identity or echo not in host.asked:
            return
        host.asked.remove(echo)
        host.answers.append(Exchange(echo, remote_ns, received_ns))
        if echo != host.last_ns:
            return
        if host.sent == _PINGS:
            host.end_burst()
        else:
            host.due_ns = received_ns

    def estimate(self, host_key: HostKey) -> HostClockEstimate | None:
        """What is known of this host's clock; None for one of which nobody was ever here, and for our own."""
        host = self._hosts.get(host_key)
        return None if host is None else host.estimate

    def bursts(self, host_key: HostKey) -> int:
        """How many bursts were answered by this host."""
        host = self._hosts.get(host_key)
        return 0 if host is None else host.bursts
