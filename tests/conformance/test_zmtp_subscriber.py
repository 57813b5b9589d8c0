"""What a subscriber that speaks ZMTP itself must do beside what every ZMQ subscriber does."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from hydra.wire.messages import ChildExit, Error, Ready
from tests.conformance.bench import CLIENT, ONE, OTHER, Bench, StepSettings, step_settings, with_values
from tests.conformance.group import no_more_files
from tests.conformance.zmq_ends import Speaker
from tests.conformance.zmq_subscribing import connected as connected_to
from tests.conformance.zmq_subscribing import got
from tests.conformance.zmtp_ends import MORE, Caller, PlainPublisher, command, frame, greeting, ready

FURTHER = CLIENT + 1
SETTINGS = StepSettings()
GREETING = greeting()[:8] + b"\0" + greeting()[9:32] + bytes(32)
READY = b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB"
SUBSCRIPTION = b"\0\x01\x01"


@pytest.fixture
def subscriber(bench: Bench, zmtp_subscriber: tuple[str, str]) -> Bench:
    bench.launch(*zmtp_subscriber, first_id=CLIENT)
    return bench


@pytest.fixture
def two(bench: Bench, zmtp_subscriber: tuple[str, str]) -> Bench:
    """Two subscribers in one process."""
    bench.launch(*zmtp_subscriber, first_id=CLIENT, count=2, arguments=["--clients-per-process", "2"])
    return bench


@pytest.fixture
def plain(subscriber: Bench) -> Iterator[PlainPublisher]:
    publisher = PlainPublisher(subscriber.peer, ONE)
    yield publisher
    publisher.close()


def connected(bench: Bench, publisher: PlainPublisher, epoch: int = 1) -> None:
    bench.configure_subscribers([CLIENT], epoch, SETTINGS, publishers={ONE: publisher.endpoint}, progress_s=0.02)
    caller = publisher.called(1)
    publisher.heard(caller, GREETING + READY + SUBSCRIPTION)
    publisher.probe(caller, epoch)
    bench.peer.heard(Ready, [CLIENT], epoch=epoch)


def begun(bench: Bench, publisher: PlainPublisher) -> Caller:
    connected(bench, publisher)
    bench.start([CLIENT], 1, 30)
    return publisher.callers[0]


def begun_again(bench: Bench, publisher: PlainPublisher, caller: Caller) -> None:
    """The second step, over the same connection."""
    bench.configure_subscribers([CLIENT], 2, SETTINGS, publishers={ONE: publisher.endpoint})
    publisher.probe(caller, 2)
    bench.peer.heard(Ready, [CLIENT], epoch=2)
    bench.start([CLIENT], 2, 30)


def test_it_subscribes_when_the_publisher_is_ready(subscriber: Bench) -> None:
    publisher = PlainPublisher(subscriber.peer, ONE, opening=b"")
    subscriber.configure_subscribers([CLIENT], 1, SETTINGS, publishers={ONE: publisher.endpoint})
    caller = publisher.called(1)
    publisher.heard(caller, GREETING + READY)
    caller.send(greeting())
    subscriber.peer.stays(lambda: caller.heard == GREETING + READY, "a subscription before READY", 0.1)
    caller.send(ready(b"XPUB"))
    publisher.heard(caller, GREETING + READY + SUBSCRIPTION)
    publisher.close()


def test_messages_may_be_cut_anywhere_and_come_with_anything(subscriber: Bench, plain: PlainPublisher) -> None:
    caller = begun(subscriber, plain)
    words = b"".join(plain.message(1, n, 24 if n % 3 else 300 + n) for n in range(30))
    words += frame(b"") + frame(b"23 bytes are no header.") + command(b"WHATEVER", b"it is")
    words += frame(plain.message(1, 30)[2:], MORE) + frame(b"the rest of it")
    for at in range(0, len(words), 7):
        caller.send(words[at : at + 7])
    got(subscriber, 1, 31)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 31})
    assert (report.ledgers[0].received, report.ledgers[0].missing, report.drain) == (31, 0, "complete")
    assert report.bytes == sum(24 if n % 3 else 300 + n for n in range(30)) + 24


def test_a_ping_is_answered_in_a_step_and_between_two(subscriber: Bench, plain: PlainPublisher) -> None:
    caller, text = begun(subscriber, plain), GREETING + READY + SUBSCRIPTION
    caller.send(command(b"PING", b"\0\x0acontext") + plain.message(1, 0))
    text += b"\x04\x0c\x04PONGcontext"
    plain.heard(caller, text)
    assert subscriber.subscriber_report(CLIENT, 1, {ONE: 1}).ledgers[0].missing == 0
    for _ in range(2):
        caller.send(command(b"PING", b"\0\0") + plain.message(1, 1))
        text += b"\x04\x05\x04PONG"
        plain.heard(caller, text)
    begun_again(subscriber, plain, caller)
    caller.send(plain.message(2, 0))
    report = subscriber.subscriber_report(CLIENT, 2, {ONE: 1})
    assert (report.ledgers[0].received, report.stale) == (1, 0)
    assert len(plain.callers) == 1


@pytest.mark.parametrize(
    ("opening", "why"),
    [
        (greeting(major=1)[:12], "the publisher speaks ZMTP 2, but ZMTP 3 is needed"),
        (greeting(b"CURVE"), "the publisher asks for the mechanism CURVE, but only NULL is supported"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the publisher does not speak ZMTP 3"),
        (greeting() + ready(b"PULL"), "the publisher's socket is of the type 'PULL'"),
        (greeting() + command(b"ERROR", b"\x07go away"), "the publisher rejects the connection: go away"),
        (greeting() + frame(b"x" * 24), "the publisher sent a message before the handshake ended"),
    ],
)
def test_who_is_no_publisher_for_it_is_named_and_others_are_heard(two: Bench, opening: bytes, why: str) -> None:
    bad, good = PlainPublisher(two.peer, OTHER, opening), Speaker(two.peer, ONE)
    two.configure_subscribers([FURTHER], 1, SETTINGS, publishers={OTHER: bad.endpoint})
    two.hears_why_not(FURTHER, 1, f"no publisher for this subscriber at '{bad.endpoint}': {why}")
    connected_to(two, 1, good, settings=SETTINGS)
    two.start([CLIENT], 1, 30)
    good.send(1, range(10))
    assert two.subscriber_report(CLIENT, 1, {ONE: 10}).ledgers[0].received == 10
    assert not two.peer.messages_of(ChildExit)
    bad.close()


def test_after_rubbish_it_calls_anew_and_counts_that(subscriber: Bench, plain: PlainPublisher) -> None:
    first = begun(subscriber, plain)
    first.send(plain.message(1, 0) + b"\x80rubbish" + plain.message(1, 1))
    second = plain.called(2)
    subscriber.peer.wait(lambda: first.ended, "the end of the first call")
    plain.heard(second, GREETING + READY + SUBSCRIPTION)
    second.send(plain.message(1, 2))
    got(subscriber, 1, 2)
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 3})
    assert report.ledgers[0].missing_ranges == [(1, 1)]
    assert report.system == {"lost_connections": 1, "refused_connections": 1}


def test_a_publisher_that_is_gone_is_called_until_it_is_back(subscriber: Bench, plain: PlainPublisher) -> None:
    begun(subscriber, plain).send(plain.message(1, 0))
    plain.close()
    got(subscriber, 1, 1)
    # Several calls find no publisher.
    subscriber.peer.stays(lambda: not subscriber.peer.messages_of(Error), "an error", 0.5)
    back = PlainPublisher(subscriber.peer, ONE, port=plain.port)
    caller = back.called(1)
    back.heard(caller, GREETING + READY + SUBSCRIPTION)
    caller.send(back.message(1, 1))
    report = subscriber.subscriber_report(CLIENT, 1, {ONE: 2})
    assert (report.ledgers[0].received, report.system) == (2, {"lost_connections": 1, "refused_connections": 0})
    begun_again(subscriber, back, caller)
    assert subscriber.subscriber_report(CLIENT, 2, {ONE: 0}).system is None
    back.close()


def test_one_that_hangs_up_with_its_last_message_is_called_again(subscriber: Bench, plain: PlainPublisher) -> None:
    """Both have come when the subscriber looks."""
    caller, pid = begun(subscriber, plain), subscriber.peer.process(CLIENT).pid
    os.kill(pid, signal.SIGSTOP)
    caller.send(plain.message(1, 0))
    caller.socket.shutdown(socket.SHUT_WR)
    os.kill(pid, signal.SIGCONT)
    plain.called(2).send(plain.message(1, 1))
    assert subscriber.subscriber_report(CLIENT, 1, {ONE: 2}).ledgers[0].received == 2


@pytest.mark.parametrize(
    ("settings", "named"),
    [(step_settings(rcvhwm=1000), "rcvhwm"), (with_values(SETTINGS, receive_rate=5.0), "slow reader")],
)
def test_what_needs_a_queue_is_refused_by_name(
    subscriber: Bench, plain: PlainPublisher, settings: StepSettings, named: str
) -> None:
    subscriber.send_configure([CLIENT], 1, settings, publishers={ONE: plain.endpoint})
    subscriber.hears_why_not(CLIENT, 1, named)
    connected(subscriber, plain, 2)


def test_without_a_socket_it_says_so_and_tries_again(subscriber: Bench, plain: PlainPublisher) -> None:
    other = PlainPublisher(subscriber.peer, OTHER)
    # Once it has obeyed, it has all else that it opens.
    subscriber.configure_subscribers([CLIENT], 1, SETTINGS, publishers={OTHER: other.endpoint})
    with no_more_files(subscriber.peer.process(CLIENT).pid):
        subscriber.send_configure([CLIENT], 2, SETTINGS, publishers={ONE: plain.endpoint})
        subscriber.hears_why_not(CLIENT, 2, "(EMFILE)")
    connected(subscriber, plain, 3)
    other.close()


def test_a_path_is_an_address_too(subscriber: Bench) -> None:
    speaker = Speaker(subscriber.peer, ONE, f"ipc://@hydra-test-{os.getpid()}")
    connected_to(subscriber, 1, speaker, settings=SETTINGS)


@pytest.mark.tier("all")
def test_its_receive_buffer_is_as_large_as_it_is_told(bench: Bench, zmtp_subscriber: tuple[str, str]) -> None:
    """A publisher can hand over to one that has stopped what the buffers of both hold, and no more."""
    handed = []
    for group, rcvbuf in ((3, 8192), (4, 4_000_000)):
        bench.launch(*zmtp_subscriber, first_id=group, group=str(group), arguments=["--zmtp-rcvbuf", str(rcvbuf)])
        publisher = PlainPublisher(bench.peer, ONE)
        bench.configure_subscribers([group], 1, SETTINGS, publishers={ONE: publisher.endpoint})
        caller = publisher.called(1)
        publisher.heard(caller, GREETING + READY + SUBSCRIPTION)
        os.kill(bench.peer.process(group).pid, signal.SIGSTOP)
        caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        caller.socket.settimeout(0.5)
        words = publisher.message(1, 0, 1000) * 8
        handed.append(0)
        with suppress(TimeoutError):
            while handed[-1] < 8_000_000:
                handed[-1] += caller.socket.send(words)
        publisher.close()
    assert handed[0] < 200_000
    assert handed[1] > 1_000_000


def test_hundreds_in_one_process_get_through_a_short_listen_queue(
    bench: Bench, zmtp_subscriber: tuple[str, str]
) -> None:
    """They dial in turn: who is thrown out of the queue would try again a second later."""
    count = 600
    bench.launch(*zmtp_subscriber, count=count, arguments=["--clients-per-process", str(count)])
    ids = range(1, count + 1)
    speaker = Speaker(bench.peer, ONE)
    connected_to(bench, 1, speaker, settings=SETTINGS, ids=ids, progress_s=0.0)
    bench.start(ids, 1, 30)
    speaker.send(1, range(20))
    reports = bench.subscriber_reports(ids, 1, {ONE: 20})
    assert {report.ledgers[0].received for report in reports.values()} == {20}
