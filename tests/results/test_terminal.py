"""The table for a person at a terminal."""

from __future__ import annotations

import pytest

from hydra.config.file_locations import scenarios
from hydra.config.scenario import load_scenario
from hydra.events.value_formatting import MARK
from hydra.model import Scenario, Settings
from hydra.report.tables import RunTables, table_columns
from hydra.sweep import Row
from hydra.sweep.grid import GridSweep

LARGE = 123_456
TOTAL = 123_456_789


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_the_table_of_every_scenario_fits_80_columns(name: str) -> None:
    scenario = load_scenario(name)
    columns = [column.name for column in table_columns(scenario, [])]
    row: Row = {name: TOTAL if name.startswith("total") else LARGE for name in columns}
    row |= {name: scenario.values_of(name)[0] for name in scenario.sweep.varied}
    lines = RunTables(scenario, [{**row, "status": "failed", "reason": "it broke " * 20}]).terminal(80).splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    others = len(scenario.sweep.varied) + sum(name.startswith("latency") for name in columns)  # these are in ms
    others += 2 * ("A wider terminal shows: Tx total (msg), Rx total (msg)" in lines)
    others += 2 * ("A wider terminal shows: Achieved (/s), Local" in lines)
    assert text.partition("- ⚠")[0].count("123,456") == len(columns) - others
    for word in (word for column in table_columns(scenario, [row]) for word in column.table_heading.split()):
        assert word in text


SCENARIO = Scenario(
    "kafka-batch", "kafka", "c", "batch", GridSweep(10.0, clients=(30,)), Settings(), description="What batching does."
)


def test_figures_are_grouped_and_a_row_with_a_warning_is_marked_once() -> None:
    row: Row = {"clients": 30, "avg_tx_rate_pps": 5780.5911, "status": "failed", "reason": "[b] broke"}
    good: Row = {"clients": 60, "msg_batch": "a [/b] [all]", "status": "ok", "reason": ""}
    good |= {"avg_tx_rate_pps": 0.5, "avg_tx_rate_pps_ci95": 0.125}
    text = RunTables(SCENARIO, [row, good]).terminal(100)
    # Brackets are no markup.
    for output in ("5,781", "± 0.12", "[b] broke", "[/b]"):
        assert output in text
    assert text.count(MARK) == 3  # its row, its line, and the meaning of the mark
