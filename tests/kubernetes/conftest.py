"""The rig for tests: one for all of a session, shared by its workers, and one of its own for a test that breaks it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes import labs
from tests.kubernetes.building import reason_not_built
from tests.kubernetes.labs import Lab
from tests.kubernetes.rig import Rig
from tests.kubernetes.sharing import own, shared
from tests.suite.fixtures import starts

starts("rig_is_built")


@pytest.fixture(scope="session")
def rig_is_built() -> None:
    """Skips where the rig cannot be used; fails there if HYDRA_KUBERNETES=always, as in CI."""
    if reason := reason_not_built():
        if os.environ.get("HYDRA_KUBERNETES") == "always":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def rig(rig_is_built: None) -> Iterator[Rig]:
    """A rig for all tests, in all workers: no test breaks it, and each test takes its own namespaces."""
    with shared() as rig:
        yield rig


@pytest.fixture
def own_rig(rig_is_built: None) -> Iterator[Rig]:
    """A rig for one test, which may break it."""
    with own() as rig:
        yield rig


@pytest.fixture
def lab(rig: Rig, tmp_path: Path) -> Iterator[Lab]:
    """A lab of the test's own, in which nothing of Hydra's is left at the end."""
    with labs.lab(rig, tmp_path) as it:
        yield it
        assert it.left() == []
