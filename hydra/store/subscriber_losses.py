"""Which subscribers lost how much, from the clients of a run's database, without a row for each of many thousands."""

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
"""Subscribers of a step whose lag is read: the median of so many is that of all, to a percent of their ranks."""
_LOST: Final = (
    "CASE WHEN json_extract(more, '$.drain') = 'deadline' THEN 0 ELSE max(missing - coalesce(undrained, 0), 0) END"
)
"""What a subscriber lost. What is missing where the drain ran into its deadline may have been on its way."""


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """What some subscribers with neighbouring ids lost in a step.

    Attributes:
        group: its number.
        clients: how many there were.
        silent: how many of them never reported: what they lost is not known.
        expected: messages that the others should have got.
        lost: messages of these that they never got.
    """

    group: int
    clients: int
    silent: int
    expected: int
    lost: int


def ids(db: sqlite3.Connection) -> range:
    """From the lowest to the highest id of a subscriber in any step."""
    first, last = db.execute("SELECT min(client), max(client) FROM clients WHERE role = 'subscriber'").fetchone()
    return range(0) if first is None else range(int(first), int(last) + 1)


def by_group(db: sqlite3.Connection, epoch: int, first: int, size: int) -> list[GroupLoss]:
    """What groups of ``size`` ids, the first of which begins with the id ``first``, lost in a step."""
    rows = db.execute(
        f"SELECT (client - ?) / ? AS part, count(*), sum(messages IS NULL), total(messages + missing), total({_LOST}) "  # noqa: S608  # a constant
        "FROM clients WHERE epoch = ? AND role = 'subscriber' GROUP BY part ORDER BY part",
        (first, size, epoch),
    )
    return [GroupLoss(part, count, silent, int(expected), int(lost)) for part, count, silent, expected, lost in rows]


def losers(db: sqlite3.Connection, epoch: int) -> list[LossySubscriber]:
    """The subscribers that lost something in a step, in the order of their ids."""
    rows = db.execute(
        f"SELECT client, messages + missing, {_LOST} AS lost, missing_ranges FROM clients "  # noqa: S608  # a constant
        "WHERE epoch = ? AND role = 'subscriber' AND missing > 0 AND lost > 0 ORDER BY client",
        (epoch,),
    )
    return [
        LossySubscriber(client, expected, lost, _gaps.decode(gaps) if gaps else {})
        for client, expected, lost, gaps in rows
    ]


def most_sent(db: sqlite3.Connection, epoch: int) -> int:
    """Messages of the publisher that sent most in a step."""
    query = "SELECT coalesce(max(messages), 0) FROM clients WHERE epoch = ? AND role = 'publisher'"
    return int(db.execute(query, (epoch,)).fetchone()[0])


def lags(db: sqlite3.Connection, epoch: int) -> Lags:
    """The mean lag (s) of subscribers outside the cohort in equal parts of the window, a row each; NaN where unknown.

    Of more than some thousand subscribers as many are taken evenly. Without a row where no lag was stored.
    """
    (count,) = db.execute("SELECT count(*) FROM clients WHERE epoch = ?", (epoch,)).fetchone()
    rows = db.execute(
        "SELECT json_extract(more, '$.lag_bins_us') AS bins FROM clients "
        "WHERE epoch = ? AND role = 'subscriber' AND NOT cohort AND client % ? = 0 AND bins IS NOT NULL",
        (epoch, count // _MOST_LAGS + 1),
    )
    found = [[np.nan if us is None else us / 1e6 for us in _bins.decode(bins)] for (bins,) in rows]
    return np.array(found, np.float64) if found else np.zeros((0, 0))
