"""What is concluded of a host's clock from its answers, on clocks of the test's own."""

from __future__ import annotations

from random import Random

import pytest

from hydra.control.clock_offset import ClockLine, HostClockEstimate, PingExchange
from tests.control.simulated_clocks import Clock, Network, moments, simulate

SECOND = 1_000_000_000
US = 1000
AHEAD = Clock(offset_ns=7 * SECOND)


def exchange(clock: Clock, sent_ns: int, host_ns: int, back_ns: int) -> PingExchange:
    return PingExchange(sent_ns, clock.shows(sent_ns + host_ns), sent_ns + host_ns + back_ns)


def heard_every_second(clock: Clock, count: int, host_ns: int = 100 * US, back_ns: int = 100 * US) -> HostClockEstimate:
    """What is known after that many bursts of one ping each, the first at second 1."""
    estimate = HostClockEstimate()
    for i in range(1, count + 1):
        estimate.add([exchange(clock, i * SECOND, host_ns, back_ns)])
    return estimate


def line_of(estimate: HostClockEstimate, now_ns: int) -> ClockLine:
    line = estimate.line(now_ns)
    assert line is not None
    return line


# --- the clock of one host -------------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_burst() -> None:
    estimate = HostClockEstimate()
    estimate.add([])
    assert estimate.line(SECOND) is None
    assert estimate.rtt_min_ns == 0
    with pytest.raises(ValueError, match="has answered no ping"):
        estimate.bound(ClockLine(0, 0, 0, 0), 0, SECOND)


@pytest.mark.parametrize(("host_ns", "back_ns"), [(100 * US, 100 * US), (0, 200 * US), (200 * US, 0)])
def test_one_exchange_bounds_the_offset_by_half_its_round_trip_wherever_the_delay_was(
    host_ns: int, back_ns: int
) -> None:
    estimate = HostClockEstimate()
    estimate.add([exchange(AHEAD, SECOND, host_ns, back_ns)])
    line = line_of(estimate, SECOND + 200 * US)
    assert line.error_ns == pytest.approx(100 * US, abs=300)  # and what 0.2 ms of the fastest rate make
    assert abs(line.offset_ns - AHEAD.offset_ns) <= line.error_ns


def test_the_tightest_exchange_of_a_burst_counts() -> None:
    estimate = HostClockEstimate()
    estimate.add([exchange(AHEAD, SECOND, t, b) for t, b in [(900 * US, 0), (30 * US, 50 * US), (0, 700 * US)]])
    assert estimate.rtt_min_ns == 80 * US
    assert line_of(estimate, SECOND + 80 * US).offset_ns == pytest.approx(AHEAD.offset_ns, abs=11 * US)


def test_one_burst_tells_nothing_of_the_rate_and_the_error_grows_by_the_fastest() -> None:
    estimate = HostClockEstimate()
    estimate.add([exchange(Clock(drift=5e-4), SECOND, 50 * US, 50 * US)])
    line = line_of(estimate, 3 * SECOND)
    assert line.rate_ppb == 0
    assert line.error_ns == pytest.approx(2050 * US, rel=0.01)


@pytest.mark.parametrize("drift", [0.0, 5e-4, -5e-4, 20e-6])
def test_the_rate_is_measured_and_the_line_goes_on_with_it(drift: float) -> None:
    clock = Clock(offset_ns=-(10**17), drift=drift)
    line = line_of(heard_every_second(clock, 3, 10_000 * US, 200 * US), 4 * SECOND)
    assert line.rate_ppb == pytest.approx(drift * 1e9, abs=2)
    wrong = [line.offset_at(at) - clock.offset_at(at) for at in (4 * SECOND, 60 * SECOND)]
    assert wrong == pytest.approx([4900 * US] * 2, abs=8 * US)  # half of what the directions differ by, all the time


def test_a_burst_that_was_held_up_does_not_spoil_what_is_known() -> None:
    estimate = heard_every_second(AHEAD, 5)
    before = line_of(estimate, 6 * SECOND)
    estimate.add([exchange(AHEAD, 6 * SECOND, 9000 * US, 100 * US)])
    after = line_of(estimate, 6 * SECOND + 10_000 * US)
    assert after.rate_ppb == before.rate_ppb == 0
    assert after.offset_ns == before.offset_ns == AHEAD.offset_ns
    assert after.error_ns < 200 * US
    assert estimate.jumps == 0


