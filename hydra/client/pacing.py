"""When a publisher sends a message: an open-loop schedule; when a message is resent. Pure, time is passed in.

Message n is due at start + n/rate, whatever happens to the messages before it (after vegeta's ``lib/pacer.go``), so a
stalled publisher shows as latency instead of vanishing. The rate is a fraction and all arithmetic is in integers, so
the schedule does not drift, however long it runs.

Every resend wakes up thousands of subscribers, so the interval between resends grows.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from hydra.model import Rate
from hydra.wire.load_schedule import NEVER_NS, LoadSchedule

GRACE_NS: Final = 5_000_000
"""A publisher that lags by less than this at the end of the window (ns) still sends what was due before the end."""
SECOND_NS: Final = 1_000_000_000


class Pacer:
    """The schedule of one publisher and one step.

    A message is part of the schedule if it is due in [start, stop): ceil(rate · duration) messages, or ``messages`` if
    that is less. From ``stop_ns`` on nothing is due, with one exception: a publisher that lags by at most ``GRACE_NS``
    completes its schedule. Otherwise the last wake-up would decide how many messages it sends.

    Args:
        rate: messages/s, or ``"max"``, which has no due times.
        start_ns: when message 0 is due.
        stop_ns: the end of the window.
        burst: the largest number of messages that are due at a time.
        messages: the largest number of messages in the step; None: as many as the window allows.
    """

    __slots__ = ("_denominator", "_messages", "_numerator", "burst", "sent", "start_ns", "stop_ns", "total")

    def __init__(self, rate: Rate, start_ns: int, stop_ns: int, burst: int, messages: int | None = None) -> None:
        self.start_ns = start_ns
        self.stop_ns = stop_ns
        self.burst = burst
        self.sent = 0
        self.total: int | None = messages
        """Messages of the whole schedule; None: as many as the window allows."""
        self._messages = messages
        # Message n is due numerator · n // denominator ns after the start; a numerator of 0 means "max".
        self._numerator = 0
        self._denominator = 1
        if rate != "max":
            # A millionth is far below the accuracy of a measured rate, and keeps products within 64 bits.
            exact = Fraction(rate)
            per_second = exact.limit_denominator(1_000_000) or exact
            period = SECOND_NS / per_second
            self._numerator, self._denominator = period.numerator, period.denominator
            self.total = self._scheduled()

    @property
    def complete(self) -> bool:
        """Whether all messages of a step with a limited number were sent."""
        return self._messages is not None and self.sent >= self._messages

    def _scheduled(self) -> int:
        """Messages of the whole schedule, if there is a rate."""
        due = self._count_by(self.stop_ns - 1)
        return due if self._messages is None else min(due, self._messages)

    def _count_by(self, now_ns: int) -> int:
        """The number of messages that are due at or before ``now_ns``, if the window had no end."""
        if now_ns < self.start_ns:
            return 0
        return ((now_ns - self.start_ns + 1) * self._denominator - 1) // self._numerator + 1

    def due(self, now_ns: int) -> int:
        """The number of messages that may be sent now, at most ``burst``."""
        if now_ns < self.start_ns or self.done(now_ns):
            return 0
        if self.total is None:
            return self.burst
        waiting = (min(self._count_by(now_ns), self.total) if self._numerator else self.total) - self.sent
        return waiting if waiting < self.burst else self.burst

    def times(self, count: int, now_ns: int) -> npt.NDArray[np.uint64]:
        """The times in the headers of the next ``count`` (at most ``burst``) messages: due times, ns.

        At rate ``max`` it is ``now_ns`` for all of them.
        """
        if not self._numerator:
            return np.full(count, now_ns, np.uint64)
        whole, rest = divmod(self.sent * self._numerator, self._denominator)
        first = self.start_ns + whole
        if self._numerator * (count + 1) < 2**63:
            # Only the remainder enters the vector: its products stay small, so nothing drifts.
            steps = np.arange(count, dtype=np.int64) * self._numerator + rest
            return (steps // self._denominator + first).view(np.uint64)
        return np.array(
            [first + (rest + k * self._numerator) // self._denominator for k in range(count)], dtype=np.uint64
        )

    def advance(self, count: int) -> None:
        """The library accepted the next ``count`` messages."""
        self.sent += count

    @property
    def next_due_ns(self) -> int | None:
        """When the next message is due; None if the schedule has no more, and at rate ``max``."""
        if not self._numerator or self.total is None or self.sent >= self.total:
            return None
        return self.start_ns + self.sent * self._numerator // self._denominator

    def lag_ns(self, now_ns: int) -> int:
        """How far ``now_ns`` is past the due time of the next message, ns; 0 before it, and at rate ``max``."""
        next_due_ns = self.next_due_ns
        return 0 if next_due_ns is None else max(now_ns - next_due_ns, 0)

    def done(self, now_ns: int) -> bool:
        """Whether no message will be due any more."""
        if not self._numerator:
            return now_ns >= self.stop_ns or self.complete
        next_due_ns = self.next_due_ns
        if next_due_ns is None:
            return True
        if now_ns < self.stop_ns:
            return False
        return now_ns >= self.stop_ns + GRACE_NS or next_due_ns < self.stop_ns - GRACE_NS

    def stop_at(self, stop_ns: int) -> None:
        """Ends the window at ``stop_ns`` if that is earlier; messages that were sent stay sent."""
        if stop_ns >= self.stop_ns:
            return
        self.stop_ns = stop_ns
        if self._numerator:
            self.total = self._scheduled()


class LoadPacer(Pacer):
    """The schedule of a publisher whose rate changes: the load determines when message n is due.

    Args:
        load: when each message is due.
        others: as in :class:`Pacer`.
    """

    __slots__ = ("_due_ns", "_due_of", "_load")

    def __init__(
        self, load: LoadSchedule, start_ns: int, stop_ns: int, burst: int, messages: int | None = None
    ) -> None:
        self._load = load
        self._due_of = -1
        self._due_ns = 0
        super().__init__(1, start_ns, stop_ns, burst, messages)

    def _count_by(self, now_ns: int) -> int:
        return self._load.count_by(now_ns - self.start_ns)

    def times(self, count: int, now_ns: int) -> npt.NDArray[np.uint64]:  # noqa: ARG002  # every message has a due time
        """The due times in the headers of the next ``count`` messages."""
        return (self._load.times_ns(self.sent, count) + self.start_ns).view(np.uint64)

    @property
    def next_due_ns(self) -> int | None:
        """When the next message is due; None if the schedule has no more."""
        if self.total is None or self.sent >= self.total:
            return None
        if self._due_of != self.sent:
            self._due_of = self.sent
            due_ns = self._load.due_ns(self.sent)
            self._due_ns = NEVER_NS if due_ns == NEVER_NS else self.start_ns + due_ns
        return self._due_ns


FIRST_WAIT_NS: Final = 50_000_000


class Backoff:
    """The times at which one message is sent and resent.

    Args:
        begin_ns: the first time.
        first_ns: the first interval.
        longest_ns: longest interval between two times; None: no limit.
        for_ns: time after the first at which resending ends; None: it never ends.
    """

    __slots__ = ("_last_ns", "_longest_ns", "_wait_ns", "next_ns")

    def __init__(
        self,
        begin_ns: int,
        *,
        first_ns: int = FIRST_WAIT_NS,
        longest_ns: int | None = None,
        for_ns: int | None = None,
    ) -> None:
        self.next_ns: int | None = begin_ns
        """The next time; None if there is none."""
        self._wait_ns = first_ns
        self._longest_ns = longest_ns
        self._last_ns = None if for_ns is None else begin_ns + for_ns

    def due(self, now_ns: int) -> bool:
        """Whether it is time to send; if so, sets the next time, after a wait that grows with each call."""
        if self.next_ns is None or now_ns < self.next_ns:
            return False
        next_ns = now_ns + self._wait_ns
        self.next_ns = None if self._last_ns is not None and next_ns > self._last_ns else next_ns
        self._wait_ns *= 2
        if self._longest_ns is not None:
            self._wait_ns = min(self._wait_ns, self._longest_ns)
        return True
