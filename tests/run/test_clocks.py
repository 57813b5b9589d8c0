"""The step's clock of each host, and its error bound, on clocks of the test's own."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.errors import StepError
from hydra.measure.observation import Observation
from hydra.model import AgentClock
from hydra.monitor.step_progress import StepProgress
from hydra.wire.clock import StepClock
from hydra.wire.messages import Ping, Start
from tests.channel import Channel
from tests.run.steps import PLAN, Clock, clock, losing, measured

HERE = AgentClock(offset_ns=0, rate_ppb=0, error_ns=0, rtt_min_ns=0, same_host=True, jumps=0)
HALF_RTT_NS = 5_000_000


def starts(channel: Channel) -> dict[int, Start]:
    """The last message to each client."""
    return {client: message for _, client, message in channel.timed_messages if isinstance(message, Start)}


def worst_ns(channel: Channel, raw: Observation, client: int, present: Clock) -> int:
    """How far the step's clock of a client was from the controller's, at any hundredth of the window."""
    reported = starts(channel)
    here, other = StepClock(reported[1].clock), StepClock(reported[client].clock)
    begin, end = (here.monotonic_ns_of(edge) for edge in raw.window_ns)
    moments = range(begin, end + 1, (end - begin) // 100)
    return max(abs(other.at_ns(present(at_ns)) - here.at_ns(at_ns)) for at_ns in moments)


def test_on_one_host_everybody_has_the_controllers_clock() -> None:
    channel = Channel(range(1, 4))
    raw = measured(channel)
    assert raw.clocks == {"here": HERE}
    (reported,) = {message.clock for message in starts(channel).values()}
    assert reported.rate_ppb == 0


@pytest.mark.parametrize("ahead_ns", [0, 77_000_000_000_000, -999_000_000_000])
@pytest.mark.parametrize("rate_ppm", [0, 100, -400])
def test_every_host_is_told_the_time_by_its_own_clock(ahead_ns: int, rate_ppm: int) -> None:
    present = clock(ahead_ns, rate_ppm)
    channel = Channel(range(1, 4), elsewhere={2: present})
    raw = measured(channel)
    assert raw.clocks.keys() == {"here", "agent-2"}
    assert raw.clocks["here"] == HERE
    found = raw.clocks["agent-2"]
    assert (found.same_host, found.jumps, found.rtt_min_ns) == (False, 0, 2 * HALF_RTT_NS)
    reported = starts(channel)
    assert reported[1].clock == reported[3].clock
    assert (
        (reported[1].start_at_ns, reported[1].stop_at_ns)
        == (reported[2].start_at_ns, reported[2].stop_at_ns)
        == raw.window_ns
    )
    assert worst_ns(channel, raw, 2, present) <= found.error_ns <= HALF_RTT_NS + 100_000
    # The answers take as long as the pings.
    assert worst_ns(channel, raw, 2, present) <= 100_000


def test_each_host_has_a_clock_of_its_own() -> None:
    clocks = {0: clock(10**9, 50), 2: clock(-(10**9), -50), 3: clock(5 * 10**9)}
    channel = Channel(range(1, 5), elsewhere=clocks)
    raw = measured(channel)
    assert raw.clocks.keys() == {"here", "agent-0", "agent-2", "agent-3"}
    for client, present in clocks.items():
        assert worst_ns(channel, raw, client, present) <= raw.clocks[f"agent-{client}"].error_ns


def test_subscribers_elsewhere_read_what_was_stored_by_their_own_clock() -> None:
    present = clock(77_000_000_000_000)
    channel = Channel(range(1, 4), elsewhere={2: present}, reads_stored=True, log=[10, *[60] * 11])
    raw = measured(channel)
    reported = starts(channel)
    assert raw.reading_ns == reported[1].start_at_ns == reported[2].start_at_ns
    assert worst_ns(channel, raw, 2, present) <= raw.clocks["agent-2"].error_ns


def test_a_clock_that_is_set_in_the_window_is_told_of() -> None:
    moved_at_ns: list[int] = []

    def there(at_ns: int) -> int:
        return at_ns + 10**9 + (50_000_000 if moved_at_ns and at_ns > moved_at_ns[0] else 0)

    def tick(moment: StepProgress) -> None:
        if moment.elapsed_s > 0.4 and not moved_at_ns:
            moved_at_ns.append(channel.now_ns)

    channel = Channel(range(1, 4), elsewhere={2: there})
    raw = measured(channel, tick)
    found = raw.clocks["agent-2"]
    assert found.jumps == 1
    assert worst_ns(channel, raw, 2, there) == pytest.approx(50_000_000, abs=HALF_RTT_NS)
    assert worst_ns(channel, raw, 2, there) <= found.error_ns
    # The next step takes it as it is then.
    stepper = channel.stepper()
    stepper.run.epoch = 2
    raw = stepper.measure(PLAN, lambda _: None)
    assert raw.clocks["agent-2"].jumps == 0
    assert worst_ns(channel, raw, 2, there) <= raw.clocks["agent-2"].error_ns <= HALF_RTT_NS + 100_000


def test_a_step_does_not_begin_before_the_clocks_are_known() -> None:
    """A second without answers: the bursts in it are none."""
    channel = Channel(range(1, 4), losing(None, Ping, last=8), elsewhere={2: clock(5)})
    measured(channel)
    begun = next(at_ns for at_ns, _, message in channel.timed_messages if isinstance(message, Start))
    assert 3.0 <= (begun - 10**12) / 1e9 < 5.5


def test_a_host_that_does_not_answer_is_named() -> None:
    channel = Channel(range(1, 4), losing(2, Ping), elsewhere={2: clock(5), 3: clock(6)})
    with pytest.raises(StepError, match="the clock of node-a could not be compared with the controller's within 30 s"):
        measured(channel)
    assert not any(isinstance(message, Start) for _, message in channel.data)


class _LosesAHost(Channel):
    """The host of client 2, which answers no ping, is lost after a second."""

    def watch(self) -> None:
        if self.now_ns >= 10**12 + 10**9 and not self.died:
            self.died = BitMap([2])
            self.roster.forget(self.died)


def test_a_host_that_is_lost_is_not_waited_for() -> None:
    channel = _LosesAHost(range(1, 4), losing(2, Ping), elsewhere={2: clock(5), 3: clock(6)})
    raw = channel.stepper().measure(PLAN, lambda _: None)
    assert list(raw.dead) == [2]
    assert raw.clocks.keys() == {"here", "agent-3"}
    begun = next(at_ns for at_ns, _, message in channel.timed_messages if isinstance(message, Start))
    assert begun - 10**12 < 5 * 10**9


@pytest.mark.tier("test")
def test_a_start_is_sent_as_far_ahead_as_the_fullest_host_needs() -> None:
    leads_s = {}
    for elsewhere in (0, 50):
        channel = Channel(range(1, 251), elsewhere={client: clock(5) for client in range(1, 1 + elsewhere)})
        measured(channel)
        at_ns, reported = next(
            (at_ns, m) for at_ns, c, m in channel.timed_messages if c == 250 and isinstance(m, Start)
        )
        leads_s[elsewhere] = (StepClock(reported.clock).monotonic_ns_of(reported.start_at_ns) - at_ns) / 1e9
    # Every client elsewhere has its own host.
    assert leads_s == pytest.approx({0: 0.22, 50: 0.216}, abs=0.0005)
