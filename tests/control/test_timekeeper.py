"""Whom the Timekeeper asks and when, on a clock of the test's own."""

from __future__ import annotations

from hydra.control.clock_offset import ClockPings, HostClockEstimate
from tests.control.simulated_clocks import HOST, OWN, Clock

SECOND = 1_000_000_000
AHEAD = Clock(offset_ns=7 * SECOND)
OTHER = ("third", "time:[1]")
NOW = 100 * SECOND


def answered(keeper: ClockPings, now_ns: int, pings: int, *, rtt_ns: int = 200_000) -> int:
    """The only host that is asked answers that many pings in a row; returns when the last answer came."""
    for _ in range(pings):
        ((identity, time_ns),) = keeper.due(now_ns)
        now_ns = time_ns + rtt_ns
        keeper.heard(identity, time_ns, AHEAD.shows(time_ns + rtt_ns // 2), now_ns)
    return now_ns


def estimate_of(keeper: ClockPings) -> HostClockEstimate:
    estimate = keeper.estimate(HOST)
    assert estimate is not None
    return estimate


def keeper_with(*posts: bytes) -> ClockPings:
    keeper = ClockPings(OWN)
    for identity in posts:
        keeper.joined(identity, HOST, NOW)
    return keeper


def test_the_own_host_is_not_asked_and_another_time_namespace_is_another_host() -> None:
    keeper = ClockPings(OWN)
    keeper.joined(b"a", OWN, NOW)
    assert keeper.due(NOW) == []
    assert keeper.next_due_ns(NOW) > NOW
    assert keeper.estimate(OWN) is None
    assert keeper.bursts(OWN) == 0
    keeper.left(b"a")
    keeper.joined(b"b", (OWN[0], "time:[2]"), NOW)
    assert keeper.due(NOW) == [(b"b", NOW)]


def test_one_relay_of_each_host_is_asked() -> None:
    keeper = keeper_with(b"a", b"b", b"a")
    keeper.joined(b"c", OTHER, NOW)
    assert keeper.due(NOW) == [(b"a", NOW), (b"c", NOW)]
    assert keeper.due(NOW + 1) == []


def test_a_burst_is_eight_pings_each_sent_when_the_one_before_is_answered_and_the_next_comes_a_second_later() -> None:
    keeper = keeper_with(b"a")
    ended_ns = answered(keeper, NOW, 7)
    assert keeper.bursts(HOST) == 0
    ended_ns = answered(keeper, ended_ns, 1)
    assert keeper.bursts(HOST) == 1
    assert keeper.due(ended_ns) == []
    assert keeper.next_due_ns(ended_ns) == NOW + SECOND
    answered(keeper, NOW + SECOND, 8)
    assert keeper.bursts(HOST) == 2
    line = estimate_of(keeper).line(NOW + 2 * SECOND)
    assert line is not None
    assert line.offset_ns == AHEAD.offset_ns


def test_after_a_lost_ping_the_next_goes_out_in_a_quarter_of_a_second_and_a_burst_of_what_came_counts() -> None:
    keeper = keeper_with(b"a")
    now_ns = answered(keeper, NOW, 7)
    assert keeper.due(now_ns) == [(b"a", now_ns)]
    assert keeper.next_due_ns(now_ns) == now_ns + SECOND // 4
    assert keeper.due(now_ns + SECOND // 4) == []  # that was the eighth
    assert keeper.bursts(HOST) == 1
    assert keeper.next_due_ns(now_ns) == NOW + SECOND


def test_a_late_answer_counts_in_its_burst_and_sends_nothing() -> None:
    keeper = keeper_with(b"a")
    assert keeper.due(NOW) == [(b"a", NOW)]
    again_ns = NOW + SECOND // 4
    assert keeper.due(again_ns) == [(b"a", again_ns)]
    keeper.heard(b"a", NOW, AHEAD.shows(again_ns), again_ns + 5)
    assert keeper.due(again_ns + 6) == []
    keeper.left(b"a")
    assert keeper.bursts(HOST) == 1


def test_answers_that_nobody_waits_for_change_nothing() -> None:
    keeper = keeper_with(b"a", b"b")
    ended_ns = answered(keeper, NOW, 8)
    ((_, time_ns),) = keeper.due(NOW + SECOND)
    for identity, echo in [(b"a", NOW), (b"a", 0), (b"b", time_ns), (b"nobody", time_ns)]:
        keeper.heard(identity, echo, 1, ended_ns + SECOND)
    assert keeper.next_due_ns(NOW + SECOND) == NOW + SECOND + SECOND // 4
    keeper.left(b"a")
    assert (keeper.bursts(HOST), estimate_of(keeper).jumps) == (1, 0)


def test_another_relay_of_the_host_takes_the_place_of_one_that_goes() -> None:
    keeper = keeper_with(b"a", b"b")
    now_ns = answered(keeper, NOW, 3)
    keeper.left(b"a")
    assert keeper.bursts(HOST) == 1  # three answers are better than none
    assert keeper.due(now_ns) == [(b"b", now_ns)]
    keeper.left(b"b")
    assert keeper.due(NOW + 5 * SECOND) == []
    keeper.joined(b"c", HOST, NOW + 6 * SECOND)
    assert keeper.due(NOW + 6 * SECOND) == [(b"c", NOW + 6 * SECOND)]
    assert keeper.bursts(HOST) == 1


def test_a_relay_that_was_not_asked_goes_unnoticed() -> None:
    keeper = keeper_with(b"a", b"b")
    keeper.due(NOW)
    keeper.left(b"b")
    assert keeper.due(NOW + SECOND // 4) == [(b"a", NOW + SECOND // 4)]


def test_a_relay_that_answers_nothing_is_asked_last() -> None:
    keeper = keeper_with(b"a", b"b")
    now_ns = NOW
    requests = []
    for _ in range(9):
        requests += [identity for identity, _ in keeper.due(now_ns)]
        now_ns = keeper.next_due_ns(now_ns)
    assert requests == [b"a"] * 8 + [b"b"]
    assert keeper.bursts(HOST) == 0


def test_a_burst_that_is_hurried_begins_at_once_and_the_next_comes_a_second_later() -> None:
    keeper = keeper_with(b"a")
    keeper.hurry()
    keeper.due(NOW)
    keeper.hurry()
    assert keeper.due(NOW + 1) == []  # it is under way
    keeper = keeper_with(b"a")
    ended_ns = answered(keeper, NOW, 8)
    keeper.hurry()
    assert keeper.next_due_ns(ended_ns) <= ended_ns
    answered(keeper, ended_ns, 8)
    assert keeper.bursts(HOST) == 2
    assert keeper.next_due_ns(ended_ns) == ended_ns + SECOND
