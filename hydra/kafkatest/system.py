"""Kafka as a system under test: a broker of our own or the user's cluster, and the run's topic on it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final, get_args

from hydra.control.protocol import KafkaTopic
from hydra.errors import BrokerError, StepError
from hydra.kafkatest.accepted import check_values
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.jars import JARS, conf_folder, fetch, find_java
from hydra.kafkatest.properties import kafka_python_config
from hydra.kafkatest.topics import Topics
from hydra.model import Role, Scenario
from hydra.nativeclient import command
from hydra.system import Brokers, Program

_MODULES: Final = {"kafka-python": "hydra.kafkatest.kafka_python", "confluent-kafka": "hydra.kafkatest.confluent"}


class KafkaSystem:
    """See :class:`hydra.system.System`; without ``bootstrap`` in the scenario the brokers are ours.

    Args:
        scenario: what is run.
        deploy: whether they run as groups on agents; otherwise there is one, embedded.
        here: whether they run on this machine.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, here: bool = True) -> None:
        self._scenario = scenario
        self._spec = scenario.kafka
        self._deploy = deploy
        self._here = here
        self._deployed: Brokers | None = None
        self._broker: Brokers | None = None
        self._mute = ""
        self._topics: Topics | None = None
        self._topic = ""
        self._bootstrap = ""
        self._run = ""
        self._folder = Path()

    def check(self) -> None:
        """The user's properties fit the client, and a broker of our own has its jars, and its Java if it runs here."""
        properties = self._spec.properties
        check_values(properties)
        if self._scenario.client == "kafka-python":
            for role in get_args(Role):
                kafka_python_config(properties, role)
        self.program("subscriber")
        if not self._spec.bootstrap:
            if self._here:
                find_java()
            fetch()

    def open(self, run: str, folder: Path, brokers: Brokers | None = None) -> None:
        """Starts the brokers or reaches the user's cluster, and creates the run's topic."""
        # The suffix keeps two runs of the same name on one cluster apart.
        self._run = f"{run}-{secrets.token_hex(3)}"
        self._folder = folder
        self._deployed = brokers
        self._bring_up()

    def _bring_up(self) -> None:
        if self._spec.bootstrap:
            self._bootstrap = self._spec.bootstrap
        else:
            # A folder that was left behind, by a machine that went down, is not touched.
            self._broker = self._deployed or EmbeddedBroker(next(f for f in self._folders() if not f.exists()))
            self._mute = ""
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

    def broker(self) -> Program | None:
        """One Kafka, with its jars and settings."""
        if not self._deploy:
            return None
        files = {f"conf/kafka/{path.name}": path for path in conf_folder().iterdir() if path.is_file()}
        files |= {f"conf/kafka/{JARS}/{path.name}": path for path in fetch().folder.glob("*.jar")}
        command = (sys.executable, "-m", "hydra.kafkatest.node", "kafka-broker")
        return Program(command, {"OPENBLAS_NUM_THREADS": "1"}, files)

    def topic(self) -> KafkaTopic | None:
        """The topic as it ends now: the next step starts there."""
        return KafkaTopic(
            bootstrap=self._bootstrap,
            topic=self._topic,
            offsets=self.end_offsets(),
            properties=dict(self._spec.properties),
        )

    def end_offsets(self) -> dict[int, int]:
        """The offset that the next message of each partition will get.

        Raises:
            StepError: brokers of our own do not tell; they are in trouble from now on.
            BrokerError: the user's do not.
        """
        if self._topics is None:
            raise BrokerError("the Kafka system is not open")
        try:
            return self._topics.end_offsets(self._topic)
        except BrokerError as e:
            if self._broker is None:
                raise
            self._mute = self._broker.trouble() or e.what
            raise StepError(self._mute) from e

    def trouble(self) -> str:
        """Brokers of our own that ended or fell silent; the user's show their trouble in what they answer."""
        return self._mute or ("" if self._broker is None else self._broker.trouble())

    def revive(self) -> None:
        """New brokers in the place of those in trouble."""
        if not self.trouble():
            return
        self.close()
        self._bring_up()

    def facts(self) -> dict[str, str]:
        """The brokers' version if they are ours, and where the data goes."""
        facts = {"bootstrap": self._bootstrap, "topic": self._topic}
        if self._broker is not None:
            facts["kafka"] = self._broker.version
        return facts

    def close(self) -> None:
        """Deletes the topic, or ends the brokers if they are ours."""
        topics, broker = self._topics, self._broker
        self._topics = self._broker = None
        try:
            if topics is not None and broker is None:
                topics.close()
        finally:
            if broker is not None:
                # The topic goes with the brokers' data.
                broker.stop()
