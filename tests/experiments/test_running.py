"""An experiment of two parts on real ZMQ sockets: its folder, its tables, and how it continues."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hydra.cli.experiment_execution import run_experiment
from hydra.config import plugins
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, EXIT_INTERRUPTED, HydraError, PlacementError, ServerError
from hydra.report import experiment_folder as folders
from hydra.run import launcher
from hydra.sweep import Row
from hydra.system import Published
from tests.integration.command import table

FILE = Path(__file__).with_name("two_rates.toml")
GOAL = '[[options]]\nname = "goal"\nmetavar = "N"\nhelp = "A goal."\n'


def line_of_row(publishers: Sequence[Row], subscribers: Sequence[Row]) -> list[str]:
    """The function that the experiment names for the lines below its tables."""
    return [f"{len(publishers)} to {len(subscribers)}"]


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    package = tmp_path_factory.mktemp("package")
    folder = package / "experiments"
    folder.mkdir()
    text = FILE.read_text()
    (folder / "two-rates.toml").write_text(text)
    (folder / "with-a-goal.toml").write_text(text.replace("[scenario]", f"{GOAL}[scenario]"))
    systems = dict(plugins.systems())
    systems["zmq"] = replace(systems["zmq"], published=Published(folder=package))
    monkeypatch.setattr(plugins, "systems", lambda: systems)


FLAGS: dict[str, Any] = {"resume": None, "out": None, "config": None, "master": "local", "as_json": False}
FLAGS |= {"quiet": True, "yes": False, "plain": False, "prometheus": None, "otlp": None, "fail_if": (), "scale": None}


def run(name: str = "two-rates", **flags: Any) -> int:
    with pytest.raises(SystemExit) as end:
        run_experiment("zmq", name, {}, FLAGS | flags)
    return int(end.value.code or 0)


@pytest.mark.tier("test")
def test_every_part_is_run_and_what_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "two"
    assert run(out=folder, fail_if=("avg_rx_rate_pps_ratio < 0.1",)) == EXIT_GOOD
    assert "\n# only\n1 to 1\n" in capsys.readouterr().out
    record = folders.read_record(folder)
    assert (record.ended, [part.ended for part in record.parts]) == ("finished", ["finished"] * 2)
    rows = table(folder)
    assert [row["part"] for row in rows] == ["rate-200", "rate-400"]
    assert float(rows[1]["avg_rx_rate_pps"]) == pytest.approx(400, rel=0.5)
    assert "scale 0.02 of the original" in (folder / "table.md").read_text()
    first, second = (folder / part.name / "run.db" for part in record.parts)
    before = first.stat().st_mtime_ns
    shutil.rmtree(second.parent)
    assert run("", resume=folder, as_json=True) == EXIT_GOOD
    assert (first.stat().st_mtime_ns, second.exists()) == (before, True)
    (printed,) = json.loads(capsys.readouterr().out)["tables"]
    assert [row["part"] for row in printed["rows"]] == ["rate-200", "rate-400"]
    assert run(resume=folder, fail_if=("avg_rx_rate_pps_ratio > 1.5",)) == EXIT_INCOMPLETE


@pytest.mark.parametrize(
    ("error", "ended", "code"),
    [
        (PlacementError("no agent"), "finished", EXIT_INCOMPLETE),
        (KeyboardInterrupt(), "interrupted", EXIT_INTERRUPTED),
        (ServerError("gone"), "failed", None),
    ],
)
def test_what_stops_a_part_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, ended: str, code: int | None
) -> None:
    monkeypatch.setattr(launcher, "launch", Mock(side_effect=error))
    if code is None:
        with pytest.raises(HydraError, match="gone"):
            run(out=tmp_path)
    else:
        assert run(out=tmp_path) == code
    record = folders.read_record(tmp_path)
    assert (record.ended, record.error) == (ended, "gone" if code is None else "")
    assert [part.reason for part in record.parts] == (["no agent"] * 2 if ended == "finished" else [])
    assert ("was not run: no agent" in (tmp_path / "table.md").read_text()) == (ended == "finished")


@pytest.mark.parametrize(
    ("name", "flags", "expected"),
    [
        ("two-rate", {}, "did you mean two-rates"),
        ("", {}, "no experiment is named; name one of two-rates, with-a-goal"),
        ("two-rates", {"goal": 3}, "--goal is for with-a-goal, not for two-rates"),
        ("two-rates", {"resume": Path("a"), "out": Path("b")}, "leave out --out"),
        ("two-rates", {"resume": Path("/nowhere")}, "holds no experiment"),
        ("two-rates", {"fail_if": ("nonsense > 1",)}, "nonsense"),
    ],
)
def test_bad_input_gets_one_line_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, flags: dict[str, Any], expected: str
) -> None:
    monkeypatch.setattr(launcher, "launch", lambda *_: pytest.fail("something was started"))
    with pytest.raises(HydraError, match=expected):
        run_experiment("zmq", name, {}, FLAGS | flags)


@pytest.mark.parametrize(
    ("name", "flags", "expected"),
    [
        ("two-rates", {"scale": 0.5}, "scale was 0.02 and is now 0.5"),
        ("with-a-goal", {}, "experiment was 'two-rates' and is now 'with-a-goal'"),
    ],
)
def test_an_experiment_goes_on_as_it_was_begun(tmp_path: Path, name: str, flags: dict[str, Any], expected: str) -> None:
    record = folders.ExperimentRecord("two-rates", "two rates", "nobody", 0.02, {}, {}, "hydra", "now")
    folders.write_record(tmp_path, record)
    with pytest.raises(HydraError, match=expected):
        run_experiment("zmq", name, {}, FLAGS | {"resume": tmp_path} | flags)


def test_secrets_are_given_again(tmp_path: Path) -> None:
    hidden = {"native.sndbuf": "***"}
    folders.write_record(tmp_path, folders.ExperimentRecord("two-rates", "t", "s", 0.02, {}, hidden, "hydra", "now"))
    with pytest.raises(HydraError, match=r"secrets are not stored with a run: native\.sndbuf"):
        run_experiment("zmq", "", {}, FLAGS | {"resume": tmp_path})
