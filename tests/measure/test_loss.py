"""The outcome of every message, over all clients that should report, and when a rate passes."""

from __future__ import annotations

import numpy as np
import pytest

from hydra.measure.loss import (
    Doubt,
    ExpectedMessages,
    FailedClients,
    MessageOutcome,
    expected,
    failed_clients,
    outcomes_of_all,
    step_subscribers,
)
from hydra.model import SubscriberReport
from hydra.wire.subscriber_table import table_of
from tests.measure.reports import published, received

THOUSAND = ExpectedMessages({0: 1000}, {})


def outcome(
    *reports: SubscriberReport | None, due: ExpectedMessages = THOUSAND, last_word: int = 0, doubt: Doubt = "most"
) -> MessageOutcome:
    """Of subscribers with these reports, in a step of 10 s."""
    table = table_of({c: r for c, r in enumerate(reports) if r is not None})
    words = dict.fromkeys(range(len(reports)), last_word)
    return outcomes_of_all(step_subscribers(range(len(reports)), table), due, 10, words, doubt).total()


def test_expected_is_exactly_what_was_acknowledged() -> None:
    """Of 100 sent, 40 to 99 stand in one joined range, though only 10 of these were not acknowledged."""
    refused = published(100, acknowledged=75, unacknowledged=[(90, 120), (10, 19), (15, 24)])
    assert expected({1: refused, 2: published(50)}) == ExpectedMessages({1: 75, 2: 50}, {})
    joined = published(100, acknowledged=90, unacknowledged=[(40, 99)], unacknowledged_joined=True)
    assert expected({7: joined, 8: published(5)}) == ExpectedMessages({7: 90, 8: 5}, {7: (50, 10)})


