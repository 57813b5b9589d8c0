"""What can be told of a running step."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from hydra.run.moment import Moment, draining, watched
from hydra.wire.messages import Progress

SECOND_NS = 1_000_000_000


def told(client: int, messages: int, at_s: float) -> Progress:
    return Progress(ids=[client], seq=1, epoch=1, messages=messages, time_ns=round((100 + at_s) * SECOND_NS))


PROGRESS = {
    0: told(0, 4000, 4.0),
    1: told(1, 3000, 3.0),
    2: told(2, 1000, 2.0),
    3: told(3, 10, 4.0),
    4: told(4, 7, 0.0),
}


def test_the_slowest_are_named_without_the_cohort_and_who_has_told_nothing_yet() -> None:
    found = watched(Moment(4.0, 0.4), PROGRESS, BitMap([1, 2, 4]), 100 * SECOND_NS, 1.0, {"one": 5.0})
    assert found.slowest == ((2, 500.0), (1, 1000.0))
    assert (found.of, found.cpu_pct) == (2, {"one": 5.0})


@pytest.mark.parametrize(
    ("sent_pps", "received_pps", "each", "missing"),
    [
        (1000.0, 900.0, 1.0, 0.1),
        (1000.0, 1001.0, 1.0, 0.0),  # told a moment later
        (2000.0, 500.0, 0.5, 0.5),  # each subscriber listens to one of two publishers
        (1000.0, 300.0, 0.0, None),  # they share the messages
        (0.0, 300.0, 1.0, None),
        (1000.0, 0.0, 1.0, None),  # nobody has told anything
    ],
)
def test_what_is_not_there_yet(sent_pps: float, received_pps: float, each: float, missing: float | None) -> None:
    moment = Moment(4.0, 0.4, sent_pps, received_pps)
    found = watched(moment, {}, BitMap(), 0, each, {}).missing
    assert found == (None if missing is None else pytest.approx(missing))


@pytest.mark.parametrize(("drain_s", "share"), [(10.0, 0.2), (1.0, 1.0), (0.0, 1.0)])
def test_a_drain_has_a_longest_length(drain_s: float, share: float) -> None:
    moment = draining(drain_s, 5 * SECOND_NS, 7 * SECOND_NS)
    assert (moment.doing, moment.elapsed_s, moment.share) == ("draining", 2.0, share)
