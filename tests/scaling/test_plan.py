"""A plan: how many there have to be, what runs out first, where the evidence ends."""

from __future__ import annotations

import pytest

from hydra.analysis.capacity_plan import CapacityPlan, PlanItem, ResourceUse, extrapolated, together
from hydra.analysis.declared_costs import Cost

COST = Cost(2e-3, "a run", 1000, 1.5e-3, 2.5e-3, (10.0, 10.0))
CPU = ResourceUse("CPU", "cores", 2e-3, 4.0, COST)
MEMORY = ResourceUse("memory", "bytes", 1e6, 1e9, Cost(1e6, "a page", 40))
UNKNOWN = ResourceUse("network", "bytes/s", 5.0, None, COST)


def test_as_many_are_needed_as_the_scarcest_resource_says() -> None:
    part = PlanItem("agents", "an agent", (CPU, MEMORY, UNKNOWN))
    assert [use.ends_at for use in part.uses] == [2000, 1000, None]
    assert (part.needed(1000), part.needed(1001), part.needed(10_000)) == (1, 2, 10)
    assert part.first is MEMORY
    assert part.unknown() == ["network"]


def test_what_breaks_first_is_the_least_of_all_parts() -> None:
    files = ResourceUse("open files", "files", 1.0, 500.0, COST)
    publishers = PlanItem("publishers", "a publisher", (files,))
    plan = CapacityPlan(10_000, 1.0, (PlanItem("agents", "an agent", (CPU,)), publishers))
    assert (plan.first, plan.fits) == ((publishers, files), True)


def test_where_there_is_one_only_more_do_not_fit() -> None:
    assert not CapacityPlan(4000, 1.0, (PlanItem("controller", "the controller", (CPU,), at_most=1),)).fits


def test_what_has_no_upper_limit_gives_no_figure() -> None:
    endless = Cost(2e-3, "a run", 1000, 1.5e-3, None)
    for cost in (endless, together([endless, COST]), together([endless, Cost(1e-3, "a page", 200)])):
        assert cost is not None
        assert (cost.unlimited, cost.too_wide) == (True, True)
        part = PlanItem("agents", "an agent", (ResourceUse("CPU", "cores", None, 4.0, cost), MEMORY))
        assert part.needed(1000) is None
        assert [use.name for _, use in CapacityPlan(1000, 1.0, (part,)).endless] == ["CPU"]
    assert not COST.unlimited


@pytest.mark.parametrize(("clients", "beyond"), [(2000, False), (2001, True)])
def test_more_than_twice_the_largest_measured_count_is_an_extrapolation(clients: int, beyond: bool) -> None:
    assert extrapolated(CPU, clients) is beyond


def test_evidence_ends_where_that_of_the_weakest_cost_does() -> None:
    assert CapacityPlan(1, 1.0, (PlanItem("agents", "an agent", (CPU, MEMORY, UNKNOWN)),)).evidence == 40


def test_costs_of_several_roles_add_up_or_are_not_known() -> None:
    both = together([COST, Cost(1e-3, "a page", 200, 0.5e-3, 1.5e-3, (10.0, 20.0))])
    assert both is not None
    assert (both.value, both.low, both.high) == pytest.approx((3e-3, 2e-3, 4e-3))
    assert (both.clients, both.rates, both.source) == (200, (10.0, 10.0), "a run; a page")
    assert together([COST, None]) is None
    assert together([COST, Cost(1e-3, "a page", 200)]).low is None  # type: ignore[union-attr]  # see above
