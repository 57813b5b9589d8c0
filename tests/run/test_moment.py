"""How far a step is, and its figures from the clients' last reports."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.model import CoreTimes, HostCounters, HostSample, Settings, StepPlan, TcpCounts
from hydra.monitor.step_progress import ReportedTotals, StepProgress, draining, reading, sending, watched
from hydra.run.host_sampling import RecentHostSamples
from hydra.wire.messages import Progress

SECOND = 1_000_000_000
PLAN = StepPlan(clients=2, settings=Settings(rate=100.0), duration_s=4.0)


def progress(messages: int, after_s: float) -> Progress:
    return Progress(ids=[0], seq=1, epoch=1, messages=messages, time_ns=round(SECOND * (10 + after_s)))


PROGRESS = {
    0: progress(100, 1.0),
    1: progress(40, 0.5),
    2: progress(120, 1.5),
    3: progress(0, -1.0),
    9: progress(7, 1.0),
}
"""A publisher, two subscribers, one that has reported nothing since the start, and one of another size."""


def test_a_window_has_what_its_clients_told() -> None:
    moment = sending(PLAN, PROGRESS, range(1), range(1, 4), 10 * SECOND, 12 * SECOND)
    assert (moment.elapsed_s, moment.share) == (2.0, 0.5)
    assert moment.sent == pytest.approx((1, 100, 100.0))
    assert (moment.received.clients, moment.received.messages) == (2, 160)
    assert moment.received_pps == moment.received.mean_pps == pytest.approx(80.0)


def test_so_has_the_reading_of_what_was_stored() -> None:
    moment = reading(200, PROGRESS, range(1, 3), 10 * SECOND, 12 * SECOND, shared=False)
    assert moment.share == pytest.approx(160 / 400)
    assert moment.sent == ReportedTotals()
    assert moment.received.messages == 160


def test_nobody_has_a_mean_rate_who_has_told_nothing() -> None:
    assert ReportedTotals().mean_pps == 0.0


def sample(time_s: float) -> HostSample:
    return HostSample(round(time_s * 1e9), HostCounters([CoreTimes(0, 0, time_s)], {}, 1, 1, {}, TcpCounts(0, 0), 0))


@pytest.mark.parametrize(
    ("times_s", "pair"),
    [
        ([0.0], None),
        ([0.0, 0.25, 0.5, 0.75], None),
        ([0.0, 0.25, 0.5, 0.75, 1.0], (0.0, 1.0)),
        ([0.0, 0.5, 1.0, 1.5], (0.0, 1.0)),
        ([0.0, 1.0, 2.0, 2.5], (1.0, 2.0)),
        ([0.0, 3.0], (0.0, 3.0)),
    ],
)
def test_a_host_is_told_by_two_samples_a_second_apart(times_s: list[float], pair: tuple[float, float] | None) -> None:
    lately = RecentHostSamples()
    for time_s in times_s:
        lately.add("here", sample(time_s))
    assert lately.pairs == ({} if pair is None else {"here": (sample(pair[0]), sample(pair[1]))})


def test_the_slowest_are_named_without_the_cohort_and_who_has_told_nothing_yet() -> None:
    text = {
        0: progress(4000, 4.0),
        1: progress(3000, 3.0),
        2: progress(1000, 2.0),
        3: progress(10, 4.0),
        4: progress(7, 0.0),
    }
    found = watched(StepProgress(4.0, 0.4), text, BitMap([1, 2, 4]), 10 * SECOND, 1.0, {"one": 5.0})
    assert found.slowest == ((2, 500.0), (1, 1000.0))
    assert (found.of, found.cpu_pct) == (2, {"one": 5.0})


@pytest.mark.parametrize(
    ("sent_pps", "received_pps", "each", "missing"),
    [
        (1000.0, 900.0, 1.0, 0.1),
        (1000.0, 1001.0, 1.0, 0.0),  # sent a moment later
        (2000.0, 500.0, 0.5, 0.5),  # each subscriber listens to one of two publishers
        (1000.0, 300.0, 0.0, None),  # they share the messages
        (0.0, 300.0, 1.0, None),
        (1000.0, 0.0, 1.0, None),  # no client has reported anything
    ],
)
def test_what_is_not_there_yet(sent_pps: float, received_pps: float, each: float, missing: float | None) -> None:
    moment = StepProgress(4.0, 0.4, sent_pps, received_pps)
    found = watched(moment, {}, BitMap(), 0, each, {}).missing
    assert found == (None if missing is None else pytest.approx(missing))


@pytest.mark.parametrize(("drain_s", "share"), [(10.0, 0.2), (1.0, 1.0), (0.0, 1.0)])
def test_a_drain_has_a_longest_length(drain_s: float, share: float) -> None:
    moment = draining(drain_s, 5 * SECOND, 7 * SECOND)
    assert (moment.doing, moment.elapsed_s, moment.share) == ("draining", 2.0, share)
