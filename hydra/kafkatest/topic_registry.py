"""Which topics were made on somebody's cluster, and by whom: written down before, crossed out after they are gone.

What killed runs left is removed when its owner is known to be dead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from hydra.client.process_identity import ProcessOwner, start_of, this_process, why_not_dead
from hydra.errors import ServerError
from hydra.kafkatest.topics import PREFIX, Topics

FOLDER: Final = "topics"
"""Of a run, and of Hydra's own state: a file for each topic."""


@dataclass(frozen=True, slots=True)
class OwnedTopic:
    """A topic of ours: ``cluster`` is Kafka's id of where it is, ``run`` the directory of the run that made it."""

    topic: str
    cluster: str
    bootstrap: str
    run: str
    owner: ProcessOwner


class TopicRegistry:
    """The records in some folders, each of which has a copy of every record that is added here.

    The first folder has to take it; a copy that cannot be written (a home that is read-only) is done without.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def add(self, record: OwnedTopic) -> None:
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

    def all(self) -> Mapping[str, OwnedTopic]:
        """Every record by its topic; a file that holds none counts as none."""
        found: dict[str, OwnedTopic] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("*.json")):
                with contextlib.suppress(OSError, msgspec.DecodeError):
                    record = msgspec.json.decode(path.read_bytes(), type=OwnedTopic)
                    found.setdefault(record.topic, record)
        return found


def _file(folder: Path, topic: str) -> Path:
    return folder / f"{topic}.json"


def _write(folder: Path, record: OwnedTopic) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = _file(folder, record.topic)
    unfinished = path.with_suffix(".new")
    with unfinished.open("wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A topic of Hydra's on a cluster: ``kept`` says why it stays, "" if it was removed."""

    topic: str
    kept: str

    def __str__(self) -> str:
        return f"kept {self.topic}: {self.kept}" if self.kept else f"removed {self.topic}"


def why_kept(
    record: OwnedTopic | None, cluster: str, me: ProcessOwner, start: Callable[[int], int | None] = start_of
) -> str:
    """Why a topic may not be removed; "" if it may.

    Args:
        record: what was written down of it.
        cluster: the id of the cluster that it is on.
        me: who wants to remove it.
        start: tells when a process of this host started.
    """
    if record is None:
        return "no record here says whose it is; remove it with Kafka's own tools if no one uses it"
    if record.cluster != cluster:
        return f"the record of this name is of another cluster, at {record.bootstrap}"
    return why_not_dead(record.owner, me, start)


def clean(topics: Topics, registry: TopicRegistry, among: Iterable[str] | None = None) -> list[Leftover]:
    """Removes the topics whose owner is dead from a cluster, each with its consumer groups and its record.

    The cluster is told to delete those too that it does not list: a topic that is new, or that it does not show to this
    user, is there all the same. A record goes only after the topic was deleted, or the cluster said that there is none.

    Args:
        topics: asks and tells the cluster.
        registry: who owns which topic.
        among: the topics to look at; None is all that bear Hydra's name.

    Raises:
        ServerError: the cluster does not answer.
    """
    there = topics.describe()
    known, me = registry.all(), this_process()
    asked = {t for t in there.topics | known.keys() if t.startswith(f"{PREFIX}-")} if among is None else set(among)
    found = []
    for topic in sorted(asked):
        if kept := why_kept(known.get(topic), there.id, me):
            if topic in there.topics:
                found.append(Leftover(topic, kept))
            continue
        try:
            topics.remove_groups(topics.groups_of(topic))
            was_there = topics.remove(topic)
        except ServerError as e:
            found.append(Leftover(topic, e.what))
            continue
        registry.remove(topic)
        if was_there:
            found.append(Leftover(topic, ""))
    return found
