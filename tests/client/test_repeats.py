"""The times of resends."""

from __future__ import annotations

import pytest

from hydra.client.pacing import Backoff

MS = 1_000_000
SECOND = 1000 * MS


def times_ms(repeats: Backoff, until_ms: int, late_ms: int = 0) -> list[int]:
    """The times of resends, by a loop that wakes up exactly then, or always that much too late."""
    texts: list[int] = []
    while repeats.next_ns is not None and repeats.next_ns <= until_ms * MS:
        assert not repeats.due(repeats.next_ns - 1)
        now_ns = repeats.next_ns + late_ms * MS
        assert repeats.due(now_ns)
        texts.append(now_ns // MS)
    return texts


def test_probes_come_at_doubling_distances_up_to_a_second_and_never_end() -> None:
    text = times_ms(Backoff(0, longest_ns=SECOND), 100_000)
    assert text[:8] == [0, 50, 150, 350, 750, 1550, 2550, 3550]
    assert text[-1] == 99_550


def test_the_first_distance_can_be_shorter() -> None:
    text = times_ms(Backoff(0, first_ns=20 * MS, longest_ns=SECOND // 2), 2000)
    assert text == [0, 20, 60, 140, 300, 620, 1120, 1620]


def test_end_markers_come_at_doubling_distances_for_a_minute() -> None:
    text = times_ms(Backoff(7 * SECOND, for_ns=60 * SECOND), 1_000_000)
    assert [t - 7000 for t in text] == [0, 50, 150, 350, 750, 1550, 3150, 6350, 12750, 25550, 51150]


@pytest.mark.parametrize("for_ns", [None, 60 * SECOND])
def test_who_is_late_keeps_the_distances(for_ns: int | None) -> None:
    assert times_ms(Backoff(0, for_ns=for_ns), 1000, late_ms=30) == [30, 110, 240, 470, 900]
