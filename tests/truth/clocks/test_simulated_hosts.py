"""The step's clock of each host is wrong by at most its stated bound, over real sockets.

The hosts' clocks are made up, so that the truth is known. A forwarder delays what passes between them and the
controller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from pyroaring import BitMap

from hydra.control.controller import Controller
from hydra.model import AgentClock
from hydra.run.step_clocks import StepClocks, unknown
from hydra.wire.clock import StepClock, wall_offset_ns
from hydra.wire.messages import HostClock, Start
from tests.control.simulated_clocks import Clock, moments
from tests.suite.waiting import SOON_S
from tests.truth.clocks.bursts import HELD_UP_TIMES, held_up_ns, recorded
from tests.truth.clocks.forwarder import Delay, Forwarder
from tests.truth.clocks.simulated_host import SimulatedHost

pytestmark = pytest.mark.tier("all")

MS = 1_000_000
US = 1000
WINDOW_S = 0.5
WIDER_NS = 100 * US
"""What a bound is above half of the shortest round trip at most, where no burst was held up."""
STEPS = 4
AT_ONCE = Delay()


@dataclass(frozen=True)
class Case:
    """A host, and the way to it."""

    clock: Clock
    to_host: Delay = AT_ONCE
    back: Delay = AT_ONCE


LATER = -(time.monotonic_ns() * 9 // 10)
"""The offset of a host that was booted lately."""

CASES = {
    "near": Case(Clock()),
    "ahead": Case(Clock(offset_ns=10**17), Delay(2 * MS), Delay(2 * MS)),
    "fast, late there": Case(Clock(offset_ns=LATER, drift=5e-4), to_host=Delay(8 * MS)),
    "slow, late back": Case(Clock(offset_ns=10**14, drift=-5e-4), back=Delay(8 * MS)),
    "swings, jitters": Case(
        Clock(offset_ns=10**9, drift=3e-5, wander=1e-6, swing_s=3), Delay(MS, 30 * US), Delay(MS, 30 * US)
    ),
    "jitters there": Case(Clock(drift=-1e-4), to_host=Delay(3 * MS, 30 * US)),
}


@dataclass(frozen=True)
class Step:
    """A step's window by the controller's CLOCK_MONOTONIC, and the clock and error bound that every host got."""

    first_ns: int
    last_ns: int
    wall_offset_ns: int
    data: dict[str, HostClock]
    clocks: dict[str, AgentClock]

    def wrong_ns(self, name: str) -> list[int]:
        """How far the step's clock of this host is ahead of the controller's, at moments of the window."""
        truth, clock = CASES[name].clock, StepClock(self.data[name])
        at = moments(self.first_ns, self.last_ns)
        return [clock.at_ns(truth.shows(now_ns)) - now_ns - self.wall_offset_ns for now_ns in at]

    def wider_ns(self, name: str) -> int:
        """What the bound is above half of the shortest round trip."""
        return self.clocks[name].error_ns - self.clocks[name].rtt_min_ns // 2


@dataclass(frozen=True)
class Seen:
    """Steps, the forwarders that stood before the hosts meanwhile, and by how much bursts were held up."""

    steps: list[Step]
    forwarders: dict[str, Forwarder]
    held_up_ns: dict[str, int]


def measured(controller: Controller, names: dict[int, str]) -> Step:
    """A step without clients that do anything."""
    offset_ns = wall_offset_ns()
    clocks = StepClocks(controller.roster, BitMap(names), time.monotonic_ns(), offset_ns)
    command = Start(epoch=1, number=2, start_at_ns=0, stop_at_ns=1, clock=clocks.own)
    reported = {names[client]: share.clock for (client,), share in clocks.shares(BitMap(names), command)}
    first_ns = time.monotonic_ns()
    controller.wait_until(lambda: False, WINDOW_S)
    last_ns = time.monotonic_ns()
    clocks.hear_once_more(controller.wait_until)
    used = clocks.used(names, first_ns + offset_ns, last_ns + offset_ns)
    return Step(first_ns, last_ns, offset_ns, reported, used)


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    """Some steps with all hosts."""
    names = dict(enumerate(CASES, 1))
    with ExitStack() as stack:
        bursts = stack.enter_context(recorded())
        controller = Controller("run")
        stack.callback(controller.close)
        forwarders: dict[str, Forwarder] = {}
        for client, name in names.items():
            case = CASES[name]
            controller.roster.expect(name, [client])
            forwarders[name] = Forwarder(controller.endpoint, case.to_host, case.back, seed=client)
            stack.callback(forwarders[name].close)
            host = SimulatedHost(name, client, case.clock, controller.environment, forwarders[name].endpoint)
            stack.callback(host.close)
        everyone = BitMap(names)
        assert controller.wait_until(lambda: everyone.issubset(controller.roster.present()), SOON_S)
        assert controller.wait_until(lambda: not unknown(controller.roster, everyone), SOON_S)
        steps = [measured(controller, names) for _ in range(STEPS)]
        assert not controller.refused()
        held_up = {}
        for client, name in names.items():
            estimate = controller.roster.timekeeper.estimate(controller.roster.host(client))
            assert estimate is not None
            held_up[name] = held_up_ns(bursts.of[estimate])
        yield Seen(steps, forwarders, held_up)


@pytest.mark.parametrize("name", CASES)
def test_the_step_s_clock_of_a_host_is_never_further_off_than_its_bound(seen: Seen, name: str) -> None:
    for step in seen.steps:
        clock = step.clocks[name]
        assert not clock.same_host
        assert clock.jumps == 0
        assert max(map(abs, step.wrong_ns(name))) <= clock.error_ns


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_half_the_shortest_round_trip_and_little_more(seen: Seen, name: str) -> None:
    for step in seen.steps:
        assert step.wider_ns(name) <= WIDER_NS + HELD_UP_TIMES * seen.held_up_ns[name]


@pytest.mark.parametrize("name", CASES)
def test_round_trips_hold_what_the_forwarder_added(seen: Seen, name: str) -> None:
    forwarder, case = seen.forwarders[name], CASES[name]
    assert min(forwarder.to_host_ns) >= case.to_host.least_ns
    assert min(forwarder.back_ns) >= case.back.least_ns
    added_ns = min(forwarder.to_host_ns) + min(forwarder.back_ns)
    assert all(step.clocks[name].rtt_min_ns >= added_ns for step in seen.steps)


@pytest.mark.parametrize(("name", "sign"), [("fast, late there", -1), ("slow, late back", 1)])
def test_a_delay_in_one_direction_cannot_be_seen_and_is_what_the_bound_is_for(seen: Seen, name: str, sign: int) -> None:
    off_ns = MS + HELD_UP_TIMES * seen.held_up_ns[name]
    for step in seen.steps:
        assert all(abs(sign * wrong_ns - 4 * MS) < off_ns for wrong_ns in step.wrong_ns(name))
