"""The seconds of steps, in the run's database: stored while a step goes on, so that they outlive the controller."""

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
"""Those of the table behind ``epoch``."""


def begin(db: sqlite3.Connection, epoch: int, plan: StepPlan, facts: TimeSeriesFacts) -> None:
    """Writes what the seconds of a step belong to, in the transaction that has begun."""
    row = (epoch, _json.encode(plan).decode(), _json.encode(facts).decode())
    db.execute("INSERT OR REPLACE INTO courses VALUES (?, ?, ?)", row)


def put(db: sqlite3.Connection, epoch: int, intervals: Iterable[TimeSeriesInterval]) -> None:
    """Writes intervals, in place of what they were before, in the transaction that has begun."""
    rows = [(epoch, *(_packed(getattr(i, name)) for name in _COLUMNS)) for i in intervals]
    db.executemany(f"INSERT OR REPLACE INTO seconds VALUES (?{', ?' * len(_COLUMNS)})", rows)  # noqa: S608  # marks


def put_lost(db: sqlite3.Connection, epoch: int, lost: Mapping[int, int]) -> None:
    """Writes how many copies were lost of what was due in each interval, by its begin."""
    rows = [(count, epoch, begin_s) for begin_s, count in lost.items()]
    db.executemany("UPDATE seconds SET lost = ? WHERE epoch = ? AND begin_s = ?", rows)


def facts_of(db: sqlite3.Connection, epoch: int) -> tuple[StepPlan, TimeSeriesFacts] | None:
    """What the seconds of this step belong to; None where none were kept."""
    row = db.execute("SELECT plan, facts FROM courses WHERE epoch = ?", (epoch,)).fetchone()
    if row is None:
        return None
    return msgspec.json.decode(row[0], type=StepPlan), msgspec.json.decode(row[1], type=TimeSeriesFacts)


def of(db: sqlite3.Connection, epoch: int, begin_s: int | None = None) -> list[TimeSeriesInterval]:
    """The intervals of a step, oldest first; only the one that begins then, if that is given."""
    only = "" if begin_s is None else " AND begin_s = ?"
    rows = db.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM seconds WHERE epoch = ?{only} ORDER BY begin_s",  # noqa: S608  # names
        (epoch,) if begin_s is None else (epoch, begin_s),
    )
    return [TimeSeriesInterval(*map(_unpacked, row)) for row in rows]


def epochs(db: sqlite3.Connection) -> list[int]:
    """The steps of which there are seconds."""
    return [epoch for (epoch,) in db.execute("SELECT epoch FROM courses ORDER BY epoch")]


def _packed(value: int | Histogram | None) -> int | bytes | None:
    return zlib.compress(_json.encode(value)) if isinstance(value, Histogram) else value


def _unpacked(value: Any) -> Any:
    return _histogram.decode(zlib.decompress(value)) if isinstance(value, bytes) else value
