"""Whether a row is the generator's."""

from __future__ import annotations

import pytest

from hydra.measure.verdict import Ceiling, ceiling, limited

MEASURED = [
    Ceiling("python", "subscriber", 1, 100, 400_000),
    Ceiling("python", "subscriber", 4, 100, 800_000),
    Ceiling("python", "subscriber", 1, 10_000, 100_000),
    Ceiling("python", "publisher", 1, 100, 50_000),
]


@pytest.mark.parametrize(
    ("clients", "message_size", "pps"),
    [
        (1, 100, 400_000),
        (1, 24, 400_000),  # beyond what was measured: the nearest
        (9, 100, 800_000),
        (1, 1000, 200_000),  # half-way on a logarithmic scale
        (2, 100, 565_685),
        (4, 10_000, 800_000),
    ],
)
def test_between_what_was_measured_it_is_interpolated(clients: int, message_size: int, pps: float) -> None:
    assert ceiling(MEASURED, "python", "subscriber", clients, message_size) == pytest.approx(pps, rel=1e-5)


def test_of_what_was_not_measured_nothing_is_known() -> None:
    assert ceiling(MEASURED, "native", "subscriber", 1, 100) is None
    assert ceiling(MEASURED, "python", "subscriber", 0, 100) is None
    assert ceiling([], "python", "publisher", 1, 100) is None


@pytest.mark.parametrize(
    ("reached", "host_pct", "share", "expected"),
    [
        ([(90.0, 100.0), (1.0, 100.0)], 10.0, 0.1, True),
        ([(89.0, 100.0), (None, 100.0)], 10.0, 0.1, False),
        ([(89.0, None), (None, 100.0)], 10.0, 0.1, None),
        ([(89.0, None)], 92.0, 0.5, True),
        ([(10.0, 100.0)], 92.0, 0.5, True),
        ([(10.0, 100.0)], 99.0, 0.4, False),  # others used it up
        ([], 91.0, 0.9, None),
        ([], None, 0.0, None),
    ],
)
def test_a_row_near_a_ceiling_or_of_clients_that_used_up_a_host_is_the_generators(
    reached: list[tuple[float | None, float | None]], host_pct: float | None, share: float, expected: bool | None
) -> None:
    assert limited(reached, host_pct, share, 92.0) is expected
