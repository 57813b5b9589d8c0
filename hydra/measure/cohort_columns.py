"""The columns of the slow or reconnecting subscribers (the cohort)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hydra.measure.column import SUBSCRIBERS
from hydra.measure.step_column import StepColumn, step_text, step_yes_no

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep


_ITS_LOSS: Final = (
    "`client_loss_pct`, `undrained_pct` and `unknown_pct` of the slow or reconnecting subscribers (the cohort)"
)


def _has_cohort(step: MeasuredStep) -> bool:
    return step.o.plan.cohort.kind != "none"


COHORT: Final = (
    step_text(
        "cohort",
        "what some subscribers (the cohort) do in this step: `slow` or `reconnecting`",
        of=lambda s: s.o.plan.cohort.kind,
        when=_has_cohort,
    ),
    StepColumn(
        "cohort_clients",
        SUBSCRIBERS,
        "number of slow or reconnecting subscribers (the cohort)",
        of=lambda s: len(s.o.cohort),
        when=_has_cohort,
    ),
    StepColumn(
        "cohort_rate",
        "1/s",
        "messages that each slow subscriber reads per second, or how often each reconnecting subscriber reconnects per "
        "second",
        of=lambda s: s.o.plan.cohort.rate,
        when=_has_cohort,
    ),
    StepColumn("cohort_loss_pct", "%", _ITS_LOSS, digits="six", of=lambda s: s.of_cohort.loss_pct, when=_has_cohort),
    StepColumn(
        "cohort_undrained_pct", "%", _ITS_LOSS, of=lambda s: s.of_cohort.pct(s.of_cohort.undrained), when=_has_cohort
    ),
    StepColumn(
        "cohort_unknown_pct", "%", _ITS_LOSS, of=lambda s: s.of_cohort.pct(s.of_cohort.unknown), when=_has_cohort
    ),
    StepColumn(
        "reconnects",
        "",
        "number of reconnects, sum over the reconnecting subscribers",
        of=lambda s: s.reconnects,
        when=_has_cohort,
    ),
    StepColumn(
        "absent_s",
        "s",
        "time during which reconnecting subscribers were disconnected, sum over these subscribers. Empty if a "
        "subscriber was disconnected more than 1024 times, because its report lists no more",
        of=lambda s: s.absent_s,
        when=_has_cohort,
    ),
    step_yes_no(
        "cohort_felt",
        "no: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the publisher "
        "nor other subscribers",
        of=lambda s: s.cohort_felt,
        when=_has_cohort,
    ),
)
