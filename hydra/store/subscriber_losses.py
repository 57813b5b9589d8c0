"""Losses of subscribers, computed by queries to a run's database, without a row for each of many thousands."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from hydra.measure.lag import Lags
from hydra.measure.loss_pattern import LossySubscriber

_gaps: Final = msgspec.json.Decoder(dict[int, list[tuple[int, int]]])
_bins: Final = msgspec.json.Decoder(list[int | None])
_MOST_LAGS: Final = 4096
"""The maximum number of subscribers whose lag is read; their median has the rank of that of all to within 1 %."""
_LOST: Final = (
    "CASE WHEN json_extract(more, '$.drain') = 'deadline' THEN 0 ELSE max(missing - coalesce(undrained, 0), 0) END"
)
"""Messages that a subscriber lost; 0 if its drain ended by the deadline, because they may have been on their way."""


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """The loss of a group of subscribers with consecutive ids in a step.

    Attributes:
        group: number of the group.
        clients: number of its subscribers.
        silent: number of subscribers without a report, whose loss is unknown.
        expected: messages that the other subscribers should have received.
        lost: messages of these that were lost.
    """

    group: int
    clients: int
    silent: int
    expected: int
    lost: int


def ids(db: sqlite3.Connection) -> range:
    """The ids from the lowest to the highest of a subscriber in any step."""
    first, last = db.execute("SELECT min(client), max(client) FROM clients WHERE role = 'subscriber'").fetchone()
    return range(0) if first is None else range(int(first), int(last) + 1)


def by_group(db: sqlite3.Connection, epoch: int, first: int, size: int) -> list[GroupLoss]:
    """The losses in a step of groups of ``size`` ids; the first group begins with the id ``first``."""
    rows = db.execute(
        f"SELECT (client - ?) / ? AS part, count(*), sum(messages IS NULL), total(messages + missing), total({_LOST}) "  # noqa: S608  # a constant
        "FROM clients WHERE epoch = ? AND role = 'subscriber' GROUP BY part ORDER BY part",
        (first, size, epoch),
    )
    return [GroupLoss(part, count, silent, int(expected), int(lost)) for part, count, silent, expected, lost in rows]


def losers(db: sqlite3.Connection, epoch: int) -> list[LossySubscriber]:
    """The subscribers that lost messages in a step, in the order of their ids."""
    rows = db.execute(
        f"SELECT client, messages + missing, {_LOST} AS lost, missing_ranges, missing FROM clients "  # noqa: S608  # a constant
        "WHERE epoch = ? AND role = 'subscriber' AND missing > 0 AND lost > 0 ORDER BY client",
        (epoch,),
    )
    return [
        LossySubscriber(client, expected, lost, _gaps.decode(gaps) if gaps else {}, missing)
        for client, expected, lost, gaps, missing in rows
    ]


def most_sent(db: sqlite3.Connection, epoch: int) -> int:
    """The largest number of messages that a publisher sent in a step."""
    query = "SELECT coalesce(max(messages), 0) FROM clients WHERE epoch = ? AND role = 'publisher'"
    return int(db.execute(query, (epoch,)).fetchone()[0])


def lags(db: sqlite3.Connection, epoch: int) -> Lags:
    """The mean lag (s) of subscribers outside the cohort in equal parts of the window, a row each; NaN if unknown.

    If there are more than some thousand subscribers, an even sample of them is read. There is no row without stored
    lag.
    """
    (count,) = db.execute("SELECT count(*) FROM clients WHERE epoch = ?", (epoch,)).fetchone()
    rows = db.execute(
        "SELECT json_extract(more, '$.lag_bins_us') AS bins FROM clients "
        "WHERE epoch = ? AND role = 'subscriber' AND NOT cohort AND client % ? = 0 AND bins IS NOT NULL",
        (epoch, count // _MOST_LAGS + 1),
    )
    found = [[np.nan if us is None else us / 1e6 for us in _bins.decode(bins)] for (bins,) in rows]
    return np.array(found, np.float64) if found else np.zeros((0, 0))
