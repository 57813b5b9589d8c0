"""The seconds of steps as slices of a comparison's rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hydra.analysis.compared_runs import RowSlice
from hydra.report.comparison_input import load_sides
from hydra.store.database import RunStore
from tests.jupyter.runs import BATCH, REPEATED, keep_seconds, make


def test_each_row_has_the_seconds_of_its_own_steps(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, REPEATED) for name in "ab"]
    keep_seconds(runs[1], 30)
    (without, side), _ = load_sides(runs)
    assert [list(row.slices) for row in without.rows] == [[]] * 3
    for row in side.rows:
        assert [step[0].p99_us for step in row.slices] == [None] * 3
        # The window ends in the middle of the last one.
        assert [step[1:] for step in row.slices] == [[RowSlice(1, 30.0, 1000.0), RowSlice(2, 60.0, 1000.0)]] * 3
    with RunStore.open(runs[1]) as store:
        epochs: dict[object, list[float]] = {}
        for result in store.results():
            epochs.setdefault(result.plan.clients, []).append(float(result.epoch))
    firsts = {row.settings["clients"]: [step[0].received_pps for step in row.slices] for row in side.rows}
    assert firsts == epochs


def test_rows_of_a_grid_do_not_share_their_seconds(tmp_path: Path) -> None:
    runs = [make(tmp_path / name, replace(BATCH, sweep=replace(BATCH.sweep, clients=(30,)))) for name in "ab"]
    keep_seconds(runs[1], 30)
    (_, side), _ = load_sides(runs)
    assert [[step[0].received_pps for step in row.slices] for row in side.rows] == [[1.0], [2.0]]
