"""`hydra compare` over run directories: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hydra import cli
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, EXIT_USAGE, HydraError, RunDirectoryError, UsageError
from hydra.jupyter.command import write_report
from hydra.jupyter.rendering import LIBRARY
from hydra.model import StepPlan
from hydra.results import experiments, interleaved
from hydra.results.interleaved import Record
from tests.jupyter.runs import BATCH, FIXED, NATIVE, REPEATED, SEARCH, bisected, make
from tests.results.test_damaged import DAMAGES

RECORD = Record("zmqfixed", {"a": {"client": "pyzmq"}, "b": {"client": "native"}}, True, 1, {}, "hydra x", "now")


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two runs that took turns, of three repeats."""
    make(tmp_path / "a", REPEATED)
    make(tmp_path / "b", replace(REPEATED, client="native"))
    interleaved.write(tmp_path, RECORD)
    return tmp_path


def compare(*words: object, expect: int = EXIT_GOOD) -> Result:
    done = CliRunner().invoke(cli.cli, ["compare", *map(str, words)])
    if isinstance(done.exception, HydraError):
        assert done.exception.exit_code == expect
        return done
    assert done.exit_code == expect, done.output
    return done


def refused(*words: object) -> str:
    return str(compare(*words, expect=EXIT_USAGE).exception)


def told(*words: object, expect: int = EXIT_GOOD) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(compare(*words, "--json", expect=expect).stdout)
    return found


def test_runs_that_took_turns_are_compared_in_pairs(pair: Path) -> None:
    text = compare(pair).stdout
    assert text.startswith("# b against a\n")
    assert "Compared: pairs of repeats that took turns. Primary figure: latency_p99_us (µs, lower is better)" in text
    assert "did not take turns" not in text
    assert text.count("3 pairs") >= 3
    assert "| client " in text
    assert compare(pair / "a", pair / "b").stdout == text, "the folder stands for its runs"


def test_other_runs_are_independent_samples_with_a_warning(pair: Path) -> None:
    (pair / interleaved.RECORD).unlink()
    text = compare(pair / "a", pair / "b").stdout
    assert "repeats as independent samples" in text
    assert "the runs did not take turns" in text
    assert "3 and 3" in text
    assert "3 pairs" not in text


def test_one_after_the_other_is_not_in_turns(pair: Path) -> None:
    interleaved.write(pair, replace(RECORD, interleaved=False))
    assert told(pair)["paired"] is False


def test_a_run_without_repeats_has_no_verdict(tmp_path: Path) -> None:
    make(tmp_path / "a", FIXED)
    make(tmp_path / "b", replace(FIXED, client="native"))
    text = compare(tmp_path / "a", tmp_path / "b").stdout
    assert "one repeat has no spread" in text
    assert "no verdict: one repeat tells nothing of the spread" in text
    (first, *_) = told(tmp_path / "a", tmp_path / "b")["comparisons"]
    assert (first["verdict"], first["p"], first["low"]) == ("no verdict", None, None)
    assert first["change"] == pytest.approx(0, abs=0.05)


def test_programs_get_every_figure_in_full(pair: Path) -> None:
    found = told(pair, "--figure", "avg_rx_rate_pps")
    assert (found["base"], found["paired"], found["primary"]) == ("a", True, "avg_rx_rate_pps")
    assert [run["name"] for run in found["runs"]] == ["a", "b"]
    assert [row["row"] for row in found["rows"]] == ["30 clients", "60 clients", "120 clients"]
    first = [each for each in found["comparisons"] if each["primary"]]
    assert [each["row"] for each in first] == ["30 clients", "60 clients", "120 clients"]
    assert {each["figure"] for each in first} == {"avg_rx_rate_pps"}
    assert {"latency_p99_us", "client_loss_pct", "aggregate_pps"} <= {each["figure"] for each in found["comparisons"]}
    assert {"what": "client", "a": "pyzmq", "b": "native"} in found["environment"]


