"""Which brokers a scenario needs as groups, and what it says where they do not fit."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from hydra.cluster.engine import GroupEvents
from hydra.cluster.splitting import split
from hydra.config.scenario import load_cluster, load_scenario, scenarios
from hydra.control.controller import Controller
from hydra.errors import BrokerError, PlacementError
from hydra.events.event import Event
from hydra.events.happened import Launched, ServerExit
from hydra.model import Agent, BrokerSpec, Group, GroupEvent, GroupState, Launch, Resources
from hydra.run.brokers import FIRST_ID, STARTS, DeployedBrokers, required
from hydra.run.launcher import roles_on
from hydra.system import Program, wait_alone
from hydra.wire.messages import KafkaCluster, Ready, encode
from tests.control.test_roster import hello

KAFKA = [name for name in scenarios() if "kafka" in name]


@pytest.mark.parametrize(
    ("name", "overrides", "here", "there"),
    [
        ("zmqfixed", {}, None, None),
        ("kafka-fixed", {}, None, 1),
        ("kafka-fixed", {"broker.count": 3}, 3, 3),
        ("kafka-fixed", {"broker.count": 3, "kafka.bootstrap": "h:9092"}, None, None),
    ],
)
def test_brokers_are_groups_on_agents_and_where_there_are_several(
    name: str, overrides: dict[str, object], here: int | None, there: int | None
) -> None:
    scenario = load_scenario(name, overrides)
    counts = [spec and spec.count for spec in (required(scenario, is_local=True), required(scenario, is_local=False))]
    assert counts == [here, there]


def test_brokers_take_what_is_offered_and_on_this_machine_any_free_ports() -> None:
    scenario = load_scenario("kafka-fixed", {"broker.count": 2})
    ports = [spec.demand.ports for is_local in (True, False) if (spec := required(scenario, is_local=is_local))]
    assert ports == [0, 2]


@pytest.mark.parametrize("name", KAFKA)
def test_shipped_brokers_are_on_hosts_of_their_own_beside_the_subscribers(name: str) -> None:
    agents, spec = load_cluster().agents, load_scenario(name).broker
    assert split(3, agents, spec, 1, role="broker") == [1, 1, 1]
    with pytest.raises(PlacementError, match=r"4 broker clients .*hostname MAX_PER 1 refuses 3 of 3"):
        split(4, agents, spec, 1, role="broker")
    roles = {agent.id: roles_on(agent, load_scenario(name)) for agent in agents}
    assert roles["agent-sub-1"] == ["subscriber", "broker"]
    assert roles["agent-pub"] == ["publisher"]


class Told:
    """An engine of which only the events matter; what is launched ends at once in the state ``fate``."""

    address, is_local = "", True

    def __init__(self, fate: GroupState = "running") -> None:
        self.told: list[GroupEvent] = []
        self.launched: list[str] = []
        self.killed: list[str] = []
        self._fate = fate

    def events(self) -> list[GroupEvent]:
        told, self.told = self.told, []
        return told

    def agents(self) -> list[Agent]:
        return []

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        self.launched += [group.id for group in groups]
        # The first ends by itself, the others when they are killed.
        self.told.append(GroupEvent(groups[0].id, self._fate, "a", "exit status 1: no java"))
        return [Launch(group, Agent("a", "host-a", {}, Resources())) for group in groups]

    def kill(self, groups: Iterable[str]) -> None:
        for group in groups:
            self.killed.append(group)
            self.told.append(GroupEvent(group, "killed", "a"))

    def close(self) -> None: ...


def test_everybody_is_told_of_their_own_groups_once_and_in_order() -> None:
    engine = Told()
    events = GroupEvents(engine)
    happened = [GroupEvent(group, "running", "a") for group in ("x", "y", "x")]
    engine.told = list(happened)
    assert events.take({"y"}) == [happened[1]]
    last = GroupEvent("x", "failed", "a")
    engine.told = [last]
    assert events.take({"x"}) == [happened[0], happened[2], last]
    assert events.take({"x", "y"}) == []


def test_the_end_of_a_group_that_was_let_go_waits_for_nobody() -> None:
    engine = Told()
    events = GroupEvents(engine)
    engine.told = [GroupEvent("x", "running", "a"), GroupEvent("y", "failed", "a")]
    assert events.take({"z"}) == []
    for group in ("x", "y"):
        events.ignore(group)
    engine.told = [GroupEvent("x", "killed", "a")]
    assert events.take({"x", "y", "z"}) == []
    # The next one of that name is somebody else.
    engine.told = [GroupEvent("x", "running", "b"), GroupEvent("y", "running", "b")]
    assert [event.group for event in events.take({"x", "y"})] == ["x", "y"]


@pytest.fixture
def controller() -> Iterator[Controller]:
    made = Controller("run")
    yield made
    made.close()


def deployed(engine: Told, controller: Controller, notes: list[Event]) -> DeployedBrokers:
    spec = replace(BrokerSpec(), count=2)
    program = Program(("kafka",), {})
    events = GroupEvents(engine)
    return DeployedBrokers(engine, events, controller, program, spec, 20.0, notes.append)


def test_a_broker_that_fails_while_they_come_up_is_told_with_its_last_words(controller: Controller) -> None:
    engine, notes = Told("failed"), list[Event]()
    with pytest.raises(BrokerError, match="the broker brokers-1 on host-a failed: exit status 1: no java"):
        deployed(engine, controller, notes).start()
    assert (engine.launched, engine.killed) == (["brokers-1", "brokers-2"], ["brokers-2"])
    assert [type(note) for note in notes] == [Launched, Launched, ServerExit]


def test_brokers_whose_agents_are_lost_are_launched_again_until_it_is_enough(controller: Controller) -> None:
    engine = Told("lost")
    with pytest.raises(BrokerError, match=f"brought up {STARTS} times, last: the broker brokers-7 on host-a lost"):
        deployed(engine, controller, []).start()
    assert len(engine.launched) == 2 * STARTS


class ReadyAtOnce(Told):
    """What is launched dials in and is ready at once."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._roster = controller.roster

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        for group in groups:
            client = group.first_client
            dialled = hello([client], group=group.id, role="broker")
            for message in (dialled, Ready(ids=[client], seq=2, epoch=0, endpoint="h:1,h:2")):
                self._roster.receive(group.id.encode(), encode(message))
        return super().launch(groups)


@pytest.mark.processes
def test_brokers_are_told_of_their_cluster_until_it_answers(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, KafkaCluster]] = []
    monkeypatch.setattr(controller, "tell", lambda ids, command: told.append((*ids, command)))
    monkeypatch.setattr(
        "hydra.run.brokers.membership", lambda *_: (told[0][1].cluster, 2) if len(told) > 2 else (None, 0)
    )
    monkeypatch.setattr("hydra.run.brokers.warm_up", lambda *_: None)
    deployed(ReadyAtOnce(controller), controller, []).start()
    assert [client for client, _ in told] == [FIRST_ID, FIRST_ID + 1] * 2


def test_no_thread_is_left_of_brokers_that_do_not_come_up(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, engine = set(threading.enumerate()), ReadyAtOnce(controller)
    ended = GroupEvent("brokers-1", "failed", "a", "exit status 1")
    monkeypatch.setattr(controller, "tell", lambda *_: setattr(engine, "told", [ended]))
    monkeypatch.setattr("hydra.run.brokers.membership", lambda *_: (None, 0))
    with pytest.raises(BrokerError, match="brokers-1 on host-a failed"):
        deployed(engine, controller, []).start()
    assert wait_alone(lambda: set(threading.enumerate()) <= before, 10)
