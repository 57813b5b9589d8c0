"""`hydra compare` over run directories: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hydra.analysis.compared_runs import ComparedRow, ComparedRun, RowRepeat
from hydra.cli import main
from hydra.errors import EXIT_GOOD, EXIT_INCOMPLETE, EXIT_USAGE, HydraError, RunDirectoryError, UsageError
from hydra.jupyter.command import write_report
from hydra.jupyter.rendering import LIBRARY
from hydra.model import Scenario, StepPlan
from hydra.report import experiment_folder
from hydra.report.comparison_input import are_publishers
from hydra.store import interleaved_record
from hydra.store.interleaved_record import InterleavedRecord
from hydra.sweep.search_spec import SearchSpec
from tests.jupyter.runs import BATCH, FIXED, REPEATED, SEARCH, SEARCHES, make
from tests.results.damages import DAMAGES

LOSS = SearchSpec(8000.0, steps=6, series=("max_rate", "loss"))
SHORT = replace(SEARCH, sweep=replace(SEARCHES, clients=(30,), search=LOSS))
RECORD = InterleavedRecord(
    "zmqfixed", {"a": {"client": "pyzmq"}, "b": {"client": "native"}}, True, 1, {}, "hydra x", "now"
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that took turns, of three repeats; a test that changes them takes ``own_pair``."""
    folder = tmp_path_factory.mktemp("pair")
    make(folder / "a", REPEATED)
    make(folder / "b", replace(REPEATED, client="native"))
    interleaved_record.write_record(folder, RECORD)
    return folder


