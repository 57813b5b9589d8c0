"""The topic's first partition is moved in the middle of a step."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from hydra import plugins
from hydra.config.scenario import load_scenario
from hydra.kafkatest.faults import Move, broker_settings
from hydra.model import EventSpec, StepPlan, value_of
from tests.integration.command import wait_until


class Cluster:
    """Refuses a few times, and then takes a move."""

    def __init__(self, refusals: int) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self._refusals = refusals

    def move(self, topic: str, partition: int, brokers: int, timeout_s: float) -> list[int]:
        self.asked.append((topic, partition, brokers))
        if len(self.asked) <= self._refusals:
            raise KafkaException(KafkaError(KafkaError._FAIL))
        return [2]


@pytest.mark.parametrize("refusals", [0, 2])
def test_a_partition_is_moved_once_when_its_moment_has_come(refusals: int) -> None:
    cluster: Any = Cluster(refusals)
    move = Move(0.5, cluster, "t", 3)
    move.look(4.9, 10.0)
    assert cluster.asked == []

    def moved() -> bool:
        move.look(5.0, 10.0)
        return move.moved

    wait_until(moved, 10, "the move")
    move.look(6.0, 10.0)
    assert cluster.asked == [("t", 0, 3)] * (refusals + 1)
    move.close()


@pytest.mark.parametrize(
    ("kind", "setting"), [("kill_server", "kill_broker_at"), ("move_partition", "move_partition_at")]
)
def test_an_event_becomes_a_setting_of_the_step_and_not_of_its_warm_up(kind: str, setting: str) -> None:
    event = {"at_s": 15.0, "kind": kind}
    scenario = load_scenario("kafka-fixed", {"server.count": 2, "events": [event], "sweep.duration_s": 60.0})
    spec = plugins.system("kafka")
    plan = StepPlan(2, scenario.settings, 60.0)
    disturbed = spec.disturbed(plan.settings, EventSpec(15.0, kind), 60.0)
    assert value_of(disturbed, setting) == 0.25
    assert spec.undisturbed(disturbed) == scenario.settings


def test_dead_brokers_are_noticed_soon_where_an_event_kills_one() -> None:
    killed = load_scenario("kafka-fixed", {"server.count": 2, "events": [{"at_s": 1.0, "kind": "kill_server"}]})
    assert "broker.session.timeout.ms" in broker_settings(killed)
