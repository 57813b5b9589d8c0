"""What becomes of a run's groups and hosts, without either."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hydra.control.curve_security import ENDPOINT
from hydra.errors import ClusterError, PlacementError
from hydra.model import Agent, Constraint, Demand, Group, Resources
from hydra.ssh.facts import HostFacts
from hydra.ssh.state import HostsState, RunHost
from tests.cluster.stated import Stated


def group(name: str, **changes: Any) -> Group:
    fields = {"count": 1, "constraints": (), "demand": Demand(base_cpus=1, ports=1), **changes}
    environment = {ENDPOINT: "tcp://10.0.0.9:4444", "WORD": "x"}
    return Group(name, "subscriber", 0, command=("hydra-client", "zmq-sub"), environment=environment, **fields)


def host(name: str, *, nofile: int | None = None, forwarded: int = 0) -> RunHost:
    agent = Agent(name, name, {"on": name}, Resources(cpus=2, ports=((31000, 31003),)))
    return RunHost(agent, HostFacts(nofile=nofile), f"10.0.0.{ord(name) - 96}", forwarded)


@pytest.fixture
def run() -> Stated[HostsState]:
    return Stated(HostsState({"a": host("a"), "b": host("b", forwarded=5555)}))


def on(name: str) -> tuple[Constraint, ...]:
    return (Constraint("on", "LIKE", name),)


def test_a_group_is_started_on_its_host_with_what_it_needs_there(run: Stated[HostsState]) -> None:
    (launch,) = run.state.launch([group("g", constraints=on("a"))])
    assert launch.ports == (31000,)
    (call,) = run.calls()
    assert (call["call"], call["host"], call["group"], call["command"]) == (
        "start",
        "a",
        "g",
        ["hydra-client", "zmq-sub"],
    )
    expected = {"HYDRA_AGENT": "a", "HYDRA_DATA_HOST": "10.0.0.1", "HYDRA_PORTS": "31000", "WORD": "x"}
    assert call["environment"] == {ENDPOINT: "tcp://10.0.0.9:4444", **expected}
    assert [agent.resources.cpus for agent in run.state.agents()] == [1, 2]
    run.drive("started", host="a", group="g", pid="77")
    run.drive("ended", host="a", group="g", status="0", text="")
    assert [(e.state, e.agent, e.detail) for e in run.events()] == [
        ("running", "a", "pid 77"),
        ("finished", "a", "exit status 0"),
    ]
    assert [agent.resources.cpus for agent in run.state.agents()] == [2, 2]


def test_a_group_without_a_way_to_the_controller_goes_through_its_host(run: Stated[HostsState]) -> None:
    run.state.launch([group("g", constraints=on("b")), group("h", constraints=on("b"))])
    relay, first, second = run.calls()
    assert relay == {"call": "relay", "address": "10.0.0.9", "port": 4444}
    assert {call["environment"][ENDPOINT] for call in (first, second)} == {"tcp://127.0.0.1:5555"}


@pytest.mark.parametrize(
    ("status", "text", "state", "detail"),
    [
        ("3", "Traceback: |  x | OSError: y", "failed", "exit status 3: Traceback: | x | OSError: y"),
        ("1", "", "failed", "exit status 1"),
        ("137", "", "failed", "killed by SIGKILL"),
        ("255", "", "failed", "killed by signal 127"),
    ],
)
def test_a_group_that_fails_has_the_end_of_its_output(
    run: Stated[HostsState], status: str, text: str, state: str, detail: str
) -> None:
    run.state.launch([group("g")])
    run.drive("ended", host="a", group="g", status=status, text=text)
    (event,) = run.events()
    assert (event.state, event.detail) == (state, detail)


def test_a_killed_group_gets_two_signals_at_most(run: Stated[HostsState]) -> None:
    run.state.launch([group("g"), group("h")])
    run.calls()
    run.state.kill(["g", "h", "unknown"], run.now)
    run.state.kill(["g"], run.now)
    assert [(call["group"], call["signal"]) for call in run.calls()] == [("g", "TERM"), ("h", "TERM")]
    run.drive("ended", host="a", group="g", status="143", text="")
    for _ in range(3):
        run.pass_time(2)
    assert [(call["group"], call["signal"]) for call in run.calls()] == [("h", "KILL")]
    run.drive("ended", host="b", group="h", status="137", text="")
    assert [(e.state, e.detail) for e in run.events()] == [
        ("killed", "killed by SIGTERM"),
        ("killed", "killed by SIGKILL, as SIGTERM was not enough"),
    ]


def test_a_lost_host_takes_its_groups_and_no_others(run: Stated[HostsState]) -> None:
    run.state.launch([group("g", constraints=on("a")), group("h", constraints=on("b"))])
    run.drive("lost", host="a", stderr="Timeout, server 10.0.0.1 not responding.", status=255)
    (event,) = run.events()
    assert (event.group, event.state) == ("g", "lost")
    assert "silent for 30 s" in event.detail
    assert [agent.id for agent in run.state.agents()] == ["b"]
    run.drive("ended", host="a", group="g", status="0", text="")  # it was on its way
    assert run.events() == []
    run.drive("lost", host="b", stderr="", status=255)
    with pytest.raises(
        ClusterError, match=r"all hosts are lost \(a, b\): the connection was silent .*; .*status 255; "
    ):
        run.state.launch([group("i")])


def test_a_host_that_the_network_has_lost_is_connected_again_until_it_is_ready(run: Stated[HostsState]) -> None:
    again = {"call": "again", "host": "b"}
    run.drive("lost", host="a", stderr="", status=255)  # its supervisor was killed
    run.drive("lost", host="b", stderr="Timeout, server 10.0.0.2 not responding.", status=255)
    run.pass_time(2.9)
    assert run.calls() == []
    run.pass_time(0.2)
    assert run.calls() == [again]
    run.pass_time(60)
    assert run.calls() == []
    run.drive("lost", host="b", stderr="ssh: connect to host b port 22: No route to host", status=255)
    run.pass_time(3)
    assert run.calls() == [again]
    run.drive("hello", host="b", facts={}, forwarded=6666)
    assert run.state.agents() == []
    run.drive("ready", host="b", reach="", no_servers="")
    (launch,) = run.state.launch([group("g")])
    assert launch.agent.id == "b"
    _, start = run.calls()
    assert start["environment"][ENDPOINT] == "tcp://127.0.0.1:6666"


def test_a_host_that_refuses_the_second_connection_stays_lost(run: Stated[HostsState]) -> None:
    for stderr in ("Connection to 10.0.0.2 closed by remote host.", "root@b: Permission denied (publickey)."):
        run.drive("lost", host="b", stderr=stderr, status=255)
        run.pass_time(3)
    assert [call["call"] for call in run.calls()] == ["again"]


def test_everything_is_lost_with_the_driver(run: Stated[HostsState]) -> None:
    run.state.launch([group("g")])
    run.state.driver_ended("the process ended with 1")
    run.state.driver_ended("the process ended with 1")
    assert [e.state for e in run.events()] == ["lost"]
    with pytest.raises(ClusterError, match="the process ended with 1"):
        run.state.require_hosts()


@pytest.mark.parametrize(
    ("groups", "error", "expected"),
    [
        ([group("g", constraints=on("c"))], PlacementError, "LIKE c"),
        ([group("../g")], ClusterError, "cannot be a folder name"),
        ([group("g"), group("g")], ClusterError, "running already"),
    ],
)
def test_what_cannot_be_launched_is_refused_whole(
    run: Stated[HostsState], groups: list[Group], error: type[Exception], expected: str
) -> None:
    with pytest.raises(error, match=expected):
        run.state.launch(groups)
    assert run.calls() == []


def test_a_limit_of_open_files_that_does_not_suffice_is_named() -> None:
    run = Stated(HostsState({"a": host("a", nofile=256)}))
    run.state.launch([group("g", files=256)])
    with pytest.raises(
        ClusterError, match=r"a: a process may open 256 files \(ulimit -Hn\), and one of group h needs 257"
    ):
        run.state.launch([group("h", files=257)])


def test_a_host_on_which_servers_do_not_start_gets_clients_only(run: Stated[HostsState]) -> None:
    run.drive("ready", host="a", reach="", no_servers="mosquitto is not installed; apt install mosquitto")
    server = replace(group("s"), role="server")
    with pytest.raises(PlacementError, match="no servers start on a: mosquitto is not installed"):
        run.state.launch([replace(server, constraints=on("a"))])
    assert [launch.agent.id for launch in run.state.launch([server, replace(server, id="t")])] == ["b", "b"]
    assert [launch.agent.id for launch in run.state.launch([group("g", constraints=on("a"))])] == ["a"]
