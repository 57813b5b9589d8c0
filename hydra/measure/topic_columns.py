"""The columns of steps with several topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from hydra.measure.column import MESSAGES, MICROSECONDS
from hydra.measure.step_part import Number, StepPart, figure

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep


_HOT: Final = (
    "of the hot topics, the tenth of the topics (rounded up) that gets most messages, beside all other topics: "
)
_HOT_LOSS: Final = (
    f"loss {_HOT}messages lost in % of those expected, over the subscribers outside the cohort. Only if there are "
    "several topics; empty if a subscriber sent no report, or messages of its drain are undrained or unknown"
)
_HOT_P99: Final = (
    f"99th percentile of the latency {_HOT}over the subscribers outside the cohort. Only if there are several topics"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics(StepPart):
    """The messages of hot topics beside those of the other ones."""

    everywhere: ClassVar[bool] = False

    topics: Number | None = figure(
        "",
        "number of topics. Only if there are several",
        "Topics",
        repeats="common",
        of=lambda s: s.o.plan.settings.topics,
    )
    copies_expected: Number | None = figure(
        MESSAGES,
        "copies of messages that all subscribers together should receive (*E*), slow and reconnecting ones included. "
        "Only if there are several topics",
        of=lambda s: s.accounts.of().expected if s.accounts else None,
    )
    hot_topics_loss_pct: Number | None = figure(
        "%", _HOT_LOSS, digits="six", better="lower", of=lambda s: s.topic_losses.hot_pct
    )
    other_topics_loss_pct: Number | None = figure(
        "%", _HOT_LOSS, digits="six", better="lower", of=lambda s: s.topic_losses.other_pct
    )
    hot_topics_p99_us: Number | None = figure(
        MICROSECONDS, _HOT_P99, repeats="median", better="lower", of=lambda s: s.latencies.topics_us(hot=True)
    )
    other_topics_p99_us: Number | None = figure(
        MICROSECONDS, _HOT_P99, repeats="median", better="lower", of=lambda s: s.latencies.topics_us(hot=False)
    )

    @classmethod
    def is_in(cls, step: MeasuredStep) -> bool:
        """Whether the step has several topics."""
        return step.o.plan.settings.topics > 1