def test_rows_that_not_all_have_are_listed(pair: Path, tmp_path: Path) -> None:
    fewer = make(tmp_path / "c", replace(REPEATED, sweep=replace(REPEATED.sweep, clients=(30, 240))))
    found = told(pair / "a", fewer)
    assert found["unmatched"] == {"a": ["60 clients", "120 clients"], "c": ["240 clients"]}
    assert "a: 60 clients" in compare(pair / "a", fewer).stdout


def test_a_repeat_that_failed_is_left_out_and_counted(pair: Path) -> None:
    def status(plan: StepPlan) -> tuple[str, str]:
        failing[0] += plan.clients == 60
        return ("failed", "a host died") if failing[0] in (1, 2) and plan.clients == 60 else ("ok", "")

    failing = [0]
    shutil.rmtree(pair / "b")
    make(pair / "b", replace(REPEATED, client="native"), status)
    text = compare(pair).stdout
    assert "2 pairs (1 of other failed)" in text
    assert "60 clients, b: " in text


def test_searches_are_compared_by_the_rate_within_the_target(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, replace(SEARCH, client=client)) for name, client in (("a", "pyzmq"), ("b", "native"))]
    found = told(*runs)
    assert found["primary"] in ("max_rate_below_0_5pct_drop_pps", "max_rate_with_drop_pps")
    assert {"max_rate_with_drop_pps", "aggregate_max_pps"} <= {each["figure"] for each in found["comparisons"]}


@pytest.mark.parametrize(
    ("condition", "code", "says"),
    [
        ("avg_rx_rate_pps < 0.95 * base", EXIT_GOOD, ""),
        ("avg_rx_rate_pps > 0.95 * base", EXIT_INCOMPLETE, "b, 30 clients: avg_rx_rate_pps > 0.95 * base holds"),
        ("avg_rx_rate_pps<base*2", EXIT_INCOMPLETE, "b, 60 clients: avg_rx_rate_pps < 2 * base holds"),
        ("client_loss_pct > base", EXIT_GOOD, ""),
        ("client_loss_pct <= base", EXIT_INCOMPLETE, "client_loss_pct <= 1 * base holds, it is +0 points"),
        ("clients >= 60", EXIT_INCOMPLETE, "a, row 2 (60 clients): clients >= 60 holds"),
    ],
)
def test_a_condition_may_be_about_the_base(pair: Path, condition: str, code: int, says: str) -> None:
    make(pair / "c", REPEATED)
    done = compare(pair / "a", pair / "c", "--fail-if", condition.replace("b,", "c,"), expect=code)
    assert says.replace("b, ", "c, ", 1) in done.stderr
    assert bool(done.stderr) == bool(says)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("nonsense < base", "no number called nonsense"),
        ("clients < base", "no number called clients"),
        ("avg_rx_rate_pp < 0.5 * base", "did you mean avg_rx_rate_pps"),
        ("avg_rx_rate_pps < 0.5 base", "no comparison"),
        ("avg_rx_rate_pps < 0.5 * x", "no comparison"),
        ("avg_rx_rate_pps < 0.5 * base * 2", "no comparison"),
        ("avg_rx_rate_pps < nan * base", "no comparison"),
    ],
)
def test_a_condition_that_is_none_is_refused(pair: Path, condition: str, says: str) -> None:
    assert says in refused(pair, "--fail-if", condition)


def _experiment(folder: Path) -> list[Path]:
    record = experiments.Record("x", "x", "nobody", 1.0, {}, {}, "hydra", "now")
    (folder / "whole").mkdir()
    experiments.write_record(folder / "whole", record)
    return [folder / "whole", folder / "a"]


def _copied(folder: Path) -> list[Path]:
    shutil.copytree(folder / "a", folder / "copy")
    return [folder / "a", folder / "copy"]


def _record(folder: Path) -> list[Path]:
    (folder / interleaved.RECORD).write_text('{"scenario": 3}')
    return [folder]


