"""What a publisher reports, apart from the loop that sends it."""

from __future__ import annotations

import pytest

from hydra.client.publisher import _bounded
from hydra.control.checks import MAX_UNACKNOWLEDGED_RANGES as MOST


@pytest.mark.parametrize(
    ("count", "joined", "last"),
    [(0, False, None), (1, False, (0, 1)), (MOST, False, (10 * MOST - 10, 10 * MOST - 9))]
    + [(MOST + more, True, (10 * MOST - 10, 10 * (MOST + more) - 9)) for more in (1, 5)],
)
def test_ranges_beyond_the_most_are_joined_and_said_to_be(
    count: int, joined: bool, last: tuple[int, int] | None
) -> None:
    ranges, said = _bounded([(10 * n, 10 * n + 1) for n in range(count)])
    assert said is joined
    assert len(ranges) == min(count, MOST)
    assert (ranges[-1] if ranges else None) == last
