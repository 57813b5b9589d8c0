"""Runs that stand a folder deeper than where one looks."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli.error_exit import command_of, error_text
from hydra.cli.main import cli
from hydra.report.run_catalog import catalog, elsewhere
from tests.jupyter.runs import FIXED, make


def test_folders_that_hold_more_runs_are_named(tmp_path: Path) -> None:
    for name in ("one", "de mo/two", "de mo/three"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        make(tmp_path / name, FIXED, steps=1)
    (tmp_path / "note.txt").touch()
    deeper = f"{tmp_path / 'de mo'} holds 2 more: hydra runs '{tmp_path / 'de mo'}'"
    assert elsewhere(tmp_path, True) == [deeper]
    assert CliRunner().invoke(cli, ["runs", str(tmp_path)]).output.splitlines()[-1] == deeper
    assert elsewhere(tmp_path / "de mo", True) == []


def test_a_run_is_listed_itself(tmp_path: Path) -> None:
    make(tmp_path / "one", FIXED, steps=1)
    assert [entry["run"] for entry in catalog(tmp_path / "one")] == [str(tmp_path / "one")]


def test_a_folder_without_runs_says_so(tmp_path: Path) -> None:
    said = f"there is no run in {tmp_path}; a command that measures makes one\n"
    assert CliRunner().invoke(cli, ["runs", str(tmp_path)]).output == said


@pytest.mark.parametrize(
    ("word", "meant"), [("zmqfixd", "zmq-fixed"), ("kafkabatch", "kafka-batch"), ("reprot", "report")]
)
def test_a_mistyped_command_is_answered_with_the_nearest_one(word: str, meant: str) -> None:
    error = CliRunner().invoke(cli, [word], standalone_mode=False).exception
    assert error is not None
    assert error_text(error, command_of(error)).endswith(f"did you mean {meant}?")  # type: ignore[arg-type]  # UsageError
