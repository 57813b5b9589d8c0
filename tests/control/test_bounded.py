"""What becomes of the entries that a message has no room for: they are joined, never left out."""

from __future__ import annotations

import pytest

from hydra.control.epoch_replies import fit_unacknowledged
from hydra.model import Histogram, ProcessUsage, PublisherReport, SequenceRange
from hydra.wire.messages import MAX_MESSAGE_BYTES, Finish, PublisherTotal, encode
from hydra.wire.report_validation import MAX_ABSENT, MAX_UNACKNOWLEDGED_RANGES, add_absence, check_report, join_beyond

MOST = MAX_UNACKNOWLEDGED_RANGES
GREAT = 2**62


def unacknowledged(ranges: list[SequenceRange], *, joined: bool = False) -> PublisherReport:
    numbers = 2**63 - 1, 0, 0, 1, 2, 0
    return PublisherReport(*numbers, Histogram(), ProcessUsage(), unacknowledged=ranges, unacknowledged_joined=joined)


@pytest.mark.parametrize(
    ("count", "joined", "last"),
    [(0, False, None), (1, False, (0, 1)), (MOST, False, (10 * MOST - 10, 10 * MOST - 9))]
    + [(MOST + more, True, (10 * MOST - 10, 10 * (MOST + more) - 9)) for more in (1, 5)],
)
def test_ranges_beyond_the_most_are_joined_and_said_to_be(count: int, joined: bool, last: SequenceRange | None) -> None:
    ranges, text = join_beyond([(10 * n, 10 * n + 1) for n in range(count)], MOST)
    assert text is joined
    assert len(ranges) == min(count, MOST)
    assert (ranges[-1] if ranges else None) == last


@pytest.mark.parametrize("count", [MAX_ABSENT, MAX_ABSENT + 1, MAX_ABSENT + 9])
def test_absences_beyond_the_most_reach_to_the_last_return(count: int) -> None:
    absent: list[tuple[int, int]] = []
    for n in range(count):
        add_absence(absent, 10 * n, 10 * n + 5)
    assert len(absent) == MAX_ABSENT
    assert absent[:-1] == [(10 * n, 10 * n + 5) for n in range(MAX_ABSENT - 1)]
    assert absent[-1] == (10 * (MAX_ABSENT - 1), 10 * (count - 1) + 5)


def test_an_absence_does_not_end_before_it_begins() -> None:
    # A window that ended early ended before the connection was closed.
    absent: list[tuple[int, int]] = []
    add_absence(absent, 7, 5)
    assert absent == [(7, 7)]


@pytest.mark.parametrize("publishers", [1, 2, 4, 100])
def test_the_ranges_of_all_publishers_fit_into_one_finish(publishers: int) -> None:
    many = [(GREAT + 2 * n, GREAT + 2 * n) for n in range(MOST)]
    reports = {p: unacknowledged(many) for p in range(publishers)}
    bounded = fit_unacknowledged(reports)
    finish = Finish(
        ids=list(range(10**9, 10**9 + 10_000, 2)),
        epoch=1,
        number=4,
        publishers=[
            PublisherTotal(publisher=p, sent=r.sent, unacknowledged=r.unacknowledged) for p, r in bounded.items()
        ],
        drain_max_s=5.0,
        system={"end_offsets": dict.fromkeys(range(5000), GREAT)},
    )
    assert len(encode(finish)) <= MAX_MESSAGE_BYTES
    for report in bounded.values():
        check_report(report)
        assert report.unacknowledged_joined is (publishers > 1)
        # Nothing unacknowledged is expected after all.
        assert (report.unacknowledged[0][0], report.unacknowledged[-1][1]) == (many[0][0], many[-1][1])


def test_ranges_that_a_publisher_joined_stay_so() -> None:
    (report,) = fit_unacknowledged({1: unacknowledged([(0, 9)], joined=True)}).values()
    assert (report.unacknowledged, report.unacknowledged_joined) == ([(0, 9)], True)