def test_with_one_publisher_each_what_it_sent_is_expected_of_its_listeners() -> None:
    """Publishers 1, 4 and 9 have the subscribers 10 to 16 in turn, by their ids; one without a report as well."""
    due = expected({4: published(20), 9: published(300), 1: published(5)}, one_publisher=True)
    assert due.of(np.arange(10, 17)).tolist() == [20, 300, 5, 20, 300, 5, 20]
    table = table_of({10: received(20), 11: received(290, lost=10), 12: received(5)})
    found = outcomes_of_all(step_subscribers(range(10, 14), table), due, 10, {13: 8})
    assert (found.expected.tolist(), found.lost.tolist()) == ([20, 300, 5, 20], [0, 10, 0, 12])
    assert due.of(np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize(
    ("report", "became"),
    [
        (received(1000), MessageOutcome(1000, 1000, in_time=1000)),
        (received(990, late=90, lost=10), MessageOutcome(1000, 900, 90, lost=10, in_time=910)),
        # Known to wait in the broker: not received, and not lost.
        (received(600, undrained=400, drain="deadline"), MessageOutcome(1000, 600, undrained=400, in_time=600)),
        (
            received(600, undrained=300, drain="deadline"),
            MessageOutcome(1000, 600, undrained=300, unknown=100, in_time=600),
        ),
        (received(600, drain="deadline"), MessageOutcome(1000, 600, unknown=400, in_time=600)),
        (received(600, drain="quiet"), MessageOutcome(1000, 600, lost=400, in_time=600)),
        (received(600, drain="marked"), MessageOutcome(1000, 600, lost=400, in_time=600)),
        (received(600, drain="complete"), MessageOutcome(1000, 600, lost=400, in_time=600)),
        # The waiting records may be unexpected ones: they do not change what is missing.
        (received(990, undrained=25, drain="deadline"), MessageOutcome(1000, 990, undrained=10, in_time=990)),
    ],
)
def test_a_message_came_in_the_window_or_late_or_waits_or_is_lost_or_unknown(
    report: SubscriberReport, became: MessageOutcome
) -> None:
    assert outcome(report) == became
    assert became.in_window + became.late + became.undrained + became.unknown + became.lost == became.expected


@pytest.mark.parametrize(("last_word", "lost"), [(0, 1000), (400, 600), (1000, 0), (1003, 0)])
def test_a_subscriber_without_a_report_has_lost_all_after_its_last_word(last_word: int, lost: int) -> None:
    assert outcome(None, last_word=last_word) == MessageOutcome(1000, 1000 - lost, lost=lost, in_time=1000 - lost)


@pytest.mark.parametrize(
    ("extra", "most", "least"),
    [
        # 50 acknowledged and 10 unacknowledged messages were joined; 450 of the 500 in all are beside them.
        (0, 50, 50),
        (8, 42, 50),
        (30, 20, 30),
        (60, 0, 0),
    ],
)
def test_what_was_got_of_joined_ranges_is_an_interval(extra: int, most: int, least: int) -> None:
    due, report = ExpectedMessages({0: 500}, {0: (50, 10)}), received(450, extra=extra)
    assert [outcome(report, due=due, doubt=doubt).lost for doubt in ("most", "least")] == [most, least]


@pytest.mark.parametrize(
    ("reports", "loss_pct", "at_stop_pct"),
    [
        ([received(1000), received(1000)], 0.0, 0.0),
        ([received(990, lost=10), received(1000)], 0.5, 0.5),
        ([received(1000, late=100), received(1000)], 0.0, 5.0),
        ([received(604, undrained=396, drain="deadline"), received(1000)], 0.0, 19.8),
        ([received(1000), None], 50.0, 50.0),
        ([None, None], 100.0, 100.0),
    ],
)
def test_loss_counts_those_who_never_answered_and_nothing_that_waits(
    reports: list[SubscriberReport | None], loss_pct: float, at_stop_pct: float
) -> None:
    account = outcome(*reports)
    assert (account.loss_pct, account.loss_at_stop_pct) == (loss_pct, at_stop_pct)


def test_nothing_sent_is_no_loss_and_no_pass() -> None:
    account = outcome(None, due=ExpectedMessages({0: 0}, {}))
    assert (account.loss_pct, account.loss_at_stop_pct, account.passes(0.5)) == (None, None, None)
    assert outcome() == MessageOutcome()


@pytest.mark.parametrize(
    ("report", "target", "passes"),
    [
        (received(1000), 0.0, True),
        (received(999, lost=1), 0.0, False),
        (received(995, lost=5), 0.005, True),
        (received(994, lost=6), 0.005, False),
        (received(1000, late=10), 0.0, True),  # 100 ms of a 10 s step at 100/s
        (received(1000, late=11), 0.0, False),
        (received(1000, late=15), 0.005, True),
        (received(1000, late=16), 0.005, False),
        (received(994, undrained=6, drain="deadline"), 0.005, False),
        (received(994, drain="deadline"), 0.005, False),
    ],
)
def test_a_rate_passes_by_what_was_received_and_by_what_came_in_time(
    report: SubscriberReport, target: float, passes: bool
) -> None:
    assert outcome(report).passes(target) is passes


def test_failed_clients_are_counted_once_under_the_gravest_reason() -> None:
    reports = {1: received(1000), 2: received(999, lost=1), 3: received(5, lost=995)}
    reports |= {6: received(999, undrained=1, drain="deadline"), 7: received(999, drain="deadline")}
    requests = step_subscribers(range(1, 8), table_of(reports), dead={3, 9}, silent={4})
    everyone = requests.ids > 0
    failed = failed_clients(requests, everyone, outcomes_of_all(requests, THOUSAND, 10, {}))
    assert (failed, failed.total) == (FailedClients(lossy=1, dead=1, silent=2), 4)
    assert failed_clients(requests, everyone, None) == FailedClients(lossy=0, dead=1, silent=2)
    assert failed_clients(requests, requests.ids > 4, None) == FailedClients(lossy=0, dead=0, silent=1)
