"""Which topics were made on somebody's cluster, and by whom: written down before, crossed out after they are gone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from hydra.client.process_owner import Owner

FOLDER: Final = "topics"
"""Of a run, and of Hydra's own state: a file for each topic."""


@dataclass(frozen=True, slots=True)
class Record:
    """A topic of ours: ``cluster`` is Kafka's id of where it is, ``run`` the directory of the run that made it."""

    topic: str
    cluster: str
    bootstrap: str
    run: str
    owner: Owner


class Records:
    """The records in some folders, each of which has a copy of every record that is added here.

    The first folder has to take it; a copy that cannot be written (a home that is read-only) is done without.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def add(self, record: Record) -> None:
        """Writes a record into every folder, so that it outlives this process however that ends.

        Raises:
            OSError: the first folder does not take it.
        """
        for number, folder in enumerate(self._folders):
            try:
                _write(folder, record)
            except OSError:
                if number == 0:
                    raise

    def remove(self, topic: str) -> None:
        """Crosses a topic out everywhere."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                _file(folder, topic).unlink(missing_ok=True)
                folder.rmdir()  # only an empty one goes

    def all(self) -> Mapping[str, Record]:
        """Every record by its topic; a file that holds none counts as none."""
        found: dict[str, Record] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("*.json")):
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    record = msgspec.json.decode(path.read_bytes(), type=Record)
                    found.setdefault(record.topic, record)
        return found


def _file(folder: Path, topic: str) -> Path:
    return folder / f"{topic}.json"


def _write(folder: Path, record: Record) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = _file(folder, record.topic)
    unfinished = path.with_suffix(".new")
    with unfinished.open("wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
