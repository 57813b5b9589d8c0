"""The limits of a client's own host are recognized by every implementation alike: from an error, and from its text."""

from __future__ import annotations

import json

import pytest

from hydra.client.linux_process import local_limit, local_limit_in
from hydra.model.machine import LOCAL_LIMITS
from tests.golden_vectors.common import GOLDEN as FOLDER

GOLDEN = json.loads((FOLDER / "limits/limits.json").read_text())


@pytest.mark.parametrize(("code", "name"), GOLDEN["errors"])
def test_an_error_is_known_by_its_number(code: int, name: str) -> None:
    assert local_limit(OSError(code, "x")) == name


@pytest.mark.parametrize(("text", "name"), GOLDEN["texts"])
def test_an_error_is_known_by_its_text(text: str, name: str) -> None:
    assert local_limit_in(text) == local_limit(OSError(text)) == name


def test_every_limit_has_a_case() -> None:
    assert {name for _, name in GOLDEN["errors"]} == {name for _, name in GOLDEN["texts"]} == {*LOCAL_LIMITS, ""}
