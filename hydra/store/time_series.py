"""Time series of steps in the run's database, stored during the step, so they outlive the controller."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

import msgspec

from hydra.model import Histogram, StepPlan, TimeSeriesFacts, TimeSeriesInterval

_json: Final = msgspec.json.Encoder()
_histogram: Final = msgspec.json.Decoder(Histogram)
_COLUMNS: Final = [each.name for each in fields(TimeSeriesInterval)]
"""The columns of the table after ``epoch``."""


def begin(db: sqlite3.Connection, epoch: int, plan: StepPlan, facts: TimeSeriesFacts) -> None:
    """Writes the plan and the facts of a step's time series in the current transaction."""
    row = (epoch, _json.encode(plan).decode(), _json.encode(facts).decode())
    db.execute("INSERT OR REPLACE INTO courses VALUES (?, ?, ?)", row)


def put(db: sqlite3.Connection, epoch: int, intervals: Iterable[TimeSeriesInterval]) -> None:
    """Writes intervals in the current transaction; replaces stored ones."""
    rows = [(epoch, *(_packed(getattr(i, name)) for name in _COLUMNS)) for i in intervals]
    db.executemany(f"INSERT OR REPLACE INTO seconds VALUES (?{', ?' * len(_COLUMNS)})", rows)  # noqa: S608  # marks


def put_lost(db: sqlite3.Connection, epoch: int, lost: Mapping[int, int]) -> None:
    """Writes how many of the copies due in each interval were lost, by the interval's begin."""
    rows = [(count, epoch, begin_s) for begin_s, count in lost.items()]
    db.executemany("UPDATE seconds SET lost = ? WHERE epoch = ? AND begin_s = ?", rows)


def facts_of(
    db: sqlite3.Connection, epoch: int, plans: msgspec.json.Decoder[StepPlan]
) -> tuple[StepPlan, TimeSeriesFacts] | None:
    """The plan and the facts of a step's time series; None if none was stored."""
    row = db.execute("SELECT plan, facts FROM courses WHERE epoch = ?", (epoch,)).fetchone()
    if row is None:
        return None
    return plans.decode(row[0]), msgspec.json.decode(row[1], type=TimeSeriesFacts)


def of(db: sqlite3.Connection, epoch: int, begin_s: int | None = None) -> list[TimeSeriesInterval]:
    """The intervals of a step, oldest first; only the one that begins at ``begin_s`` if it is given."""
    only = "" if begin_s is None else " AND begin_s = ?"
    rows = db.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM seconds WHERE epoch = ?{only} ORDER BY begin_s",  # noqa: S608  # names
        (epoch,) if begin_s is None else (epoch, begin_s),
    )
    return [TimeSeriesInterval(*map(_unpacked, row)) for row in rows]


def epochs(db: sqlite3.Connection) -> list[int]:
    """The epochs of the steps with a time series."""
    return [epoch for (epoch,) in db.execute("SELECT epoch FROM courses ORDER BY epoch")]


def _packed(value: int | Histogram | None) -> int | bytes | None:
    return zlib.compress(_json.encode(value)) if isinstance(value, Histogram) else value


def _unpacked(value: Any) -> Any:
    return _histogram.decode(zlib.decompress(value)) if isinstance(value, bytes) else value
