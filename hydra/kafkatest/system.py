"""Kafka as a system under test: a broker of our own or the user's cluster, and the run's topic on it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from confluent_kafka import Consumer, KafkaException, Producer

from hydra.config.file_locations import state_folder
from hydra.config.machine_limits import read_limits
from hydra.errors import DoesNotFitError, RunDirectoryError, ServerError, StepError, UsageError
from hydra.events.warnings import CleanupFailed, EarlierCleanup, SettingsSkipped
from hydra.kafkatest.broker import KafkaCluster
from hydra.kafkatest.broker_liveness import BrokerMonitor
from hydra.kafkatest.faults import LEADERS_MOVE_WITHIN_S, Kill, Move, broker_settings
from hydra.kafkatest.footprints import shortage
from hydra.kafkatest.jars import JARS, conf_folder, fetch, find_java
from hydra.kafkatest.java_properties import java_config
from hydra.kafkatest.metrics import ask, exporters, named, of_interfaces
from hydra.kafkatest.program import KIND, KafkaProgram
from hydra.kafkatest.properties import confluent_config, kafka_python_config
from hydra.kafkatest.settings import TOOL, KafkaSettings, groups_of, spec_of
from hydra.kafkatest.step_topic import DataTopic, TopicConfig, first_settings, stored_bytes, topic_config_of
from hydra.kafkatest.topic_registry import FOLDER, TopicRegistry, clean
from hydra.kafkatest.topics import REACH_TIMEOUT_S, Topics, group_id, topic_part
from hydra.model import Role, Scenario, Settings
from hydra.native.client_command import command
from hydra.system import Program, Servers, Waiting
from hydra.system.embedded_server import EmbeddedServer
from hydra.system.server_system import ServerSystem
from hydra.wire.protocol_constants import kind_of

CLEAN: Final = "hydra kafka-clean --bootstrap … removes it"
_MODULES: Final = {
    "kafka-python": "hydra.kafkatest.kafka_python",
    "confluent-kafka": "hydra.kafkatest.confluent",
    TOOL: "hydra.kafkatest.perf_tool",
}
_CONFLUENT: Final = ("confluent-kafka", "typing-extensions")
LIBRARIES: Final = {
    "confluent-kafka": _CONFLUENT,
    "kafka-python": ("kafka-python", "crc32c", *_CONFLUENT),
    TOOL: _CONFLUENT,
}
"""What the clients in Python import beside what all do; a test runs them with these alone."""


class KafkaSystem(ServerSystem):
    """See :class:`hydra.system.System`; without ``bootstrap`` in the scenario the brokers are ours.

    Arguments as for :class:`hydra.system.server_system.ServerSystem`.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._spec = spec_of(scenario)
        super().__init__(scenario, self._spec.bootstrap, deploy=deploy, is_local=is_local)
        self._data: DataTopic | None = None
        self._kill: Kill | None = None
        self._move: Move | None = None
        self._topic = ""  # of the present step
        self._groups: dict[str, bool] = {}  # those of this run, and whether the cluster knew them before

    def check(self) -> None:
        """The user's properties fit the client, and the cluster lets us in.

        A broker of our own has its jars, and its Java if it runs here.
        """
        properties = self._spec.properties
        _check_values(properties)
        for role in get_args(Role):
            if self._scenario.client == "kafka-python":
                kafka_python_config(properties, role)
            elif self._scenario.client == TOOL:
                java_config(properties, role)
        self.program("subscriber")
        if self._spec.bootstrap:
            with contextlib.closing(Topics(self._spec.bootstrap, properties, "")) as topics:
                topics.reach()
                if self._spec.exact_group:
                    for group in groups_of(self._scenario):
                        _known_and_free(topics, group)
            if self._scenario.client != TOOL:
                return
        if self._is_local:
            find_java()
            if short := shortage(self._scenario.server.count, read_limits().memory_available_bytes):
                raise DoesNotFitError(short, "lower server.count, or run them on agents with --master")
        fetch()

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts the brokers or reaches the user's cluster, and creates the run's topic."""
        if self._spec.bootstrap and self._spec.broker:
            self._warnings.append(SettingsSkipped(sorted(self._spec.broker), self._spec.bootstrap))
        super().open(run, folder, wait, servers)

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        if self._scenario.client == "native":
            return Program(command("kafka", role, self._scenario.native), {})
        client = self._scenario.client
        files = _kafka_itself() if client == TOOL else None
        return Program.of_module(_MODULES[client], kind_of("kafka", role), files=files, libraries=LIBRARIES[client])

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings of producers, and the topic as it ends now: the next step starts there, or at a new topic.

        Raises:
            StepError: the brokers do not tell, or refuse the topic; they count as failed from now on.
        """
        data = self._opened()
        self._asked(lambda: self._use(data, topic_config_of(self._scenario, settings)))
        offsets = self._asked(data.end_offsets)
        data.begin(offsets)
        self._spare()
        at = KafkaSettings.of(settings).kill_broker_at
        if at is not None and self._own is not None:
            self._kill = Kill(at, data.topics, data.name, self._own, self._own.endpoints())
        at = KafkaSettings.of(settings).move_partition_at
        if at is not None and self._own is not None:
            self._move = Move(at, data.topics, data.name, len(self._own.endpoints()))
        return {
            **{name: value for name, value in settings.system.items() if name != "move_partition_at"},
            "group": self._group(settings),
            "bootstrap": self._address,
            "topic": self._topic,
            "offsets": _by_text(offsets),
            "properties": dict(self._spec.properties),
        }

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:  # noqa: ARG002
        """Kills a broker of our own, or moves a partition, when its moment has come."""
        if self._move is not None:
            self._move.look(elapsed_s, duration_s)
        killed = self._kill.look(elapsed_s, duration_s) if self._kill is not None else ""
        if killed and isinstance(self._monitor, BrokerMonitor):
            self._monitor.excuse(killed)

    def after_step(self) -> None:
        """A broker that was killed is missed from now on."""
        if self._kill is not None and self._kill.killed:
            self._mute = f"the Kafka broker at {self._kill.killed} was killed, as the scenario says"

    def server_counters(self) -> dict[str, dict[str, float]]:
        """Traffic, CPU, memory and collections of every broker whose exporter answers, and its interface's traffic."""
        if self._own is None:
            return ask(named(self._spec.metrics))
        endpoints = self._own.endpoints()
        # One after the other, so that what both count is of nearly the same moment.
        told, seen = ask(exporters(endpoints)), of_interfaces(endpoints)
        return {name: {**told.get(name, {}), **seen.get(name, {})} for name in sorted(told.keys() | seen.keys())}

    def _group(self, settings: Settings) -> str:
        """The id of a step's group; one of the user's naming has to be free when the run first uses it."""
        name, exact = KafkaSettings.of(settings).group, self._spec.exact_group
        group = group_id(self._topic, name, exact=exact)
        if group and group not in self._groups and self._data is not None:
            try:
                self._groups[group] = exact and _known_and_free(self._data.topics, group)
            except UsageError as e:
                raise ServerError(e.what, e.remedy) from None
        return group

    def finish(self) -> dict[str, Any]:
        """The offset that the next message of each partition will get; errors as for ``configure``."""
        if self._move is not None and not self._move.end():
            raise StepError("no partition was moved: the brokers did not accept it in the window")
        if self._kill is not None and not self._kill.killed:
            why = (
                "the partition's leader was not known" if self._kill.due else "the window ended before its moment came"
            )
            raise StepError(f"no broker was killed: {why}")
        return {"end_offsets": _by_text(self._end_offsets())}

    def proof(self, settings: Settings) -> Hashable:
        """The topic, the group, and what makes another consumer; all other settings are producers'."""
        kafka = KafkaSettings.of(settings)
        fetches = kafka.fetch_min_bytes, kafka.fetch_wait_max_ms, kafka.fetch_max_bytes, kafka.max_partition_fetch_bytes
        return self._address, self._topic, kafka.group, kafka.session_timeout_ms, kafka.check_crcs, fetches

    def log_end(self, settings: Settings) -> int:  # noqa: ARG002  # whatever they are
        """The messages that were ever put into the topic; errors as for ``configure``."""
        return sum(self._end_offsets().values())

    def _end_offsets(self) -> dict[int, int]:
        killed = self._kill is not None and self._kill.killed
        return self._asked(lambda: self._opened().end_offsets(LEADERS_MOVE_WITHIN_S if killed else None))

    def _opened(self) -> DataTopic:
        if self._data is None:
            raise ServerError("the Kafka system is not open")
        return self._data

    def _spare(self) -> None:
        """Nobody is to be killed any more."""
        if self._kill is not None:
            self._kill.close()
            self._kill = None
        if self._move is not None:
            self._move.close()
            self._move = None

    def stored_bytes(self) -> int:
        """What the logs of the run's topic take on this machine's disk."""
        return stored_bytes(self._folder, self._topic) if self._topic and not self._spec.bootstrap else 0

    def metadata(self) -> dict[str, str]:
        """The brokers' version if they are ours, and where the data goes."""
        metadata = {"bootstrap": self._address, "topic": self._topic}
        if self._own is not None:
            metadata["kafka"] = self._own.versions["kafka"]
        return metadata

    def _unique(self, run: str) -> str:
        return f"{topic_part(run)}-{secrets.token_hex(4)}"

    def _server_program(self) -> KafkaProgram:
        return KafkaProgram()

    def _server_node(self) -> Program:
        """With its jars and settings."""
        return Program.of_module("hydra.kafkatest.server_main", KIND, files=_kafka_itself())

    def _server_cluster(self) -> KafkaCluster:
        return KafkaCluster({**broker_settings(self._scenario), **self._spec.broker})

    def _connect(self) -> None:
        """Creates the run's topic; what a killed predecessor of this run left on the user's cluster is removed."""
        topics = Topics(self._address, self._spec.properties, self._run, self._wait_for_brokers)
        brokers, records = (self._scenario.server.count, None) if self._own else (0, self._records(topics))
        self._data = DataTopic(topics, brokers, records, str(self._folder.absolute()))
        self._use(self._data, topic_config_of(self._scenario, first_settings(self._scenario)))

    def _use(self, data: DataTopic, config: TopicConfig) -> None:
        """Has such a topic, and watches its leaders."""
        try:
            fresh = data.use(config)
        except OSError as e:
            raise RunDirectoryError(
                f"{self._folder / FOLDER} takes no record of the run's topic: {e.strerror}", "make room"
            ) from e
        self._topic = data.name
        if fresh:
            self._watch()

    def _records(self, topics: Topics) -> TopicRegistry:
        """Where it is written down which topics are ours; removes what the run left on the user's cluster before."""
        in_run, in_state = self._folder / FOLDER, state_folder() / FOLDER
        records = TopicRegistry(in_run, in_state)
        found = clean(topics, records, among=TopicRegistry(in_run).all())
        self._warnings += [EarlierCleanup("a topic", str(leftover)) for leftover in found]
        return records

    def _wait_for_brokers(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Waits for their answer no longer than they are there."""

        def settled() -> bool:
            # Once this is closed, nothing depends on them but the topic's end.
            if self._data is not None and (failure := self.failure()):
                raise ServerError(failure)
            return condition()

        return self._wait(settled, timeout_s)

    def _observed(self) -> BrokerMonitor | None:
        # The embedded broker's end is told by its supervisor.
        if self._data is None or isinstance(self._own, EmbeddedServer):
            return None
        return BrokerMonitor(self._data.topics, self._data.name)

    def _return(self) -> None:
        data = self._opened()
        data.topics.describe(REACH_TIMEOUT_S)
        data.end_offsets()
        self._watch()

    def _disconnect(self) -> None:
        """Deletes the topic, unless it goes with our brokers' data."""
        self._spare()
        data, self._data = self._data, None
        if data is None:
            return
        if not self._theirs:
            data.topics.end()
            return
        data.topics.remove_groups(group for group, known in self._groups.items() if not known)
        self._warnings += [CleanupFailed(topic, self._address, CLEAN) for topic in data.close()]


def _check_values(properties: Mapping[str, str]) -> None:
    """Makes a producer and a consumer with these properties, without naming a broker, and discards them.

    Raises:
        UsageError: a property is unknown, or Hydra's own, or its value is refused; the text is the library's.
    """
    silent: dict[str, str | int] = {"log_level": 0}
    try:
        Producer({**confluent_config(properties, "publisher"), **silent})
        Consumer({**confluent_config(properties, "subscriber"), **silent, "group.id": "hydra"}).close()
    except KafkaException as e:
        raise UsageError(e.args[0].str().strip(), "look at the Kafka properties") from None


def _known_and_free(topics: Topics, group: str) -> bool:
    """Whether the cluster knows a consumer group already.

    Raises:
        UsageError: it has members.
        ServerError: the cluster does not answer.
    """
    known, members = topics.group(group)
    if members:
        raise UsageError(
            f"the consumer group {group} at {topics.bootstrap} is in use: {len(members)} members, one is {members[0]}",
            "name another group, or wait until they are gone",
        )
    return known


def _kafka_itself() -> dict[str, Path]:
    """What an agent needs to run Kafka: its jars and settings."""
    files = {f"conf/kafka/{path.name}": path for path in conf_folder().iterdir() if path.is_file()}
    return files | {f"conf/kafka/{JARS}/{path.name}": path for path in fetch().folder.glob("*.jar")}


def _by_text(offsets: Mapping[int, int]) -> dict[str, int]:
    """By partition, as keys are in JSON."""
    return {str(partition): offset for partition, offset in offsets.items()}
