"""Estimates of the clocks of other hosts, and the schedule of the pings for them. No sockets, no clock.

A host's clock is its CLOCK_MONOTONIC; its offset is that clock minus the controller's. Nothing is assumed about the
network: a ping's answer shows only that the host's clock was read between the sending of the ping and the arrival of
the answer. A clock's rate is assumed to stay within `_WANDER` of some rate, which differs from the controller's by at
most `_MOST_RATE`. A clock that contradicts this (it was set, or the host was suspended) is counted as a jump, and its
estimate starts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from math import ceil
from typing import Final

HostKey = tuple[str, str]
"""Boot id and time namespace: processes with the same two share one CLOCK_MONOTONIC."""

_KEPT: Final = 64
_MOST_RATE: Final = 1e-3
"""Each of the two clocks may be slewed by as much as NTP does, 500 ppm."""
_WANDER: Final = 1e-6
_RATE_FROM_NS: Final = 500_000_000
"""Bursts that are closer together are not used for the rate."""
_NOISE_NS: Final = 10_000
"""A smaller difference of two round trips does not show which of them was delayed."""


@dataclass(frozen=True, slots=True)
class PingExchange:
    """A ping and its answer, ns: the times of sending and receiving on the controller's clock, and the host's clock."""

    sent_ns: int
    remote_ns: int
    received_ns: int

    @property
    def rtt_ns(self) -> int:
        """The round trip time."""
        return self.received_ns - self.sent_ns

    @property
    def middle_ns(self) -> int:
        """The middle of the round trip on the controller's clock."""
        return (self.sent_ns + self.received_ns) // 2


@dataclass(frozen=True, slots=True)
class ClockLine:
    """A host's clock as a straight line.

    Attributes:
        offset_ns: the host's clock minus the controller's, at `at_ns`.
        at_ns: the time of `offset_ns` on the controller's clock.
        rate_ppb: the growth of the offset in a second of the controller's clock, ns.
        error_ns: the largest error of the offset at `at_ns`.
    """

    offset_ns: int
    at_ns: int
    rate_ppb: int
    error_ns: int

    def offset_at(self, controller_ns: int) -> int:
        """The offset at this time of the controller's clock."""
        return self.offset_ns + (controller_ns - self.at_ns) * self.rate_ppb // 10**9

    def controller_ns(self, host_ns: int) -> int:
        """The controller's clock at this time of the host's clock, within a few ns."""
        return host_ns - self.offset_at(host_ns - self.offset_ns)

    @property
    def inverse_rate_ppb(self) -> int:
        """How much faster the controller's clock runs than the host's, in 1e-9: -rate / (1 + rate)."""
        return round(-self.rate_ppb * 10**9 / (10**9 + self.rate_ppb))


