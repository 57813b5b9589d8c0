"""Which columns a scenario's rows can have, known before anything is measured. Pure."""

from __future__ import annotations

from hydra.measure.figures import LOSS_HIGH, LOSS_LOW, Observation, figures
from hydra.model import Cohort, Scenario, StepPlan


def figure_names(scenario: Scenario) -> list[str]:
    """The figures of a step of this scenario: those of an empty observation, and those of an uncertain loss."""
    cohort = Cohort("slow", 0.5, 1.0) if scenario.sweep.search else Cohort()
    plan = StepPlan(scenario.sweep.clients[0], scenario.settings, scenario.sweep.duration_s, cohort=cohort)
    nothing = Observation(
        system=scenario.system,
        plan=plan,
        publishers=frozenset(),
        subscribers=frozenset(),
        publisher_reports={},
        subscriber_reports={},
        window_ns=(0, 1),
    )
    return [*figures(nothing), LOSS_LOW, LOSS_HIGH]
