"""What may befall the database of a run."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def _execute(sql: str) -> Callable[[Path], object]:
    def damage(database: Path) -> None:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute(sql)

    return damage


def _written(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda database: database.write_bytes(change(database.read_bytes()))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a missing table": _execute("DROP TABLE steps"),
    "no scenario": _execute("DELETE FROM run WHERE key = 'scenario'"),
    "a scenario that is none": _execute("UPDATE run SET value = '[1]' WHERE key = 'scenario'"),
    "no JSON": _execute("UPDATE run SET value = '{' WHERE key = 'scenario'"),
    "bytes for text": _execute("UPDATE run SET value = x'ff00ff' WHERE key = 'scenario'"),
    "no plan": _execute("UPDATE steps SET plan = '{}' WHERE epoch = 1"),
    "figures that are none": _execute("UPDATE steps SET figures = '[[]]' WHERE epoch = 1"),
    "cut off": _written(lambda content: content[: 3 * 4096]),
    "emptied": _written(lambda _: b""),
    "noise": _written(lambda _: random.Random(1).randbytes(20_000)),  # no secret
}
