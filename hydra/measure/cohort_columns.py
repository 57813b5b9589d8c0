"""The columns of the slow or reconnecting subscribers (the cohort)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hydra.measure.column import SUBSCRIBERS
from hydra.measure.step_part import Number, StepPart, figure, text, yes_no

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep


_ITS_LOSS: Final = (
    "`client_loss_pct`, `undrained_pct` and `unknown_pct` of the slow or reconnecting subscribers (the cohort)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowClients(StepPart):
    """What became of the slow or reconnecting subscribers (the cohort)."""

    everywhere: ClassVar[bool] = False

    cohort: str | None = text(
        "what some subscribers (the cohort) do in this step: `slow` or `reconnecting`",
        of=lambda s: s.o.plan.cohort.kind,
    )
    cohort_clients: Number | None = figure(
        SUBSCRIBERS, "number of slow or reconnecting subscribers (the cohort)", of=lambda s: len(s.o.cohort)
    )
    cohort_rate: Number | None = figure(
        "1/s",
        "messages that each slow subscriber reads per second, or how often each reconnecting subscriber reconnects per "
        "second",
        of=lambda s: s.o.plan.cohort.rate,
    )
    cohort_loss_pct: Number | None = figure("%", _ITS_LOSS, digits="six", of=lambda s: s.of_cohort.loss_pct)
    cohort_undrained_pct: Number | None = figure("%", _ITS_LOSS, of=lambda s: s.of_cohort.pct(s.of_cohort.undrained))
    cohort_unknown_pct: Number | None = figure("%", _ITS_LOSS, of=lambda s: s.of_cohort.pct(s.of_cohort.unknown))
    reconnects: Number | None = figure(
        "", "number of reconnects, sum over the reconnecting subscribers", of=lambda s: s.reconnects
    )
    absent_s: Number | None = figure(
        "s",
        "time during which reconnecting subscribers were disconnected, sum over these subscribers. Empty if a "
        "subscriber was disconnected more than 1024 times, because its report lists no more",
        of=lambda s: s.absent_s,
    )
    cohort_felt: bool | None = yes_no(
        "no: the buffers of the slow subscribers never filled, so the slow subscribers affected neither the publisher "
        "nor other subscribers",
        of=lambda s: s.cohort_felt,
    )

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether the step has a cohort."""
        return step.o.plan.cohort.kind != "none"
