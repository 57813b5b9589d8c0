"""What a step decides, apart from the channel that it speaks over."""

from __future__ import annotations

from typing import get_args

import pytest

from hydra.model import DrainEnd, Histogram, LedgerCounts, ProcessUsage, SubscriberReport
from hydra.step import caught_up, quiet_s


def ended(drain: DrainEnd, missing: int = 1) -> SubscriberReport:
    """A subscriber whose drain ended so."""
    ledger = LedgerCounts(publisher=0, received=9, in_window=9, missing=missing)
    return SubscriberReport([ledger], 1, 9, 1, 1, 216, 0, Histogram(), ProcessUsage(), drain=drain)


def test_only_a_drain_that_proves_it_spares_a_subscriber_the_proof_of_the_next_step() -> None:
    reports = dict(enumerate(ended(drain) for drain in get_args(DrainEnd)))
    assert {reports[c].drain for c in caught_up(reports, set())} == {"complete", "marked"}


def test_a_cohort_always_proves_itself_again() -> None:
    assert caught_up({1: ended("complete"), 2: ended("complete")}, {2}) == {1}


@pytest.mark.parametrize(("clients", "seconds"), [(0, 0.5), (1, 0.50025), (100, 0.525), (7_680, 2.42), (10_000, 3.0)])
def test_the_quiet_time_grows_with_the_clients(clients: int, seconds: float) -> None:
    assert quiet_s(clients) == pytest.approx(seconds)
