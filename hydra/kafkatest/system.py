"""Kafka as a system under test: a broker of our own or the user's cluster, and the run's topic on it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, get_args

from hydra.config.machine_limits import read
from hydra.errors import DoesNotFitError, RunDirectoryError, ServerError, StepError, UsageError
from hydra.events.warnings import HydraWarning, LeftBehind, LeftEarlier, SettingsSkipped
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.broker_memory import shortage
from hydra.kafkatest.consumer_groups import group_id
from hydra.kafkatest.faults import LEADERS_MOVE_WITHIN_S, Kill, Move, broker_settings
from hydra.kafkatest.folders import state_folder, stored_bytes
from hydra.kafkatest.jars import JARS, conf_folder, fetch, find_java
from hydra.kafkatest.java_properties import java_config
from hydra.kafkatest.leftovers import clean
from hydra.kafkatest.metrics import ask, exporters, named, of_interfaces
from hydra.kafkatest.program import KIND
from hydra.kafkatest.properties import kafka_python_config
from hydra.kafkatest.property_check import check_values
from hydra.kafkatest.server_cluster import KafkaCluster
from hydra.kafkatest.settings import KafkaSettings, groups_of, spec_of
from hydra.kafkatest.step_topic import DataTopic, Shape, first_settings, shape_of
from hydra.kafkatest.tool_limits import IMPLEMENTATION
from hydra.kafkatest.topic_registry import FOLDER, Records
from hydra.kafkatest.topics import REACH_TIMEOUT_S, Topics, topic_part
from hydra.kafkatest.watch import Watch
from hydra.model import Role, Scenario, Settings
from hydra.native.command import command
from hydra.system import Program, ServerCluster, Servers, Waiting, wait_alone
from hydra.system.server_recovery import await_return, unused_folder
from hydra.wire.protocol_constants import kind_of

CLEAN: Final = "hydra kafka-clean --bootstrap … removes it"
_MODULES: Final = {
    "kafka-python": "hydra.kafkatest.kafka_python",
    "confluent-kafka": "hydra.kafkatest.confluent",
    IMPLEMENTATION: "hydra.kafkatest.tool",
}
_CONFLUENT: Final = ("confluent-kafka", "typing-extensions")
LIBRARIES: Final = {
    "confluent-kafka": _CONFLUENT,
    "kafka-python": ("kafka-python", "crc32c", *_CONFLUENT),
    IMPLEMENTATION: _CONFLUENT,
}
"""What the clients in Python import beside what all do; a test runs them with these alone."""

_T = TypeVar("_T")


class KafkaSystem:
    """See :class:`hydra.system.System`; without ``bootstrap`` in the scenario the brokers are ours.

    Args:
        scenario: what is run.
        deploy: whether they run as groups on agents; otherwise there is one, embedded.
        is_local: whether they run on this machine.
    """

    def __init__(self, scenario: Scenario, *, deploy: bool = False, is_local: bool = True) -> None:
        self._scenario = scenario
        self._spec = spec_of(scenario)
        self._deploy = deploy
        self._is_local = is_local
        self._deployed: Servers | None = None
        self._broker: Servers | None = None
        self._mute = ""
        self._data: DataTopic | None = None
        self._watch: Watch | None = None
        self._kill: Kill | None = None
        self._move: Move | None = None
        self._warnings: list[HydraWarning] = []
        self._topic = ""
        self._groups: dict[str, bool] = {}
        self._bootstrap = ""
        self._run = ""
        self._folder = Path()
        self._wait: Waiting = wait_alone

    def check(self) -> None:
        """The user's properties fit the client, and the cluster lets us in.

        A broker of our own has its jars, and its Java if it runs here.
        """
        properties = self._spec.properties
        check_values(properties)
        for role in get_args(Role):
            if self._scenario.client == "kafka-python":
                kafka_python_config(properties, role)
            elif self._scenario.client == IMPLEMENTATION:
                java_config(properties, role)
        self.program("subscriber")
        if self._spec.bootstrap:
            with contextlib.closing(Topics(self._spec.bootstrap, properties, "")) as topics:
                topics.reach()
                if self._spec.exact_group:
                    for group in groups_of(self._scenario):
                        _known_and_free(topics, group)
            if self._scenario.client != IMPLEMENTATION:
                return
        if self._is_local:
            find_java()
            if short := shortage(self._scenario.server.count, read().memory_available_bytes):
                raise DoesNotFitError(short, "lower server.count, or run them on agents with --master")
        fetch()

    def open(self, run: str, folder: Path, wait: Waiting, servers: Servers | None = None) -> None:
        """Starts the brokers or reaches the user's cluster, and creates the run's topic.

        What a killed predecessor of this run left on the user's cluster is removed.
        """
        # The suffix keeps two runs of the same name on one cluster apart.
        self._run = f"{topic_part(run)}-{secrets.token_hex(4)}"
        self._folder = folder
        self._wait = wait
        self._deployed = servers
        if self._spec.bootstrap and self._spec.broker:
            self._warnings.append(SettingsSkipped(sorted(self._spec.broker), self._spec.bootstrap))
        self._bring_up()

    def _bring_up(self) -> None:
        self._mute = ""
        if self._spec.bootstrap:
            self._bootstrap = self._spec.bootstrap
        else:
            free = unused_folder(self._folder, "broker")
            self._broker = self._deployed or EmbeddedBroker(free, wait=self._wait, settings=self._broker_settings())
            self._bootstrap = self._broker.start()
        topics = Topics(self._bootstrap, self._spec.properties, self._run, self._wait_for_brokers)
        if self._broker is None:
            self._data = DataTopic(topics, 0, self._records(topics), str(self._folder.absolute()))
        else:
            self._data = DataTopic(topics, self._scenario.server.count, None, "")
        self._use(self._data, shape_of(self._scenario, first_settings(self._scenario)))

    def _use(self, data: DataTopic, shape: Shape) -> None:
        """Has a topic of this shape, and watches its leaders."""
        try:
            fresh = data.use(shape)
        except OSError as e:
            raise RunDirectoryError(
                f"{self._folder / FOLDER} takes no record of the run's topic: {e.strerror}", "make room"
            ) from e
        self._topic = data.name
        # The embedded broker's end is told by its supervisor.
        if fresh and not isinstance(self._broker, EmbeddedBroker):
            if self._watch is not None:
                self._watch.close()
            self._watch = Watch(data.topics, data.name)

    def _records(self, topics: Topics) -> Records:
        """Where it is written down which topics are ours; removes what the run left on the user's cluster before."""
        in_run, in_state = self._folder / FOLDER, state_folder() / FOLDER
        records = Records(in_run, in_state)
        found = clean(topics, records, among=Records(in_run).all())
        self._warnings += [LeftEarlier("a topic", str(leftover)) for leftover in found]
        return records

    def _broker_settings(self) -> Mapping[str, str]:
        return {**broker_settings(self._scenario), **self._spec.broker}

    def _wait_for_brokers(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Waits for their answer no longer than they are there."""

        def settled() -> bool:
            # Once this is closed, nothing depends on them but the topic's end.
            if self._data is not None and (failure := self.failure()):
                raise ServerError(failure)
            return condition()

        return self._wait(settled, timeout_s)

    def program(self, role: Role) -> Program:
        """The client that the scenario names."""
        if self._scenario.client == "native":
            return Program(command("kafka", role, self._scenario.native), {})
        client = self._scenario.client
        files = _kafka_itself() if client == IMPLEMENTATION else None
        return Program.of_module(_MODULES[client], kind_of("kafka", role), files=files, libraries=LIBRARIES[client])

    def server(self) -> Program | None:
        """One Kafka, with its jars and settings."""
        return Program.of_module("hydra.kafkatest.server_main", KIND, files=_kafka_itself()) if self._deploy else None

    def cluster(self) -> ServerCluster | None:
        """One cluster of KRaft."""
        return KafkaCluster(self._broker_settings()) if self._deploy else None

    def configure(self, settings: Settings) -> dict[str, Any]:
        """The settings of producers, and the topic as it ends now: the next step starts there, or at a new topic.

        Raises:
            StepError: the brokers do not tell, or refuse the topic; they count as failed from now on.
        """
        data = self._opened()
        self._asked(lambda: self._use(data, shape_of(self._scenario, settings)))
        offsets = self._asked(data.end_offsets)
        data.begin(offsets)
        self._spare()
        at = KafkaSettings.of(settings).kill_broker_at
        if at is not None and self._broker is not None:
            self._kill = Kill(at, data.topics, data.name, self._broker, self._broker.endpoints())
        at = KafkaSettings.of(settings).move_partition_at
        if at is not None and self._broker is not None:
            self._move = Move(at, data.topics, data.name, len(self._broker.endpoints()))
        return {
            **{name: value for name, value in settings.system.items() if name != "move_partition_at"},
            "group": self._group(settings),
            "bootstrap": self._bootstrap,
            "topic": self._topic,
            "offsets": _by_text(offsets),
            "properties": dict(self._spec.properties),
        }

    def during(self, settings: Settings, elapsed_s: float, duration_s: float) -> None:  # noqa: ARG002
        """Kills a broker of our own, or moves a partition, when its moment has come."""
        if self._move is not None:
            self._move.look(elapsed_s, duration_s)
        if self._kill is not None and (killed := self._kill.look(elapsed_s, duration_s)) and self._watch is not None:
            self._watch.excuse(killed)

    def after_step(self) -> None:
        """A broker that was killed is missed from now on."""
        if self._kill is not None and self._kill.killed:
            self._mute = f"the Kafka broker at {self._kill.killed} was killed, as the scenario says"

    def server_counters(self) -> dict[str, dict[str, float]]:
        """Traffic, CPU, memory and collections of every broker whose exporter answers, and its interface's traffic."""
        if self._broker is None:
            return ask(named(self._spec.metrics))
        endpoints = self._broker.endpoints()
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
            why = "nobody told which one leads" if self._kill.due else "the window ended before its moment came"
            raise StepError(f"no broker was killed: {why}")
        return {"end_offsets": _by_text(self._end_offsets())}

    def proof(self, settings: Settings) -> Hashable:
        """The topic, the group, and what makes another consumer; all other settings are producers'."""
        kafka = KafkaSettings.of(settings)
        fetches = kafka.fetch_min_bytes, kafka.fetch_wait_max_ms, kafka.fetch_max_bytes, kafka.max_partition_fetch_bytes
        return self._bootstrap, self._topic, kafka.group, kafka.session_timeout_ms, kafka.check_crcs, fetches

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

    def _asked(self, question: Callable[[], _T]) -> _T:
        try:
            return question()
        except ServerError as e:
            self._mute = self.failure() or e.what
            raise StepError(self._mute) from e

    def _spare(self) -> None:
        """Nobody is to be killed any more."""
        if self._kill is not None:
            self._kill.close()
            self._kill = None
        if self._move is not None:
            self._move.close()
            self._move = None

    def server_processes(self) -> Sequence[int]:
        """Of an embedded server."""
        return self._broker.processes() if self._broker else ()

    def failure(self) -> str:
        """Brokers that ended, are gone or fell silent."""
        if self._mute:
            return self._mute
        return (self._broker.failure() if self._broker else "") or (self._watch.failure() if self._watch else "")

    def revive(self) -> None:
        """New brokers in the place of our own that failed or were killed; the user's are waited for.

        Raises:
            ServerError: the user's did not answer within ``COMES_BACK_WITHIN_S``, or ``ready_timeout_s`` where that is
                less.
        """
        if not self.failure():
            return
        if self._broker is not None:
            self.close()
            self._bring_up()
        elif self._data is not None and self._watch is not None:
            self._mute = ""
            self._watch.close()
            # Nobody tells of their silence again while they are waited for.
            self._watch = None
            await_return(self._answer, self._wait, self._scenario.ready_timeout_s)
            self._watch = Watch(self._data.topics, self._topic)

    def _answer(self) -> None:
        if self._data is not None:
            self._data.topics.describe(REACH_TIMEOUT_S)
            self._data.end_offsets()

    def stored_bytes(self) -> int:
        """What the logs of the run's topic take on this machine's disk."""
        return stored_bytes(self._folder, self._topic) if self._topic and not self._spec.bootstrap else 0

    def warnings(self) -> list[HydraWarning]:
        """Topics that were left behind, and what became of them."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def metadata(self) -> dict[str, str]:
        """The brokers' version if they are ours, and where the data goes."""
        metadata = {"bootstrap": self._bootstrap, "topic": self._topic}
        if self._broker is not None:
            metadata["kafka"] = self._broker.versions["kafka"]
        return metadata

    def close(self) -> None:
        """Deletes the topic, or ends the brokers if they are ours."""
        data, watch, broker = self._data, self._watch, self._broker
        self._data = self._watch = self._broker = None
        self._spare()
        if watch is not None:
            watch.close()
        try:
            if data is not None and broker is None:
                data.topics.remove_groups(group for group, known in self._groups.items() if not known)
                self._warnings += [LeftBehind(topic, self._bootstrap, CLEAN) for topic in data.close()]
        finally:
            if broker is not None:
                # The topic goes with the brokers' data.
                broker.stop()


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
