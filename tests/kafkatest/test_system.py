"""What Kafka as a system does with the user's cluster and with brokers of its own; the cluster is a pretended one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from hydra.config.scenario import load_scenario
from hydra.errors import ServerError, StepError
from hydra.kafkatest import system as module
from hydra.kafkatest.broker import EmbeddedBroker
from hydra.kafkatest.folders import stored_bytes
from hydra.kafkatest.system import KafkaSystem
from hydra.kafkatest.topics import Cluster, Topics
from hydra.servers import recovery
from hydra.system import wait_alone
from tests.kafkatest.conftest import wait_until


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

    def end_offsets(self, topic: str) -> dict[int, int]:
        self._asked_once_more()
        return {0: 0}

    def create(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, str] | None = None,
        placement: list[list[int]] | None = None,
    ) -> str:
        self.made = dict(config or {})
        return self.name(name)

    def leader(self, topic: str, partition: int, timeout_s: float) -> str:
        return "h:3"

    def led_offsets(self, topic: str, within_s: float) -> dict[int, int]:
        return {0: 7}

    def _asked_once_more(self) -> None:
        if self.silent_for:
            self.silent_for -= 1
            raise ServerError("Kafka at h:1 does not answer")


class NoWatch:
    """Sees nothing."""

    def __init__(self, *_: object) -> None: ...

    def failure(self) -> str:
        return ""

    def excuse(self, address: str) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    cluster = Pretended()
    monkeypatch.setattr(module, "Topics", lambda *_: cluster)
    monkeypatch.setattr(module, "Watch", NoWatch)
    return cluster


@pytest.mark.parametrize(("questions", "comes_back"), [(5, True), (10**9, False)])
def test_a_cluster_that_falls_silent_between_steps_is_waited_for(
    questions: int, comes_back: bool, pretended: Pretended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_s: list[float] = []

    def wait(condition: Callable[[], bool], timeout_s: float) -> bool:
        """The channel is served meanwhile."""
        waited_s.append(timeout_s)
        return condition()

    monkeypatch.setattr(recovery, "time", SimpleNamespace(monotonic=lambda: sum(waited_s)))
    system = KafkaSystem(load_scenario("kafka-fixed", {"kafka.bootstrap": "h:1"}))
    system.open("run", tmp_path, wait)
    pretended.silent_for = questions
    with pytest.raises(StepError, match="does not answer"):
        system.finish()
    assert "does not answer" in system.failure()
    if comes_back:
        system.revive()
        assert pretended.silent_for == 0
        assert system.failure() == ""
    else:
        with pytest.raises(ServerError, match="does not answer"):
            system.revive()
        assert sum(waited_s) == pytest.approx(30, abs=1)


class Ready:
    """Brokers that are there."""

    def __init__(self) -> None:
        self.versions: Mapping[str, str] = {"kafka": "4"}
        self.starts = 0
        self.killed: list[str] = []

    def start(self) -> str:
        self.starts += 1
        return "h:1,h:3"

    def failure(self) -> str:
        return ""

    def endpoints(self) -> list[str]:
        return ["h:1,h:2", "h:3,h:4"]

    def processes(self) -> list[int]:
        return []

    def kill(self, address: str, when: str) -> None:
        self.killed.append(address)

    def stop(self) -> None: ...


def test_a_broker_that_was_killed_fails_nothing_until_the_step_is_over(pretended: Pretended, tmp_path: Path) -> None:
    scenario = load_scenario("kafka-fixed", {"server.count": 2, "settings.kill_broker_at": 0.5})
    brokers, system = Ready(), KafkaSystem(scenario, deploy=True)
    system.open("run", tmp_path, wait_alone, brokers)
    system.configure(scenario.settings)
    with pytest.raises(StepError, match="no broker was killed: the window ended before its moment came"):
        system.finish()
    system.configure(scenario.settings)

    def killed() -> bool:
        system.during(scenario.settings, 6, 10)
        return brokers.killed == ["h:3"]

    wait_until(killed, 5, "the kill")
    assert system.finish() == {"end_offsets": {"0": 7}}
    assert system.failure() == ""
    system.after_step()
    assert system.failure() == "the Kafka broker at h:3 was killed, as the scenario says"
    system.revive()
    assert (system.failure(), brokers.starts) == ("", 2)
    system.close()


@pytest.mark.parametrize(
    ("settings", "hours"),
    [
        ({"sweep.duration_s": 1800}, 2),
        ({"sweep.duration_s": 86_400, "drain_max_s": 1800}, 50),
    ],
)
def test_brokers_of_our_own_keep_two_steps_however_long_they_are(
    settings: Mapping[str, object], hours: float, pretended: Pretended, tmp_path: Path
) -> None:
    system = KafkaSystem(load_scenario("kafka-fixed", settings), deploy=True)
    system.open("run", tmp_path, wait_alone, Ready())
    assert pretended.made == {"retention.ms": str(round(hours * 3_600_000))}


def test_what_a_topic_takes_on_the_disk_is_seen_in_the_brokers_folder(broker: EmbeddedBroker, topics: Topics) -> None:
    assert broker.pids is not None
    folder = Path(f"/proc/{broker.pids[1]}/cwd").resolve().parent
    name, other = topics.create("data", partitions=2), topics.create("other")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    empty = stored_bytes(folder, name), stored_bytes(folder, other)
    for n in range(20):
        producer.produce(name, b"x" * 100_000, None, n % 2)
    assert producer.flush(10) == 0
    grown = stored_bytes(folder, name) - empty[0]
    # Besides the messages, entries of indices.
    assert 2_000_000 <= grown < 2_200_000
    assert stored_bytes(folder, other) == empty[1]
