"""Runs that were stored in another format: every command that reads a run rejects them in one line."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli.main import cli
from hydra.errors import EXIT_GOOD, EXIT_USAGE, RunDirectoryError
from hydra.serve.overview import Overview
from hydra.store.database import DATABASE, RunStore
from hydra.store.interleaved_record import InterleavedRecord, write_record
from hydra.store.sample_tables import FORMAT
from tests.jupyter.runs import FIXED, make


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``good`` and ``other``, a run of another format, and ``together``, two interleaved runs of which one is such."""
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "good", FIXED)
    for name in ("other", "together/a", "together/b"):
        shutil.copytree(tmp_path / "good", tmp_path / name)
    write_record(tmp_path / "together", InterleavedRecord("zmqfixed", {"a": {}, "b": {}}, True, 1, {}, "", ""))
    return tmp_path


def renumber(run: Path, number: int) -> bytes:
    """Gives a run another format number; returns the content of its database."""
    with closing(sqlite3.connect(run / DATABASE)) as db:
        db.execute(f"PRAGMA user_version={number}")
    return (run / DATABASE).read_bytes()


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("other", "report other"),
        ("other", "report good other"),
        ("other", "compare good other"),
        ("other", "fit other"),
        ("other", "zmqfixed --resume other"),
        ("other", "run --resume other"),
        ("other", "slo --resume other"),
        ("together/b", "compare together"),
        ("together/a", "zmqfixed --resume together"),
    ],
)
def test_every_command_that_reads_a_run_rejects_it_in_one_line_and_leaves_it(
    folder: Path, run: str, words: str
) -> None:
    before = renumber(folder / run, 1)
    done = CliRunner().invoke(cli, words.split())
    assert isinstance(done.exception, RunDirectoryError), done.output
    assert (done.exception.exit_code, done.output) == (EXIT_USAGE, "")
    (line,) = str(done.exception).splitlines()
    assert f"{run}/{DATABASE} has format 1, and this Hydra reads format {FORMAT}; measure again, or use" in line
    assert (folder / run / DATABASE).read_bytes() == before


def test_lists_of_runs_show_the_reason_beside_the_others(folder: Path) -> None:
    renumber(folder / "other", 1)
    done = CliRunner().invoke(cli, ["runs", "."])
    assert done.exit_code == EXIT_GOOD
    (why,) = (line for line in done.output.splitlines() if "has format 1" in line)
    assert f"{DATABASE} has format 1, and this Hydra reads format {FORMAT}" in why
    assert "good" in done.output
    listed = {each.name: (each.ended, each.why) for each in Overview(folder, folder).entries()}
    assert listed["other"] == ("unreadable", f"{DATABASE} has format 1, and this Hydra reads format {FORMAT}")
    assert listed["good"][0] != "unreadable"


@pytest.mark.parametrize(
    ("number", "has"),
    [(FORMAT - 1, f"has format {FORMAT - 1}"), (FORMAT + 1, f"has format {FORMAT + 1}"), (0, "has no format number")],
)
def test_it_is_not_opened_for_writing_either(folder: Path, number: int, has: str) -> None:
    before = renumber(folder / "other", number)
    with pytest.raises(RunDirectoryError, match=f"{has}, and this Hydra reads"):
        RunStore.open(folder / "other", writable=True)
    assert (folder / "other" / DATABASE).read_bytes() == before