class HostClockEstimate:
    """The clock of one host, from bursts of pings to it.

    At the time of sending, the offset was at most the host's clock minus that time; at the time of arrival, it was at
    least the host's clock minus that time. Between such points the offset lies between the lower convex hull of the
    first and the upper convex hull of the second (Moon, Skelly and Towsley, INFOCOM 1999), for any rate and any
    distribution of the delay over the two directions; beyond the points, within the rates that they allow.

    Attributes:
        jumps: how often the clock contradicted its estimate.
    """

    def __init__(self) -> None:
        self.jumps = 0
        self._kept: list[PingExchange] = []

    @property
    def rtt_min_ns(self) -> int:
        """The shortest kept round trip; 0 before the first."""
        return min((e.rtt_ns for e in self._kept), default=0)

    def add(self, burst: Sequence[PingExchange]) -> None:
        """Adds the exchange of a burst with the shortest round trip; ignores an empty burst. Bursts come in order."""
        if not burst:
            return
        self._kept.append(min(burst, key=lambda e: e.rtt_ns))
        if len(self._kept) > _KEPT:
            self._thin_out()
        if _Allowed(self._kept).contradictory:
            del self._kept[:-1]
            self.jumps += 1

    def line(self, now_ns: int) -> ClockLine | None:
        """The best estimate of the clock now and its rate; None before the first burst.

        The rate and the offset come from the exchanges with the least delay for their age, and assume that both
        directions of the shortest round trip take the same time. The error does not rely on that assumption.
        """
        if not self._kept:
            return None
        allowed, shortest = _Allowed(self._kept), self.rtt_min_ns
        rate, doubt = self._rate(shortest)
        rate = min(max(rate, allowed.slowest), allowed.fastest)
        best = min(self._kept, key=lambda e: (e.rtt_ns - shortest) / 2 + doubt * (now_ns - e.middle_ns))
        offset = best.remote_ns - best.middle_ns + round(rate * (now_ns - best.middle_ns))
        least, most = allowed.least(now_ns), allowed.most(now_ns)
        offset = min(max(offset, least), most)
        return ClockLine(offset, now_ns, round(rate * 1e9), max(most - offset, offset - least))

    def bound(self, line: ClockLine, first_ns: int, last_ns: int) -> int:
        """The largest error of this line at any time from `first_ns` to `last_ns`, ns.

        Args:
            line: an earlier result of :meth:`line`.
            first_ns: a time on the controller's clock.
            last_ns: a time on the controller's clock. The bound is tightest if a later burst has been answered.

        Raises:
            ValueError: there was no burst yet.
        """
        if not self._kept:
            raise ValueError("this clock has answered no ping")
        allowed = _Allowed(self._kept)
        heard = (at for e in self._kept for at in (e.sent_ns, e.received_ns) if first_ns < at < last_ns)
        moments = [first_ns, *heard, last_ns]
        worst = max(
            max(allowed.most(at) - line.offset_at(at), line.offset_at(at) - allowed.least(at)) for at in moments
        )
        # Between two moments the clock may have drifted away and back.
        between_ns = _WANDER / 2 * max(later - at for at, later in pairwise(moments))
        # The host gets the rate in whole ppb, which is a second rounding.
        return worst + ceil(between_ns + max(0, last_ns - line.at_ns) / 1e9)

    def _rate(self, shortest_ns: int) -> tuple[float, float]:
        """The rate between the two exchanges that fix it best, and its error if both directions are equally fast."""
        best, doubt = 0.0, _MOST_RATE
        for a, b in combinations(self._kept, 2):
            apart = b.middle_ns - a.middle_ns
            if apart < _RATE_FROM_NS:
                continue
            wrong = (a.rtt_ns + b.rtt_ns - 2 * shortest_ns + _NOISE_NS) / 2 / apart
            if wrong < doubt:
                best, doubt = (b.remote_ns - a.remote_ns - apart) / apart, wrong
        return best, doubt + _WANDER

    def _thin_out(self) -> None:
        """Drops one of the two closest exchanges, that with the longer round trip, but never the first or the last."""
        kept = self._kept
        near = min(range(1, len(kept) - 2), key=lambda i: kept[i + 1].sent_ns - kept[i].sent_ns)
        del kept[near + (kept[near + 1].rtt_ns >= kept[near].rtt_ns)]


class _Allowed:
    """The offsets and rates that exchanges allow.

    Attributes:
        slowest, fastest: the lowest and highest rate of a straight line that fits all of them.
        contradictory: whether no line fits, even if its rate varies by the wander.
    """

    def __init__(self, exchanges: Sequence[PingExchange]) -> None:
        self._high = [(e.sent_ns, e.remote_ns - e.sent_ns) for e in exchanges]
        self._low_negated = [(e.received_ns, e.received_ns - e.remote_ns) for e in exchanges]
        self.slowest, self.fastest = -_MOST_RATE, _MOST_RATE
        for (high_at, high), (low_at, low_negated) in product(_lower_hull(self._high), _lower_hull(self._low_negated)):
            if low_at < high_at:
                self.fastest = min(self.fastest, (high + low_negated) / (high_at - low_at))
            elif low_at > high_at:
                self.slowest = max(self.slowest, (-low_negated - high) / (low_at - high_at))
        # Both limits may be off by the wander, and so may the clock's rate beyond the points.
        self.contradictory = self.slowest - _WANDER > self.fastest + _WANDER
        self._reach = self.slowest - 2 * _WANDER, self.fastest + 2 * _WANDER

    def most(self, at_ns: int) -> int:
        """The largest offset at this time."""
        slowest, fastest = self._reach
        return _ceiling(self._high, at_ns, slowest, fastest)

    def least(self, at_ns: int) -> int:
        """The smallest offset at this time."""
        slowest, fastest = self._reach
        return -_ceiling(self._low_negated, at_ns, -fastest, -slowest)


_Point = tuple[int, int]
"""A time and an offset, ns."""


def _ceiling(points: Sequence[_Point], at_ns: int, slowest: float, fastest: float) -> int:
    """The largest value at this time of a line that stays below all points, with a rate between the two given ones.

    A line of one rate stays below the chord of any two points. A line whose rate wanders does so if each point is
    raised by the drift that is possible between the point and this time.
    """
    hull = _lower_hull((at, value + ceil(_WANDER * abs(at_ns - at))) for at, value in points)
    for left, right in pairwise(hull):
        if left[0] <= at_ns <= right[0]:
            return left[1] + ceil((right[1] - left[1]) * (at_ns - left[0]) / (right[0] - left[0]))
    return min(value + ceil((fastest if at_ns > at else slowest) * (at_ns - at)) for at, value in points)


