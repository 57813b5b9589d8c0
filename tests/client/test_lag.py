"""A subscriber's lag, averaged in parts of the window."""

from __future__ import annotations

import pytest

from hydra.client.lag import LagBins
from hydra.model import LAG_BINS

SECOND = 1_000_000_000
HOUR_US = 3_600_000_000
PART = SECOND // 10
"""A part of the window below."""


def binned(*batches: tuple[int, int]) -> list[int | None]:
    """The bins of batches (ns since the start, age in ns) in a window of two seconds."""
    bins = LagBins(5 * SECOND, 7 * SECOND)
    for at_ns, age_ns in batches:
        bins.add(5 * SECOND + at_ns, age_ns)
    return bins.means_us()


def part(number: int, mean_us: int) -> list[int | None]:
    """Bins of which only one part saw anything."""
    return [mean_us if i == number else None for i in range(LAG_BINS)]


@pytest.mark.parametrize(
    ("batches", "bins"),
    [
        ([], [None] * LAG_BINS),
        ([(0, 1_000)], part(0, 1)),
        ([(PART - 1, 1_999)], part(0, 1)),
        ([(PART, 5_000)], part(1, 5)),
        ([(2 * SECOND - 1, 7_000)], part(LAG_BINS - 1, 7)),
        ([(0, 1_000), (1, 2_000), (2, 6_000)], part(0, 3)),
        ([(0, 1_000), (1, 2_000)], part(0, 1)),
        ([(i * PART, 1000 * i) for i in range(LAG_BINS)], list(range(LAG_BINS))),
        ([(-1, 1_000), (2 * SECOND, 1_000), (3 * SECOND, 1_000)], [None] * LAG_BINS),
        ([(0, -1_000), (1, -(10**18))], part(0, 0)),
        ([(0, 10**18), (1, 2**63)], part(0, HOUR_US)),
    ],
)
def test_ages_are_averaged_part_by_part(batches: list[tuple[int, int]], bins: list[int | None]) -> None:
    assert binned(*batches) == bins


def test_a_window_shorter_than_its_parts() -> None:
    bins = LagBins(0, 5)
    for now_ns in range(30):
        bins.add(now_ns, 1_000 * now_ns)
    assert bins.means_us() == list(range(LAG_BINS))
