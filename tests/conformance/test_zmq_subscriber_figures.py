"""What a ZMQ subscriber must do: take latencies, hold a rate, reconnect, report its progress."""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any

import pytest

from hydra.model import LAG_BINS
from hydra.wire.messages import ChildExit, Impairment, Progress, Ready, TimeSeries
from tests.conformance.bench import CLIENT, ONE, Bench, Window, with_values
from tests.conformance.peer import Account
from tests.conformance.zmq_subscribing import DEEP, begun, connected, endpoints, got, listening, only_ledger, running


def bucket_of(value_us: int) -> int:
    """The formula of docs/control-protocol.md."""
    bucket = max(value_us.bit_length() - 11, 0)
    return bucket * 1024 + (value_us >> bucket)


def test_latency_is_arrival_minus_due_time(subscriber: Bench) -> None:
    one, window = begun(subscriber)
    one.send(1, range(100), time_ns=window.now_ns() - 250_000_000)
    one.send(1, range(100, 130), time_ns=window.now_ns() + 3_600_000_000_000)
    got(subscriber, 1, 130)
    assert window.start_ns < subscriber.peer.messages_of(Progress)[-1].time_ns <= window.now_ns()
    latency = subscriber.subscriber_report(CLIENT, 1, {ONE: 130}).latency
    assert not subscriber.peer.messages_of(TimeSeries)
    indexes, counts = latency.counts[::2], latency.counts[1::2]
    assert indexes == sorted(set(indexes))
    # Those that came before they were due sort below zero, in mirrored buckets.
    early = [index for index in indexes if index < 0]
    assert sum(counts[: len(early)]) == 30
    assert sum(counts[len(early) :]) == 100
    assert -3_600_000_000 <= latency.min_us < -3_598_000_000
    assert indexes[0] == -1 - bucket_of(-latency.min_us)
    assert bucket_of(250_000) <= indexes[len(early)] <= indexes[-1] <= bucket_of(2_000_000)
    assert 250_000 <= latency.max_us < 2_000_000
    assert indexes[-1] == bucket_of(latency.max_us)