def _lower_hull(points: Iterable[_Point]) -> list[_Point]:
    """The lower convex hull of points in the order of their times (Andrew's monotone chain)."""
    hull: list[_Point] = []
    for point in points:
        while len(hull) > 1 and _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _above(left: _Point, middle: _Point, right: _Point) -> bool:
    """Whether the middle point is on or above the line through the others."""
    return (middle[1] - left[1]) * (right[0] - left[0]) >= (right[1] - left[1]) * (middle[0] - left[0])


_PINGS: Final = 8
_BURST_EVERY_NS: Final = 1_000_000_000
_LOST_AFTER_NS: Final = 250_000_000


@dataclass(slots=True)
class _Host:
    """One host's relays and servers, the first of which is pinged, and the present burst.

    Attributes:
        pinged: the times of the burst's unanswered pings.
        last_ns: the time of the last ping.
        due_ns: the time of the next ping, unless the last one is answered before.
    """

    due_ns: int
    estimate: HostClockEstimate = field(default_factory=HostClockEstimate)
    posts: list[bytes] = field(default_factory=list)
    bursts: int = 0
    begun_ns: int = 0
    sent: int = 0
    last_ns: int = 0
    pinged: set[int] = field(default_factory=set)
    answers: list[PingExchange] = field(default_factory=list)

    def ping(self, now_ns: int) -> None:
        if not self.sent:
            self.begun_ns = now_ns
        self.sent += 1
        self.last_ns = now_ns
        self.pinged.add(now_ns)
        self.due_ns = now_ns + _LOST_AFTER_NS

    def end_burst(self) -> None:
        """Adds the answers of the burst; a relay or server that answered nothing moves to the end of the list."""
        if self.answers:
            self.estimate.add(self.answers)
            self.bursts += 1
        else:
            self.posts = self.posts[1:] + self.posts[:1]
        self.due_ns = self.begun_ns + _BURST_EVERY_NS
        self.sent = 0
        self.pinged = set()
        self.answers = []


class ClockPings:
    """The schedule of pings: a burst of eight to one relay or server of each host, every second or sooner.

    Each ping of a burst is sent when the one before is answered, or after 0.25 s. Times are on the controller's clock,
    ns.

    Args:
        own: the controller's host, which is never pinged.
    """

    def __init__(self, own: HostKey) -> None:
        self._own = own
        self._hosts: dict[HostKey, _Host] = {}
        self._host_of: dict[bytes, _Host] = {}

    def joined(self, identity: bytes, host_key: HostKey, now_ns: int) -> None:
        """Adds a relay or server after its hello; the first of a host is pinged at once. A second call does nothing."""
        if host_key == self._own or identity in self._host_of:
            return
        host = self._hosts.setdefault(host_key, _Host(now_ns))
        host.posts.append(identity)
        self._host_of[identity] = host

    def left(self, identity: bytes) -> None:
        """Removes a connection; if it was the pinged one, another of its host takes its place."""
        host = self._host_of.pop(identity, None)
        if host is None:
            return
        pinged = host.posts[0] == identity
        if pinged and host.sent:
            host.end_burst()
            host.due_ns = host.last_ns
        host.posts.remove(identity)

    def due(self, now_ns: int) -> list[tuple[bytes, int]]:
        """The pings to send now: the identity and the time in each."""
        pings: list[tuple[bytes, int]] = []
        for host in self._hosts.values():
            if host.posts and now_ns >= host.due_ns and host.sent == _PINGS:
                host.end_burst()
            if host.posts and now_ns >= host.due_ns:
                host.ping(now_ns)
                pings.append((host.posts[0], now_ns))
        return pings

    def hurry(self) -> None:
        """Starts the next burst of every host now, unless one is in progress."""
        for host in self._hosts.values():
            if not host.sent:
                host.due_ns = 0

    def next_due_ns(self, now_ns: int) -> int:
        """The next time at which :meth:`due` has pings; a second from now if there are no hosts to ping."""
        return min((h.due_ns for h in self._hosts.values() if h.posts), default=now_ns + _BURST_EVERY_NS)

    def heard(self, identity: bytes, echo: int, remote_ns: int, received_ns: int) -> None:
        """Adds an answer: the time in the ping, the host's clock, and the time of arrival.

        Answers to pings of other bursts are ignored.
        """
        host = self._host_of.get(identity)
        if host is None or host.posts[0] != identity or echo not in host.pinged:
            return
        host.pinged.remove(echo)
        host.answers.append(PingExchange(echo, remote_ns, received_ns))
        if echo != host.last_ns:
            return
        if host.sent == _PINGS:
            host.end_burst()
        else:
            host.due_ns = received_ns

    def estimate(self, host_key: HostKey) -> HostClockEstimate | None:
        """The estimate of this host's clock; None for an unknown host, and for the controller's own."""
        host = self._hosts.get(host_key)
        return None if host is None else host.estimate

    def bursts(self, host_key: HostKey) -> int:
        """The number of bursts that this host has answered."""
        host = self._hosts.get(host_key)
        return 0 if host is None else host.bursts
