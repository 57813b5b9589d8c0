"""One run at a time in a run directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.errors import RunDirectoryError
from hydra.store.run_folders import locked


def test_a_second_command_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(RunDirectoryError, match=r"another command is writing the run in .*; wait for its end"):
            locked(tmp_path).__enter__()
        assert not list(tmp_path.iterdir())
    with locked(tmp_path):
        pass
