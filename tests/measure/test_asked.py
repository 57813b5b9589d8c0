"""The clients that should report, and their reports: in the order of the ids, in any collection."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import pytest

from hydra.measure.loss import step_subscribers
from hydra.wire.subscriber_table import EMPTY, table_of
from tests.measure.observations import observed
from tests.measure.reports import received
from tests.suite.figures import figures

REPORTS = table_of({c: received(100 * c) for c in (2, 3, 5, 9)})


def test_flags_and_reports_are_in_the_order_of_the_ids() -> None:
    known = step_subscribers({5, 1, 3, 2}, REPORTS, cohort={3, 1, 77}, dead={1}, silent=[5])
    assert known.ids.tolist() == [1, 2, 3, 5]
    assert known.reported.tolist() == [False, True, True, True]
    assert known.reports.ids.tolist() == [2, 3, 5]
    assert known.others.tolist() == [False, True, False, True]
    assert (known.dead.tolist(), known.silent.tolist()) == (
        [True, False, False, False],
        [False, False, False, True],
    )
    assert known.reports_of(known.cohort).received.tolist() == [300]
    assert known.last_words({1: 7, 2: 8}).tolist() == [7]


def array_of(ids: Iterable[int]) -> Collection[int]:
    """As a bitmap of ids hands them out."""
    return array("I", ids)


@pytest.mark.parametrize("kind", [set, list, tuple, array_of, frozenset])
def test_ids_of_any_collection(kind: Callable[[Iterable[int]], Collection[int]]) -> None:
    known = step_subscribers(kind([9, 2]), REPORTS, kind([9]), kind([]), kind([2]))
    assert (known.ids.tolist(), known.cohort.tolist(), known.silent.tolist()) == (
        [2, 9],
        [False, True],
        [True, False],
    )
    o = replace(observed(), subscribers={1, 2, 3}, dead={3}, last_words={3: 10})
    same = replace(o, subscribers=kind([3, 1, 2]), dead=kind([3]), silent=kind([]), cohort=kind([]))
    assert figures(same) == figures(o)


def test_nobody_was_asked() -> None:
    known = step_subscribers(range(0), EMPTY)
    assert (len(known.ids), len(known.reports), known.last_words({}).tolist()) == (0, 0, [])


def test_a_report_of_somebody_who_was_not_asked_counts_nowhere() -> None:
    o = replace(observed(), subscriber_reports=table_of({1: received(1000), 2: received(1000)}))
    late = table_of({1: received(1000), 2: received(1000), 3: received(500, lost=500, seconds=3.0)})
    # (Histograms are sums: they cannot leave out a client.)
    assert figures(replace(o, subscriber_reports=late)) == figures(o)
