"""Runs of earlier versions: found by what they stored, listed, and not gone on with where that cannot be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import EXIT_USAGE, RunDirectoryError
from hydra.report.run_catalog import catalog
from hydra.run.run_metadata import scenario_of
from hydra.store import format_upgrade
from tests.jupyter.runs import BATCH, RATE, SEARCH, bisected


@pytest.mark.parametrize("scenario", [BATCH, RATE, SEARCH, load_scenario("zmqrate"), load_scenario("kafka-rate")])
def test_a_search_of_this_version_is_none_of_an_earlier_one(scenario: object) -> None:
    assert not format_upgrade.searched_otherwise(msgspec.to_builtins(scenario))


def test_an_earlier_search_is_listed_and_cannot_be_resumed(tmp_path: Path) -> None:
    run = bisected(tmp_path / "r")
    (entry,) = catalog(tmp_path)
    assert (entry["scenario"], entry["steps"], entry["ended"]) == ("zmqrate", 7, "finished")
    with pytest.raises(RunDirectoryError, match="is a search of an earlier version of Hydra: ") as error:
        scenario_of(run, "zmqrate", {})
    assert error.value.exit_code == EXIT_USAGE


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rows": 3}', '{"rows": [3]}'])
def test_rows_that_are_none_are_a_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / format_upgrade.ROWS).write_text(text)
    with pytest.raises(RunDirectoryError, match=r"cannot read .*rows\.json"):
        format_upgrade.stored_rows(tmp_path)
