"""A broker that is gone is told from one that is slow."""

from __future__ import annotations

import pytest

from hydra.kafkatest.watch import GONE_AFTER_S, Silence

A, B = "a:9092", "b:9092"
ALL_WELL, A_SILENT = {A: True, B: True}, {A: False, B: True}


@pytest.mark.parametrize(
    ("course", "now", "gone"),
    [
        ([], 100.0, ""),
        ([(1.0, ALL_WELL)], 100.0, ""),
        ([(1.0, ALL_WELL), (2.0, A_SILENT)], 1.0 + GONE_AFTER_S - 0.1, ""),
        ([(1.0, ALL_WELL), (2.0, A_SILENT)], 1.0 + GONE_AFTER_S, A),
        # Heard again in between: it counts from there.
        ([(1.0, ALL_WELL), (2.0, A_SILENT), (5.0, ALL_WELL), (6.0, A_SILENT)], 8.0, ""),
        # Another broker leads in its place.
        ([(1.0, ALL_WELL), (2.0, A_SILENT), (4.0, {B: True})], 100.0, ""),
        # Never heard at all: it counts from the beginning.
        ([(1.0, {A: False, B: False})], GONE_AFTER_S, f"{A}, {B}"),
    ],
)
def test_a_leader_is_gone_when_it_was_silent_for_long(
    course: list[tuple[float, dict[str, bool]]], now: float, gone: str
) -> None:
    silence = Silence(0.0)
    for time_s, answered in course:
        silence.note(answered, time_s)
    assert silence.gone(now) == gone
