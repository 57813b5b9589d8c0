"""What becomes of a line that is measured, fails or lacks something; the file and the page of the results."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench import machine, page, table
from bench.line import Figure, Line, Side, at_least
from bench.lines import lines
from bench.result import LineResult, Results, load, measured, store


class Quiet(machine.OtherProcesses):
    """A machine on which nothing else runs."""

    def look(self, seconds: float = 0.0) -> float:
        return seconds


class Busy(Quiet):
    """A machine whose other processes use half of the CPU."""

    def mean(self) -> float:
        return 0.5


def line(ours: Side, bare: Side | None = None, **more: Any) -> Line:
    return Line("clients", "a : b", more.pop("unit", "messages/s"), at_least(0.9), ours, bare, "In turns.", **more)


def failing() -> float:
    raise subprocess.CalledProcessError(1, "bare", stderr="bind: in use\n")


@pytest.mark.parametrize(("unit", "share"), [("messages/s", 0.5), ("s", 2.0)])
def test_a_figure_is_a_share_of_the_limit_in_the_direction_of_its_unit(unit: str, share: float) -> None:
    limit = line(lambda: 4.0)
    found = measured(line(lambda: (2.0, 1.0), lambda: (2.0, 1.0), unit=unit, also=[Figure("µs")], limit=limit), Quiet(),
                     {"a : b": 4.0})  # fmt: skip
    assert found.of_limit == share
    assert [(figure.middle, figure.verdict) for figure in found.figures] == [(1.0, "holds"), (1.0, "no goal")]


def test_an_error_ends_its_line_only() -> None:
    assert measured(line(failing), Quiet(), {}).problem == "CalledProcessError: bind: in use"
    found = measured(line(failing, lacks=lambda: "Java"), Quiet(), {})
    assert (found.problem, found.is_error) == ("This machine lacks Java.", False)


def test_a_single_pair_has_no_interval_and_no_verdict() -> None:
    (figure,) = measured(line(lambda: 2.0, lambda: 1.0), Quiet(), {}, pairs=1).figures
    assert (figure.low, figure.high, figure.verdict) == (None, None, "cannot tell")


def test_a_busy_machine_marks_what_depends_on_the_cpu() -> None:
    found = measured(line(lambda: (2.0, 1.0), also=[Figure("bytes", at_least(0.5), timed=False)]), Busy(), {})
    assert [table.notes(found, n) for n in (0, 1)] == ["holds, BUSY: other processes used 50% of the CPU", "holds"]
    assert not measured(line(lambda: 2.0, timed=False), Busy(), {}).is_busy


def test_what_does_not_hold_is_listed_by_its_distance_from_the_goal(tmp_path: Path) -> None:
    names = {"far": [0.50, 0.51], "wide": [1.2, 2.0], "near": [0.84, 0.85], "good": [0.95, 0.96]}
    every = []
    for name, values in names.items():
        one = measured(line(iter(values * 5).__next__, pairs=10), Quiet(), {}, pairs=10)
        every.append(LineResult("clients", name, "In turns.", one.figures))
    page.write(Results({}, every), tmp_path / "speed.md")
    text = (tmp_path / "speed.md").read_text()
    listed, shown = text.partition("## What does not hold")[2].split("## Clients")
    assert [row.split(" | ")[0] for row in listed.splitlines() if " ≥ 0.9 " in row] == ["| wide", "| near", "| far"]
    assert "`cannot tell` (the whole interval meets the goal, but is too wide)" in listed
    assert "the whole interval of 1 meets the goal, but is too wide" in text
    assert "| good " in shown


def results(*names: str, figures: Sequence[float] = (1.0,)) -> Results:
    every = [measured(line(lambda: figures), Quiet(), {}) for _ in names]
    return Results(
        {"cores": "2"},
        [LineResult("clients", name, "In turns.", one.figures) for name, one in zip(names, every, strict=True)],
    )


def test_the_file_keeps_lines_that_were_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "bench.json"
    store(results("a", "b"), file)
    store(results("b", figures=(3.0,)), file)
    kept = {line.name: line.figures[0].ours for line in load(file).lines}
    assert kept == {"a": 1.0, "b": 3.0}


def test_the_page_has_each_figure_and_the_plot_of_growth(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    points = ((10.0, 0.5), (1000.0, 20.0))
    grown = LineResult("growth", "start", "Fitted.", results("a").lines[0].figures, points=points)
    page.write(Results({"cores": "2"}, [*results("a").lines, grown]), tmp_path / "speed.md")
    text = (tmp_path / "speed.md").read_text()
    assert "| a | 1 messages/s | 1 (1 … 1) | ≥ 0.9 | `holds` |" in text
    assert "growth.svg" in text
    assert (tmp_path / "images" / "growth.svg").read_text().count("<circle") == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123456, "0.123"), (999.4, "999"), (4321.0, "4321"), (43_210, "43.2 k"), (4_321_000, "4.32 M")],
)
def test_a_figure_has_three_digits(value: float, text: str) -> None:
    assert table.short(value) == text


def test_each_line_has_a_name_of_its_own_and_limits_have_no_goal() -> None:
    names = [line.name for line in lines()]
    assert len(set(names)) == len(names)
    assert all(line.goal is None for line in lines() if line.section == "limits")
