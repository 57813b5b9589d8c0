"""Runs that are made and read once for all tests that only look at them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hydra.jupyter import run_data
from hydra.model import Scenario
from tests.jupyter.runs import KINDS, make

Loaded = Callable[[str | Scenario], run_data.RunData]


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Gives the whole run of a scenario, or of a kind, as it was read; no process writes into its folder."""
    folder, known = tmp_path_factory.mktemp("loaded"), dict[str, run_data.RunData]()

    def of(requests: str | Scenario) -> run_data.RunData:
        scenario = KINDS[requests] if isinstance(requests, str) else requests
        if repr(scenario) not in known:
            known[repr(scenario)] = run_data.load(make(folder / str(len(known)), scenario))
        return known[repr(scenario)]

    return of
