"""Only a kind of sweep has its facts: what is written, stored and repeated of it follows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import msgspec
import pytest

from hydra.config.scenario import load_scenario
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Scenario, Settings, StepPlan
from hydra.store.stored_scenario import as_stored, stored_scenario
from hydra.sweep import Sweep, SweepKind, as_table, for_scenario, kinds
from hydra.sweep.grid import Grid, GridSweep
from hydra.sweep.held import HeldSweep
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.points import PointSweep, SweepPoint
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec

KEYS = ["duration_s", "clients", "points", "vary", "held", "search", "repeat", "seconds"]
"""Of ``[sweep]`` in a file, and of what a run stores of it: programs read these."""


@pytest.mark.parametrize(
    "sweep",
    [
        GridSweep(1.0, (1, 2), repeat=3, vary={"burst": (1, 2)}),
        PointSweep(1.0, points=(SweepPoint("a", settings={"burst": 1}),)),
        SearchSweep(1.0, (1, 2), search=SearchSpec(steps=5)),
        HeldSweep(1.0, (1, 2), held=HeldSpec(ladder=20), search=SearchSpec(steps=5)),
    ],
    ids=lambda sweep: sweep.key,
)
def test_every_kind_is_stored_with_the_keys_of_all_and_read_again(sweep: SweepKind) -> None:
    scenario = replace(load_scenario("zmqfixed"), sweep=sweep)
    stored = msgspec.json.decode(msgspec.json.encode(as_stored(scenario)))
    assert list(stored["sweep"]) == KEYS
    assert stored_scenario(stored).scenario == scenario


def test_the_unset_value_of_each_key_is_the_default_of_its_kind() -> None:
    stored = as_table({})
    for kind in kinds():
        default = {of.name: of for of in fields(kind)}[kind.key]
        unset = default.default_factory() if callable(default.default_factory) else default.default
        assert stored[kind.key] is None or stored[kind.key] == unset


@dataclass(frozen=True, slots=True)
class DoublingSweep(SweepKind):
    """Twice as many clients in each row, until one misses its rate."""

    key: ClassVar[str] = "doubling"
    uses: ClassVar[tuple[str, ...]] = ("doubling",)

    doubling: int = 3

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(2**n for n in range(self.doubling))

    def begin(self, scenario: Scenario) -> Sweep:
        return Doubling(scenario, [StepPlan(clients, scenario.settings, self.duration_s) for clients in self.counts])

    def parts(self, scenario: Scenario) -> dict[Hashable, Scenario]:
        return {"": replace(scenario, sweep=replace(self, repeat=1))}

    def part_of(self, plan: StepPlan) -> Hashable:
        return ""


class Doubling(Grid):
    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        return None if any(row.get("rate_held") is False for row in self.rows(results)) else Grid.next(self, results)


def test_of_a_new_kind_whole_sweeps_are_repeated_where_it_says_so() -> None:
    sweep = DoublingSweep(1.0, repeat=2)
    scenario = Scenario("d", "s", "c", "fixed", sweep, Settings(rate=1.0))
    assert scenario.sizes == ((1, 1), (1, 2), (1, 4))
    run = for_scenario(scenario)
    results: list[StepResult] = []
    while (plan := run.next(results)) is not None:
        figures = {"clients": plan.clients, "rate_held": plan.clients < 2, "avg_rx_rate_pps": 1.0 + len(results)}
        results.append(StepResult(len(results), plan, "ok", StepFigures.of(figures)))
    assert [result.plan.clients for result in results] == [1, 2, 1, 2]
    assert [(row["clients"], row["avg_rx_rate_pps"], row["repeats"]) for row in run.rows(results)] == [
        (1, 2.0, 2),
        (2, 3.0, 2),
    ]
