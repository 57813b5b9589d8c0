"""Which clients get a command again, and how long answers are waited for, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pyroaring import BitMap

from hydra.control.epoch_replies import CommandRetry
from hydra.control.id_bitmaps import span
from hydra.wire import RESEND_EVERY_S

NO_CLIENTS = BitMap()


def each_alone(clients: Iterable[int]) -> list[BitMap]:
    """Clients with a connection each."""
    return [BitMap([client]) for client in clients]


def test_nobody_is_told_again_before_it_is_due() -> None:
    retry = CommandRetry([BitMap([1, 2]), BitMap([3])], 10.0, 60.0)
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 10.0) == NO_CLIENTS
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 9.99 + RESEND_EVERY_S) == NO_CLIENTS
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 10.0 + RESEND_EVERY_S) == BitMap([1, 2, 3])
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 11.0 + RESEND_EVERY_S) == NO_CLIENTS
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 10.0 + 2 * RESEND_EVERY_S) == BitMap([1, 2, 3])


def test_only_those_are_told_again_who_have_not_answered_and_still_can() -> None:
    retry = CommandRetry([BitMap([1, 2, 3]), BitMap([4]), BitMap([5])], 0.0, 60.0, every_s=1.0)
    assert retry.due(BitMap([2, 9]), BitMap([4]), 1.0) == BitMap([1, 3, 5])
    assert retry.due(BitMap([1, 2, 3, 5, 9]), BitMap([4]), 2.0) == NO_CLIENTS


@pytest.mark.parametrize(
    ("answered", "heard_s", "every_s", "reported"),
    [
        (0, 0.0, 2.0, 1_000),  # no client receives
        (0, 0.0, 0.1, 100),  # … or it has not had the time
        (1, 0.5, 2.0, 100),  # answers are coming: those that are missing may be on their way
        (1, 0.5, 4.0, 1_000),
        (9_950, 0.5, 2.0, 50),
        (10_000, 0.5, 2.0, 0),
    ],
)
def test_ten_thousand_connections_are_not_flooded(answered: int, heard_s: float, every_s: float, reported: int) -> None:
    retry = CommandRetry(each_alone(range(10_000)), 0.0, 60.0, every_s=every_s)
    retry.heard(answered, heard_s)
    assert retry.due(BitMap(range(answered)), NO_CLIENTS, every_s) == BitMap(range(answered, answered + reported))


def test_a_million_clients_of_a_thousand_relays_are_told_at_once_in_silence() -> None:
    retry = CommandRetry([span(n * 1000, n * 1000 + 1000) for n in range(1000)], 0.0, 60.0)
    answered = span(500, 1500)
    assert retry.due(answered, NO_CLIENTS, 2.0) == span(0, 1_000_000) - answered
    retry.heard(2000, 3.9)
    assert retry.due(answered, span(2000, 2001), 4.0) == span(0, 500) | span(1500, 100_000) - BitMap([2000])


@pytest.mark.parametrize(
    ("command_bytes", "reported"), [(300, 1_000), (16_000, 1_000), (32_000, 500), (262_144, 61), (20_000_000, 1)]
)
def test_a_quiet_drain_is_no_reason_to_send_long_commands_to_all(command_bytes: int, reported: int) -> None:
    retry = CommandRetry(each_alone(range(10_000)), 0.0, 60.0, command_bytes=command_bytes)
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 2.0) == BitMap(range(reported))
    assert retry.due(NO_CLIENTS, NO_CLIENTS, 4.0) == BitMap(range(reported, 2 * reported))


def test_all_that_are_missing_have_their_turn() -> None:
    retry = CommandRetry(each_alone(range(250)), 0.0, 60.0, every_s=0.5)
    rounds = [retry.due(BitMap(range(250 - look, 250)), NO_CLIENTS, look * 0.5) for look in (1, 2, 3)]
    assert [len(reported) for reported in rounds] == [100, 100, 100]
    assert rounds[0] | rounds[1] | rounds[2] == BitMap(range(247))
    assert rounds[2] == BitMap([*range(200, 247), *range(53)])


@pytest.mark.parametrize(
    ("margin_s", "answers_at_s", "given_up_at_s"),
    [
        (0.0, [], 20.0),
        (0.0, [5.0, 19.0], 20.0),
        (15.0, [], 20.0),
        (15.0, [4.0], 20.0),
        (15.0, [6.0], 21.0),
        (15.0, [6.0, 20.0, 34.0, 48.0], 63.0),  # they keep coming
        (15.0, [6.0, 22.0], 21.0),  # too late
    ],
)
def test_the_wait_goes_on_as_long_as_answers_come(
    margin_s: float, answers_at_s: list[float], given_up_at_s: float
) -> None:
    retry = CommandRetry(each_alone(range(10)), 0.0, 20.0, margin_s=margin_s)
    now_s = 0.0
    while not retry.expired(now_s):
        now_s += 1.0
        retry.heard(sum(at_s <= now_s for at_s in answers_at_s), now_s)
    assert now_s == given_up_at_s


def test_the_same_answers_again_are_no_news() -> None:
    retry = CommandRetry(each_alone(range(10)), 0.0, 1.0, margin_s=5.0)
    retry.heard(3, 0.5)
    retry.heard(3, 5.0)
    assert not retry.expired(5.4)
    assert retry.expired(5.5)