BAD = {
    "nothing": (lambda _: [], "fewer than two runs"),
    "one": (lambda f: [f / "a"], "fewer than two runs"),
    "nowhere": (lambda f: [f / "a", f / "nowhere"], "holds no run"),
    "twice": (lambda f: [f / "a", f / "a" / "." / ""], "is named twice"),
    "folder and run": (lambda f: [f, f / "a"], "is named twice"),
    "copied": (_copied, "a and copy are the same run"),
    "other system": (lambda f: [f / "a", make(f / "c", BATCH)], "a measured zmq and c kafka"),
    "search": (lambda f: [f / "a", make(f / "c", SEARCH)], "different experiments: a searches for nothing, c searches"),
    "searches": (lambda f: [make(f / "c", NATIVE), make(f / "d", SEARCH)], "different experiments: c searches for"),
    "no row": (
        lambda f: [f / "a", make(f / "c", replace(FIXED, settings=replace(FIXED.settings, rate=5.0)))],
        "no row stands in all of these runs: rate: a 10000.0; c 5.0",
    ),
    "not begun": (lambda f: [f / "a", make(f / "c", FIXED, steps=0)], "c has none"),
    "earlier": (lambda f: [bisected(f / "c"), make(f / "d", SEARCH)], "a search of an earlier Hydra"),
    "experiment": (_experiment, "is an experiment of several runs"),
    "record": (_record, "cannot read"),
}


@pytest.mark.parametrize(("folders", "says"), BAD.values(), ids=BAD)
def test_runs_that_cannot_be_compared_are_one_line(pair: Path, folders: Any, says: str) -> None:
    named: Sequence[Path] = folders(pair)
    said = refused(*named)
    assert says in said
    assert len(said.splitlines()) == 1
    assert ";" in said, "there is a remedy"


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_run_is_one_line(pair: Path, damage: Any) -> None:
    damage(pair / "b" / "run.db")
    said = refused(pair)
    assert len(said.splitlines()) == 1
    assert "run.db" in said


@pytest.mark.parametrize(
    ("figure", "says"),
    [("latency_p99", "did you mean latency_p99_us"), ("max_rate_with_drop_pps", "no figure of these"), ("", "empty")],
)
def test_an_unknown_figure_is_refused(pair: Path, figure: str, says: str) -> None:
    done = CliRunner().invoke(cli.cli, ["compare", str(pair), "--figure", figure])
    assert says in (str(done.exception) + done.output)


def test_the_page_has_tables_and_plots(pair: Path) -> None:
    page = pair / "page.html"
    assert str(page) in compare(pair, "--html", page).stderr
    text = page.read_text()
    for part in ("b against a", "What else differs", "no difference shown", "Every repeat"):
        assert part in text
    assert text.count('class="plotly-graph-div"') == 3


def test_a_page_that_cannot_be_written_is_one_line(pair: Path) -> None:
    assert "there is no folder" in refused(pair, "--html", pair / "no" / "page.html")
    (pair / "page.html").mkdir()
    assert "cannot write" in str(compare(pair, "--html", pair / "page.html", expect=1).exception)


def test_the_report_of_runs_that_took_turns_is_their_comparison(pair: Path) -> None:
    assert write_report(pair) == [pair / "report.html"]
    assert "b against a" in (pair / "report.html").read_text()


def test_a_report_of_several_runs_is_their_comparison_beside_the_first(pair: Path) -> None:
    page, library = pair / "compare-a-b.html", pair / LIBRARY
    assert write_report(pair / "a", pair / "b", shared=True) == [page]
    assert f'<script src="{LIBRARY}">' in page.read_text()
    assert library.is_file()
    with pytest.raises(UsageError, match="is named twice"):
        write_report(pair / "a", pair / "a")
    with pytest.raises(RunDirectoryError, match="holds no run"):
        write_report(pair / "a", pair / "none")


def test_a_run_that_takes_turns_does_not_go_on_by_itself(pair: Path) -> None:
    done = CliRunner().invoke(cli.cli, ["zmqfixed", "--resume", str(pair / "a")], obj=None)
    assert "is one part of a comparison, and cannot go on alone; go on with all of it: --resume" in str(done.exception)
