"""The columns of steps with several topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hydra.measure.column import MESSAGES, MICROSECONDS
from hydra.measure.step_column import StepColumn

if TYPE_CHECKING:
    from hydra.measure.measured_step import MeasuredStep

TOPICS: Final = "topics"
COPIES_EXPECTED: Final = "copies_expected"
HOT_LOSS: Final = "hot_topics_loss_pct"
OTHER_LOSS: Final = "other_topics_loss_pct"
HOT_P99: Final = "hot_topics_p99_us"
OTHER_P99: Final = "other_topics_p99_us"

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


def _has_topics(step: MeasuredStep) -> bool:
    return step.o.plan.settings.topics > 1


OF_TOPICS: Final = (
    StepColumn(
        TOPICS,
        "",
        "number of topics. Only if there are several",
        "Topics",
        repeats="common",
        of=lambda s: s.o.plan.settings.topics,
        when=_has_topics,
    ),
    StepColumn(
        COPIES_EXPECTED,
        MESSAGES,
        "copies of messages that all subscribers together should receive (*E*), slow and reconnecting ones included. "
        "Only if there are several topics",
        of=lambda s: s.accounts.of().expected if s.accounts else None,
        when=_has_topics,
    ),
    StepColumn(
        HOT_LOSS, "%", _HOT_LOSS, digits="six", better="lower", of=lambda s: s.topic_losses.hot_pct, when=_has_topics
    ),
    StepColumn(
        OTHER_LOSS,
        "%",
        _HOT_LOSS,
        digits="six",
        better="lower",
        of=lambda s: s.topic_losses.other_pct,
        when=_has_topics,
    ),
    StepColumn(
        HOT_P99,
        MICROSECONDS,
        _HOT_P99,
        repeats="median",
        better="lower",
        of=lambda s: s.latencies.topics_us(hot=True),
        when=_has_topics,
    ),
    StepColumn(
        OTHER_P99,
        MICROSECONDS,
        _HOT_P99,
        repeats="median",
        better="lower",
        of=lambda s: s.latencies.topics_us(hot=False),
        when=_has_topics,
    ),
)
