"""The topic that a run's steps write to: made anew where the next step needs another one, and removed after it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hydra.client.process_identity import this_process
from hydra.errors import ServerError
from hydra.kafkatest.nodes import placed
from hydra.kafkatest.settings import KafkaSettings, spec_of
from hydra.kafkatest.topic_registry import OwnedTopic, TopicRegistry
from hydra.kafkatest.topics import Topics
from hydra.model import Scenario, Settings, with_values

_KEPT_MS: Final = 3_600_000
"""For how long brokers of our own keep messages at least, beside two steps."""
_FOR_EVER: Final = "-1"
_BLOCK_BYTES: Final = 512
"""The unit of ``st_blocks`` (stat(2)), whatever the file system's own is."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What a topic is created with; two steps with the same share one."""

    partitions: int
    replicas: int
    keep: bool
    settings: Mapping[str, str]


def topic_config_of(scenario: Scenario, settings: Settings) -> TopicConfig:
    """The topic that a step needs."""
    spec, asked = spec_of(scenario), KafkaSettings.of(settings)
    config: dict[str, str] = {}
    if asked.keep:
        config["retention.ms"] = config["retention.bytes"] = _FOR_EVER
    elif not spec.bootstrap:
        step_s = scenario.sweep.longest_s + (scenario.drain_max_s or 0)
        config["retention.ms"] = str(_KEPT_MS + round(2000 * step_s))
    return TopicConfig(
        partitions=asked.partitions or spec.partitions,
        replicas=asked.replication_factor or spec.replication_factor,
        keep=asked.keep,
        settings={**config, **spec.topic},
    )


def first_settings(scenario: Scenario) -> Settings:
    """Those of a scenario's first step, as far as its topic depends on them."""
    return with_values(scenario.settings, scenario.sweep.first)


class DataTopic:
    """The topic of the present step.

    Arguments:
        topics: asks the cluster.
        brokers: of our own, on which partitions are placed evenly; 0: the user's cluster places them.
        records: writes down which topics are ours; None where they go with the brokers' data anyway.
        run: the run's directory, for the records.
    """

    def __init__(self, topics: Topics, brokers: int, records: TopicRegistry | None, run: str) -> None:
        self.topics: Final = topics
        self.name = ""
        self.config: TopicConfig | None = None
        self._brokers = brokers
        self._records = records
        self._run = run
        self._made = 0
        self._retired: list[str] = []
        self._cluster = ""
        self._began: dict[int, int] = {}

    def use(self, config: TopicConfig) -> bool:
        """Has such a topic; returns whether it is a new one.

        The one before is removed by the call after this one: its consumers may still be at it.

        Raises:
            ServerError: the cluster refuses or does not answer.
            OSError: what is ours could not be written down.
        """
        self._clear()
        if config == self.config:
            return False
        part = f"data-{self._made}" if self._made else "data"
        name = self.topics.name(part)
        if self._records is not None:
            self._cluster = self._cluster or self.topics.describe().id
            # Before it is there: whoever is killed meanwhile leaves a topic that is known as ours.
            self._records.add(OwnedTopic(name, self._cluster, self.topics.bootstrap, self._run, this_process()))
        self._made += 1
        placement = placed(config.partitions, config.replicas, self._brokers) if self._brokers else None
        self.topics.create(part, config.partitions, config.replicas, config.settings, placement)
        if self.name:
            self._retired.append(self.name)
        self.name, self.config, self._began = name, config, {}
        return True

    def begin(self, offsets: Mapping[int, int]) -> None:
        """A step begins at these offsets.

        What is before the last step is deleted: nobody is there any more. What is of it stays, as its subscribers may
        still be at it.
        """
        if self.config is not None and not self.config.keep:
            self.topics.forget(self.name, self._began)
        self._began = dict(offsets)

    def end_offsets(self, patience_s: float | None = None) -> dict[int, int]:
        """The offset that the next message will get, by partition; errors as for :meth:`Topics.end_offsets`.

        Args:
            patience_s: a broker was killed: how long its partitions may take to get other leaders. One that gets none
                ends where the step began: nobody can read it.
        """
        if patience_s is None:
            return self.topics.end_offsets(self.name)
        return {**self._began, **self.topics.led_offsets(self.name, patience_s)}

    def close(self) -> tuple[str, ...]:
        """Deletes the topics of the run; returns those that are still there."""
        self.topics.close()
        if self._records is not None:
            for name in {self.name, *self._retired} - {"", *self.topics.created}:
                self._records.remove(name)
        return self.topics.created

    def _clear(self) -> None:
        """Removes what earlier steps have left; what cannot be removed now is tried again."""
        for name in list(self._retired):
            with contextlib.suppress(ServerError):
                self.topics.delete(name)
                self._retired.remove(name)
                if self._records is not None:
                    self._records.remove(name)


def stored_bytes(folder: Path, topic: str) -> int:
    """What the partitions of a topic take on the disk, of all brokers whose data is somewhere below a folder."""
    total = 0
    for partition, _, names in os.walk(folder):
        if not Path(partition).name.startswith(f"{topic}-"):
            continue
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # the broker has just removed it
                total += Path(partition, name).stat().st_blocks * _BLOCK_BYTES
    return total
