"""Where the run of a test is."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder that is not there yet."""
    return tmp_path / "run"
