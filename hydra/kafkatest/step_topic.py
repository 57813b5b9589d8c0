"""The topic of a run's steps, which Hydra replaces if the next step needs another one, and deletes at the end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.client.process_identity import this_process
from hydra.errors import ServerError
from hydra.kafkatest.control_messages import PLACES, by_place, topic_names
from hydra.kafkatest.nodes import placed
from hydra.kafkatest.settings import KafkaSettings, spec_of
from hydra.kafkatest.topic_registry import OwnedTopic, TopicRegistry
from hydra.kafkatest.topics import Topics
from hydra.model import Scenario, Settings, with_values

_KEPT_MS: Final = 3_600_000
"""The least time for which brokers started by Hydra keep messages, in addition to two steps."""
_FOR_EVER: Final = "-1"
_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks`` (stat(2)), which does not depend on the file system."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The configuration of a step's topics; consecutive steps with the same share their topics."""

    partitions: int
    replicas: int
    keep: bool
    settings: Mapping[str, str]
    topics: int = 1


def topic_config_of(scenario: Scenario, settings: Settings) -> TopicConfig:
    """The configuration of the topic that a step needs."""
    spec, kafka = spec_of(scenario), KafkaSettings.of(settings)
    config: dict[str, str] = {}
    if kafka.keep:
        config["retention.ms"] = config["retention.bytes"] = _FOR_EVER
    elif not spec.bootstrap:
        step_s = scenario.sweep.longest_s + (scenario.drain_max_s or 0)
        config["retention.ms"] = str(_KEPT_MS + round(2000 * step_s))
    return TopicConfig(
        partitions=kafka.partitions or spec.partitions,
        replicas=kafka.replication_factor or spec.replication_factor,
        keep=kafka.keep,
        settings={**config, **spec.topic},
        topics=settings.topics,
    )


def first_settings(scenario: Scenario) -> Settings:
    """The settings of a scenario's first step on which its topic depends."""
    return with_values(scenario.settings, scenario.sweep.first)


class DataTopic:
    """The topic of the present step, or its topics.

    Attributes:
        name: the name of the topic, or the part of their names before their numbers.
        names: the names of all topics by their numbers.

    Arguments:
        topics: the topics of the run, with a connection to the cluster.
        brokers: the number of brokers started by Hydra, on which partitions are placed evenly; 0 if the user's cluster
            places them.
        records: the registry of Hydra's topics; None if they are deleted with the brokers' data.
        run: the run's directory, for the registry.
    """

    def __init__(self, topics: Topics, brokers: int, records: TopicRegistry | None, run: str) -> None:
        self.topics: Final = topics
        self.name = ""
        self.names: list[str] = []
        self.config: TopicConfig | None = None
        self._brokers = brokers
        self._records = records
        self._run = run
        self._made = 0
        self._retired: list[str] = []
        self._cluster = ""
        self._began: dict[int, int] = {}

    def use(self, config: TopicConfig) -> bool:
        """Creates a topic of this configuration if the present one differs; returns whether it did.

        The next call removes the previous topic, as consumers may still read it.

        Raises:
            ServerError: the cluster rejects the call or does not answer.
            OSError: the topic could not be registered.
        """
        self._clear()
        if config == self.config:
            return False
        # (A numbered topic and the topic of a later step have different names.)
        part = "data" if config.topics == 1 else "topics"
        part = f"{part}-{self._made}" if self._made else part
        parts = topic_names(part, config.topics)
        if self._records is not None:
            self._cluster = self._cluster or self.topics.describe().id
            # Before the topic is created: if this process is killed in between, cleaning still finds the topic.
            for name in map(self.topics.name, parts):
                self._records.add(OwnedTopic(name, self._cluster, self.topics.bootstrap, self._run, this_process()))
        self._made += 1
        placement = placed(config.partitions, config.replicas, self._brokers) if self._brokers else None
        try:
            names = self.topics.create_all(parts, config.partitions, config.replicas, config.settings, placement)
        except ServerError:
            self._strike([self.topics.name(each) for each in parts])
            raise
        self._retired += self.names
        self.name, self.names, self.config, self._began = self.topics.name(part), names, config, {}
        return True

    def begin(self, offsets: Mapping[int, int]) -> None:
        """Begins a step at these offsets.

        Deletes the messages before the last step, which no subscriber reads any more. The last step's messages stay, as
        its subscribers may still read them.
        """
        if self.config is not None and not self.config.keep:
            for topic, before in enumerate(self.by_topic(self._began)):
                self.topics.forget(self.names[topic], before)
        self._began = dict(offsets)

    def end_offsets(self, limit_s: float | None = None, *, returned: bool = False) -> dict[int, int]:
        """The offset that the next message will get, by the places of the partitions.

        Errors are those of :meth:`Topics.end_offsets`.

        Args:
            limit_s: how long the partitions of a killed broker may take to get leaders; None if none was killed.
                A partition without a leader ends where the step began, as it cannot be read.
            returned: whether the broker was started again, so that all partitions get leaders.
        """
        if limit_s is None or returned:
            return by_place(dict(enumerate(self.topics.end_offsets_of(self.names, limit_s))))
        led = {number: self.topics.led_offsets(name, limit_s) for number, name in enumerate(self.names)}
        return {**self._began, **by_place(led)}

    def by_topic(self, offsets: Mapping[int, int]) -> list[dict[int, int]]:
        """Offsets by place as those of each topic, by partition."""
        found: list[dict[int, int]] = [{} for _ in self.names]
        for place, offset in offsets.items():
            topic, partition = divmod(place, PLACES)
            found[topic][partition] = offset
        return found

    def close(self) -> tuple[str, ...]:
        """Deletes the topics of the run; returns those that it could not delete."""
        self.topics.close()
        self._strike([*self.names, *self._retired])
        return self.topics.created

    def _strike(self, names: Sequence[str]) -> None:
        """Removes those of these topics that do not exist from the registry."""
        if self._records is not None:
            for name in {*names} - {*self.topics.created}:
                self._records.remove(name)

    def _clear(self) -> None:
        """Removes topics of earlier steps; a later call repeats a removal that fails now."""
        with contextlib.suppress(ServerError):
            self.topics.delete_all(self._retired)
        for name in {*self._retired} - {*self.topics.created}:
            self._retired.remove(name)
            if self._records is not None:
                self._records.remove(name)


def stored_bytes(folder: Path, topic: str) -> int:
    """The bytes on disk of a topic's partitions, for all brokers with data below a folder."""
    total = 0
    for partition, _, names in os.walk(folder):
        if not Path(partition).name.startswith(f"{topic}-"):
            continue
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # the broker has just removed it
                total += Path(partition, name).stat().st_blocks * _BLOCK_BYTES
    return total
