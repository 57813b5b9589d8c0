"""Kafka as a system under test: a broker of our own or the user's cluster, and the run's topic on it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, get_args

from hydra.control.protocol import KafkaTopic
from hydra.errors import BrokerError
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import fetch, find_java
from hydra.kafkatest.properties import confluent_config, kafka_python_config
from hydra.kafkatest.topics import Topics
from hydra.model import Role, Scenario
from hydra.nativeclient import command
from hydra.system import Program

_MODULES: Final = {"kafka-python": "hydra.kafkatest.kafka_python", "confluent-kafka": "hydra.kafkatest.confluent"}


class KafkaSystem:
    """See :class:`hydra.system.System`; without ``bootstrap`` in the scenario the broker is ours."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._spec = scenario.kafka
        self._broker: EmbeddedBroker | None = None
        self._topics: Topics | None = None
        self._topic = ""
        self._bootstrap = ""
        self._run = ""
        self._folder = Path()

    def check(self) -> None:
        """The user's properties fit the client, and the embedded broker has its Java and its jars."""
        properties = self._spec.properties
        confluent_config(properties, None)
        for role in get_args(Role):
            if self._scenario.client == "kafka-python":
                kafka_python_config(properties, role)
            else:
                confluent_config(properties, role)
        self.program("subscriber")
        if not self._spec.bootstrap:
            find_java()
            fetch()

    def open(self, run: str, folder: Path) -> None:
        """Starts the broker or reaches the user's cluster, and creates the run's topic."""
        # The suffix keeps two runs of the same name on one cluster apart.
        self._run = f"{run}-{secrets.token_hex(3)}"
        self._folder = folder
        self._bring_up()

    def _bring_up(self) -> None:
        if self._spec.bootstrap:
            self._bootstrap = self._spec.bootstrap
        else:
            # A folder that was left behind, by a machine that went down, is not touched.
            self._broker = EmbeddedBroker(next(f for f in self._folders() if not f.exists()))
            self._bootstrap = self._broker.start()
        self._topics = Topics(self._bootstrap, self._spec.properties, self._run)
        self._topic = self._topics.create("data", self._spec.partitions, self._spec.replication_factor)

    def _folders(self) -> Iterator[Path]:
        return (self._folder / f"broker-{n}" for n in count(1))

    def program(self, role: Role) -> Program:
        """The client that the scenario names; numpy must not start threads in a parent that forks."""
        if self._scenario.client == "native":
            return Program(command("kafka", role, self._scenario.native), {})
        kind = "kafka-pub" if role == "publisher" else "kafka-sub"
        module = _MODULES[self._scenario.client]
        return Program((sys.executable, "-m", module, kind), {"OPENBLAS_NUM_THREADS": "1"})

    def topic(self) -> KafkaTopic | None:
        """The topic as it ends now: the next step starts there."""
        return KafkaTopic(
            bootstrap=self._bootstrap,
            topic=self._topic,
            offsets=self.end_offsets(),
            properties=dict(self._spec.properties),
        )

    def end_offsets(self) -> dict[int, int]:
        """The offset that the next message of each partition will get."""
        if self._topics is None:
            raise BrokerError("the Kafka system is not open")
        return self._topics.end_offsets(self._topic)

    def trouble(self) -> str:
        """A broker of our own that ended; the user's cluster shows its trouble in what it answers."""
        if self._broker is not None and not self._broker.alive():
            return "the embedded Kafka broker ended"
        return ""

    def revive(self) -> None:
        """A new broker in the place of one that ended."""
        if not self.trouble():
            return
        self.close()
        self._bring_up()

    def facts(self) -> dict[str, str]:
        """The broker's version if it is ours, and where the data goes."""
        facts = {"bootstrap": self._bootstrap, "topic": self._topic}
        if self._broker is not None:
            facts["kafka"] = self._broker.version
        return facts

    def close(self) -> None:
        """Deletes the topic and ends the broker if it is ours."""
        topics, broker = self._topics, self._broker
        self._topics = self._broker = None
        try:
            if topics is not None and broker is None:
                topics.close()
        finally:
            if broker is not None:
                # The topic goes with the broker's data.
                broker.stop()
