"""Kafka as a system under test: brokers started by Hydra or the user's cluster, and the run's topic."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Final, get_args

from confluent_kafka import Consumer, KafkaException, Producer

from hydra.config.shortages import read_limits
from hydra.config.user_folders import state_folder
from hydra.errors import DoesNotFitError, RunDirectoryError, ServerError, StepError, UsageError
from hydra.events.warnings import AddressesSilent, CleanupFailed, EarlierCleanup, SettingsSkipped
from hydra.kafkatest.broker import KafkaCluster
from hydra.kafkatest.broker_liveness import BrokerMonitor
from hydra.kafkatest.broker_memory import shortage
from hydra.kafkatest.faults import LEADERS_MOVE_WITHIN_S, Kill, Move, broker_settings
from hydra.kafkatest.first_contact import examine, known_and_free, require_rights
from hydra.kafkatest.jars import JARS, conf_folder, fetch, find_java
from hydra.kafkatest.java_properties import java_config
from hydra.kafkatest.metrics import ask, exporters, named, of_interfaces
from hydra.kafkatest.program import KIND, KafkaProgram
from hydra.kafkatest.properties import confluent_config, kafka_python_config, trusting
from hydra.kafkatest.read_ahead import ahead_config
from hydra.kafkatest.settings import TOOL, KafkaSettings, spec_of
from hydra.kafkatest.step_topic import DataTopic, TopicConfig, first_settings, stored_bytes, topic_config_of
from hydra.kafkatest.topic_registry import FOLDER, TopicRegistry, clean
from hydra.kafkatest.topics import REACH_TIMEOUT_S, Topics, group_id, topic_part
from hydra.model import Role, Scenario, ServerFacts, Settings
from hydra.native.client_command import command
from hydra.system import Program, Servers, Waiting
from hydra.system.local_server import LocalServer
from hydra.system.server_system import ServerSystem, SystemServers
from hydra.wire import kind_of

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
"""The libraries that the Python clients import in addition to the common ones; a test runs them with only these."""


_PROGRAMS: Final = {"Kafka": "kafka", "Java": "java"}
"""The names of a broker's programs, with the keys of their versions."""


