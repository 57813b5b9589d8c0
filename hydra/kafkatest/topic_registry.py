"""The registry of topics that Hydra creates on a user's cluster: an entry before the creation, until the deletion.

Topics of killed runs are removed if the owning process is known to be dead.
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
from hydra.kafkatest.cluster_calls import PREFIX
from hydra.kafkatest.topics import Topics

FOLDER: Final = "topics"
"""The registry's folder in a run and in Hydra's state, with a file for each topic."""


@dataclass(frozen=True, slots=True)
class OwnedTopic:
    """A topic that Hydra created: ``cluster`` is Kafka's id of its cluster, ``run`` the run's directory."""

    topic: str
    cluster: str
    bootstrap: str
    run: str
    owner: ProcessOwner


class TopicRegistry:
    """The records in some folders, each with a copy of every record that is added here.

    Writing to the first folder must succeed; a copy that cannot be written (in a read-only home) is left out.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    def add(self, record: OwnedTopic) -> None:
        """Writes a record into every folder, so it outlives this process.

        Raises:
            OSError: the record cannot be written into the first folder.
        """
        for number, folder in enumerate(self._folders):
            try:
                _write(folder, record)
            except OSError:
                if number == 0:
                    raise

    def remove(self, topic: str) -> None:
        """Removes a topic's record from every folder."""
        for folder in self._folders:
            with contextlib.suppress(OSError):
                _file(folder, topic).unlink(missing_ok=True)
                folder.rmdir()  # removes only an empty folder

    def all(self) -> Mapping[str, OwnedTopic]:
        """Every record by its topic; files without a record are ignored."""
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
    """A topic of Hydra on a cluster: ``kept`` is the reason why it stays, "" if it was removed."""

    topic: str
    kept: str

    def __str__(self) -> str:
        return f"kept {self.topic}: {self.kept}" if self.kept else f"removed {self.topic}"


def why_kept(
    record: OwnedTopic | None, cluster: str, me: ProcessOwner, start: Callable[[int], int | None] = start_of
) -> str:
    """Why a topic may not be removed; "" if it may.

    Args:
        record: the topic's record.
        cluster: the id of the topic's cluster.
        me: the process that wants to remove it.
        start: returns when a process of this host started.
    """
    if record is None:
        return (
            "no record on this machine names the topic's owner; remove the topic with "
            "Kafka's own tools if it is not in use"
        )
    if record.cluster != cluster:
        return f"the record of a topic of this name is of another cluster, at {record.bootstrap}"
    return why_not_dead(record.owner, me, start)


def clean(topics: Topics, registry: TopicRegistry, among: Iterable[str] | None = None) -> list[Leftover]:
    """Removes the topics whose owner is dead from a cluster, each with its consumer groups and its record.

    The call also deletes topics that the cluster does not list: a new topic, or one that it hides from this user, may
    exist. A record is removed only after the topic was deleted, or the cluster reported that there is none.

    Args:
        topics: the connection to the cluster.
        registry: the records of the topics' owners.
        among: the topics to look at; None is all topics with Hydra's prefix.

    Raises:
        ServerError: the cluster does not answer.
    """
    cluster = topics.describe()
    known, me = registry.all(), this_process()
    names = {t for t in cluster.topics | known.keys() if t.startswith(f"{PREFIX}-")} if among is None else set(among)
    found = []
    for topic in sorted(names):
        if kept := why_kept(known.get(topic), cluster.id, me):
            if topic in cluster.topics:
                found.append(Leftover(topic, kept))
            continue
        try:
            topics.remove_groups(topics.groups_of(topic))
            was_removed = topics.remove(topic)
        except ServerError as e:
            found.append(Leftover(topic, e.what))
            continue
        registry.remove(topic)
        if was_removed:
            found.append(Leftover(topic, ""))
    return found