def test_the_lag_is_told_in_parts_of_the_window(subscriber: Bench) -> None:
    """A message in every second part, whose age grows by half a second a second.

    When it came is known by two moments, which a busy machine moves apart, and into later parts.
    """
    one, window = begun(subscriber, 1, 1.0, settings=with_values(DEEP, rate=1000.0), progress_s=0.005)
    part_ns = 10**9 // LAG_BINS
    came: list[tuple[range, int, int]] = []
    for part in range(1, LAG_BINS, 2):
        subscriber.await_moment(window, (part + 0.2) * part_ns / 1e9)
        before_ns = window.now_ns()
        due_ns = (before_ns + window.start_ns) // 2
        one.send(1, [len(came)], time_ns=due_ns)
        subscriber.peer.wait(partial(here_or_too_late, subscriber, window, len(came) + 1), "the message, or the end")
        after_ns = window.now_ns()
        parts = range((before_ns - window.start_ns) // part_ns, (after_ns - window.start_ns) // part_ns + 1)
        came.append((parts, (before_ns - due_ns) // 1000, (after_ns - due_ns) // 1000))
    subscriber.await_end(window)
    one.send(1, [len(came)], time_ns=window.start_ns)
    bins = subscriber.subscriber_report(CLIENT, 1, {ONE: len(came) + 1}).lag_bins_us
    assert len(bins) == LAG_BINS
    for parts, _, _ in came:
        assert parts[-1] >= LAG_BINS or any(bins[part] is not None for part in parts)
    for part, mean_us in enumerate(bins):
        ages_us = [(least, most) for parts, least, most in came if part in parts]
        assert mean_us is None or ages_us, f"nothing was sent in part {part}: {came}"
        assert mean_us is None or min(ages_us)[0] <= mean_us <= max(most for _, most in ages_us)


def here_or_too_late(bench: Bench, window: Window, messages: int) -> bool:
    return window.expired() or any(progress.messages >= messages for progress in bench.peer.messages_of(Progress))


def test_without_a_rate_no_lag_is_known(subscriber: Bench) -> None:
    one, _ = begun(subscriber, settings=with_values(DEEP, rate="max"))
    one.send(1, range(10))
    got(subscriber, 1, 10)
    assert subscriber.subscriber_report(CLIENT, 1, {ONE: 10}).lag_bins_us == []


def test_a_receive_rate_holds_it_back_until_the_drain(queueing_subscriber: Bench) -> None:
    one = listening(queueing_subscriber, settings=with_values(DEEP, receive_rate=200.0))
    window = queueing_subscriber.start([CLIENT], 1, 0.5)
    one.send(1, range(1000))
    queueing_subscriber.await_end(window)
    ledger = only_ledger(queueing_subscriber.subscriber_report(CLIENT, 1, {ONE: 1000}))
    assert ledger.received == 1000
    assert 50 <= ledger.in_window <= 105
    for progress in queueing_subscriber.peer.messages_of(Progress, CLIENT, epoch=1):
        if progress.time_ns < window.stop_ns:
            assert progress.messages <= 200 * (progress.time_ns - window.start_ns) / 1e9 + 20


@pytest.mark.parametrize("slow", ["receive_rate", "spell"])
def test_a_slow_reader_does_not_make_up_for_a_silence(queueing_subscriber: Bench, slow: str) -> None:
    more: dict[str, Any] = {"settings": with_values(DEEP, receive_rate=40.0)}
    if slow == "spell":
        more = {"spells": [Impairment("slow", 0.0, 9.0, 40.0)]}
    one, window = begun(queueing_subscriber, **more)
    queueing_subscriber.await_moment(window, 1.0)
    one.send(1, range(200))
    got(queueing_subscriber, 1, 50)
    report = queueing_subscriber.subscriber_report(CLIENT, 1, {ONE: 200})
    assert (only_ledger(report).received, only_ledger(report).missing) == (200, 0)
    progress = [p for p in queueing_subscriber.peer.messages_of(Progress, CLIENT, epoch=1) if p.messages <= 50]
    # A time is that of the turn of the loop in which the messages were read.
    read = [b.messages - a.messages for a in progress for b in progress if 0 <= b.time_ns - a.time_ns <= 980_000_000]
    assert 40 <= max(read) <= 44


def test_a_reconnect_rate_makes_new_connections(subscriber: Bench) -> None:
    one = listening(subscriber, settings=with_values(DEEP, reconnect_rate=2.0))
    window = subscriber.start([CLIENT], 1, 1.95)
    sequence = 0

    def talking() -> bool:
        nonlocal sequence
        one.send(1, [sequence])
        sequence += 1
        return window.expired(0.2)

    subscriber.peer.wait(talking, "the end of the window")
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: sequence}, quiet_s=0.2)
    # Due at 0.5, 1 and 1.5 s: a slow machine, too, makes the last one before the window ends.
    assert report.reconnects == 3
    subscriber.peer.wait(lambda: (one.subscriptions, one.present) == (4, 1), "its subscriptions, and the last one only")
    assert 1 <= len(report.absent) <= 3
    for begin_ns, end_ns in report.absent:
        assert window.start_ns < begin_ns < end_ns <= window.stop_ns + 1_000_000_000
    ledger = only_ledger(report)
    assert ledger.received + ledger.missing == sequence
    assert ledger.duplicates == 0


def test_after_reconnecting_a_plain_step_is_plain(subscriber: Bench) -> None:
    one = listening(subscriber, settings=with_values(DEEP, reconnect_rate=20.0))
    window = subscriber.start([CLIENT], 1, 0.2)
    subscriber.await_end(window)
    subscriber.subscriber_report(CLIENT, 1, {ONE: 0})
    made = one.subscriptions
    subscriber.configure_subscribers([CLIENT], 2, DEEP, publishers=endpoints(one), progress_s=0.02)

    def probing() -> bool:
        one.probe(2)
        return bool(subscriber.peer.messages_of(Ready, CLIENT, epoch=2))

    subscriber.peer.wait(probing, "ready")
    running(subscriber, 2)
    one.send(2, range(100))
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 100})
    assert (report.reconnects, report.absent, only_ledger(report).missing) == (0, [], 0)
    assert one.subscriptions <= made + 1


def test_a_finish_that_waited_with_the_next_configure(subscriber: Bench) -> None:
    """The controller gave it again before the report came: both are read at once, and the report is no more."""
    one, _ = begun(subscriber)
    one.send(1, range(10))
    subscriber.subscriber_report(CLIENT, 1, {ONE: 10})
    (first,) = subscriber.peer.messages_of(Account, CLIENT, epoch=1)
    pid = subscriber.peer.process(CLIENT).pid
    os.kill(pid, signal.SIGSTOP)
    for _ in range(2):
        subscriber.send_finish([CLIENT], 1, {ONE: 10})
    subscriber.send_configure([CLIENT], 2, DEEP, publishers=endpoints(one))
    # What the socket of a stopped process has taken is not seen from here; the answers to all of it are.
    os.kill(pid, signal.SIGCONT)
    connected(subscriber, 2, one)
    subscriber.peer.sync([CLIENT])
    assert not subscriber.peer.messages_of(ChildExit)
    assert all(again.report == first.report for again in subscriber.peer.messages_of(Account, CLIENT))
