"""What Kafka as a system does with the user's cluster and with brokers of its own; the cluster is a pretended one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from hydra.config import plugins
from hydra.config.scenario import load_scenario
from hydra.errors import ServerError, StepError
from hydra.kafkatest import system as module
from hydra.kafkatest.broker import LocalBroker
from hydra.kafkatest.faults import Kill, Move, broker_settings
from hydra.kafkatest.step_topic import stored_bytes
from hydra.kafkatest.system import KafkaSystem
from hydra.kafkatest.topics import Cluster, Topics
from hydra.model import EventSpec, value_of
from hydra.system import disturbed, undisturbed, wait_alone
from hydra.system import server_system as servers
from tests.suite.waiting import SOON_S, wait_until


class Brokers:
    """They are always well. Attributes: ``starts``, and who was ``killed`` when."""

    versions: Mapping[str, str] = {"kafka": "4"}
    sources: Mapping[str, str] = {}

    def __init__(self, endpoints: Sequence[str] = ("h:1,h:2", "h:3,h:4")) -> None:
        self.starts = 0
        self.killed: list[tuple[str, str]] = []
        self._endpoints = list(endpoints)

    def start(self) -> str:
        self.starts += 1
        return ",".join(endpoint.partition(",")[0] for endpoint in self._endpoints)

    def failure(self) -> str:
        return ""

    def endpoints(self) -> list[str]:
        return self._endpoints

    def processes(self) -> list[int]:
        return []

    def kill(self, address: str, when: str) -> None:
        self.killed.append((address, when))

    def halt(self) -> str:
        return self._endpoints[-1]

    def start_again(self) -> None: ...

    def is_back(self) -> bool:
        return True

    def stop(self) -> None: ...


class Pretended(Topics):
    """A cluster of which every question fails as long as it does not answer."""

    made: Mapping[str, str]

    def __init__(self, *_: object) -> None:
        super().__init__("h:1", {}, "run")
        self.silent_for = 0
        """Questions that are still to fail."""

    def describe(self, timeout_s: float = 0.0) -> Cluster:
        self._asked_once_more()
        return Cluster("c", 1, frozenset())

    def end_offsets_of(self, topics: Sequence[str], within_s: float | None = None) -> list[dict[int, int]]:
        self._asked_once_more()
        return [{0: 0} for _ in topics]

    def create_all(  # type: ignore[override]
        self, names: Sequence[str], partitions: int, replicas: int, config: Mapping[str, str], placement: object
    ) -> list[str]:
        self.made = dict(config)
        return [self.name(name) for name in names]

    def lacks(self, topic: str, rights: Iterable[str]) -> list[str]:
        return []

    def leader(self, topic: str, partition: int, timeout_s: float) -> str:
        return "h:3"

    def led_offsets(self, topic: str, within_s: float) -> dict[int, int]:
        return {0: 7}

    def _asked_once_more(self) -> None:
        if self.silent_for:
            self.silent_for -= 1
            raise ServerError("Kafka at h:1 does not answer")


class Calm:
    """Watches brokers, all of which live."""

    def __init__(self, *_: object) -> None: ...

    def failure(self) -> str:
        return ""

    def excuse(self, address: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    cluster = Pretended()
    monkeypatch.setattr(module, "Topics", lambda *_: cluster)
    monkeypatch.setattr(module, "BrokerMonitor", Calm)
    return cluster


def test_a_cluster_that_falls_silent_between_steps_is_waited_for(
    pretended: Pretended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "time", SimpleNamespace(monotonic=lambda: 0.0))
    system = KafkaSystem(load_scenario("kafka-fixed", {"kafka.bootstrap": "h:1"}))
    # The channel is served meanwhile.
    system.open("run", tmp_path, lambda condition, timeout_s: condition())
    pretended.silent_for = 5
    with pytest.raises(StepError, match="does not answer"):
        system.finish()
    assert "does not answer" in system.servers.failure()
    system.servers.revive()
    assert (pretended.silent_for, system.servers.failure()) == (0, "")


def test_a_broker_that_was_killed_fails_nothing_until_the_step_is_over(pretended: Pretended, tmp_path: Path) -> None:
    scenario = load_scenario("kafka-fixed", {"server.count": 2, "settings.kill_broker_at": 0.5})
    brokers, system = Brokers(), KafkaSystem(scenario, deploy=True)
    system.open("run", tmp_path, wait_alone, brokers)
    system.configure(scenario.settings)
    with pytest.raises(StepError, match="no broker was killed: the window ended before the kill was due"):
        system.finish()
    system.configure(scenario.settings)

    wait_until(lambda: brokers.killed, "the kill", between=lambda: system.during(scenario.settings, 6, 10))
    assert [address for address, _ in brokers.killed] == ["h:3"]
    assert system.finish() == {"end_offsets": {"0": 7}}
    assert system.servers.failure() == ""
    system.after_step()
    assert system.servers.failure() == "the Kafka broker at h:3 was killed, as the scenario demands"
    system.servers.revive()
    assert (system.servers.failure(), brokers.starts) == ("", 2)
    system.close()


@pytest.mark.parametrize(
    ("settings", "hours"), [({"sweep.duration_s": 1800}, 2), ({"sweep.duration_s": 86_400, "drain_max_s": 1800}, 50)]
)
def test_brokers_of_our_own_keep_two_steps_however_long_they_are(
    settings: Mapping[str, object], hours: float, pretended: Pretended, tmp_path: Path
) -> None:
    system = KafkaSystem(load_scenario("kafka-fixed", settings), deploy=True)
    system.open("run", tmp_path, wait_alone, Brokers())
    assert pretended.made == {"retention.ms": str(round(hours * 3_600_000))}


@pytest.mark.tier("all")
def test_what_a_topic_takes_on_the_disk_is_seen_in_the_brokers_folder(broker: LocalBroker, topics: Topics) -> None:
    assert broker.pids is not None
    folder = Path(f"/proc/{broker.pids[1]}/cwd").resolve().parent
    name, other = topics.create("data", partitions=2), topics.create("other")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    empty = stored_bytes(folder, name), stored_bytes(folder, other)
    for n in range(20):
        producer.produce(name, b"x" * 100_000, None, n % 2)
    assert producer.flush(SOON_S) == 0
    grown = stored_bytes(folder, name) - empty[0]
    # Besides the messages, entries of indices.
    assert 2_000_000 <= grown < 2_200_000
    assert stored_bytes(folder, other) == empty[1]


ENDPOINTS = ["h:1,h:2", "h:3,h:4", "h:5,h:6"]


class Moving(Topics):
    """Refuses a few times, and then names a leader, or takes a move."""

    def __init__(self, refusals: int, leader: str = "") -> None:
        super().__init__("h:1", {}, "run")
        self.requests: list[tuple[str, int]] = []
        self._leader, self._refusals = leader, refusals

    def leader(self, topic: str, partition: int, timeout_s: float) -> str:
        self.requests.append((topic, partition))
        if len(self.requests) <= self._refusals:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return self._leader

    def move(self, topic: str, partition: int, brokers: int, timeout_s: float) -> list[int]:
        self.leader(topic, partition, timeout_s)
        return [brokers]


@pytest.mark.parametrize(
    ("endpoints", "leader", "refusals", "dies"),
    [(ENDPOINTS, "h:3", 0, "h:3"), (ENDPOINTS, "h:1", 2, "h:1"), (ENDPOINTS[:2], "h:1", 0, "h:3")],
)
def test_the_leader_is_killed_once_when_its_moment_has_come(
    endpoints: list[str], leader: str, refusals: int, dies: str
) -> None:
    topics, brokers = Moving(refusals, leader), Brokers()
    kill = Kill(0.5, topics, "t", brokers, endpoints)
    assert kill.look(4.9, 10.0) == ""
    assert (kill.due, topics.requests) == (False, [])
    wait_until(lambda: kill.look(5.25, 10.0) == dies, "the kill")
    assert kill.look(5.5, 10.0) == ""
    assert brokers.killed == [(dies, "5.2 s into the window")]
    assert (kill.killed, len(topics.requests)) == (dies, refusals + 1)


@pytest.mark.parametrize("refusals", [0, 2])
def test_a_partition_is_moved_once_when_its_moment_has_come(refusals: int) -> None:
    cluster = Moving(refusals)
    move = Move(0.5, cluster, "t", 3)
    move.look(4.9, 10.0)
    assert cluster.requests == []
    wait_until(lambda: move.moved, "the move", between=lambda: move.look(5.0, 10.0))
    move.look(6.0, 10.0)
    assert cluster.requests == [("t", 0)] * (refusals + 1)
    move.close()


@pytest.mark.parametrize(
    ("kind", "setting"), [("kill_server", "kill_broker_at"), ("move_partition", "move_partition_at")]
)
def test_an_event_becomes_a_setting_of_the_step_and_not_of_its_warm_up(kind: str, setting: str) -> None:
    event = {"at_s": 15.0, "kind": kind}
    scenario = load_scenario("kafka-fixed", {"server.count": 2, "events": [event], "sweep.duration_s": 60.0})
    spec = plugins.system("kafka")
    changed = disturbed(spec, scenario.settings, EventSpec(15.0, kind), 60.0)
    assert value_of(changed, setting) == 0.25
    assert undisturbed(spec, changed) == scenario.settings


@pytest.mark.parametrize(
    ("overrides", "soon"),
    [
        ({}, False),
        ({"sweep.vary.kill_broker_at": [0.2]}, True),
        ({"events": [{"at_s": 1.0, "kind": "kill_server"}]}, True),
        ({"server.count": 1, "events": [{"at_s": 1.0, "kind": "restart_server", "for_s": 1.0}]}, True),
    ],
)
def test_dead_brokers_are_noticed_soon_only_where_one_is_killed(overrides: dict[str, object], soon: bool) -> None:
    found = broker_settings(load_scenario("kafka-fixed", {"server.count": 3, **overrides}))
    assert ("broker.session.timeout.ms" in found) == soon
