"""The page of a comparison, as a browser shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hydra.jupyter.command import write_comparison
from hydra.jupyter.comparison_page import slices
from hydra.model import Scenario
from hydra.report.comparison_report import compare_runs
from tests.jupyter.browser import Browser, browser
from tests.jupyter.runs import BATCH, REPEATED, found_one, keep_seconds, make

THRICE = replace(BATCH, sweep=replace(BATCH.sweep, repeat=3))


__all__ = ["browser"]


@pytest.mark.tier("all")
@pytest.mark.parametrize("scenario", [REPEATED, THRICE], ids=["fixed", "batch"])
def test_the_page_shows_itself_whole(browser: Browser, tmp_path: Path, scenario: Scenario) -> None:
    runs = [make(tmp_path / name, scenario) for name in ("a", "b<c>")]
    page = browser.see(write_comparison(compare_runs(runs, "", ())[0], tmp_path / "page.html"))
    page.check()
    # The same figures on both sides have no interval that could be drawn.
    assert len(page.plots) == 2
    assert "Second by second" not in page.text
    for part in ("b<c> against a", "were not interleaved", "Every repeat", "no difference shown"):
        assert part in page.text


def test_seconds_are_drawn_where_they_were_kept(tmp_path: Path) -> None:
    scenario = replace(REPEATED, sweep=replace(REPEATED.sweep, clients=(30, 60)))
    runs = [make(tmp_path / name, scenario) for name in "ab"]
    keep_seconds(runs[1], 30)
    drawn = found_one(slices(compare_runs(runs, "", ())[0]))
    # Three repeats of two rows, a rate and a latency each.
    assert [(trace.name, len(trace.x)) for trace in drawn.data] == [("b", 3)] * 12
