"""An experiment with several implementations: its parts in turn, and their rows in the same tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import UsageError
from hydra.experiments.alternatives import alternatives, with_alternatives
from hydra.experiments.experiment import Experiment
from hydra.measure.column import Column
from hydra.system.experiment import ExperimentOptions, ExperimentPart, ExperimentTable, PartResult

RATE = Column("rate", "messages/s", "as received")
BATCH = Column("batch", "messages", "as achieved")
ORDER = ExperimentOptions(1.0)
SCENARIO = load_scenario("zmqfixed", {})


def parts(_: ExperimentOptions) -> list[ExperimentPart]:
    return [ExperimentPart("slow", {"client": "one", "rate": 1}), ExperimentPart("fast", {"client": "one", "rate": 2})]


def next_part(order: ExperimentOptions, done: Sequence[PartResult]) -> ExperimentPart | None:
    names = [each.part.name for each in done]
    return next((part for part in parts(order) if part.name not in names), None)


def views(_: ExperimentOptions, done: Sequence[PartResult]) -> list[ExperimentTable]:
    rows = [{"part": each.part.name, **each.rows[0]} for each in done]
    # Not every implementation has every figure.
    columns = [Column("part", "text"), RATE, *([BATCH] if any("batch" in row for row in rows) else [])]
    return [ExperimentTable("Rates", columns, rows, ["a note"], x="rate", y=("batch",))]


ABOUT: dict[str, Any] = {"name": "two-rates", "title": "two rates", "source": "nobody", "takes_s": 5, "scale": 0.1}
EXPERIMENT = Experiment(
    **ABOUT, next_part=next_part, parts=parts, views=views, lines=lambda done: [each.part.name for each in done]
)


def all_done(experiment: Experiment) -> list[PartResult]:
    done: list[PartResult] = []
    while (part := experiment.next_part(ORDER, done)) is not None:
        figures = {"rate": part.scenario["rate"], **({"batch": 9} if part.scenario["client"] == "b" else {})}
        done.append(PartResult(part, SCENARIO, [figures]))
    return done


def test_every_part_is_run_with_every_implementation_in_a_folder_of_its_own() -> None:
    both = alternatives(EXPERIMENT, ["a", "b"])
    done = all_done(both)
    names = ["slow-a", "fast-a", "slow-b", "fast-b"]
    assert [each.part.name for each in done] == names
    assert [each.part.scenario["client"] for each in done] == ["a", "a", "b", "b"]
    assert both.parts is not None
    assert [part.name for part in both.parts(ORDER)] == names
    assert both.takes_s == 10
    # What is done is not run again.
    part = both.next_part(ORDER, [*done[:1], *done[2:]])
    assert part is not None
    assert part.name == "fast-a"


def test_rows_of_all_stand_in_one_table_with_the_columns_of_each() -> None:
    both = alternatives(EXPERIMENT, ["a", "b"])
    (view,) = both.views(ORDER, all_done(both))
    assert [column.name for column in view.columns] == ["implementation", "part", "rate", "batch"]
    found = [(row["implementation"], row["part"], row.get("batch")) for row in view.rows]
    assert found == [("a", "slow", None), ("a", "fast", None), ("b", "slow", 9), ("b", "fast", 9)]
    assert (view.notes, view.x, list(view.y)) == (["a note"], "", [])
    assert both.lines(all_done(both)) == ["# a", "slow", "fast", "# b", "slow", "fast"]


def test_what_is_only_known_while_it_runs_is_not_listed_before() -> None:
    assert alternatives(dataclasses.replace(EXPERIMENT, parts=None), ["a", "b"]).parts is None


@pytest.mark.parametrize("given", [{}, {"client": "a"}, {"client": "a", "x": 1}])
def test_with_one_implementation_nothing_changes(given: dict[str, object]) -> None:
    assert with_alternatives(EXPERIMENT, given) == (EXPERIMENT, given)


def test_several_are_taken_out_of_the_overrides() -> None:
    experiment, overrides = with_alternatives(EXPERIMENT, {"client": "a, b", "x": 1})
    assert overrides == {"x": 1}
    assert [each.part.scenario["client"] for each in all_done(experiment)] == ["a", "a", "b", "b"]


def test_one_that_is_named_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="one twice: a,b,a"):
        with_alternatives(EXPERIMENT, {"client": "a,b,a"})
