"""What a relay does about ``watch``, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from hydra.client.host_monitor import HostMonitor
from hydra.model import BusyThread, HostCounters
from hydra.wire.messages import MAX_SAMPLES, HostReadings, Sample, Watch
from tests.control.golden_messages import COUNTERS

MS = 1_000_000
SECOND = 1000 * MS
THREAD = BusyThread(4711, "sends", 12.5)


class Relay:
    """A watcher on a clock that only :meth:`runs` moves, and what it has sent, with the time."""

    def __init__(
        self,
        host: Callable[[], HostCounters] = lambda: COUNTERS,
        threads: Callable[[], list[BusyThread]] | None = lambda: [THREAD],
    ) -> None:
        self.now_ns = 5 * SECOND
        self.sent: list[tuple[int, HostReadings]] = []
        self._watcher = HostMonitor([4, 5], self._send, host, threads, lambda: self.now_ns)

    def _send(self, message: HostReadings) -> None:
        self.sent.append((self.now_ns, message))

    def take_watch(self, epoch: int = 3, every_s: float = 0.25, *, host: bool = True) -> None:
        self._watcher.take(Watch(epoch=epoch, every_s=every_s, host=host))

    def runs(self, for_ns: int) -> None:
        """Works when it is due, as a relay's loop does."""
        end_ns = self.now_ns + for_ns
        while (wait_s := self._watcher.work()) < inf:
            assert wait_s >= 0
            due_ns = self.now_ns + round(wait_s * 1e9)
            if due_ns > end_ns:
                break
            self.now_ns = due_ns
        self.now_ns = end_ns

    @property
    def samples(self) -> list[Sample]:
        return [sample for _, message in self.sent for sample in message.samples]

    @property
    def times_ms(self) -> list[int]:
        return [(s.time_ns - 5 * SECOND) // MS for s in self.samples]


def watching(for_ns: int, **more: Any) -> Relay:
    """A monitor whose watch began this long ago."""
    relay = Relay()
    relay.take_watch(**more)
    relay.runs(for_ns)
    return relay


def test_it_reads_at_once_and_every_so_often_and_tells_of_it_every_second() -> None:
    relay = watching(2600 * MS)
    assert [(at_ns - 5 * SECOND) // MS for at_ns, _ in relay.sent] == [1000, 2250]
    assert relay.times_ms == [*range(0, 2251, 250)]
    assert {(m.epoch, *m.ids) for _, m in relay.sent} == {(3, 4, 5)}
    assert relay.samples == [Sample(s.time_ns, COUNTERS, [THREAD]) for s in relay.samples]


def test_the_end_is_answered_at_once_each_time_and_ends_it() -> None:
    relay = watching(600 * MS)
    relay.take_watch(every_s=0.0)
    assert relay.times_ms == [0, 250, 500]
    relay.take_watch(every_s=0.0)
    assert [len(m.samples) for _, m in relay.sent] == [3, 0]
    assert relay._watcher.work() == inf
    # A repetition that was on its way does not begin it again; another epoch does.
    relay.take_watch()
    assert relay._watcher.work() == inf
    relay.take_watch(epoch=4)
    relay.runs(0)
    relay.take_watch(epoch=4, every_s=0.0)
    assert relay.times_ms == [0, 250, 500, 600]


def test_the_end_of_a_watch_that_never_came_is_answered_too() -> None:
    relay = Relay()
    assert relay._watcher.work() == inf
    relay.take_watch(every_s=0.0)
    assert [m for _, m in relay.sent] == [HostReadings(ids=[4, 5], seq=1, epoch=3, samples=[])]


def test_a_repetition_changes_nothing() -> None:
    once, often = Relay(), Relay()
    once.take_watch()
    for _ in range(30):
        often.take_watch()
        for relay in (once, often):
            relay.runs(100 * MS)
    assert often.sent == once.sent


def test_only_the_threads_are_read_unless_the_host_is_asked_for_and_the_last_word_counts() -> None:
    relay = watching(100 * MS, host=False)
    relay.take_watch(host=True)
    relay.runs(200 * MS)
    relay.take_watch(host=False)
    relay.runs(300 * MS)
    relay.take_watch(every_s=0.0)
    assert [s.host for s in relay.samples] == [None, COUNTERS, None]


def test_a_group_of_subscribers_has_no_threads_to_tell_of() -> None:
    relay = Relay(threads=None)
    relay.take_watch()
    relay.runs(0)
    relay.take_watch(every_s=0.0)
    assert relay.samples == [Sample(5 * SECOND, COUNTERS)]


def test_a_lower_epoch_is_ignored_and_a_higher_one_begins_anew() -> None:
    relay = watching(300 * MS, epoch=3)
    relay.take_watch(epoch=2)
    relay.take_watch(epoch=2, every_s=0.0)
    relay.take_watch(epoch=4)
    relay.runs(100 * MS)
    relay.take_watch(epoch=3, every_s=0.0)
    assert relay.sent == []
    relay.take_watch(epoch=4, every_s=0.0)
    assert [(m.epoch, len(m.samples)) for _, m in relay.sent] == [(4, 1)]
    assert relay.times_ms == [300]


def test_it_ends_by_itself_30_s_after_the_last_word() -> None:
    relay = watching(20 * SECOND)
    relay.take_watch()
    relay.runs(60 * SECOND)
    assert 49_000 < relay.times_ms[-1] < 50_000
    assert relay._watcher.work() == inf
    # A controller that was only slow continues.
    relay.take_watch()
    relay.runs(2 * SECOND)
    assert relay.times_ms[-1] > 80_000


def test_readings_that_were_missed_are_not_made_up_for() -> None:
    relay = watching(300 * MS)
    relay.now_ns += 10_000 * MS  # it is suspended
    relay.runs(400 * MS)
    relay.take_watch(every_s=0.0)
    assert relay.times_ms == [0, 250, 10_300, 10_500]


def test_no_message_has_more_samples_than_one_may_have() -> None:
    relay = watching(200 * MS, every_s=0.001)
    assert {len(m.samples) for _, m in relay.sent} == {MAX_SAMPLES}
    assert len(relay.sent) == 201 // MAX_SAMPLES


@pytest.mark.parametrize("error", [PermissionError("no"), ValueError("what"), KeyError("Tcp"), NotImplementedError()])
def test_what_cannot_be_read_is_left_out(error: Exception) -> None:
    """A group has better things to do than to end because of a kernel without these files."""

    def fails() -> HostCounters:
        raise error

    for relay in (Relay(host=fails), Relay(host=fails, threads=fails)):  # type: ignore[arg-type]
        relay.take_watch()
        relay.runs(0)
        relay.take_watch(every_s=0.0)
        assert [s.host for s in relay.samples] == [None]
