"""Which subscribers form a step's cohort."""

from __future__ import annotations

import random
from collections.abc import Iterable

from pyroaring import BitMap

from hydra.model import Cohort


def cohort_ids(cohort: Cohort, subscribers: Iterable[int]) -> BitMap:
    """The ids of the cohort: ``fraction`` of the subscribers, at least one, and never all of them.

    Slow ones are taken from the front and reconnecting ones from the back of the same shuffled order, so that with
    the same seed the two never overlap (while both fit).
    """
    if cohort.kind == "none":
        return BitMap()
    ids = sorted(subscribers)
    if len(ids) < 2:
        return BitMap()
    count = min(max(round(cohort.fraction * len(ids)), 1), len(ids) - 1)
    order = random.Random(cohort.seed).sample(ids, len(ids))  # noqa: S311  # a draw to repeat, not a secret
    return BitMap(order[:count] if cohort.kind == "slow" else order[-count:])
