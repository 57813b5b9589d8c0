"""What a step decides, apart from the channel that it speaks over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import get_args

import msgspec
import pytest
from pyroaring import BitMap

from hydra.control import epoch_replies
from hydra.errors import StepError
from hydra.measure.observation import Observation
from hydra.model import LAG_BINS, Cohort, DrainEnd, Histogram, Rate, Settings, SubscriberReport
from hydra.monitor.step_progress import StepProgress
from hydra.run.report_collection import caught_up, quiet_s, stored_only
from hydra.run.step_start import start_lead_ns
from hydra.wire import messages as wire
from hydra.wire.clock import StepClock, wall_offset_ns
from hydra.wire.messages import Ack, Batch, Configure, Finish, Ready, Report, Start, Stop, encode
from hydra.wire.subscriber_table import EMPTY, SubscriberTable, table_of
from tests.channel import PUBLISHER, Channel
from tests.control.rosters import received
from tests.run.steps import PLAN, losing


def ended(drain: DrainEnd) -> SubscriberReport:
    """A subscriber whose drain ended so."""
    return replace(received(9), drain=drain, latency=Histogram(), lag_bins_us=[])


ENDS = get_args(DrainEnd)
ALL_ENDS = table_of(dict(enumerate(map(ended, ENDS))))


@pytest.mark.parametrize(
    ("reports", "cohort", "nothing_left", "spared"),
    [
        # Only a drain that proves it does, or a group that has everything; a cohort proves itself again.
        (ALL_ENDS, [], False, [ENDS.index("complete"), ENDS.index("marked")]),
        (ALL_ENDS, [0], True, [1, 2, 3]),
        (table_of({1: ended("complete"), 2: ended("complete")}), [2], False, [1]),
        (EMPTY, [], False, []),
    ],
)
def test_what_spares_a_subscriber_the_proof_of_the_next_step(
    reports: SubscriberTable, cohort: list[int], nothing_left: bool, spared: list[int]
) -> None:
    assert caught_up(reports, BitMap(cohort), nothing_left=nothing_left) == BitMap(spared)


def test_what_was_stored_has_no_ages() -> None:
    latency = Histogram([1, 9], 1, 1)
    report = replace(ended("complete"), latency=latency, lag_bins_us=[5] * LAG_BINS)
    aged = table_of({1: report, 2: report}, cohort={2})
    assert (aged.latency, aged.cohort_latency, len(aged.lag_bins_us)) == (latency, latency, 2 * LAG_BINS)
    ageless = replace(ended("complete"), latency=Histogram())
    assert stored_only(aged) == table_of({1: ageless, 2: ageless})


@pytest.mark.parametrize(("clients", "seconds"), [(0, 0.5), (1, 0.50025), (100, 0.525), (7_680, 2.42), (10_000, 3.0)])
def test_the_quiet_time_grows_with_the_clients(clients: int, seconds: float) -> None:
    assert quiet_s(clients) == pytest.approx(seconds)


# --- over a channel that loses messages ------------------------------------------------------------------------------


def measured(channel: Channel, *, epoch: int = 1) -> Observation:
    """A step in which every client reported, under the epoch that is expected."""
    stepper = channel.stepper()
    raw = stepper.measure(PLAN, lambda _: None)
    assert stepper.run.epoch == epoch
    assert raw.publisher_reports.keys() == {PUBLISHER}
    assert raw.subscriber_reports.ids.tolist() == list(raw.subscribers) == list(channel.subscribers)
    assert not raw.dead
    assert not raw.silent
    return raw


@pytest.mark.parametrize("client", [PUBLISHER, 2])
@pytest.mark.parametrize(
    ("kind", "command"),
    [
        (Ack, "configure"),
        (Ack, "start"),
        *((kind, "") for kind in (Configure, Ready, Start, Stop, Finish, Report, Batch)),
    ],
)
def test_what_is_lost_twice_comes_the_third_time(client: int, kind: type, command: str) -> None:
    measured(Channel(range(1, 4), losing(client, kind, command, last=2)))


def test_a_step_that_somebody_does_not_start_in_time_is_begun_anew_before_anything_was_sent() -> None:
    channel = Channel(range(1, 4), losing(2, Start, before_epoch=3))
    raw = measured(channel, epoch=3)
    starts = [(c, m) for c, m in channel.data if isinstance(m, Start)]
    assert {m.epoch for c, m in starts if c == 2} == {1, 2, 3}
    assert {m.epoch for c, m in starts if c == PUBLISHER} == {3}
    assert {raw.window_ns} == {(m.start_at_ns, m.stop_at_ns) for c, m in starts if c == PUBLISHER}
    # Clients that should receive from the publisher prove that again.
    assert all(m.probe for _, m in channel.data if isinstance(m, Configure))


@pytest.mark.parametrize(("client", "after_s"), [(PUBLISHER, 0.195), (2, 0.3)])
def test_a_start_acknowledged_after_its_window_began_is_none(client: int, after_s: float) -> None:
    """With three clients it begins after 0.2 s, and after 0.4 s the next time; publishers are sent a moment later."""
    measured(Channel(range(1, 4), start_ack_after_s=lambda c: after_s if c == client else 0.0), epoch=2)


def leads_s(channel: Channel) -> dict[int, float]:
    """How far ahead of its window client 1 first got each epoch's start, in steps of the channel's clock."""
    leads: dict[int, float] = {}
    for at_ns, client, message in channel.timed_messages:
        if client == 1 and isinstance(message, Start):
            lead_ns = StepClock(message.clock).monotonic_ns_of(message.start_at_ns) - at_ns
            leads.setdefault(message.epoch, lead_ns / 1e9)
    return leads


@pytest.mark.parametrize(
    ("clients", "settings_s", "lead_s"),
    [
        (0, 30.0, 0.2),  # no client gets one
        (1000, 0.05, 0.28),
        (1000, 0.4, 0.6),  # they needed longer for their settings
        (1000, 30.0, 1.2),  # one of them hung
        (10_000, 0.3, 1.0),
    ],
)
def test_clients_that_took_their_settings_slowly_are_told_of_the_start_earlier(
    clients: int, settings_s: float, lead_s: float
) -> None:
    assert start_lead_ns(clients, round(settings_s * 1e9)) == pytest.approx(lead_s * 1e9)


@pytest.mark.parametrize(
    ("held_up_until", "ack_after_s", "leads"),
    [
        (3, 0.0, [0.2, 0.4, 0.8, 0.4, 0.2, 0.1, 0.05, 0.1, 0.05]),  # it was passing; a turn takes 20 ms
        (3, 0.25, [0.2, 0.4, 0.8, 0.4, 0.4, 0.4]),  # they need more than the first
        (3, 0.28, [0.2, 0.4, 0.8, 0.8, 0.8, 0.8]),  # half of it might not do
        (2, 0.1, [0.2, 0.4, 0.2, 0.2, 0.2, 0.2]),
        (2, 0.05, [0.2, 0.4, 0.2, 0.1, 0.2, 0.1]),  # a quarter of the usual lead, and half of the halved one
    ],
)
def test_a_lead_that_was_doubled_shrinks_again_once_nobody_needs_it(
    held_up_until: int, ack_after_s: float, leads: list[float]
) -> None:
    channel = Channel(
        range(1, 4),
        losing(2, Start, before_epoch=held_up_until),
        start_ack_after_s=lambda client: ack_after_s if client == 2 else 0.0,
    )
    stepper = channel.stepper()
    while stepper.run.epoch < len(leads):
        if stepper.run.epoch > 1:
            stepper.run.epoch += 1
        stepper.measure(PLAN, lambda _: None)
    assert leads_s(channel) == pytest.approx(dict(enumerate(leads, 1)), rel=0.1)


def test_who_never_acknowledges_a_start_is_got_rid_of() -> None:
    channel = Channel(range(1, 4), losing(2, Start))
    with pytest.raises(StepError, match="1 client did not acknowledge one of 5 starts in time: ids 2"):
        channel.stepper().measure(PLAN, lambda _: None)
    assert channel.evicted == [2]


def test_in_a_window_the_controller_wakes_for_its_ticks_and_for_what_comes_only() -> None:
    channel = Channel(range(1, 4))
    polls: list[int] = []
    channel.stepper().measure(replace(PLAN, duration_s=10.0), lambda _: polls.append(channel.polls))
    assert len(polls) >= 39
    # The publisher's relay reports its busiest threads every second.
    assert polls[-1] - polls[0] <= len(polls) - 1 + 10


def test_a_window_that_ended_early_is_known_to_every_subscriber() -> None:
    """Late messages are recognised by its end alone."""
    channel = Channel(range(1, 4), losing(3, Stop, last=1))

    def tick(moment: StepProgress) -> None:
        if moment.elapsed_s > 0.4:
            channel.complain("its queue is full")

    stepper = channel.stepper()
    raw = stepper.measure(PLAN, tick)
    assert raw.window_ns[1] - raw.window_ns[0] < 0.6e9
    assert [type(m) for c, m in channel.data if c == 3][-3:] == [Stop, Stop, Finish]


def test_a_long_finish_is_not_told_to_everybody_again_while_they_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_replies, "_BYTES_AT_A_TIME", 1_600_000)
    unacknowledged = [(10**18 + 2 * n, 10**18 + 2 * n) for n in range(400)]
    channel = Channel(range(1, 201), report_after_s=lambda _: 3.0, unacknowledged=unacknowledged)
    measured(channel)
    finishes = [m for _, m in channel.data if isinstance(m, Finish)]
    assert 0 < len(finishes) - 200 <= 1.6e6 / len(encode(finishes[0])) < 199


@pytest.mark.parametrize(("clients", "apart_s"), [(20, 3.0), (5, 14.0)])
def test_nobody_is_silent_while_reports_keep_coming(clients: int, apart_s: float) -> None:
    """Far longer than any message of a step."""
    measured(Channel(range(1, clients + 1), report_after_s=lambda client: client * apart_s))


def test_one_slow_relay_of_many_is_waited_for_and_nobody_else_is_told_anything_again() -> None:
    channel = Channel(range(1, 31), report_after_s=lambda client: 9.0 if client == 7 else 0.0)
    measured(channel)
    finishes = Counter(client for client, m in channel.data if isinstance(m, Finish))
    assert finishes.pop(7) > 1
    assert finishes == Counter(client for client in channel.subscribers if client != 7)


def test_who_says_nothing_is_waited_for_no_longer_than_the_margin() -> None:
    channel = Channel(range(1, 4), losing(3, Batch))
    raw = channel.stepper(drain_max_s=6.0).measure(PLAN, lambda _: None)
    assert list(raw.silent) == [3]
    waited_s = (channel.now_ns + wall_offset_ns() - raw.window_ns[1]) / 1e9
    assert 21 <= waited_s < 22
    # … and is asked every 2 s meanwhile.
    assert len([m for c, m in channel.data if c == 3 and isinstance(m, Finish)]) == 11


# --- what is its system's ------------------------------------------------------------------------------------------


def test_what_the_system_has_to_say_is_handed_on_as_it_is() -> None:
    channel = Channel(range(1, 4))
    measured(channel)
    configures = [m for _, m in channel.data if isinstance(m, Configure)]
    assert {json.dumps(m.system) for m in configures} == {'{"where": "here"}'}
    assert [m.system for _, m in channel.data if isinstance(m, Finish)] == [{"until": "now"}] * 3
    assert {(client == PUBLISHER, m.group) for client, m in channel.data if isinstance(m, Configure)} == {
        (True, "group-24"),  # whose probes come faster then
        (False, "group-24"),
    }
    # What a scenario leaves to the system is a number on the wire.
    assert PLAN.settings.burst is None
    assert {m.settings.burst for m in configures} == {100}


def test_readiness_is_proven_again_when_something_that_it_depends_on_is_another() -> None:
    channel = Channel(range(1, 4), proof_of=lambda settings: settings.message_size)
    stepper = channel.stepper()
    for epoch, size in enumerate((24, 24, 48, 48), 1):
        stepper.run.epoch = epoch
        stepper.measure(replace(PLAN, settings=replace(PLAN.settings, message_size=size)), lambda _: None)
    probed = {m.epoch: m.probe for client, m in channel.data if client == 1 and isinstance(m, Configure)}
    assert probed == {1: True, 2: False, 3: True, 4: False}


def test_whoever_is_in_the_cohort_is_told_so() -> None:
    channel = Channel(range(1, 11))
    plan = replace(PLAN, clients=10, cohort=Cohort("slow", 0.3, 50.0))
    raw = channel.stepper().measure(plan, lambda _: None)
    reported = {c: m for c, m in channel.data if c != PUBLISHER and isinstance(m, Configure)}
    assert BitMap(c for c, m in reported.items() if m.cohort) == BitMap(raw.cohort)
    assert {c: m.settings.receive_rate for c, m in reported.items()} == {
        c: 50.0 if c in raw.cohort else None for c in reported
    }
    assert len(raw.cohort) == 3


@pytest.mark.parametrize("renewed", [1, 2, PUBLISHER])
def test_readiness_is_proven_again_to_and_by_another_process(renewed: int) -> None:
    channel = Channel(range(1, 4))
    stepper = channel.stepper()
    stepper.measure(PLAN, lambda _: None)
    channel.renewed.add(renewed)
    for epoch in (2, 3):
        stepper.run.epoch = epoch
        stepper.measure(PLAN, lambda _: None)
    probed = {(m.epoch, c) for c, m in channel.data if c != PUBLISHER and isinstance(m, Configure) and m.probe}
    second = {(2, c) for c in channel.subscribers if renewed in (c, PUBLISHER)}
    assert probed == {(1, c) for c in channel.subscribers} | second


def test_what_a_log_has_grown_by_since_the_probes_counts_as_acknowledged() -> None:
    # Asked whether it counts; until it rests after the probes; until it rests after the step.
    channel = Channel(range(1, 4), log=[10, 20, 30, 30, 70, *[75] * 5, *[80] * 11])
    raw = measured(channel)
    assert raw.publisher_reports[PUBLISHER].acknowledged == 50
    assert channel.log == []
    # The publisher got a command to end its probes.
    assert [m.probe for c, m in channel.data if c == PUBLISHER and isinstance(m, Configure)] == [True, False]


def test_a_late_answer_to_the_first_configure_does_not_end_the_probes() -> None:
    class Late(Channel):
        """Its publisher acknowledges the first ``configure`` again, and only 3 s later the end of its probes."""

        def _answers(self, client: int, message: wire.FromController) -> Iterable[tuple[wire.FromClient, float]]:
            for answer, after_s in super()._answers(client, message):
                ends_probes = client == PUBLISHER and isinstance(message, Configure) and not message.probe
                if ends_probes and isinstance(answer, wire.Ack):
                    yield msgspec.structs.replace(answer, number=1), after_s
                yield answer, 3.0 if ends_probes else after_s

        def log_end(self, settings: Settings) -> int | None:
            request_ns.append(self.now_ns)
            return super().log_end(settings)

    request_ns: list[int] = []
    measured(Late(range(1, 4), log=[10, 20, 30, 30, 70, *[75] * 5, *[80] * 11]))
    counts_ns, first_ns = request_ns[:2]
    assert first_ns - counts_ns >= 3_000_000_000


# --- numbers of messages, and what was stored ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "rate", "seconds"),
    [(500, "max", 0.3), (500, 5000.0, 0.3), (500, 1000.0, 0.5), (501, "max", 1.0), (None, "max", 1.0)],
)
def test_a_window_ends_when_all_messages_are_sent_and_were_due(
    messages: int | None, rate: Rate, seconds: float
) -> None:
    plan = replace(PLAN, settings=replace(PLAN.settings, messages=messages, rate=rate))
    raw = Channel(range(1, 4), all_sent_after_s=0.3).stepper().measure(plan, lambda _: None)
    assert (raw.window_ns[1] - raw.window_ns[0]) / 1e9 == pytest.approx(seconds, abs=0.02)


def test_subscribers_that_read_what_is_stored_are_told_of_the_step_when_it_is() -> None:
    channel = Channel(range(1, 4), reads_stored=True, log=[10, *[60] * 11])
    moments: list[StepProgress] = []
    raw = channel.stepper(drain_max_s=0.5).measure(PLAN, moments.append)
    assert raw.log_growth == 50
    assert raw.reading_ns is not None
    assert raw.reading_ns >= raw.window_ns[1]
    assert [type(m) for c, m in channel.data if c == 1] == [Configure, Start, Finish]
    reported = next(at_ns for at_ns, c, _ in channel.timed_messages if c == 1)
    assert reported + wall_offset_ns() >= raw.window_ns[1]
    # No client has to be ready, so there are no probes; and all of it may be read.
    assert not any(m.probe for _, m in channel.data if isinstance(m, Configure))
    assert {m.drain_max_s for _, m in channel.data if isinstance(m, Finish)} == {PLAN.duration_s}
    assert [moment.doing == "reading" for moment in moments][-1]


def test_a_step_without_subscribers_is_one_of_its_publishers_alone() -> None:
    channel = Channel(range(1, 1), log=[10, *[60] * 11])
    raw = channel.stepper().measure(replace(PLAN, clients=0), lambda _: None)
    assert (raw.log_growth, len(raw.subscriber_reports)) == (50, 0)
    assert {type(m) for _, m in channel.data} == {Configure, Start, Stop}
