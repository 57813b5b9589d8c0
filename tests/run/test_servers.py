"""Which servers a scenario needs as groups, and the errors if they do not fit or start."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import Mock

import pytest
from pyroaring import BitMap

from hydra.config.cluster import load_cluster
from hydra.config.file_locations import scenarios
from hydra.config.scenario import resolve
from hydra.control.controller import Controller
from hydra.engine.group_sizing import split
from hydra.engine.interface import GroupEvents
from hydra.errors import PlacementError, ServerError
from hydra.events.event import Event
from hydra.events.group_events import Launched
from hydra.events.run_events import ServerExit
from hydra.model import Group, GroupEvent, Launch, ServerSpec
from hydra.monitor.progress_view import Observer, ServerStartup
from hydra.run import deployed_servers as module
from hydra.run.deployed_servers import FIRST_ID, STARTS, DeployedServers
from hydra.run.placement_preview import roles_on
from hydra.system import Program
from hydra.wire.messages import Halt, Join, Ready, encode
from tests.control.rosters import hello
from tests.run.contexts import ReportedEvents, context
from tests.suite.waiting import wait_until

KAFKA = [name for name in scenarios() if "kafka" in name]


@pytest.mark.parametrize(
    ("name", "overrides", "here", "present"),
    [
        ("zmqfixed", {}, None, None),
        ("kafka-fixed", {}, None, (1, 2)),
        # They take the ports that are offered, and on this machine any that are free.
        ("kafka-fixed", {"server.count": 3}, (3, 0), (3, 2)),
        ("kafka-fixed", {"kafka.bootstrap": "h:9092"}, None, None),
    ],
)
def test_servers_are_groups_on_agents_and_where_there_are_several(
    name: str, overrides: dict[str, object], here: tuple[int, int] | None, present: tuple[int, int] | None
) -> None:
    specs = [resolve(name, overrides).server_groups(is_local=is_local) for is_local in (True, False)]
    assert [spec and (spec.count, spec.demand.ports) for spec in specs] == [here, present]


@pytest.mark.parametrize("name", KAFKA)
def test_shipped_brokers_are_on_hosts_of_their_own_beside_the_subscribers(name: str) -> None:
    agents, spec = load_cluster().agents, resolve(name).scenario.server
    assert split(3, agents, spec, 1, role="server") == [1, 1, 1]
    with pytest.raises(PlacementError, match=r"4 servers .*hostname MAX_PER 1 refuses 3 of 3"):
        split(4, agents, spec, 1, role="server")
    roles = {agent.id: roles_on(agent, resolve(name)) for agent in agents}
    assert roles["agent-sub-1"] == ["subscriber", "server"]
    assert roles["agent-pub"] == ["publisher"]


class Slow:
    """Servers that answer once they are asked to; not at all without that."""

    def __init__(self, answer: Callable[[], bool] = lambda: False) -> None:
        self._answer = answer
        self.warmed: list[str] = []

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        return [{"number": number} for number, _ in enumerate(endpoints)]

    def address(self, endpoints: Sequence[str]) -> str:
        return "|".join(endpoints)

    def up(self, address: str) -> bool:
        return self._answer()

    def warm_up(self, address: str) -> None:
        self.warmed.append(address)


def test_everybody_is_told_of_their_own_groups_once_and_in_order() -> None:
    engine = ReportedEvents()
    events = GroupEvents(engine)
    happened = [GroupEvent(group, "running", "a") for group in ("x", "y", "x")]
    engine.data = list(happened)
    assert events.take({"y"}) == [happened[1]]
    last = GroupEvent("x", "failed", "a")
    engine.data = [last]
    assert events.take({"x"}) == [happened[0], happened[2], last]
    assert events.take({"x", "y"}) == []


def test_the_end_of_a_group_that_was_let_go_waits_for_nobody() -> None:
    engine = ReportedEvents()
    events = GroupEvents(engine)
    engine.data = [GroupEvent("x", "running", "a"), GroupEvent("y", "failed", "a")]
    assert events.take({"z"}) == []
    for group in ("x", "y"):
        events.ignore(group)
    engine.data = [GroupEvent("x", "killed", "a")]
    assert events.take({"x", "y", "z"}) == []
    # The next one of that name is another server.
    engine.data = [GroupEvent("x", "running", "b"), GroupEvent("y", "running", "b")]
    assert [event.group for event in events.take({"x", "y"})] == ["x", "y"]


@pytest.fixture
def controller() -> Iterator[Controller]:
    made = Controller("run")
    yield made
    made.close()


def deployed(
    engine: ReportedEvents,
    controller: Controller,
    notes: list[Event] | None = None,
    cluster: Slow | None = None,
    starting: ServerStartup | None = None,
) -> DeployedServers:
    resolved = resolve("zmqfixed", {"ready_timeout_s": 20.0})
    run = context(resolved=resolved, engine=engine, controller=controller, note=([] if notes is None else notes).append)
    starting = starting or ServerStartup(Observer(io.StringIO()), "2 toys", controller.wait_until)
    return DeployedServers(run, Program(("toy",), {}), cluster or Slow(), ServerSpec(count=2), starting)


@pytest.mark.tier("test")
def test_a_server_that_fails_while_they_come_up_is_told_with_its_last_words(controller: Controller) -> None:
    engine, notes = ReportedEvents("failed"), list[Event]()
    with pytest.raises(ServerError, match="the server servers-1 on host-a failed: exit status 1: no java"):
        deployed(engine, controller, notes).start()
    assert (engine.launched, engine.killed) == (["servers-1", "servers-2"], ["servers-2"])
    assert [type(note) for note in notes] == [Launched, Launched, ServerExit]


@pytest.mark.tier("test")
def test_servers_whose_agents_are_lost_are_launched_again_until_it_is_enough(controller: Controller) -> None:
    engine = ReportedEvents("lost")
    with pytest.raises(ServerError, match=f"started {STARTS} times, last: the server servers-7 on host-a lost"):
        deployed(engine, controller).start()
    assert len(engine.launched) == 2 * STARTS


class ReadyAtOnce(ReportedEvents):
    """What is launched dials in and is ready at once."""

    def __init__(self, controller: Controller) -> None:
        super().__init__()
        self._roster = controller.roster

    def launch(self, groups: Sequence[Group]) -> list[Launch]:
        for group in groups:
            client = group.first_client
            dialled = hello([client], group=group.id, role="server")
            for message in (dialled, Ready(ids=[client], seq=2, epoch=0, endpoint="h:1,h:2")):
                self._roster.receive(group.id.encode(), encode(message))
        return super().launch(groups)


@pytest.mark.tier("test")
def test_servers_are_told_of_each_other_until_they_answer(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[tuple[int, Join]] = []
    monkeypatch.setattr(controller, "send_to", lambda ids, command: messages.append((*ids, command)))
    cluster = Slow(lambda: len(messages) > 2)
    servers = deployed(ReadyAtOnce(controller), controller, cluster=cluster)
    assert servers.start() == "h:1,h:2|h:1,h:2"
    both = [(FIRST_ID, {"number": 0}), (FIRST_ID + 1, {"number": 1})]
    assert [(client, command.system) for client, command in messages] == both * 2
    assert cluster.warmed == ["h:1,h:2|h:1,h:2"]
    assert servers.versions["libzmq"] == "4.3.5"


@pytest.mark.tier("test")
def test_a_server_starts_again_only_after_it_has_acknowledged_its_end(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[tuple[int, Join | Halt]] = []
    monkeypatch.setattr(controller, "send_to", lambda ids, command: messages.append((*ids, command)))
    monkeypatch.setattr(module, "accepts", lambda *_: True)
    monkeypatch.setattr(module, "RESEND_EVERY_S", 0.0)
    before, engine, last = set(threading.enumerate()), ReadyAtOnce(controller), FIRST_ID + 1
    servers = deployed(engine, controller, cluster=Slow(lambda: True))
    servers.start()
    controller.roster.begin(3)
    for start in (1, 2):
        messages.clear()
        assert servers.halt() == "h:1,h:2"
        assert not servers.is_back()
        halt = Halt(epoch=3, number=start, start=start)
        assert messages == 2 * [(last, halt)], "it is repeated: it may have been lost"
        controller.roster.answers.acknowledge(halt.number, BitMap([last]))
        assert not servers.is_back()
        assert len(messages) == 2
        servers.start_again()
        wait_until(servers.is_back, "its return")
        assert messages[-1] == (last, Join(system={"number": 1}, start=start + 1))
        assert not servers.is_back()
    servers.halt()
    engine.data = [GroupEvent("servers-1", "lost", "a", "the agent is gone")]
    with pytest.raises(ServerError, match="the server servers-1 on host-a lost: the agent is gone"):
        servers.is_back()
    servers.stop()
    wait_until(lambda: set(threading.enumerate()) <= before, "the end of the threads", saw=threading.enumerate)


@pytest.mark.tier("test")
def test_no_thread_is_left_of_servers_that_do_not_come_up(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, engine = set(threading.enumerate()), ReadyAtOnce(controller)
    ended = GroupEvent("servers-1", "failed", "a", "exit status 1")
    monkeypatch.setattr(controller, "send_to", lambda *_: setattr(engine, "data", [ended]))
    with pytest.raises(ServerError, match="servers-1 on host-a failed"):
        deployed(engine, controller).start()
    wait_until(lambda: set(threading.enumerate()) <= before, "the end of the threads", saw=threading.enumerate)


@pytest.mark.tier("test")
def test_a_start_that_is_interrupted_says_that_they_are_ended(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    observer, engine = Observer(io.StringIO()), ReportedEvents()
    monkeypatch.setattr(observer, "preparing", lambda what: texts.append(str(what)))
    monkeypatch.setattr(engine, "launch", Mock(side_effect=KeyboardInterrupt))
    starting = ServerStartup(observer, "2 toys", controller.wait_until)
    servers = deployed(engine, controller, starting=starting)
    with pytest.raises(KeyboardInterrupt), starting.shown():
        servers.start()
    assert texts[-2:] == ["starting 2 toys: ending them (for 0 s)", "None"]