@pytest.mark.parametrize("jump_ns", [SECOND, -SECOND, 5000 * US])
def test_a_clock_that_was_set_is_counted_and_learned_anew(jump_ns: int) -> None:
    estimate = heard_every_second(AHEAD, 5)
    reported = line_of(estimate, 5 * SECOND + 300 * US)
    after = Clock(offset_ns=AHEAD.offset_ns + jump_ns)
    for second in range(6, 10):
        estimate.add([exchange(after, second * SECOND, 100 * US, 100 * US)])
    assert estimate.jumps == 1
    line = line_of(estimate, 10 * SECOND)
    assert abs(line.offset_ns - after.offset_ns) <= line.error_ns < 200 * US
    assert abs(jump_ns) <= estimate.bound(reported, 5 * SECOND, 9 * SECOND) < abs(jump_ns) + 5000 * US


def test_the_bound_says_how_far_the_told_line_was_off() -> None:
    estimate = heard_every_second(AHEAD, 10)
    for wrong_ns, rate_ppb, most_ns in [(0, 0, 0), (3000 * US, 0, 3000 * US), (0, 50_000, 250 * US)]:
        line = ClockLine(AHEAD.offset_ns + wrong_ns, 4 * SECOND, rate_ppb, 0)
        assert estimate.bound(line, 4 * SECOND, 9 * SECOND) == pytest.approx(most_ns + 100 * US, abs=5 * US)


def test_a_window_is_bounded_at_its_begin_too_when_it_began_long_ago() -> None:
    clock = Clock(drift=3e-4, wander=0.5e-6)
    estimate = heard_every_second(clock, 10)
    reported = line_of(estimate, 11 * SECOND)
    for second in range(11, 400):
        estimate.add([exchange(clock, second * SECOND, 100 * US, 100 * US)])
    assert estimate.jumps == 0
    off = max(abs(clock.offset_at(at) - reported.offset_at(at)) for at in moments(11 * SECOND, 398 * SECOND))
    assert off <= estimate.bound(reported, 11 * SECOND, 398 * SECOND) <= off + 150 * US


@pytest.mark.parametrize("rate_ppb", [0, 1, -1, 500_000, -500_000, 1_000_000])
def test_the_inverse_rate_leads_back(rate_ppb: int) -> None:
    line = ClockLine(offset_ns=0, at_ns=0, rate_ppb=rate_ppb, error_ns=0)
    host_ns = 1000 * SECOND + line.offset_at(1000 * SECOND)
    assert host_ns + host_ns * line.inverse_rate_ppb // 10**9 == pytest.approx(1000 * SECOND, abs=600)


# --- many runs -------------------------------------------------------------------------------------------------------

FLOORS_NS = [20 * US, 100 * US, 1000 * US, 20_000 * US]


def any_clock(chance: Random) -> Clock:
    """Up to three years ahead or behind, with up to 500 ppm, steady or swinging by 1 ppm."""
    return Clock(
        offset_ns=chance.randrange(-(10**17), 10**17),
        drift=chance.uniform(-5e-4, 5e-4),
        wander=chance.choice([0.0, 1e-6]),
        swing_s=chance.uniform(2, 60),
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_truth_is_inside_the_bound_whatever_clock_and_network_do(seed: int) -> None:
    chance = Random(seed)
    for _ in range(30):
        clock = any_clock(chance)
        network = Network(
            there_ns=chance.choice(FLOORS_NS),
            back_ns=chance.choice(FLOORS_NS),
            jitter_ns=chance.choice([0, 30 * US, 300 * US, 3000 * US]),
            hiccup_ns=chance.choice([0, 50_000 * US]),
            lost=chance.choice([0.0, 0.1, 0.5]),
        )
        step = simulate(clock, network, chance, before_s=chance.uniform(0, 10), window_s=chance.uniform(0.5, 10))
        assert step.wrong_ns <= step.bound_ns, (clock, network)
        assert step.wrong_at_start_ns <= step.line.error_ns, (clock, network)
        assert step.estimate.jumps == 0, (clock, network)


@pytest.mark.parametrize(
    ("jitter_ns", "before_s", "window_s", "wider_ns"),
    [(0, 2, 10, 50 * US), (5 * US, 2, 10, 100 * US), (30 * US, 10, 10, 100 * US)],
)
def test_the_bound_is_half_the_shortest_round_trip_and_little_more(
    jitter_ns: int, before_s: float, window_s: float, wider_ns: int
) -> None:
    chance = Random(13)
    for _ in range(10):
        clock = any_clock(chance)
        network = Network(chance.choice(FLOORS_NS), chance.choice(FLOORS_NS), jitter_ns, hiccup_ns=5000 * US, lost=0.1)
        step = simulate(clock, network, chance, before_s=before_s, window_s=window_s)
        assert step.wrong_ns <= step.bound_ns <= step.estimate.rtt_min_ns // 2 + wider_ns, (clock, network)
