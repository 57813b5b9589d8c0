"""Hosts whose clocks and networks are made up, asked for the time by the real Timekeeper, without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, tau
from random import Random
from typing import Final

from hydra.control.clock_offset import ClockLine, ClockPings, HostClockEstimate, HostKey

OWN: Final[HostKey] = ("own", "time:[1]")
HOST: Final[HostKey] = ("other", "time:[1]")
_RELAY: Final = b"r"
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clock; ``wander`` is how far its rate swings about ``drift``, within ``swing_s``."""

    offset_ns: int = 0
    drift: float = 0.0
    wander: float = 0.0
    swing_s: float = 10.0

    def offset_at(self, controller_ns: int) -> int:
        """The truth: this clock minus the controller's."""
        swung_s = self.wander * self.swing_s / tau * (1 - cos(tau * controller_ns / 1e9 / self.swing_s))
        return self.offset_ns + round(self.drift * controller_ns + swung_s * 1e9)

    def shows(self, controller_ns: int) -> int:
        """What it shows at this time of the controller's clock."""
        return controller_ns + self.offset_at(controller_ns)


@dataclass(frozen=True, slots=True)
class Network:
    """What a ping and its answer take: a floor and an exponential of this mean, each; and which are lost.

    One in a hundred is held up for up to ``hiccup_ns`` more, in one direction.
    """

    there_ns: int = 100_000
    back_ns: int = 100_000
    jitter_ns: int = 0
    hiccup_ns: int = 0
    lost: float = 0.0

    def delays(self, chance: Random) -> tuple[int, int] | None:
        """Of one exchange, ns; None if it is lost."""
        if chance.random() < self.lost:
            return None
        present, back = (
            floor + (round(chance.expovariate(1 / self.jitter_ns)) if self.jitter_ns else 0)
            for floor in (self.there_ns, self.back_ns)
        )
        if chance.random() < 0.01:
            held_up = round(chance.uniform(0, self.hiccup_ns))
            present, back = (present + held_up, back) if chance.random() < 0.5 else (present, back + held_up)
        return present, back


@dataclass(frozen=True, slots=True)
class Outcome:
    """A step's line, its bound, and how far the line was from the truth, ns: at the start, and most in the window."""

    line: ClockLine
    bound_ns: int
    wrong_at_start_ns: int
    wrong_ns: int
    estimate: HostClockEstimate

    @property
    def wider_ns(self) -> int:
        """What the bound is above half of the shortest round trip."""
        return self.bound_ns - self.estimate.rtt_min_ns // 2


def simulate(clock: Clock, network: Network, chance: Random, *, before_s: float, window_s: float) -> Outcome:
    """A step whose window begins ``before_s`` after the relay's hello, or when three bursts were heard.

    The bound is asked for when a burst has been answered that began after the window's end.
    """
    keeper = ClockPings(OWN)
    now_ns = round(chance.uniform(1, 1000) * _SECOND_NS)
    keeper.joined(_RELAY, HOST, now_ns)
    begins_ns = now_ns + round(before_s * _SECOND_NS)
    while keeper.bursts(HOST) < 3 or now_ns < begins_ns:
        now_ns = _ask(keeper, clock, network, chance, now_ns)
    estimate = keeper.estimate(HOST)
    assert estimate is not None
    line = estimate.line(now_ns)
    assert line is not None
    begins_ns, ends_ns = now_ns, now_ns + round(window_s * _SECOND_NS)
    while now_ns < ends_ns:
        now_ns = _ask(keeper, clock, network, chance, now_ns)
    enough = keeper.bursts(HOST) + 2
    while keeper.bursts(HOST) < enough:
        now_ns = _ask(keeper, clock, network, chance, now_ns)
    wrong = [abs(clock.offset_at(at) - line.offset_at(at)) for at in moments(begins_ns, ends_ns)]
    return Outcome(line, estimate.bound(line, begins_ns, ends_ns), wrong[0], max(wrong), estimate)


def moments(first_ns: int, last_ns: int, count: int = 200) -> Sequence[int]:
    """Evenly from the first to the last, ns."""
    return [first_ns + (last_ns - first_ns) * i // count for i in range(count + 1)]


def _ask(keeper: ClockPings, clock: Clock, network: Network, chance: Random, now_ns: int) -> int:
    """Sends the next ping when it is due and hands over its answer; returns when that was."""
    now_ns = max(now_ns, keeper.next_due_ns(now_ns))
    for identity, time_ns in keeper.due(now_ns):
        delays = network.delays(chance)
        if delays is not None:
            # What is on its way longer than the keeper waits is late as well: the next ping is lost to it.
            present, back = delays
            keeper.heard(identity, time_ns, clock.shows(time_ns + present), time_ns + present + back)
            now_ns = time_ns + present + back
    return now_ns
