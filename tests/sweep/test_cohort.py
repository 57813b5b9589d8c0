"""Who is in a cohort."""

from __future__ import annotations

import pytest

from hydra.model import Cohort, CohortKind
from hydra.sweep.step_workload import cohort_ids


@pytest.mark.parametrize(
    ("kind", "clients", "fraction", "size"),
    [
        ("slow", 30, 0.1, 3),
        ("reconnecting", 100, 0.1, 10),
        ("slow", 3, 0.1, 1),
        ("slow", 2, 0.99, 1),
        ("none", 9, 0, 0),
    ],
)
def test_a_cohort_is_a_fraction_at_least_one_and_never_all(
    kind: CohortKind, clients: int, fraction: float, size: int
) -> None:
    assert len(cohort_ids(Cohort(kind, fraction, 1.0, 7), range(clients))) == size


def test_slow_and_reconnecting_cohorts_of_one_seed_never_overlap() -> None:
    ids = range(1, 51)
    assert not cohort_ids(Cohort("slow", 0.4, 1, 3), ids) & cohort_ids(Cohort("reconnecting", 0.4, 1, 3), ids)


def test_the_draw_is_the_same_every_time_and_differs_by_seed() -> None:
    one, two = Cohort("slow", 0.2, 1, 1), Cohort("slow", 0.2, 1, 2)
    assert cohort_ids(one, range(100)) == cohort_ids(one, reversed(range(100)))
    assert cohort_ids(one, range(100)) != cohort_ids(two, range(100))
