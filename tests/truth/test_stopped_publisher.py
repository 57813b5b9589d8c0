"""A publisher that stands still for a while shows in the maximum, and in its share of all latencies (an open loop)."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import psutil
import pytest

from hydra.model import Histogram
from hydra.wire.buckets import lowest_of
from tests.conformance.bench import Bench, Window, step_settings
from tests.truth.pauses import witnessed
from tests.truth.priority import first
from tests.truth.scale import cases
from tests.truth.stage import PUBLISHER, Stage

pytestmark = pytest.mark.tier("all")

RATE, SECONDS = 1000.0, 1.5
SETTINGS = step_settings(rate=RATE, message_size=100, sndhwm=0)
BEGINS_S = 0.4
"""When it is stopped, from the start of the window."""
THRESHOLDS_MS = (50, 100, 150, 200, 250)
CATCHES_UP_S = 0.020
"""The longest time, of the machine's, in which a publisher that continues sends what has become due."""


class Stop:
    """A process that is made to stand still, for at least and at most this many seconds."""

    def __init__(self, bench: Bench, pid: int) -> None:
        self._bench, self._process = bench, psutil.Process(pid)
        self.at_least_s = self.at_most_s = 0.0

    def hold(self, window: Window, seconds: float) -> None:
        """Stops it ``BEGINS_S`` into the window for so long."""
        peer, process = self._bench.peer, self._process
        start_ns = window.start_ns - window.offset_ns + int(BEGINS_S * 1e9)
        peer.wait(lambda: time.monotonic_ns() >= start_ns, "the moment to stop")
        first_ns = time.monotonic_ns()
        os.kill(process.pid, signal.SIGSTOP)
        peer.wait(lambda: process.status() == psutil.STATUS_STOPPED, "the stop")
        stopped_ns = time.monotonic_ns()
        peer.wait(lambda: time.monotonic_ns() >= first_ns + seconds * 1e9, "the end of the stop")
        goes_on_ns = time.monotonic_ns()
        os.kill(process.pid, signal.SIGCONT)
        self.at_least_s = (goes_on_ns - stopped_ns) / 1e9
        self.at_most_s = (time.monotonic_ns() - first_ns) / 1e9


def later_than(latency: Histogram, ms: int) -> int:
    """How many messages took longer than this, by the buckets that lie wholly beyond it."""
    pairs = zip(latency.counts[0::2], latency.counts[1::2], strict=True)
    return sum(count for index, count in pairs if lowest_of(index) >= ms * 1000)


def beyond(latency: Histogram, lag: Histogram, stop: Stop, paused_s: float) -> list[str]:
    """What a stop of this length contradicts, in a subscriber's latencies and in the publisher's own lag.

    The oldest message due in the stop waited for all of it. Of a stop of s seconds, those due in its first s − x took
    longer than x: rate · (s − x) of them. (The lag is that of each chunk's first message, so only its maximum shows.)
    What the machine itself paused may have come on top, at any time.
    """
    low, high = stop.at_least_s, stop.at_most_s + CATCHES_UP_S + paused_s
    wrong = [
        f"{name} {us} µs, stopped for {low:.4f} to {high:.4f} s"
        for name, us in (("latency_max", latency.max_us), ("lag_max", lag.max_us))
        if not low - 1 / RATE <= us / 1e6 <= high
    ]
    for ms in THRESHOLDS_MS:
        fewest, most = (RATE * (s - ms / 1000) for s in (low, high))
        count = later_than(latency, ms)
        # Where the schedule stands when it is stopped, and a bucket's width, each for a message.
        if not fewest - 2 <= count <= most + 2:
            wrong.append(f"{count} messages beyond {ms} ms, not {fewest:.0f} to {most:.0f}")
    return wrong


@pytest.mark.parametrize("seconds", cases([0.3], [0.26, 0.6, 0.9]))
def test_a_stop_is_seen_in_full(bench: Bench, zmq_command: str, seconds: float) -> None:
    stage = Stage(bench, first(zmq_command))
    pid = bench.peer.process(PUBLISHER).pid
    stop = Stop(bench, pid)
    step = stage.next(SETTINGS)
    step.connect()
    with witnessed() as witness:
        measured = step.run(SECONDS, begun=partial(stop.hold, seconds=seconds))
    paused_s = sum(ends_ns - begins_ns for begins_ns, ends_ns in witness.pauses) / 1e9
    sent, report = measured.publisher.sent, measured.subscribers[1]
    assert (report.ledgers[0].received, report.ledgers[0].missing) == (sent, 0)
    assert not beyond(report.latency, measured.publisher.lag, stop, paused_s)
    # The schedule is open: nothing of it is left out because of the stop.
    assert 0 <= RATE * SECONDS - sent <= RATE * paused_s
