"""The page of a comparison, as a browser shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydra.jupyter.command import write_comparison
from hydra.jupyter.comparing import slices
from hydra.model import Scenario
from hydra.results.compared import compare_runs
from tests.jupyter.browser import chromium
from tests.jupyter.runs import BATCH, REPEATED, make
from tests.results.test_slices import keep

TWICE = replace(BATCH, sweep=replace(BATCH.sweep, repeat=2))


@pytest.mark.processes
@pytest.mark.parametrize("scenario", [REPEATED, TWICE], ids=["fixed", "batch"])
def test_the_page_shows_itself_whole(tmp_path: Path, scenario: Scenario) -> None:
    runs = [make(tmp_path / name, scenario) for name in ("a", "b<c>")]
    comparison, _ = compare_runs(runs, "", ())
    path = write_comparison(comparison, tmp_path / "page.html")
    with chromium() as browser:
        page = browser.see(path, 30)
    assert page.errors == []
    assert [r for r in page.requests if not r.startswith(("file:", "data:", "blob:"))] == []
    assert len(page.plots) == 3
    assert all(plot["drawn"] and plot["traces"] for plot in page.plots)
    assert "Second by second" not in page.text
    for part in ("b<c> against a", "did not take turns", "Every repeat", "no difference shown"):
        assert part in page.text


def test_seconds_are_drawn_where_they_were_kept(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, REPEATED) for name in "ab"]
    keep(runs[1], 30)
    comparison, _ = compare_runs(runs, "", ())
    drawn = slices(comparison)
    assert drawn is not None
    # Three repeats of three rows, a rate and a latency each.
    assert [(trace.name, len(trace.x)) for trace in drawn.data] == [("b", 3)] * 18
