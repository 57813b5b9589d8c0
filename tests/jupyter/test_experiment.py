"""The report of an experiment: one page with its tables, their pictures, and links to its runs."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import pytest

from hydra.errors import RunDirectoryError
from hydra.jupyter.command import write_report
from hydra.jupyter.experiment import load, parts, plot, table
from hydra.measure.column import Column
from hydra.report.experiment_folder import ExperimentRecord, PartRecord, write_record, write_tables
from hydra.system.experiment import ExperimentTable
from tests.jupyter.runs import found_one

COLUMNS = [
    Column("setting", "text"),
    Column("stored", "bytes", axis="bytes stored"),
    Column("rate", "records/s", "all <together>"),
    Column("rate_published", "records/s", heading="published"),
    Column("never", "s"),
]
ROWS = [{"setting": "a<b>", "stored": 1e6 * n, "rate": 100.0 * n, "rate_published": None} for n in (1, 2)]
VIEW = ExperimentTable(
    "Growth", COLUMNS, ROWS, ["a <note>"], x="stored", y=("rate", "never"), marks={"page cache": 1e7}
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record = ExperimentRecord(
        "growth", "it <grows>", "somebody, 2014", 0.01, {"n": 3}, {}, "hydra x", "now", "finished"
    )
    record.parts.extend([PartRecord("there", "finished"), PartRecord("missing", "", "nine brokers need 6 GB")])
    (tmp_path / "there").mkdir()
    for name in ("run.db", "table.md"):
        (tmp_path / "there" / name).write_text("")
    write_record(tmp_path, record)
    write_tables(tmp_path, record, [VIEW, dataclasses.replace(VIEW, title="Again")])
    return tmp_path


@pytest.mark.tier("test")
def test_the_page_has_tables_picture_and_links(folder: Path) -> None:
    _, page = write_report(folder)
    text = page.read_text()
    for part in ("it &lt;grows&gt;", "scale 0.01 of the original", "a&lt;b&gt;", "a &lt;note&gt;", "there/table.md"):
        assert part in text
    assert "nine brokers need 6 GB" in text
    assert "page cache" in text
    places = re.findall(r'id="(plot-[^"]*)"', text)
    assert len(set(places)) == len(places) == 2, "each picture has a place of its own"


def test_what_is_kept_is_what_is_read(folder: Path) -> None:
    view, _ = load(folder).views
    assert (view.title, view.x, list(view.y), dict(view.marks)) == ("Growth", "stored", ["rate", "never"], VIEW.marks)
    assert [row["rate"] for row in view.rows] == [100.0, 200.0]


def test_a_column_without_figures_is_left_out(folder: Path) -> None:
    view, _ = load(folder).views
    shown = table(view).text
    assert ">rate<" in shown
    assert ">never<" not in shown


def test_only_figures_are_drawn_and_the_axis_reaches_the_marks() -> None:
    drawn = found_one(plot(VIEW))
    assert [trace.name for trace in drawn.data] == ["measured"]
    low, high = drawn.layout.xaxis.range
    assert low < math.log10(1e6)
    assert high > math.log10(1e7)


@pytest.mark.parametrize("rows", [[], [{"stored": 1.0}]])
def test_there_is_no_picture_of_nothing(rows: list[dict[str, float]]) -> None:
    assert plot(ExperimentTable("Growth", COLUMNS, rows, x="stored", y=("rate",))) is None


def test_rows_that_share_a_place_are_not_joined() -> None:
    rows = [{"stored": 1.0, "rate": 2.0, "rate_published": 4.0}, {"stored": 1.0, "rate": 3.0}]
    drawn = found_one(plot(ExperimentTable("Growth", COLUMNS, rows, x="stored", y=("rate",)))).data
    assert [(trace.name, trace.mode) for trace in drawn] == [("measured", "markers"), ("published", "lines+markers")]


def test_a_part_links_to_what_is_there(folder: Path) -> None:
    assert 'href="there/table.md"' in parts(load(folder)).text
    assert "report.html" not in parts(load(folder)).text


@pytest.mark.parametrize("text", ["", "{}", '{"experiment": 3}'])
def test_a_damaged_record_is_one_clear_error(folder: Path, text: str) -> None:
    (folder / "experiment.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=r"cannot read .*experiment\.json"):
        load(folder)
