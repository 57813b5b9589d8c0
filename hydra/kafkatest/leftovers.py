"""Topics that killed runs left on somebody's cluster: removed when their owner is known to be dead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hydra.client.process_owner import Owner, start_of, this_process, why_not_dead
from hydra.errors import ServerError
from hydra.kafkatest.topic_registry import Record, Records
from hydra.kafkatest.topics import PREFIX, Topics


@dataclass(frozen=True, slots=True)
class Leftover:
    """A topic of Hydra's on a cluster: ``kept`` says why it stays, "" if it was removed."""

    topic: str
    kept: str

    def __str__(self) -> str:
        return f"kept {self.topic}: {self.kept}" if self.kept else f"removed {self.topic}"


def why_kept(record: Record | None, cluster: str, me: Owner, start: Callable[[int], int | None] = start_of) -> str:
    """Why a topic may not be removed; "" if it may.

    Args:
        record: what was written down of it.
        cluster: the id of the cluster that it is on.
        me: who wants to remove it.
        start: tells when a process of this host started.
    """
    if record is None:
        return "no record here says whose it is; remove it with Kafka's own tools if it is nobody's"
    if record.cluster != cluster:
        return f"the record of this name is of another cluster, at {record.bootstrap}"
    return why_not_dead(record.owner, me, start)


def clean(topics: Topics, records: Records, among: Iterable[str] | None = None) -> list[Leftover]:
    """Removes the topics whose owner is dead from a cluster, each with its consumer groups and its record.

    The cluster is told to delete those too that it does not list: a topic that is new, or that it does not show to this
    user, is there all the same. A record goes only after the topic was deleted, or the cluster said that there is none.

    Args:
        topics: asks and tells the cluster.
        records: who owns which topic.
        among: the topics to look at; None is all that bear Hydra's name.

    Raises:
        ServerError: the cluster does not answer.
    """
    there = topics.describe()
    known, me = records.all(), this_process()
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
        records.remove(topic)
        if was_there:
            found.append(Leftover(topic, ""))
    return found
