"""Every place that shows a row or a run shows its mark, and explains it once below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hydra.config.resolved_scenario import ResolvedScenario
from hydra.config.scenario import load_scenario
from hydra.events.value_formatting import MARK
from hydra.jupyter import experiment, markup, summary
from hydra.jupyter.run_data import RunData
from hydra.measure.column import Column
from hydra.measure.slo import ObjectiveResult
from hydra.model import Figure, RunSetup, TimeSeriesFacts
from hydra.report import experiment_folder, slo_text, tables
from hydra.report.figure_texts import NOTED, OF_ROWS, OF_RUNS, marks_line
from hydra.report.published_tables import published_for
from hydra.report.row_warnings import warnings_of
from hydra.report.run_catalog import mark_of
from hydra.report.table import markdown
from hydra.serve.html_pages import run_list_page
from hydra.serve.overview import RunEntry
from hydra.store.slo_results import SloResult
from hydra.sweep import Row
from hydra.sweep.cleanness import flaws, host_trouble, why_not_clean
from hydra.sweep.texts import HeadlineFigure
from hydra.system.experiment import MARKING, TROUBLE, WHY, ExperimentTable

FIXED = load_scenario("zmqfixed", {"published": True})
CLEAN: Row = {"clients": 60, "status": "ok", "requested_rate": 10.0, "rate_held": True, "passed": True}
CLEAN |= {"avg_tx_rate_pps": 10.0, "avg_rx_rate_pps": 10.0, "aggregate_pps": 600.0}
BUSY: dict[str, Figure] = {"host_cpu_mean_pct": 50.0, "host_others_pct": 30.0}
LATE: dict[str, Figure] = {"passed": False, "late_pct": 3.0}


def report(row: Row) -> RunData:
    resolved = ResolvedScenario.of(FIXED)
    notes = [warnings_of(row, FIXED)]
    return RunData(
        directory=Path("there"), metadata={}, scenario=FIXED, rows=[row], results=[], coming=None, notes=notes,
        setup=RunSetup(), events=[], published=published_for(resolved),
    )  # fmt: skip


def published_comparison(row: Row) -> str:
    found = markup.comparison(report(row))
    assert found is not None
    return found.text


def objectives(row: Row) -> str:
    facts = TimeSeriesFacts(0, 10.0, 1, 1.0, complete=True)
    kept = ObjectiveResult("max_ms", 5.0, 2.0, None, None, True)
    shown = tables.RunTables(FIXED, [row]).table()
    answer = SloResult(True, [kept], [], 0, True, facts, [])
    return markdown(slo_text.document(FIXED, RunSetup(), answer, shown, warnings_of(row, FIXED), why_not_clean(row)))


def experiment_view(row: Row) -> ExperimentTable:
    reasons = {WHY.name: why_not_clean(row) or None, TROUBLE.name: host_trouble(row) or None}
    return ExperimentTable("Sizes", [Column("clients"), *MARKING], [{"clients": 60, **reasons}], [])


def experiment_table(row: Row) -> str:
    return markdown([experiment_folder.table(experiment_view(row), tables.cell)])


def run_list(row: Row) -> str:
    trouble, clean = host_trouble(row), not flaws(row)
    figure = HeadlineFigure("carried", "10/s", trouble, clean, noted=bool(trouble))
    entry = RunEntry(
        "r", "run", "fixed", "zmq", "native", "60", "1", "", (figure,), "", clean, bool(trouble), "", "finished", "", ""
    )
    return run_list_page("runs", "", [entry])


@pytest.mark.parametrize(
    ("figures", "mark"),
    [({}, ""), (BUSY, NOTED), (LATE, MARK), ({**BUSY, **LATE}, MARK)],
    ids=["clean", "disturbed", "not clean", "both"],
)
@pytest.mark.parametrize(
    ("shown", "meanings"),
    [
        (lambda row: tables.RunTables(FIXED, [row]).markdown, OF_ROWS),
        (lambda row: tables.RunTables(FIXED, [row]).terminal(1000), OF_ROWS),
        (objectives, OF_ROWS),
        (lambda row: markup.table(report(row)).text, OF_ROWS),
        (published_comparison, OF_ROWS),
        (experiment_table, OF_ROWS),
        (lambda row: experiment.table(experiment_view(row)).text, OF_ROWS),
        (lambda row: summary.summary(report(row)).text, OF_RUNS),
        (run_list, OF_RUNS),
    ],
    ids=["table.md", "terminal", "slo", "report", "published", "experiment", "its page", "headline", "list of runs"],
)
def test_a_mark_is_shown_and_explained_once(
    shown: Callable[[Row], str], meanings: dict[str, str], figures: Row, mark: str
) -> None:
    text = shown({**CLEAN, **figures}).replace("`", "")
    for known in (MARK, NOTED):
        line = marks_line([known], meanings)
        assert text.count(line) == (known == mark), text
        others = (f"60 {known}", f">{known}</span> 60", f"<span>{known} ", f'"mark">{known} ')
        assert any(sign in text for sign in others) is (known == mark)


@pytest.mark.parametrize(
    ("clean", "disturbed", "line"),
    [(True, False, ""), (True, True, NOTED), (False, True, MARK)],
)
def test_several_marks_are_explained_in_one_line(clean: bool, disturbed: bool, line: str) -> None:
    both = marks_line([mark_of(clean, disturbed, ""), MARK, NOTED, ""], OF_RUNS)
    assert both == f"{MARK} {OF_RUNS[MARK]}; {NOTED} {OF_RUNS[NOTED]}"
    assert marks_line([mark_of(clean, disturbed, "")], OF_RUNS, quote="`").startswith(f"`{line}`" if line else "")
