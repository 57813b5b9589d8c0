"""``hydra report``: the files it writes, the page as a browser shows it, and what can be in the way."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from hydra.errors import EXIT_USAGE, HydraError
from hydra.jupyter.command import write_report
from hydra.jupyter.rendering import LIBRARY, render
from hydra.model import StepPlan
from hydra.store.run_folders import NOTEBOOK, PAGE
from tests.integration.command import Hydra, hydra
from tests.jupyter.browser import Browser, browser
from tests.jupyter.kernel import execute
from tests.jupyter.runs import BATCH, FIXED, KINDS, make
from tests.suite.waiting import LONG_S, SOON_S

__all__ = ["browser"]

pytestmark = pytest.mark.tier("all")

USUAL = ("rates", "loss", "latency", "latency-at-every-percentile")
LOSSY = (*USUAL[:2], "who-lost-when", *USUAL[2:])
BATCHES = "effect-of-the-batch"
LINEAR = ("latency-over-time", "who-lost-when", "second-by-second")


def check(browser: Browser, run: Path, plots: Sequence[str], limit_s: float = SOON_S) -> str:
    """The page's text, after it has shown itself without an error, off the network, with all its plots drawn."""
    page = browser.see(run / PAGE, limit_s)
    page.check()
    assert [plot["name"] for plot in page.plots] == list(plots)
    for plot in page.plots:
        assert plot["expected"] == plot["traces"], plot
        # Time and subscribers are counted.
        assert plot["name"] in LINEAR or set(plot["axes"]) == {"log"}, plot
    return page.text


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_of_every_kind_of_table_shows_itself_whole(browser: Browser, tmp_path: Path, kind: str) -> None:
    plots = {"batch": (*LOSSY, BATCHES), "fixed": USUAL, "repeated": USUAL}.get(kind, LOSSY)
    run = make(tmp_path / kind, KINDS[kind])
    assert write_report(run) == [run / NOTEBOOK, run / PAGE]
    text = check(browser, run, plots)
    assert text.index("subscribers ·") < text.index("Results") < text.index("Warnings") < text.index("What was run")
    assert f"hydra {KINDS[kind].name} --clients 30,60" in text
    assert "report.table" not in text, "the page shows code"


def test_on_no_screen_anything_overlaps_or_is_cut(browser: Browser, tmp_path: Path) -> None:
    """Client counts near each other, published lines, two panels side by side, names too long for a phone."""
    near = replace(KINDS["repeated"].sweep, clients=(10, 11, 12, 60, 65))
    for name, scenario in {"near": replace(KINDS["repeated"], sweep=near), "search": KINDS["search"]}.items():
        write_report(make(tmp_path / name, scenario), shared=True)
        for width in (1400, 800, 400):
            assert browser.faults(tmp_path / name / PAGE, width) == [], width


def test_pages_may_share_plotly_and_are_small_then(browser: Browser, tmp_path: Path) -> None:
    run = make(tmp_path / "fixed", KINDS["fixed"])
    write_report(run, shared=True)
    assert (run / PAGE).stat().st_size < 1_000_000
    assert (tmp_path / LIBRARY).exists()
    check(browser, run, USUAL)


def test_runs_that_went_wrong_have_a_page_too(browser: Browser, tmp_path: Path) -> None:
    def failing(plan: StepPlan) -> tuple[str, str]:
        return ("failed", "<b>broker died</b>") if plan.clients == 60 else ("ok", "")

    failed = make(tmp_path / "failed", BATCH, failing)
    none = make(tmp_path / "none", FIXED, steps=0, ended="interrupted")
    killed = make(tmp_path / "killed", replace(FIXED, name="<script>x</script>"), steps=1, ended=None)
    for run, plots, text in (
        (failed, (*LOSSY, BATCHES), "FAILED: <b>broker died</b>"),
        (none, (), "the run was interrupted; the next step would be 30 subscribers"),
        (killed, USUAL, "<script>x</script>"),
    ):
        render(run)
        assert text in check(browser, run, plots)


def test_a_plot_that_cannot_be_drawn_is_noticed(browser: Browser, tmp_path: Path) -> None:
    """The check above is worth something."""
    run = make(tmp_path / "run", FIXED)
    render(run)
    page = run / PAGE
    page.write_text(page.read_text().replace("Plotly.newPlot(", "Plotly.newPlott(", 1))
    with pytest.raises(AssertionError, match="newPlott is not a function"):
        check(browser, run, USUAL, limit_s=1)


def test_the_notebook_shows_what_the_page_does_and_again_when_it_is_executed(tmp_path: Path) -> None:
    run = make(tmp_path / "run", KINDS["batch"])
    render(run)
    moved = run.rename(tmp_path / "moved")
    assert str(tmp_path) not in (moved / NOTEBOOK).read_text() + (moved / PAGE).read_text()
    notebook = nbformat.read(moved / NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    written = [cell.get("outputs", []) for cell in notebook.cells]
    assert sum(map(len, written)) > 10
    for before, cell in zip(written, execute(notebook, moved).cells, strict=True):
        shown = [dict(output.data) for output in before]
        again = [dict(output.data) for output in cell.get("outputs", [])]
        for kind in ("text/html", "application/vnd.plotly.v1+json"):
            assert [data.get(kind) for data in again] == [data.get(kind) for data in shown], cell.source


@pytest.mark.tier("test")
def test_the_command_prints_what_it_wrote(tmp_path: Path) -> None:
    run = make(tmp_path / "run", FIXED, steps=1)
    done = hydra("report", run)
    assert done.stdout.splitlines() == [str(run / NOTEBOOK), str(run / PAGE)]
    assert done.stderr == ""
    assert sorted(p.name for p in run.iterdir()) == ["report.html", "report.ipynb", "run.db"]


@pytest.mark.tier("test")
def test_a_folder_without_a_run_is_a_usage_error(tmp_path: Path) -> None:
    assert "holds no run" in hydra("report", tmp_path, expect=EXIT_USAGE).stderr


def test_a_file_in_the_way_is_a_clear_error_and_leaves_no_draft(tmp_path: Path) -> None:
    run = make(tmp_path / "run", FIXED)
    (run / PAGE).mkdir()
    with pytest.raises(HydraError, match=r"cannot write .*report\.html"):
        render(run)
    assert [p.name for p in run.glob(".*")] == []


def test_a_run_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    run = make(tmp_path / "run", FIXED)
    # Root may write everywhere but on a read-only mount, which only this command sees.
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(run), *Hydra, "report", str(run)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONG_S)
    assert done.returncode == EXIT_USAGE, done.stderr
    assert "cannot write a report into" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
