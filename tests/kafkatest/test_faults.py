"""When which broker is killed; the cluster and its servers are pretended ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException

from hydra.config.scenario import load_scenario
from hydra.kafkatest.faults import Kill, broker_settings
from hydra.kafkatest.topics import Topics
from tests.kafkatest.conftest import wait_until

ENDPOINTS = ["h:1,h:2", "h:3,h:4", "h:5,h:6"]


class Leaders(Topics):
    """Names nobody at first, then a leader."""

    def __init__(self, leader: str, silent_for: int) -> None:
        super().__init__("h:1", {}, "run")
        self.asked = 0
        self._leader, self._silent_for = leader, silent_for

    def leader(self, topic: str, partition: int, timeout_s: float) -> str:
        self.asked += 1
        if self.asked <= self._silent_for:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return self._leader


class Brokers:
    """Notes who was killed."""

    versions: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.killed: list[tuple[str, str]] = []

    def start(self) -> str:
        return "h:1"

    def failure(self) -> str:
        return ""

    def endpoints(self) -> list[str]:
        return ENDPOINTS

    def processes(self) -> list[int]:
        return []

    def kill(self, address: str, when: str) -> None:
        self.killed.append((address, when))

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    ("endpoints", "leader", "silent_for", "dies"),
    [(ENDPOINTS, "h:3", 0, "h:3"), (ENDPOINTS, "h:1", 2, "h:1"), (ENDPOINTS[:2], "h:1", 0, "h:3")],
)
def test_the_leader_is_killed_once_when_its_moment_has_come(
    endpoints: list[str], leader: str, silent_for: int, dies: str
) -> None:
    topics, brokers = Leaders(leader, silent_for), Brokers()
    kill = Kill(0.5, topics, "t", brokers, endpoints)
    assert kill.look(4.9, 10.0) == ""
    assert (kill.due, topics.asked) == (False, 0)
    wait_until(lambda: kill.look(5.25, 10.0) == dies, 5, "a kill")
    assert kill.look(5.5, 10.0) == ""
    assert brokers.killed == [(dies, "5.2 s into the window")]
    assert (kill.killed, topics.asked) == (dies, silent_for + 1)


@pytest.mark.parametrize(("overrides", "soon"), [({}, False), ({"sweep.vary.kill_broker_at": [0.2]}, True)])
def test_dead_brokers_are_noticed_soon_only_where_one_is_killed(overrides: dict[str, object], soon: bool) -> None:
    found = broker_settings(load_scenario("kafka-fixed", {"server.count": 3, **overrides}))
    assert ("broker.session.timeout.ms" in found) == soon
