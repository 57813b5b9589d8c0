"""The columns of steps with several topics: the tenth with most traffic beside the rest, which a mean hides. Pure."""

from __future__ import annotations

import numpy as np

from hydra.measure.column_names import COPIES_EXPECTED, HOT_LOSS, HOT_P99, OTHER_LOSS, OTHER_P99, TOPICS
from hydra.measure.loss import DEADLINE, StepSubscribers
from hydra.measure.message_accounting import MessageAccounts
from hydra.model import PERCENTILES, Figure, Histogram
from hydra.wire.arrays import total
from hydra.wire.buckets import percentiles_us
from hydra.wire.subscriber_table import SubscriberTable


def figures(asked: StepSubscribers, accounts: MessageAccounts | None, topics: int) -> dict[str, Figure]:
    """The columns of topics; none if there is one topic only.

    Args:
        asked: the subscribers of the step.
        accounts: their accounts; None: the expected messages are unknown.
        topics: the number of topics.
    """
    if topics == 1:
        return {}
    mine, reports = asked.reports_of(asked.others), asked.reports
    hot, other = _losses(mine) if bool(asked.reported[asked.others].all()) else (None, None)
    percent = PERCENTILES["p99"]
    return {
        TOPICS: topics,
        COPIES_EXPECTED: accounts.of().expected if accounts else None,
        HOT_LOSS: hot,
        OTHER_LOSS: other,
        HOT_P99: percentiles_us(reports.hot_latency, [percent])[0],
        OTHER_P99: percentiles_us(without(reports.latency, reports.hot_latency), [percent])[0],
    }


def _losses(reports: SubscriberTable) -> tuple[float | None, float | None]:
    """The losses (%) of the hot topics and of the others; None if it is not known whether missing messages are lost."""
    missing = reports.of_clients(reports.missing)
    expected = reports.of_clients(reports.received + reports.missing)
    if bool(((missing > 0) & ((reports.drain == DEADLINE) | (reports.undrained > 0))).any()):
        return None, None
    parts = (
        (total(reports.hot_missing), total(reports.hot_expected)),
        (total(missing - reports.hot_missing), total(expected - reports.hot_expected)),
    )
    hot, other = (100 * lost / due if due else None for lost, due in parts)
    return hot, other


def without(whole: Histogram, part: Histogram) -> Histogram:
    """The values of a histogram that are not in a part of it; its extremes are those of the whole."""
    left = dict(zip(whole.counts[0::2], whole.counts[1::2], strict=True))
    for index, count in zip(part.counts[0::2], part.counts[1::2], strict=True):
        left[index] = left.get(index, 0) - count
    counts = np.array([(index, count) for index, count in sorted(left.items()) if count > 0], np.int64)
    return Histogram(counts.ravel().tolist(), whole.min_us, whole.max_us) if len(counts) else Histogram()
