"""Only a kind of sweep has its facts: what is written, stored and repeated of it follows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import msgspec
import pytest

from hydra.config.scenario import load_scenario
from hydra.measure.step_result import StepFigures, StepResult
from hydra.model import Scenario, Settings, StepPlan, SweepSpec
from hydra.store.stored_scenario import as_stored, stored_scenario
from hydra.sweep import Sweep, SweepKind, as_table, for_scenario, kind, kinds
from hydra.sweep.grid import Grid, GridSweep
from hydra.sweep.held import HeldSweep
from hydra.sweep.held_spec import HeldSpec
from hydra.sweep.plan import SweepPlan
from hydra.sweep.points import PointSweep, SweepPoint
from hydra.sweep.rows import SweepRows
from hydra.sweep.search import SearchSweep
from hydra.sweep.search_spec import SearchSpec
from hydra.sweep.steps import SweepSteps
from hydra.sweep.texts import SweepTexts

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
def test_every_kind_is_stored_with_the_keys_of_all_and_read_again(sweep: SweepSpec) -> None:
    scenario = replace(load_scenario("zmqfixed"), sweep=sweep)
    stored = msgspec.json.decode(msgspec.json.encode(as_stored(scenario)))
    assert list(stored["sweep"]) == KEYS
    assert stored_scenario(stored).scenario == scenario


def test_the_unset_value_of_each_key_is_the_default_of_its_kind() -> None:
    stored = as_table({})
    for each in kinds():
        default = {of.name: of for of in fields(each.spec)}[each.key]
        unset = default.default_factory() if callable(default.default_factory) else default.default
        assert stored[each.key] is None or stored[each.key] == unset


@dataclass(frozen=True, slots=True)
class DoublingSweep(SweepSpec):
    """Twice as many clients in each row, until one misses its rate."""

    key: ClassVar[str] = "doubling"

    doubling: int = 3

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(2**n for n in range(self.doubling))


class DoublingPlan(SweepPlan):
    def begin(self) -> Sweep:
        counts, settings = self._sweep.counts, self._scenario.settings
        return Doubling(self._scenario, [StepPlan(clients, settings, self._sweep.duration_s) for clients in counts])

    def parts(self) -> dict[Hashable, Scenario]:
        return {"": replace(self._scenario, sweep=replace(self._sweep, repeat=1))}

    def part_of(self, plan: StepPlan) -> Hashable:
        return ""


DOUBLING = SweepKind(
    spec=DoublingSweep, uses=("doubling",), plan=DoublingPlan, rows=SweepRows, texts=SweepTexts, steps=SweepSteps
)


class Doubling(Grid):
    def next(self, results: Sequence[StepResult]) -> StepPlan | None:
        return None if any(row.get("rate_held") is False for row in self.rows(results)) else Grid.next(self, results)


def test_of_a_new_kind_whole_sweeps_are_repeated_where_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kind._KINDS, "doubling", kind._Registered(f"{__name__}:DOUBLING", unset=0))
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
