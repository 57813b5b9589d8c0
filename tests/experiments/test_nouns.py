"""What an order makes of published numbers, and what stands beside a figure."""

from __future__ import annotations

import pytest

from hydra.experiments.published_figures import with_published, with_published_columns
from hydra.experiments.runner import mean_of
from hydra.measure.column import Column
from hydra.model import Figure
from hydra.system.experiment import ExperimentOptions


@pytest.mark.parametrize(
    ("scale", "published", "here"),
    [(1, 5_000_000, 5_000_000), (0.01, 5_000_000, 50_000), (1e-6, 5_000_000, 1000), (0.5, 300, 300), (2, 400, 800)],
)
def test_a_scale_multiplies_records_down_to_a_thousand(scale: float, published: int, here: int) -> None:
    assert ExperimentOptions(scale).records(published) == here


@pytest.mark.parametrize(
    ("published", "figures"),
    [
        ({"rate": 200, "late": 0}, (200, 0.5, 0, None)),
        ({"rate": None, "late": 4.0}, (None, None, 4.0, 0.25)),
        (None, (None,) * 4),
    ],
)
def test_a_ratio_stands_where_both_figures_are_known(
    published: dict[str, Figure] | None, figures: tuple[Figure, ...]
) -> None:
    row = with_published({"rate": 100, "late": 1}, published, ("rate", "late"))
    names = [column.name for column in with_published_columns([Column("rate"), Column("late")], ("rate", "late"))]
    assert tuple(row[name] for name in names) == (100, *figures[:2], 1, *figures[2:])


@pytest.mark.parametrize(
    ("repeats", "mean"),
    [
        ([], {}),
        ([{0: {"rate": 1.0}}], {0: {"rate": 1.0}}),
        ([{0: {"r": 1.0}, 1: {"r": 5.0}}, {0: {"r": 3.0, "late": 7.0}}], {0: {"r": 2.0, "late": 7.0}, 1: {"r": 5.0}}),
    ],
)
def test_a_clients_figure_is_the_mean_of_the_repeats_that_have_it(
    repeats: list[dict[int, dict[str, float]]], mean: dict[int, dict[str, float]]
) -> None:
    assert mean_of(repeats) == mean