@pytest.fixture
def own_pair(pair: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pair, tmp_path / "own"))


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the same."""
    return make(tmp_path_factory.mktemp("again") / "c", REPEATED)


def compare(*words: object, expect: int = EXIT_GOOD) -> Result:
    done = CliRunner().invoke(main.cli, ["compare", *map(str, words)])
    code = done.exception.exit_code if isinstance(done.exception, HydraError) else done.exit_code
    assert code == expect, done.output
    return done


def refused(*words: object) -> str:
    return str(compare(*words, expect=EXIT_USAGE).exception)


Folders = Callable[[Path, Path], list[Path]]
"""Takes the folder of the pair and one for more runs."""


def comparison(*words: object, expect: int = EXIT_GOOD) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(compare(*words, "--json", expect=expect).stdout)
    return found


def test_runs_that_took_turns_are_compared_in_pairs(pair: Path) -> None:
    text = compare(pair).stdout
    assert text.startswith("# b against a\n")
    assert "Compared: pairs of interleaved repeats. Primary figure: latency_p99_us (µs, lower is better)" in text
    assert "not interleaved" not in text
    assert text.count("3 pairs") >= 3
    assert "What differs: client: pyzmq (a), native (b)." in text
    assert "| client " not in text, "the head names it"
    assert compare(pair / "a", pair / "b").stdout == text, "the folder stands for its runs"


def test_other_runs_are_independent_samples_with_a_warning(own_pair: Path) -> None:
    interleaved_record.write_record(own_pair, replace(RECORD, interleaved=False))
    assert comparison(own_pair)["paired"] is False, "one after the other is not in turns"
    (own_pair / interleaved_record.RECORD).unlink()
    text = compare(own_pair / "a", own_pair / "b").stdout
    for part in ("repeats as independent samples", "the runs were not interleaved", "3 and 3"):
        assert part in text
    assert "3 pairs" not in text


def test_a_run_without_repeats_has_no_verdict(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, replace(FIXED, client=client)) for name, client in (("a", "pyzmq"), ("b", "native"))]
    text = compare(*runs).stdout
    for output in ("fewer than 3 repeats do not show the spread", "no verdict: 1 repeat does not show the spread"):
        assert output in text
    (first, *_) = comparison(*runs)["comparisons"]
    assert (first["verdict"], first["p"], first["low"]) == ("no verdict", None, None)
    assert first["change"] == pytest.approx(0, abs=0.05)


def test_programs_get_every_figure_in_full(pair: Path) -> None:
    found = comparison(pair, "--figure", "avg_rx_rate_pps")
    rows = ["30 subscribers", "60 subscribers", "120 subscribers"]
    assert (found["base"], found["paired"], found["primary"]) == ("a", True, "avg_rx_rate_pps")
    assert [run["name"] for run in found["runs"]] == ["a", "b"]
    assert [row["row"] for row in found["rows"]] == rows
    first = [(each["row"], each["figure"]) for each in found["comparisons"] if each["primary"]]
    assert first == [(row, "avg_rx_rate_pps") for row in rows]
    assert {"latency_p99_us", "client_loss_pct", "aggregate_pps"} <= {each["figure"] for each in found["comparisons"]}
    assert {"what": "client", "a": "pyzmq", "b": "native"} in found["environment"]


def test_rows_that_not_all_have_are_listed(pair: Path, tmp_path: Path) -> None:
    fewer = make(tmp_path / "c", replace(REPEATED, sweep=replace(REPEATED.sweep, clients=(30, 240))))
    found = comparison(pair / "a", fewer)
    assert found["unmatched"] == {"a": ["60 subscribers", "120 subscribers"], "c": ["240 subscribers"]}
    assert "a: 60 subscribers" in compare(pair / "a", fewer).stdout


def test_a_repeat_that_failed_counts_as_the_worst_and_is_counted(own_pair: Path) -> None:
    def status(plan: StepPlan) -> tuple[str, str]:
        return ("failed", "a host died") if plan.clients == 60 and next(count) < 2 else ("ok", "")

    count = itertools.count()
    shutil.rmtree(own_pair / "b")
    make(own_pair / "b", replace(REPEATED, client="native"), status)
    text = compare(own_pair).stdout
    assert "3 pairs (1 of other failed, and count as worst)" in text
    assert "60 subscribers, b: " in text


@pytest.mark.tier("test")
def test_searches_are_compared_by_the_rate_within_the_target(tmp_path: Path) -> None:
    found = comparison(*(make(tmp_path / client, replace(SHORT, client=client)) for client in ("pyzmq", "native")))
    assert found["primary"] in ("max_rate_below_0_5pct_drop_pps", "max_rate_with_drop_pps")
    assert {"max_rate_with_drop_pps", "aggregate_max_pps"} <= {each["figure"] for each in found["comparisons"]}


@pytest.mark.parametrize(
    ("condition", "code", "expected"),
    [
        ("avg_rx_rate_pps < 0.95 * base", EXIT_GOOD, ""),
        ("avg_rx_rate_pps > 0.95 * base", EXIT_INCOMPLETE, "c, 30 subscribers: avg_rx_rate_pps > 0.95 * base holds"),
        ("avg_rx_rate_pps<base*2", EXIT_INCOMPLETE, "c, 60 subscribers: avg_rx_rate_pps < 2 * base holds"),
        ("client_loss_pct > base", EXIT_GOOD, ""),
        ("client_loss_pct <= base", EXIT_INCOMPLETE, "client_loss_pct <= 1 * base holds, it is +0 points"),
        ("clients >= 60", EXIT_INCOMPLETE, "a, row 2 (60 subscribers): clients >= 60 holds"),
    ],
)
def test_a_condition_may_be_about_the_base(pair: Path, again: Path, condition: str, code: int, expected: str) -> None:
    done = compare(pair / "a", again, "--fail-if", condition, expect=code)
    assert expected in done.stderr
    assert bool(done.stderr) == bool(expected)


@pytest.mark.parametrize(
    ("condition", "expected"),
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
def test_a_condition_that_is_none_is_refused(pair: Path, condition: str, expected: str) -> None:
    assert expected in refused(pair, "--fail-if", condition)


def _experiment(pair: Path, folder: Path) -> list[Path]:
    experiment_folder.write_record(
        folder, experiment_folder.ExperimentRecord("x", "x", "nobody", 1.0, {}, {}, "hydra", "now")
    )
    return [folder, pair / "a"]


def _record(_: Path, folder: Path) -> list[Path]:
    (folder / interleaved_record.RECORD).write_text('{"scenario": 3}')
    return [folder]


def _compared_with_pair(scenario: Scenario, steps: int | None = None) -> Folders:
    """A run of this scenario beside one of the pair."""
    return lambda pair, folder: [pair / "a", make(folder / "c", scenario, steps=steps)]


OTHER_RATE = replace(FIXED, settings=replace(FIXED.settings, rate=5.0))
HIGHEST = replace(SHORT, sweep=replace(SEARCHES, clients=(30,), search=replace(LOSS, series=("max_rate",))))
BAD: dict[str, tuple[Folders, str]] = {
    "nothing": (lambda _, __: [], "fewer than two runs"),
    "one": (lambda f, _: [f / "a"], "fewer than two runs"),
    "nowhere": (lambda f, _: [f / "a", f / "nowhere"], "holds no run"),
    "twice": (lambda f, _: [f / "a", f / "a" / "." / ""], "is named twice"),
    "folder and run": (lambda f, _: [f, f / "a"], "is named twice"),
    "copied": (lambda f, t: [f / "a", Path(shutil.copytree(f / "a", t / "copy"))], "a and copy are the same run"),
    "other system": (_compared_with_pair(BATCH), "c has several rows with the same clients, publishers, rate"),
    "search": (_compared_with_pair(SHORT), "different experiments: a searches for nothing, c searches"),
    "searches": (lambda _, t: [make(t / "c", SHORT), make(t / "d", HIGHEST)], "different experiments: c searches for"),
    "no row": (_compared_with_pair(OTHER_RATE), "no row is in all of these runs: rate: a 10000.0; c 5.0"),
    "not begun": (_compared_with_pair(FIXED, 0), "c has none"),
    "experiment": (_experiment, "is an experiment of several runs"),
    "record": (_record, "cannot read"),
}


@pytest.mark.parametrize(("folders", "expected"), BAD.values(), ids=BAD)
def test_runs_that_cannot_be_compared_are_one_line(pair: Path, tmp_path: Path, folders: Folders, expected: str) -> None:
    text = refused(*folders(pair, tmp_path))
    assert expected in text
    assert len(text.splitlines()) == 1
    assert ";" in text, "there is a remedy"


@pytest.mark.parametrize("damage", ["a missing table", "no plan", "noise"])
def test_a_damaged_run_is_one_line(own_pair: Path, damage: str) -> None:
    DAMAGES[damage](own_pair / "b" / "run.db")
    text = refused(own_pair)
    assert len(text.splitlines()) == 1
    assert "run.db" in text


@pytest.mark.parametrize(
    ("figure", "expected"),
    [("latency_p99", "did you mean latency_p99_us"), ("max_rate_with_drop_pps", "no figure of these"), ("", "empty")],
)
def test_an_unknown_figure_is_refused(pair: Path, figure: str, expected: str) -> None:
    done = CliRunner().invoke(main.cli, ["compare", str(pair), "--figure", figure])
    assert expected in (str(done.exception) + done.output)


@pytest.mark.tier("test")
def test_the_page_has_tables_and_plots(pair: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert str(page) in compare(pair, "--html", page).stderr
    text = page.read_text()
    for part in ("b against a", "What else differs", "no difference shown", "Every repeat"):
        assert part in text
    # The same figures in every turn have no interval that could be drawn.
    assert text.count('class="plotly-graph-div"') == 2
    page.unlink()
    page.mkdir()
    assert "it is a folder" in refused(pair, "--html", page)
    assert "there is no folder" in refused(pair, "--html", tmp_path / "no" / "page.html")


@pytest.mark.tier("test")
def test_a_report_of_several_runs_is_their_comparison_beside_the_first(own_pair: Path) -> None:
    a, b, page = own_pair / "a", own_pair / "b", own_pair / "compare-a-b.html"
    assert write_report(own_pair) == [own_pair / "report.html"]
    assert "b against a" in (own_pair / "report.html").read_text()
    assert write_report(a, b, shared=True) == [page]
    assert f'<script src="{LIBRARY}">' in page.read_text()
    assert (own_pair / LIBRARY).is_file()
    with pytest.raises(UsageError, match="is named twice"):
        write_report(a, a)
    with pytest.raises(RunDirectoryError, match="holds no run"):
        write_report(a, own_pair / "none")


def test_a_run_that_takes_turns_does_not_go_on_by_itself(pair: Path) -> None:
    done = CliRunner().invoke(main.cli, ["zmqfixed", "--resume", str(pair / "a")], obj=None)
    assert "is one part of a comparison, and cannot continue alone; continue the whole comparison: --resume" in str(
        done.exception
    )


@pytest.mark.parametrize(
    ("system", "clients", "keys", "is_of_publishers"),
    [
        ("kafka", 3, ["settings.acks"], True),
        ("kafka", 3, ["settings.compression", "settings.linger_ms"], True),
        ("kafka", 3, ["settings.acks", "settings.fetch_min_bytes"], False),
        ("nats", 3, ["settings.publish_acks"], True),
        ("zmq", 3, ["native.publisher"], True),
        ("zmq", 3, ["settings.burst"], True),
        ("zmq", 3, ["client"], False),
        ("zmq", 3, ["settings.rate"], False),
        ("kafka", 3, [], False),
        ("kafka", 0, [], True),
    ],
)
def test_a_comparison_of_publishers_at_full_rate_is_of_what_they_send(
    system: str, clients: int, keys: list[str], is_of_publishers: bool
) -> None:
    rows = [ComparedRow({"clients": clients, "rate": "max"}, [RowRepeat({})])]
    base = ComparedRun("a", "a", system, rows, {}, primary=("avg_rx_rate_pps",))
    sides = [base, replace(base, name="b", apart=dict.fromkeys(keys, "1"))]
    assert are_publishers(sides) is is_of_publishers
    assert not are_publishers([replace(each, primary=("latency_p99_us",)) for each in sides])
