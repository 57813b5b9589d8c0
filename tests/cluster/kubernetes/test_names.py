"""Names and labels of a run's objects: what Kubernetes admits, and told apart."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hydra.cluster.kubernetes import names

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=80)


@given(TEXTS, TEXTS)
@settings(max_examples=50)
def test_any_run_and_part_make_a_name_that_kubernetes_admits(run: str, what: str) -> None:
    name = names.object_name(run, what)
    assert _NAME.fullmatch(name)
    assert len(name) <= 63
    for value in names.labels(run, "group", group=what).values():
        assert _NAME.fullmatch(value)
        assert len(value) <= 63


@given(TEXTS, TEXTS)
@settings(max_examples=50)
def test_different_names_stay_different(one: str, other: str) -> None:
    assert (names.slug(one) == names.slug(other)) == (one == other)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "app.kubernetes.io/managed-by=hydra,hydra/run"),
        ({"run": "r1"}, "app.kubernetes.io/managed-by=hydra,hydra/run=r1"),
        (
            {"run": "r1", "parts": ("keeper", "group")},
            "app.kubernetes.io/managed-by=hydra,hydra/run=r1,hydra/part in (group,keeper)",
        ),
        (
            {"run": "r1", "opening": "0a1b2c3d"},
            "app.kubernetes.io/managed-by=hydra,hydra/run=r1,hydra/opening=0a1b2c3d",
        ),
    ],
)
def test_selectors(arguments: dict[str, object], expected: str) -> None:
    assert names.selector(**arguments) == expected  # type: ignore[arg-type]


def test_groups_are_named_in_a_further_term() -> None:
    assert names.among(["s2", "S2"]) == f"hydra/group in (s2,{names.slug('S2')})"
