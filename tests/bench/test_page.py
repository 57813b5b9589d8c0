"""The page of the results: what is short of its goal, what has changed, runs of an hour, and the plot of growth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench import page
from bench.hours import Finding, HourResults, load_hours
from bench.result import LineResult, Results, measured
from tests.bench.measured_lines import Quiet, line


def result(name: str, *values: float, how: str = "In turns.", began: str = "") -> LineResult:
    """A line that has taken these values five times, with a goal of at least 0.9."""
    pairs = 5 * len(values)
    one = measured(line(iter(values * 5).__next__, pairs=pairs), Quiet(), {}, pairs=pairs)
    return LineResult("clients", name, how, one.figures, began=began)


def written(folder: Path, *every: LineResult, **more: Any) -> str:
    page.write(Results({"cores": "2"}, every), folder / "speed.md", **more)
    return (folder / "speed.md").read_text()


def rows(text: str, title: str) -> list[str]:
    """The first cells of the rows of a section."""
    section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [row for row in section.splitlines() if row.startswith("| ") and not row.startswith("| line")]
    return [row.split(" | ")[0].removeprefix("| ") for row in lines]


FAR, NEAR, WIDE = result("far", 0.50, 0.51), result("near", 0.84, 0.85), result("wide", 1.2, 2.0)
AROUND, UNDER, GOOD = result("around", 0.5, 2.0), result("under", 0.5, 1.5), result("good", 0.95, 0.96)


@pytest.mark.parametrize(
    ("lines", "listed", "text"),
    [
        ([NEAR, FAR, WIDE, GOOD], ["far", "near"], "Not listed: 1 figure better"),
        (
            [UNDER, AROUND, WIDE],
            ["under"],
            "contains the goal: 1; the whole interval meets it, but is wider than ± 5 %: 1)",
        ),
        ([WIDE, GOOD], [], "No figure is worse than its goal."),
    ],
)
def test_only_figures_short_of_their_goal_are_listed_the_farthest_first(
    tmp_path: Path, lines: Sequence[LineResult], listed: Sequence[str], text: str
) -> None:
    page_text = written(tmp_path, *lines)
    assert rows(page_text, "What does not hold") == listed
    assert text in page_text


@pytest.mark.parametrize(
    ("before", "compared", "changed"),
    [
        (result("far", 0.80, 0.81, began="2026-11-25 04:00"), 1, ["far"]),
        (result("far", 0.50, 0.51, began="2026-11-25 04:00"), 1, []),
        (result("far", 0.80, 0.81, began="2026-11-26 05:00"), 0, []),  # the same measurement
        (result("far", 0.80, 0.81, began="2026-11-25 04:00", how="At once."), 0, []),
        (result("other", 0.80, 0.81, began="2026-11-25 04:00"), 0, []),
    ],
)
def test_lines_whose_intervals_lie_apart_have_changed(
    tmp_path: Path, before: LineResult, compared: int, changed: Sequence[str]
) -> None:
    now = result("far", 0.50, 0.51, began="2026-11-26 05:00")
    day = before.began.partition(" ")[0]
    text = written(tmp_path, now, before=Results({}, [before]))
    assert rows(text, f"Changes since {day}") == changed
    assert f"{compared} figure" in text
    assert ("| 0.627 | worse |" in text) == bool(changed)


def test_the_page_has_each_figure_and_the_plot_of_growth(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    points = ((10.0, 0.5), (1000.0, 20.0))
    figures = measured(line(lambda: 1.0, unit="slope of seconds"), Quiet(), {}).figures
    name = "start, configuring and reports of a & b, 10 to 1,000 clients"
    grown = LineResult("growth", name, "Fitted.", figures, points=points)
    of_bytes = LineResult("growth", "memory", "Fitted.", result("a", 1.0).figures, points=points)
    text = written(tmp_path, result("a", 1.0), grown, of_bytes)
    assert "| a | 1 messages/s | 1 (1 … 1) | ≥ 0.9 | `holds` |" in text
    assert "growth.svg" in text
    plot = (tmp_path / "images" / "growth.svg").read_text()
    assert plot.count("<circle") == 2
    for label in (">a &amp; b<", ">subscribers<", ">seconds of start", ">goal: slope 0.9 or less<", ">1,000<", ">0.1<"):
        assert label in plot


FOUND = [
    Finding("Kafka", "rate", "500/s", "", None),
    Finding("Kafka", "run.db", "9 MB", "≤ 30 MB", holds=True),
    Finding("Kafka", "loss", "1 %", "0 %", holds=False),
]


@pytest.mark.parametrize(
    ("hours", "texts"),
    [
        (None, ["These results have no such run."]),
        (HourResults(FOUND), ["goal.\n\n| workload", "| Kafka | 500/s | run.db | 9 MB | ≤ 30 MB | `holds` |"]),
        (HourResults(FOUND), ["| … |  | loss | 1 % | 0 % | `misses` |", "1 figure misses its goal"]),
        (
            HourResults(FOUND, "2026-11-26 13:05", 60, 0.5, together=True, others=0.031),
            ["on 2026-11-26 at 13:05 UTC; 60 minutes; all 1 workloads", "50% of what", "divided by 1", "used 3% of"],
        ),
        (HourResults(FOUND, share=0.5, together=False), ["Measured one workload after the other; each rate is 50% of"]),
    ],
)
def test_the_page_has_the_hours_and_how_they_were_measured(
    tmp_path: Path, hours: HourResults | None, texts: Sequence[str]
) -> None:
    written_text = written(tmp_path, hours=hours)
    assert [text for text in texts if text not in written_text] == []


@pytest.mark.parametrize("stored", [HourResults(FOUND, "2026-11-26 13:05", 60, 0.5, together=True), FOUND])
def test_hours_are_read_with_and_without_how_they_were_measured(tmp_path: Path, stored: object) -> None:
    file = tmp_path / "hours.json"
    file.write_bytes(msgspec.json.encode(stored))
    assert load_hours(file) == (stored if isinstance(stored, HourResults) else HourResults(FOUND))
