"""What repeats of a row make of its clients."""

from __future__ import annotations

import pytest

from hydra.experiments.done import mean_of


@pytest.mark.parametrize(
    ("repeats", "mean"),
    [
        ([], {}),
        ([{0: {"rate": 1.0}}], {0: {"rate": 1.0}}),
        (
            [{0: {"rate": 1.0}, 1: {"rate": 5.0}}, {0: {"rate": 3.0, "late": 7.0}}],
            {0: {"rate": 2.0, "late": 7.0}, 1: {"rate": 5.0}},
        ),
    ],
)
def test_a_figure_is_the_mean_of_the_repeats_that_have_it(
    repeats: list[dict[int, dict[str, float]]], mean: dict[int, dict[str, float]]
) -> None:
    assert mean_of(repeats) == mean
