"""When the messages of a load are due."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hydra.client.pacing import LoadPacer, Pacer
from hydra.model import MAX_POINTS, Points
from hydra.wire.load_schedule import LoadSchedule

SECOND_NS = 1_000_000_000


def some_load(seed: int) -> Points:
    draw = random.Random(seed)
    points = [(0.0, draw.choice([0.0, 100.0, 3.25, 1e5]))]
    for _ in range(draw.randrange(6)):
        points.append((points[-1][0] + draw.choice([0.0, 1.0, 0.5, 7.25]), draw.choice([0.0, 10.0, 333.3, 5e4, 1.5])))
    return points


@pytest.mark.parametrize("seed", range(20))
def test_counts_and_due_times_are_each_others_inverse(seed: int) -> None:
    load = LoadSchedule(some_load(seed))
    times = load.times_ns(0, 500)
    assert (np.diff(times) >= 0).all()
    assert times.tolist() == [load.due_ns(n) for n in range(500)]
    for elapsed_ns in (-1, 0, 1, SECOND_NS - 1, SECOND_NS, 9 * SECOND_NS // 2, 10 * SECOND_NS):
        count = load.count_by(elapsed_ns)
        assert count == 0 or load.due_ns(count - 1) <= elapsed_ns
        assert load.due_ns(count) > elapsed_ns


def test_a_pause_puts_a_message_to_its_end() -> None:
    load = LoadSchedule([(0, 100), (10, 100), (10, 0), (20, 0), (20, 100)])
    assert load.due_ns(999) == 9_990_000_000
    assert load.due_ns(1000) == 20 * SECOND_NS
    assert LoadSchedule([(0, 100), (10, 0)]).total(3600) == 500
    assert [load.total(s) for s in (1, 9, 10, 20, 21)] == [100, 900, 1000, 1000, 1100]


@pytest.mark.parametrize(
    "points", [[], [(1, 10)], [(0, 1), (2, 1), (1, 1)], [(0, -1)], [(0, 2e9)], [(0, 1)] * (MAX_POINTS + 1)]
)
def test_what_is_no_load_is_refused(points: Points) -> None:
    with pytest.raises(ValueError):
        LoadSchedule(points)


def test_a_pacer_with_a_constant_load_is_as_one_with_a_rate() -> None:
    start_ns = 1_000 * SECOND_NS
    window = start_ns, start_ns + 2 * SECOND_NS, 64
    plain, shaped = Pacer(1000.0, *window), LoadPacer(LoadSchedule([(0.0, 1000.0)]), *window)
    assert plain.total == shaped.total == 2000
    for pacer in (plain, shaped):
        pacer.advance(100)
    for now_ns in (start_ns - 1, start_ns, start_ns + SECOND_NS // 2, start_ns + 2 * SECOND_NS):
        assert plain.due(now_ns) == shaped.due(now_ns)
        assert plain.next_due_ns == shaped.next_due_ns
        assert plain.lag_ns(now_ns) == shaped.lag_ns(now_ns)
        assert plain.done(now_ns) == shaped.done(now_ns)
        assert plain.times(10, now_ns).tolist() == shaped.times(10, now_ns).tolist()


def test_a_pacer_is_done_when_its_load_is() -> None:
    pacer = LoadPacer(LoadSchedule([(0.0, 10.0), (1.0, 10.0), (1.0, 0.0)]), 0, 60 * SECOND_NS, 100)
    pacer.advance(10)
    assert pacer.total == 10
    assert pacer.next_due_ns is None
    assert pacer.done(2 * SECOND_NS)


def test_an_earlier_stop_leaves_out_what_is_due_behind_it() -> None:
    pacer = LoadPacer(LoadSchedule([(0.0, 0.0), (10.0, 200.0)]), 0, 10 * SECOND_NS, 100)
    assert pacer.total == 1000
    pacer.stop_at(5 * SECOND_NS)
    assert pacer.total == 250
