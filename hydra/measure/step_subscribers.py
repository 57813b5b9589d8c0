"""The subscribers that were asked in a step, beside what they reported. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from hydra.wire.arrays import Flags, Ints, rising
from hydra.wire.subscriber_table import SubscriberTable


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The subscribers of a step.

    Attributes:
        ids: theirs, rising; the flags are in this order.
        reports: of those that reported, in this order as well.
        reported: which have a report.
        cohort: which belong to the step's cohort.
        dead: whose process ended.
        silent: which did not answer.
    """

    ids: Ints
    reports: SubscriberTable
    reported: Flags
    cohort: Flags
    dead: Flags
    silent: Flags

    @property
    def others(self) -> Flags:
        """Which do not belong to the cohort."""
        return ~self.cohort

    def reports_of(self, clients: Flags) -> SubscriberTable:
        """The reports of some of them."""
        return self.reports.take(clients[self.reported])

    def last_words(self, words: Mapping[int, int]) -> Ints:
        """What each of those without a report had counted when it last said so."""
        gone = self.ids[~self.reported].tolist()
        return np.fromiter((words.get(client, 0) for client in gone), np.int64, len(gone))


def asked_of(
    subscribers: Collection[int],
    reports: SubscriberTable,
    cohort: Collection[int] = (),
    dead: Collection[int] = (),
    silent: Collection[int] = (),
) -> Asked:
    """Those who were asked; a report of anybody else is left out, and so is whoever else belongs to the other sets."""
    ids = rising(subscribers)
    flags = (np.isin(ids, rising(some)) if some else np.zeros(len(ids), bool) for some in (cohort, dead, silent))
    return Asked(ids, reports.take(np.isin(reports.ids, ids)), np.isin(ids, reports.ids), *flags)
