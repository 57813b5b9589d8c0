"""What becomes of a line that is measured, fails or lacks something; the file of the results."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench import machine, table
from bench.line import Figure, at_least
from bench.lines import lines
from bench.result import LineResult, Results, load, measured, store
from tests.bench.measured_lines import Busy, Quiet, line


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
    assert measured(line(failing), Quiet(), {}).problem == "bind: in use"
    found = measured(line(failing, lacks=lambda: "Java"), Quiet(), {})
    assert (found.problem, found.is_error) == ("This machine lacks Java.", False)


def test_a_single_pair_has_no_interval_and_no_verdict() -> None:
    (figure,) = measured(line(lambda: 2.0, lambda: 1.0), Quiet(), {}, pairs=1).figures
    assert (figure.low, figure.high, figure.verdict) == (None, None, "cannot tell")


def test_a_busy_machine_marks_what_depends_on_the_cpu() -> None:
    found = measured(line(lambda: (2.0, 1.0), also=[Figure("bytes", at_least(0.5), timed=False)]), Busy(), {})
    assert [table.notes(found, n) for n in (0, 1)] == ["holds, BUSY: other processes used 50% of the CPU", "holds"]
    assert not measured(line(lambda: 2.0, timed=False), Busy(), {}).is_busy


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


def test_a_line_that_is_kept_names_its_processor_if_the_others_have_another_one(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    for names, processor in (("abc", "first"), ("bc", "second"), ("c", "first")):
        store(replace(results(*names), machine={"processor": processor}), file)
    assert [line.elsewhere for line in load(file).lines] == ["", "second", ""]
    assert table.notes(load(file).lines[1], 0).endswith("measured on second")


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


def test_others_use_what_the_processes_of_the_command_do_not() -> None:
    before = machine.CpuTimes(own_s=1.0, busy_s=10.0, passed_s=100.0)
    assert before.others_until(machine.CpuTimes(own_s=4.0, busy_s=15.0, passed_s=120.0)) == pytest.approx(0.1)
    assert before.others_until(before) == 0.0
