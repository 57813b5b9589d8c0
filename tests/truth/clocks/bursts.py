"""What went into the estimates of hosts' clocks: every burst of pings and answers, as it was timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from hydra.control.clock_offset import HostClockEstimate, PingExchange

HELD_UP_TIMES = 4
"""How many times what held a burst up is in a bound: once in the offset (one half) and in what surrounds the window
(one), and in the rate between two bursts (one) for the second or two that the line continues from there."""


@dataclass
class Bursts:
    """All bursts, by the estimate that took them."""

    of: dict[HostClockEstimate, list[Sequence[PingExchange]]] = field(default_factory=dict)

    def held_up_ns(self, ahead_ns: int) -> int:
        """The same as :func:`held_up_ns` of the host whose clock is so far ahead, within a second."""
        (found,) = (
            bursts for bursts in self.of.values() if abs(bursts[0][0].remote_ns - bursts[0][0].sent_ns - ahead_ns) < 1e9
        )
        return held_up_ns(found)


def held_up_ns(bursts: Sequence[Sequence[PingExchange]]) -> int:
    """By how much the shortest round trip of a burst was longer than the shortest of all, where that is the most."""
    shortest = [min(exchange.rtt_ns for exchange in burst) for burst in bursts]
    return max(shortest) - min(shortest)


@contextmanager
def recorded() -> Iterator[Bursts]:
    """Those of every estimate, until the end of this block."""
    bursts, add = Bursts(), HostClockEstimate.add

    def noted(estimate: HostClockEstimate, burst: Sequence[PingExchange]) -> None:
        bursts.of.setdefault(estimate, []).append(tuple(burst))
        add(estimate, burst)

    with patch.object(HostClockEstimate, "add", noted):
        yield bursts
