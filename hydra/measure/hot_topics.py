"""The topics with most messages of a step beside all others, which a mean hides. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hydra.measure.loss import DEADLINE
from hydra.model import Histogram
from hydra.wire.arrays import total
from hydra.wire.subscriber_table import SubscriberTable


class TopicLosses(NamedTuple):
    """The losses (%) of the hot topics and of the others; None if it is not known whether missing messages are lost."""

    hot_pct: float | None = None
    other_pct: float | None = None

    @classmethod
    def of(cls, reports: SubscriberTable) -> TopicLosses:
        """The losses in these reports."""
        missing = reports.of_clients(reports.missing)
        expected = reports.of_clients(reports.received + reports.missing)
        if bool(((missing > 0) & ((reports.drain == DEADLINE) | (reports.undrained > 0))).any()):
            return cls()
        parts = (
            (total(reports.hot_missing), total(reports.hot_expected)),
            (total(missing - reports.hot_missing), total(expected - reports.hot_expected)),
        )
        return cls(*(100 * lost / due if due else None for lost, due in parts))


def without(whole: Histogram, part: Histogram) -> Histogram:
    """The values of a histogram that are not in a part of it; its extremes are those of the whole."""
    left = dict(zip(whole.counts[0::2], whole.counts[1::2], strict=True))
    for index, count in zip(part.counts[0::2], part.counts[1::2], strict=True):
        left[index] = left.get(index, 0) - count
    counts = np.array([(index, count) for index, count in sorted(left.items()) if count > 0], np.int64)
    return Histogram(counts.ravel().tolist(), whole.min_us, whole.max_us) if len(counts) else Histogram()
