"""Runs that stand a folder deeper than where one looks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hydra.cli.error_exit import command_of, error_text
from hydra.cli.main import cli
from hydra.events.value_formatting import MARK
from hydra.report.figure_texts import NOTED, OF_RUNS, marks_line
from hydra.report.run_catalog import catalog, elsewhere, mark_of
from tests.jupyter.runs import FIXED, make
from tests.sweep.clean_row import CLEAN


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


@pytest.mark.parametrize(
    ("clean", "disturbed", "slo", "mark"),
    [
        (True, False, "yes", ""),
        (None, None, "", ""),
        (True, True, "yes", NOTED),
        (False, True, "", MARK),
        (True, True, "unknown", MARK),
    ],
)
def test_a_run_has_the_graver_mark_of_its_rows(clean: bool | None, disturbed: bool | None, slo: str, mark: str) -> None:
    assert mark_of(clean, disturbed, slo) == mark
    assert marks_line([mark], OF_RUNS).startswith(mark)


def test_a_run_on_a_disturbed_host_is_marked_and_named_with_the_reason(tmp_path: Path) -> None:
    make(tmp_path / "one", FIXED, steps=1)
    row = {**CLEAN, "host_cpu_mean_pct": 40.0, "host_others_pct": 30.0}
    (tmp_path / "one" / "rows.json").write_text(json.dumps({"rows": [row]}))
    (entry,) = catalog(tmp_path)
    assert (entry["clean"], entry["disturbed"], entry["why"]) == (True, True, REASON)
    output = CliRunner().invoke(cli, ["runs", str(tmp_path)]).output
    assert (f"{NOTED} {entry['ended']}" in output, f"{NOTED} {OF_RUNS[NOTED]}"[:40] in output, REASON in output) == (
        True,
        True,
        True,
    )


REASON = "other processes used 30 % of a host's CPU"


def test_a_folder_without_runs_says_so(tmp_path: Path) -> None:
    text = f"there is no run in {tmp_path}; a command that measures makes one\n"
    assert CliRunner().invoke(cli, ["runs", str(tmp_path)]).output == text


@pytest.mark.parametrize(
    ("word", "meant"), [("zmqfixd", "zmq-fixed"), ("kafkabatch", "kafka-batch"), ("reprot", "report")]
)
def test_a_mistyped_command_is_answered_with_the_nearest_one(word: str, meant: str) -> None:
    error = CliRunner().invoke(cli, [word], standalone_mode=False).exception
    assert error is not None
    assert error_text(error, command_of(error)).endswith(f"did you mean {meant}?")  # type: ignore[arg-type]  # UsageError


def test_a_run_is_listed_with_what_was_measured(tmp_path: Path) -> None:
    make(tmp_path / "one", FIXED, steps=1)
    line = "1 publisher → 30, 60, 120 subscribers · 24 B · pyzmq · steps of 10 s"
    assert f"- {tmp_path / 'one'}: {line}" in CliRunner().invoke(cli, ["runs", str(tmp_path)]).output.splitlines()
    (reported,) = json.loads(CliRunner().invoke(cli, ["runs", str(tmp_path), "--json"]).output)
    assert (reported["setup"]["text"], reported["setup"]["subscribers"], reported["setup"]["hosts"]) == (
        line,
        [30, 60, 120],
        [],
    )
