"""Which figures are exported while a command runs: of one run, of many, of several that take turns."""

from __future__ import annotations

import pytest

from hydra.measure.step_result import StepFigures, StepResult
from hydra.monitor.metrics_exports import Exports
from tests.metrics.samples import FIGURES, PLAN, latencies


def measure(exports: Exports, run: str) -> None:
    exports.begin(run, "zmq")
    exports.keeper.step_begins(1, PLAN)
    exports.keeper.step_ended(StepResult(1, PLAN, "ok", StepFigures.of(FIGURES)), latencies(120))
    exports.end(well=True)


def steps(exports: Exports) -> dict[str, float]:
    (family,) = (family for family in exports.families() if family.name == "hydra_steps")
    return {labels["run"]: value for labels, value in family.samples}


@pytest.mark.parametrize(
    ("runs", "reported"),
    [
        # Those that take turns continue where they were; of many the last are exported.
        (["both/a", "both/b", "both/b", "both/a"], {"both/a": 2, "both/b": 2}),
        ([f"part {n}" for n in range(30)], {f"part {n}": 1 for n in range(10, 30)}),
    ],
)
def test_each_of_the_last_runs_is_told_by_itself(runs: list[str], reported: dict[str, int]) -> None:
    exports = Exports()
    for run in runs:
        measure(exports, run)
    assert steps(exports) == reported


def test_a_run_that_ends_in_the_middle_of_a_step_has_none_that_runs() -> None:
    exports = Exports()
    exports.begin("r", "zmq")
    exports.keeper.step_begins(1, PLAN)
    assert "hydra_step_info" in {family.name for family in exports.families()}
    exports.end(well=False)
    assert "hydra_step_info" not in {family.name for family in exports.families()}


def test_nothing_is_told_before_there_is_a_run() -> None:
    assert Exports().families() == []
    assert Exports().warnings() == ()