class KafkaSystem(ServerSystem):
    """See :class:`hydra.system.System`; without ``bootstrap`` in the scenario Hydra starts the brokers.

    Arguments as for :class:`hydra.system.server_system.ServerSystem`.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._spec = spec_of(scenario)
        super().__init__(scenario, self._spec.bootstrap, deploy=deploy, is_local=is_local, tls=self._spec.tls)
        self.servers = KafkaServers(self)
        self._data: DataTopic | None = None
        self._topics: Topics | None = None  # of the last cluster, also when they are being deleted
        self._kill: Kill | None = None
        self._move: Move | None = None
        self._returned = False  # whether the broker was started again in the present step
        self._topic = ""  # the present step's
        self._groups: dict[str, bool] = {}  # this run's groups, and whether the cluster had them before

    def check(self) -> None:
        """Checks that the user's properties fit the client, and that the cluster admits Hydra.

        For brokers started by Hydra it checks the jars, and Java if they run here.
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
            self._in_time(self._reach)
            if self._scenario.client != TOOL:
                return
        if self._is_local:
            find_java()
            if short := shortage(self._scenario.server.count, read_limits().memory_available_bytes):
                raise DoesNotFitError(short, "lower server.count, or run the brokers on agents with --master")
        fetch()

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts the brokers or reaches the user's cluster, and creates the run's topic."""
        if self._spec.bootstrap and self._spec.broker:
            self._warnings.append(SettingsSkipped(sorted(self._spec.broker), self._spec.bootstrap))
        super().open(run, folder, wait, servers)

    def program(self, role: Role) -> Program:
        """The program of the scenario's client."""
        if self._scenario.client == "native":
            protocol = self._properties.get("security.protocol", "")
            return Program(command("kafka", role, self._scenario.native, tls="SSL" in protocol.upper()), {})
        client = self._scenario.client
        files = _kafka_itself() if client == TOOL else None
        return Program.of_module(_MODULES[client], kind_of("kafka", role), files=files, libraries=LIBRARIES[client])

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings of producers, and the topic with its end offsets, at which the next step begins.

        Raises:
            StepError: the brokers do not answer, or reject the topic; they count as failed from now on.
        """
        data = self._opened()
        self._answered(lambda: self._use(data, topic_config_of(self._scenario, settings)))
        offsets = self._answered(data.end_offsets)
        by_topic = [_by_text(each) for each in data.by_topic(offsets)]
        data.begin(offsets)
        self._spare()
        self._returned = False
        at = KafkaSettings.of(settings).kill_broker_at
        if at is not None and self._own is not None:
            self._kill = Kill(at, data.topics, data.names[0], self._own, self._own.endpoints())
        at = KafkaSettings.of(settings).move_partition_at
        if at is not None and self._own is not None:
            self._move = Move(at, data.topics, data.names[0], len(self._own.endpoints()))
        return {
            **{name: value for name, value in settings.system.values().items() if name != "move_partition_at"},
            "group": self._group(settings),
            "bootstrap": self._address,
            "topic": self._topic,
            "offsets": by_topic[0],
            "properties": self._properties,
            **({"topic_offsets": by_topic} if settings.topics > 1 else {}),
        }

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:  # noqa: ARG002
        """Kills a broker started by Hydra, or moves a partition, when its time has come."""
        if self._move is not None:
            self._move.look(elapsed_s, duration_s)
        killed = self._kill.look(elapsed_s, duration_s) if self._kill is not None else ""
        if killed and isinstance(self._monitor, BrokerMonitor):
            self._monitor.excuse(killed)

    def after_step(self) -> None:
        """From now on reports the broker that was killed as a failure."""
        super().after_step()
        if self._kill is not None and self._kill.killed:
            self._mute = f"the Kafka broker at {self._kill.killed} was killed, as the scenario demands"

    def _group(self, settings: Settings) -> str:
        """The id of a step's group; an exact id from the user must be free when the run first uses it."""
        name, exact = KafkaSettings.of(settings).group, self._spec.exact_group
        group = group_id(self._topic, name, exact=exact)
        if group and group not in self._groups and self._data is not None:
            try:
                self._groups[group] = exact and known_and_free(self._data.topics, group)
            except UsageError as e:
                raise ServerError(e.what, e.remedy) from None
        return group

    def finish(self) -> dict[str, Any]:
        """The offset that the next message of each partition will get; errors as for ``configure``."""
        if self._move is not None and not self._move.end():
            raise StepError("no partition was moved: the brokers did not accept it in the window")
        if self._kill is not None and not self._kill.killed:
            why = (
                "the partition's leader was not known" if self._kill.due else "the window ended before the kill was due"
            )
            raise StepError(f"no broker was killed: {why}")
        ends = [_by_text(each) for each in self._opened().by_topic(self._end_offsets())]
        return {"topic_end_offsets": ends} if len(ends) > 1 else {"end_offsets": ends[0]}

    def proof(self, settings: Settings) -> Hashable:
        """The topic, the group, and the settings that need a new consumer; all other settings are producers'."""
        kafka = KafkaSettings.of(settings)
        fetches = kafka.fetch_min_bytes, kafka.fetch_wait_max_ms, kafka.fetch_max_bytes, kafka.max_partition_fetch_bytes
        return self._address, self._topic, kafka.group, kafka.session_timeout_ms, kafka.check_crcs, fetches

    def _end_offsets(self) -> dict[int, int]:
        killed = self._kill is not None and self._kill.killed
        limit_s = LEADERS_MOVE_WITHIN_S if killed or self._returned else None
        return self._answered(lambda: self._opened().end_offsets(limit_s, returned=self._returned))

    def _opened(self) -> DataTopic:
        if self._data is None:
            raise ServerError("the Kafka system is not open")
        return self._data

    def _spare(self) -> None:
        """Drops a kill or a move that has not happened yet."""
        if self._kill is not None:
            self._kill.close()
            self._kill = None
        if self._move is not None:
            self._move.close()
            self._move = None

    def metadata(self) -> dict[str, str]:
        """The addresses, the topic, and the version of brokers started by Hydra."""
        metadata = {"bootstrap": self._address, "topic": self._topic}
        if self._own is not None:
            metadata["kafka"] = self._own.versions["kafka"]
        return metadata

    @property
    def _properties(self) -> dict[str, str]:
        """The user's properties, and what TLS with Hydra's brokers needs."""
        return {
            **ahead_config(self._spec.read_ahead),
            **self._spec.properties,
            **(trusting(self._authority.client) if self._authority else {}),
        }

    def _unique(self, run: str) -> str:
        return f"{topic_part(run)}-{secrets.token_hex(4)}"

    def _reach(self) -> None:
        silent = examine(self._scenario)
        self._warnings += [AddressesSilent("Kafka", silent)] if silent else []

    def _server_program(self) -> KafkaProgram:
        return KafkaProgram()

    def _server_node(self) -> Program:
        """The program of a broker, with its jars and settings."""
        return Program.of_module("hydra.kafkatest.server_main", KIND, files=_kafka_itself())

    def _server_cluster(self) -> KafkaCluster:
        return KafkaCluster({**broker_settings(self._scenario), **self._spec.broker}, self._authority)

    def _connect(self) -> None:
        """Creates the run's topic; removes topics of an earlier, killed process of this run from the user's cluster."""
        topics = self._topics = Topics(self._address, self._properties, self._run, self._wait_for_brokers)
        brokers, records = (self._scenario.server.count, None) if self._own else (0, self._records(topics))
        self._data = DataTopic(topics, brokers, records, str(self._folder.absolute()))
        self._use(self._data, topic_config_of(self._scenario, first_settings(self._scenario)))
        if self._users:
            require_rights(topics, self._data.names[0])

    def _use(self, data: DataTopic, config: TopicConfig) -> None:
        """Makes the topic of this configuration the present one, and watches its leaders."""
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
        """The registry of this run's topics; removes the run's earlier topics from the user's cluster."""
        in_run, in_state = self._folder / FOLDER, state_folder() / FOLDER
        records = TopicRegistry(in_run, in_state)
        found = clean(topics, records, among=TopicRegistry(in_run).all())
        self._warnings += [EarlierCleanup("a topic", str(leftover)) for leftover in found]
        return records

    def _wait_for_brokers(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Waits for the brokers' answer, unless they fail meanwhile."""

        def settled() -> bool:
            # After closing, only the topic's deletion depends on the brokers.
            if self._data is not None and (failure := self.servers.failure()):
                raise ServerError(failure)
            return condition()

        return self._wait(settled, timeout_s)

    def _observed(self) -> BrokerMonitor | None:
        # The supervisor reports the end of a local broker.
        if self._data is None or isinstance(self._own, LocalServer):
            return None
        return BrokerMonitor(self._data.topics, self._data.names[0])

    def _return(self) -> None:
        data = self._opened()
        data.topics.describe(REACH_TIMEOUT_S)
        data.end_offsets()
        self._watch()

    def _renew(self) -> None:
        """Keeps the topic, which the broker has on disk; the library connects again by itself."""
        self._returned = True
        self._watch()

    def _disconnect(self) -> None:
        """Deletes the topic, unless it is deleted with the data of brokers started by Hydra."""
        self._spare()
        data, self._data = self._data, None
        if data is None:
            return
        if not self._users:
            data.topics.end()
            return
        data.topics.remove_groups(group for group, known in self._groups.items() if not known)
        data.close()
        self._warnings += self.servers.left()


class KafkaServers(SystemServers[KafkaSystem]):
    """The brokers of a run. See :class:`hydra.system.RunServers`."""

    def facts(self) -> ServerFacts:
        """The versions of brokers started by Hydra and of their Java, and whether clients use TLS."""
        own = self._system._own
        versions = {} if own is None else {name: own.versions[key] for name, key in _PROGRAMS.items()}
        return ServerFacts(versions, "SSL" in self._system._properties.get("security.protocol", "").upper())

    def counters(self) -> dict[str, dict[str, float]]:
        """Traffic, CPU, memory and garbage collection of brokers with an exporter, and traffic of their interfaces."""
        own = self._system._own
        if own is None:
            return ask(named(self._system._spec.metrics))
        endpoints = own.endpoints()
        # One directly after the other, so both have counts of nearly the same time.
        exported, seen = ask(exporters(endpoints)), of_interfaces(endpoints)
        return {
            name: {**exported.get(name, {}), **seen.get(name, {})} for name in sorted(exported.keys() | seen.keys())
        }

    def log_end(self, settings: Settings) -> int:  # noqa: ARG002  # the same for all settings
        """The number of all messages ever written to the topic; errors as for ``configure``."""
        return sum(self._system._end_offsets().values())

    def stored_bytes(self) -> int:
        """The bytes of the topic's logs on this machine's disk."""
        system = self._system
        return stored_bytes(system._folder, system._topic) if system._topic and not system._users else 0

    def left(self) -> list[CleanupFailed]:
        """The topics that were created on the user's cluster and not deleted."""
        system = self._system
        topics = system._topics.created if system._users and system._topics is not None else ()
        clean = f"hydra kafka-clean --servers {quote(system._address)} removes this topic"
        return [CleanupFailed(topic, system._address, clean) for topic in topics]


def _check_values(properties: Mapping[str, str]) -> None:
    """Makes a producer and a consumer with these properties but without a broker, and discards them.

    Raises:
        UsageError: a property is unknown, or Hydra's own, or the library rejects its value; the text is the library's.
    """
    silent: dict[str, str | int] = {"log_level": 0}
    try:
        Producer({**confluent_config(properties, "publisher"), **silent})
        Consumer({**confluent_config(properties, "subscriber"), **silent, "group.id": "hydra"}).close()
    except KafkaException as e:
        raise UsageError(e.args[0].str().strip(), "look at the Kafka properties") from None


def _kafka_itself() -> dict[str, Path]:
    """The files that an agent needs to run Kafka: jars and settings."""
    files = {f"conf/kafka/{path.name}": path for path in conf_folder().iterdir() if path.is_file()}
    return files | {f"conf/kafka/{JARS}/{path.name}": path for path in fetch().folder.glob("*.jar")}


def _by_text(offsets: Mapping[int, int]) -> dict[str, int]:
    """Offsets by partition, with texts as keys as in JSON."""
    return {str(partition): offset for partition, offset in offsets.items()}
