"""What a step knows of its hosts, on clocks of the test's own; this machine is read for real."""

from __future__ import annotations

import platform
from dataclasses import replace

import pytest

from hydra.control.roster import Roster
from hydra.errors import StepError
from hydra.measure.observation import Observation
from hydra.model import HostSample, ThreadSample
from hydra.monitor.step_progress import ProgressDetails, StepProgress
from hydra.run.host_sampling import samples_on_step_clock
from hydra.wire.messages import HostReadings, Sample, Watch, encode
from tests.channel import THREAD, Channel
from tests.control.golden_messages import COUNTERS
from tests.control.rosters import HERE, NETWORK, hello
from tests.run.steps import PLAN, clock, losing, measured

OWN_HOST = platform.node()
TICK_NS = 250_000_000
AHEAD = 77_000_000_000_000


def in_window(raw: Observation, samples: list[HostSample] | list[ThreadSample]) -> int:
    begin, end = raw.window_ns
    return sum(begin <= s.time_ns <= end for s in samples)


def test_on_one_host_it_is_read_here_and_its_groups_tell_of_their_threads() -> None:
    channel = Channel(range(1, 4))
    raw = measured(channel)
    assert raw.hosts.keys() == {OWN_HOST}
    assert raw.host_of == {"here": OWN_HOST}
    assert in_window(raw, list(raw.hosts[OWN_HOST])) == 4
    assert all(s.counters.cores for s in raw.hosts[OWN_HOST])
    assert raw.threads.keys() == {"here"}
    assert {(s.group, *s.threads) for s in raw.threads["here"]} == {("g-0", THREAD), ("g-1",)}
    assert {s.role for s in raw.threads["here"]} == {"publisher", "subscriber"}
    assert in_window(raw, [s for s in raw.threads["here"] if s.group == "g-0"]) == 4


def test_other_hosts_are_read_there_at_times_of_the_steps_clock() -> None:
    channel = Channel(range(1, 5), elsewhere={0: clock(-(10**9), 50), 3: clock(AHEAD, -400)})
    raw = measured(channel)
    assert raw.hosts.keys() == {OWN_HOST, "agent-0", "agent-3"}
    assert raw.host_of == {"here": OWN_HOST, "agent-0": "agent-0", "agent-3": "agent-3"}
    for agent in ("agent-0", "agent-3"):
        assert all(s.counters == COUNTERS for s in raw.hosts[agent])
        assert in_window(raw, list(raw.hosts[agent])) == 4
        # The first is read before the window begins, and no more than the lead before.
        assert 0 < raw.window_ns[0] - raw.hosts[agent][0].time_ns < TICK_NS
    assert [raw.threads[agent][0].role for agent in ("agent-0", "agent-3")] == ["publisher", "subscriber"]


def test_the_next_step_has_samples_of_its_own() -> None:
    channel = Channel(range(1, 4), elsewhere={2: clock(AHEAD)})
    stepper = channel.stepper()
    first = stepper.measure(PLAN, lambda _: None)
    stepper.run.epoch += 1
    second = stepper.measure(PLAN, lambda _: None)
    for raw in (first, second):
        assert in_window(raw, list(raw.hosts["agent-2"])) == len(raw.hosts["agent-2"]) - 1 == 4


def test_a_host_that_is_cut_off_in_the_window_has_samples_up_to_then_and_fails_nothing() -> None:
    channel = Channel(range(1, 4), elsewhere={2: clock(AHEAD)}, loses=losing(2, HostReadings, first=2))
    raw = channel.stepper().measure(replace(PLAN, duration_s=4.0), lambda _: None)
    first, last = raw.hosts["agent-2"][0], raw.hosts["agent-2"][-1]
    assert first.time_ns <= raw.window_ns[0] < last.time_ns < raw.window_ns[0] + 2 * 10**9
    assert raw.subscriber_reports.ids.tolist() == [1, 2, 3]


def test_a_watch_that_was_lost_is_said_again() -> None:
    channel = Channel(range(1, 4), elsewhere={2: clock(AHEAD)}, loses=losing(2, Watch, last=1))
    raw = channel.stepper().measure(replace(PLAN, duration_s=5.0), lambda _: None)
    assert in_window(raw, list(raw.hosts["agent-2"])) == pytest.approx((5 - 2) * 4, abs=2)


def test_a_window_that_fails_ends_the_watch() -> None:
    channel = Channel(range(1, 4), elsewhere={2: clock(AHEAD)})
    with pytest.raises(StepError):
        channel.stepper().measure(PLAN, lambda _: channel.died.add(0))
    channel.wait_until(channel.roster.watch.answered, 1.0)
    assert channel.roster.watch.answered()


# --- what is made of what was read -----------------------------------------------------------------------------------


def roster_with(*hellos: tuple[bytes, dict[str, object]]) -> Roster:
    """Relays of groups of their own, who have all reported one sample, in the watch of epoch 3."""
    roster = Roster(HERE, NETWORK)
    for n, (identity, text) in enumerate(hellos):
        roster.expect(f"g-{n}", [n])
        roster.receive(identity, encode(hello([n], group=f"g-{n}", **text)))
    roster.watch.begin(3, 0.25)
    for n, (identity, _) in enumerate(hellos):
        samples = [Sample(1000, COUNTERS, [THREAD])]
        roster.receive(identity, encode(HostReadings(ids=[n], seq=2, epoch=3, samples=samples)))
    return roster


def test_agents_that_share_clocks_and_network_share_samples() -> None:
    present: dict[str, object] = {"network_namespace": "net:[7]", "role": "publisher"}
    roster = roster_with((b"b", {**present, "agent": "agent-b"}), (b"a", {**present, "agent": "agent-a"}))
    load = samples_on_step_clock(roster, 0, lambda ns: ns + 5)
    assert load.host_of == {"agent-a": "agent-a", "agent-b": "agent-a"}
    assert load.hosts == {"agent-a": [HostSample(1005, COUNTERS)] * 2}
    assert load.threads == {
        "agent-a": [ThreadSample(1005, "g-1", [THREAD], "publisher")],
        "agent-b": [ThreadSample(1005, "g-0", [THREAD], "publisher")],
    }


def test_without_a_clock_there_are_no_samples() -> None:
    roster = roster_with(
        (b"a", {"agent": "agent-a", "boot_id": "another", "role": "publisher"}),
        (b"b", {"agent": "agent-b", "role": "subscriber", "network_namespace": "net:[7]"}),
    )
    load = samples_on_step_clock(roster, 0, lambda ns: ns)
    assert load.host_of == {"agent-a": "agent-a", "agent-b": "agent-b"}
    assert load.hosts == {"agent-b": [HostSample(1000, COUNTERS)]}
    assert load.threads == {"agent-b": [ThreadSample(1000, "g-1", [THREAD], "subscriber")]}


def test_who_watches_a_step_is_told_how_busy_its_hosts_are() -> None:
    channel = Channel(range(1, 5), elsewhere={0: clock(-(10**9), 50), 3: clock(AHEAD, -400)})
    messages: list[ProgressDetails] = []

    def tick(moment: StepProgress) -> None:
        if moment.doing == "sending":
            messages.append(moment.watched())

    measured(channel, tick)
    assert messages[-1].cpu_pct.keys() == {OWN_HOST, "agent-0", "agent-3"}
    assert all(0 <= pct <= 100 for pct in messages[-1].cpu_pct.values())
