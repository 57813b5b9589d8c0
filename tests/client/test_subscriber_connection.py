"""When a subscriber tries to connect, and what it reports of it."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from hydra.client.subscriber_connection import AGAIN_NS, ATTEMPT_NS, ConnectPhases, SubscriberConnection
from hydra.client.tls import AccessError, access_error
from hydra.model.system_reports import MOST_DISCONNECTIONS
from hydra.wire.messages import Connect, HostClock

MS = 1_000_000
S = 1_000_000_000
AT = 5_000 * S  # the step's clock shows this at the reading 50 s
CLOCK = HostClock(at_ns=50 * S, step_ns=AT)


def due(client: int = 3, **more: Any) -> SubscriberConnection:
    return SubscriberConnection(Connect(clock=CLOCK, at_ns=AT, first=3, **more), client)


def test_the_due_time_follows_from_the_id() -> None:
    assert [due(n, rate=100.0).next_ns for n in (3, 4, 103)] == [50 * S, 50 * S + 10 * MS, 51 * S]
    assert due(103).next_ns == 50 * S
    assert Connect(clock=CLOCK, at_ns=7, first=1, rate=3.0).due_ns(2) == 7 + 333_333_333


def test_times_count_from_the_due_time() -> None:
    it = due(4, rate=100.0)
    assert it.begin(50 * S + 12 * MS) == 5.0
    phases = ConnectPhases(50 * S + 15 * MS, subscribed=True, tcp_us=100)
    it.succeed(50 * S + 18 * MS, phases)
    it.receive(50 * S + 30 * MS)
    it.receive(50 * S + 40 * MS)
    assert it.report([]) == {
        "due_ns": AT + 10 * MS,
        "attempts": 1,
        "refused": 0,
        "timed_out": 0,
        "lag_us": 2000,
        "connected_us": 5000,
        "ready_us": 8000,
        "first_us": 20_000,
        "tcp_us": 100,
    }


def test_without_a_confirmation_the_first_message_shows_that_it_is_ready() -> None:
    it = due()
    it.begin(50 * S)
    it.succeed(50 * S + MS, ConnectPhases())
    assert "ready_us" not in it.report([])
    it.receive(50 * S + 9 * MS)
    reported = it.report([])
    assert (reported["ready_us"], reported["first_us"]) == (9000, 9000)


def test_a_first_message_after_the_time_limit_shows_no_readiness() -> None:
    it = due(within_s=7.0)
    it.begin(50 * S)
    it.succeed(50 * S + MS, ConnectPhases())
    it.receive(57 * S + MS)
    reported = it.report([])
    assert "ready_us" not in reported
    assert reported["first_us"] == 7_001_000


def test_attempts_end_before_the_client_gives_up() -> None:
    it = due(within_s=7.0)
    assert it.begin(50 * S) == 5.0
    it.fail(50 * S + ATTEMPT_NS, OSError("closed"))
    assert it.next_ns == 50 * S + ATTEMPT_NS + AGAIN_NS
    assert it.begin(56 * S) == 1.0
    it.fail(56 * S + 300 * MS, OSError("closed"))
    assert [it.next_ns, it.connected] == [None, False]
    reported = it.report([])
    assert (reported["attempts"], reported["timed_out"], reported["refused"]) == (2, 1, 1)
    assert "ready_us" not in reported


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (OSError(errno.EADDRNOTAVAIL, "x"), {"local": {"EADDRNOTAVAIL": 1}}),
        (OSError(errno.EMFILE, "x"), {"local": {"EMFILE": 1}}),
        (OSError("Kafka: Too many open files in system"), {"local": {"ENFILE": 1}}),
        (OSError(errno.ENOBUFS, "x"), {"local": {"ENOBUFS": 1}}),
        (AccessError("this host", "no memory left (ENOMEM)", server="NATS"), {"local": {"ENOMEM": 1}}),
        (access_error(OSError(errno.EMFILE, "x"), "h", None).at("NATS"), {"local": {"EMFILE": 1}}),
        (access_error(OSError(errno.ECONNREFUSED, "x"), "h", None), {"refused_why": "network: Connection refused"}),
        (OSError("the server's limit of connections"), {"refused_why": "the server's limit of connections"}),
    ],
)
def test_only_another_end_refuses(error: OSError, reported: dict[str, Any]) -> None:
    it = due()
    it.begin(50 * S)
    it.fail(50 * S + MS, error)
    report = it.report([])
    assert {name: report[name] for name in ("local", "refused_why") if name in report} == reported
    assert (report["attempts"], report["refused"], report["timed_out"]) == (1, int("local" not in reported), 0)


def test_a_lost_connection_is_opened_at_once_and_then_every_second() -> None:
    connection = SubscriberConnection(Connect(clock=CLOCK), 3)
    assert (connection.connected, connection.next_ns) == (True, None)
    connection.lose(60 * S)
    assert connection.next_ns == 60 * S
    connection.begin(60 * S)
    connection.fail(60 * S + MS, OSError("closed"))
    assert connection.next_ns == 61 * S + MS
    connection.begin(61 * S + MS)
    connection.succeed(61 * S + 2 * MS, ConnectPhases(subscribed=True))
    connection.receive(62 * S)
    reported = connection.report([(70 * S, 0, 4)])
    assert reported["disconnections"] == [(AT + 10 * S, AT + 11 * S + 2 * MS, 2), (AT + 20 * S, 0, 4)]
    assert (reported["due_ns"], reported["attempts"]) == (0, 0)


def test_with_too_many_disconnections_the_last_one_reaches_to_the_end() -> None:
    connection = SubscriberConnection(Connect(clock=CLOCK), 3)
    for n in range(MOST_DISCONNECTIONS + 1):
        connection.lose((60 + n) * S)
        connection.begin((60 + n) * S)
        connection.succeed((60 + n) * S + MS, ConnectPhases())
    reported = connection.report([])["disconnections"]
    assert len(reported) == MOST_DISCONNECTIONS
    assert reported[-1] == (AT + 73 * S, AT + 74 * S + MS, 2)


def test_a_library_that_connects_in_the_background_has_failed_if_the_subscriber_was_never_ready() -> None:
    shut_out, came_late = due(), due()
    for it in (shut_out, came_late):
        it.begin(50 * S)
        it.succeed(50 * S + MS, ConnectPhases())
    came_late.receive(51 * S)
    assert shut_out.report([], "ENFILE")["local"] == {"ENFILE": 1}
    assert "local" not in came_late.report([], "ENFILE")
