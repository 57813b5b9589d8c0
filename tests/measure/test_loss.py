"""Loss over everyone who was asked, and when a rate passes."""

from __future__ import annotations

import pytest

from hydra.measure.loss import FailedClients, expected_messages, failed_clients, loss_of
from hydra.model import SubscriberReport
from tests.measure.reports import published, received


def test_expected_leaves_out_what_was_never_acknowledged() -> None:
    overlapping = published(100, unacknowledged=[(90, 120), (10, 19), (15, 24)])
    assert expected_messages([overlapping, published(50)]) == 100 - 15 - 10 + 50


@pytest.mark.parametrize(
    ("reports", "asked", "loss_pct", "at_stop_pct"),
    [
        ({1: received(1000), 2: received(1000)}, 2, 0.0, 0.0),
        ({1: received(990, lost=10), 2: received(1000)}, 2, 0.5, 0.5),
        ({1: received(1000, late=100), 2: received(1000)}, 2, 0.0, 5.0),
        ({1: received(1000)}, 2, 50.0, 50.0),
        ({}, 2, 100.0, 100.0),
    ],
)
def test_loss_counts_those_who_never_answered(
    reports: dict[int, SubscriberReport], asked: int, loss_pct: float, at_stop_pct: float
) -> None:
    account = loss_of(range(1, asked + 1), reports, 1000, 10)
    assert (account.loss_pct, account.loss_at_stop_pct) == (loss_pct, at_stop_pct)


def test_nothing_sent_is_no_loss_and_no_pass() -> None:
    account = loss_of([1], {}, 0, 10)
    assert (account.loss_pct, account.loss_at_stop_pct, account.passes(0.5)) == (None, None, None)


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
    ],
)
def test_a_rate_passes_by_loss_and_by_what_came_in_time(report: SubscriberReport, target: float, passes: bool) -> None:
    assert loss_of([1], {1: report}, 1000, 10).passes(target) is passes


def test_failed_clients_are_counted_once_under_the_gravest_reason() -> None:
    reports = {1: received(1000), 2: received(999, lost=1), 3: received(5, lost=995)}
    failed = failed_clients(range(1, 6), reports, dead={3, 9}, silent={4}, expected_each=1000)
    assert failed == FailedClients(lossy=1, dead=1, silent=2)
    assert failed.total == 4
