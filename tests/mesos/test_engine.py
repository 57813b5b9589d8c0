"""The Mesos engine against the test master: the interface of every engine, and what a cluster does to it."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from hydra.engine.driver_engine import DriverProcess
from hydra.engine.driver_pipe import DriverPipe
from hydra.errors import ClusterError, PlacementError, UsageError
from hydra.mesos import engine as module
from hydra.mesos.engine import MesosEngine
from hydra.mesos.master import end_run, leftovers
from hydra.mesos.settings import MesosSettings
from hydra.model import Constraint, Demand, Group, GroupEvent, Launch
from tests.mesos.agent import Agent, Task
from tests.mesos.cluster import Cluster, running
from tests.mesos.http import Answer, Request
from tests.mesos.master import Master
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("all")
pytest.importorskip("pymesos", reason="pip install ./shims/http-parser '.[mesos]'")

LARGE = (Constraint("group", "CLUSTER", "cpu16-mem60"),)
SLEEP = ("/bin/sleep", "100")
KEY = "k3y-of-the-run"


class Watched:
    """An engine whose events are kept."""

    def __init__(self, engine: MesosEngine) -> None:
        self.engine = engine
        self.seen: list[GroupEvent] = []

    def event(self, group: str, state: str) -> GroupEvent:
        """Waits for it."""

        def found() -> list[GroupEvent]:
            self.seen += self.engine.events()
            return [e for e in self.seen if (e.group, e.state) == (group, state)]

        return wait_until(found, f"group {group} {state}", saw=lambda: self.seen)[0]

    def run(self, *groups: Group) -> list[Launch]:
        """Launches the groups and waits until all of them run."""
        launches = self.engine.launch(groups)
        for each in groups:
            self.event(each.id, "running")
        return launches

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits while the engine continues."""
        wait_until(lambda: (self.engine.events(), condition())[1], what)


@contextmanager
def engine(cluster: Cluster, folder: Path, **spec: Any) -> Iterator[Watched]:
    made = MesosEngine(cluster.address, MesosSettings(user="root", **spec), "run-1", None, folder / "mesos.log")
    with closing(made):
        made.await_offers()
        yield Watched(made)


def group(name: str, command: tuple[str, ...] = SLEEP, *, cpus: float = 0.5, mem: float = 64, **more: Any) -> Group:
    return Group(name, "subscriber", 0, 1, command, {"KEY": KEY}, Demand(cpus, mem), **more)


@pytest.mark.tier("test")
def test_groups_are_placed_started_ended_and_explained_and_nothing_stays(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:
        assert [agent.hostname for agent in it.engine.agents()] == ["agent-pub", "agent-sub-1", "agent-sub-2"]
        script = 'echo "$KEY $HYDRA_DATA_HOST" >&2; exit 3'
        launches = it.engine.launch([group("a", ("/bin/sh", "-c", script), constraints=LARGE), group("b")])
        assert {launch.agent.hostname for launch in launches} <= {"agent-pub", "agent-sub-1", "agent-sub-2"}
        it.event("b", "running")
        failed = it.event("a", "failed")
        assert failed.detail == f"{KEY} 127.0.0.1 (TASK_FAILED: Command exited with status 3)"
        it.engine.kill(["b", "unknown"])
        it.event("b", "killed")
        it.run(group("left"))
        with pytest.raises(PlacementError, match="0 of 3 agents match group CLUSTER huge; seen: cpu16-mem60 x2, cpu4"):
            it.engine.launch([group("c", constraints=(Constraint("group", "CLUSTER", "huge"),))])
    (subscribe,) = cluster.calls("SUBSCRIBE")
    info = subscribe["subscribe"]["framework_info"]
    assert (info["name"], info["capabilities"]) == ("hydra/run-1", [{"type": "PARTITION_AWARE"}])
    assert it.engine._driver.process.poll() == 0
    assert cluster.ask(lambda: cluster.master.frameworks) == {}
    wait_until(lambda: cluster.states()["left.1"] == "TASK_KILLED", "the end of what ran", saw=cluster.states)
    it.engine.close()


def test_no_call_waits_for_a_master_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        made = MesosEngine(address, MesosSettings(user="root"), "run-1", None, tmp_path / "log")
        with monkeypatch.context() as patch:
            patch.setattr(DriverPipe, "wait", lambda *_: pytest.fail("a call waits for the driver"))
            assert (made.agents(), made.events()) == ([], [])
            made.kill(["a"])
        with pytest.raises(ClusterError, match=r"took our framework within 0\.3 s"):
            made.await_offers(0.3)
        made._driver.process.kill()
        made.close()


@pytest.mark.parametrize("fails", ["_program", "MesosState", "getpass"])
def test_nothing_is_left_of_an_engine_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    breaks = Mock(side_effect=LookupError("in the middle of it"))
    made: list[DriverProcess] = []

    def drive(program: str, log: Path) -> DriverProcess:
        made.append(DriverProcess(program, log))
        return made[0]

    monkeypatch.setattr(module, "DriverProcess", drive)
    monkeypatch.setattr(module, fails, Mock(getuser=breaks) if fails == "getpass" else breaks)
    with pytest.raises(LookupError, match="in the middle of it"):
        MesosEngine("127.0.0.1:1", MesosSettings(), "run-1", None, tmp_path / "mesos.log")
    try:
        assert made[0].closed
    finally:
        made[0].close()


def test_a_hundred_groups_are_launched_by_one_call_for_each_agent(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On agents that report nothing: the updates of a hundred groups are 300 calls, each after the last answer."""

    async def silent(_: Agent, task: Task) -> None:
        task.state = "TASK_RUNNING"

    monkeypatch.setattr(Agent, "_run", silent)
    with engine(cluster, tmp_path) as it:
        it.engine.launch([group(f"g{n}", cpus=0.1, mem=32) for n in range(100)])
        it.until(lambda: len(cluster.states()) == 100, "the tasks of all groups")
        calls = Counter(call["type"] for call in cluster.ask(lambda: list(cluster.master.calls)))
        assert calls == {"SUBSCRIBE": 1, "REVIVE": 1, "ACCEPT": len(cluster.agents)}


def test_the_end_overtakes_what_waits_to_be_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Master._answer

    async def late(master: Master, request: Request, writer: asyncio.StreamWriter) -> Answer:
        if b'"ACKNOWLEDGE"' in request.body:
            await asyncio.sleep(0.2)
        return await answer(master, request, writer)

    async def ends(agent: Agent, task: Task) -> None:
        agent._update(task, "TASK_FINISHED")

    monkeypatch.setattr(Master, "_answer", late)
    monkeypatch.setattr(Agent, "_run", ends)
    with running(tmp_path / "mesos", allocation_s=0.1) as cluster:
        with engine(cluster, tmp_path) as it:
            it.engine.launch([group(f"g{n}", cpus=0.1, mem=32) for n in range(50)])
            for n in range(50):
                it.event(f"g{n}", "finished")
        assert cluster.calls("TEARDOWN")
        assert len(cluster.calls("ACKNOWLEDGE")) < 50


def test_a_lost_agent_loses_its_groups_and_others_take_their_place(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledge = Agent.acknowledge

    def late(agent: Agent, framework: str, task: str, update: str) -> None:
        """The acknowledgement of TASK_RUNNING arrives when the agent is lost."""
        asyncio.get_running_loop().call_later(0.1, acknowledge, agent, framework, task, update)

    monkeypatch.setattr(Agent, "acknowledge", late)
    with engine(cluster, tmp_path) as it:
        launches = it.run(group("a", constraints=LARGE), group("b", constraints=LARGE))
        home = {launch.group.id: launch.agent.hostname for launch in launches}
        (agent,) = (a for a in cluster.agents if a.hostname == home["a"])
        cluster.do(cluster.master.forget_agent(agent))
        lost = it.event("a", "lost")
        assert lost.detail == "TASK_UNREACHABLE: health check timed out (REASON_AGENT_REMOVED)"
        (again,) = it.run(group("a-again", constraints=LARGE))
        assert again.agent.hostname == home["b"]
        assert all(e.group != "b" or e.state == "running" for e in it.seen)


def test_rescinded_offers_do_no_harm(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:
        cluster.ask(lambda: cluster.master.rescind(*cluster.master.offers.values()))
        it.run(group("a"), group("b"))


def test_a_refused_launch_is_told_without_the_key_in_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(cluster, tmp_path) as it:
        handle = Mock(wraps=it.engine._state.handle)
        monkeypatch.setattr(it.engine._state, "handle", handle)

        def refusals() -> list[dict[str, Any]]:
            return [call.args[0] for call in handle.call_args_list if call.args[0].get("call") == "accept"]

        (framework,) = cluster.ask(cluster.master.frameworks.values)
        framework.stream_id = "another"
        it.engine.launch([group("a")])
        it.until(refusals, "the refusal")
        (refused,) = refusals()
        assert (refused["sure"], refused["tasks"]) == (True, ["a.1"])
        assert "400" in refused["message"]
        assert KEY not in str(handle.call_args_list)
    assert KEY not in (tmp_path / "mesos.log").read_text()


def test_what_is_left_of_a_run_is_listed_and_ended(cluster: Cluster, tmp_path: Path) -> None:
    spec = MesosSettings(user="root")
    with engine(cluster, tmp_path) as it:
        it.run(group("a"), group("b"))
        (row,) = leftovers(cluster.address, spec)
        assert (row["run"], row["connected"], row["tasks"]) == ("run-1", "yes", 2)
        assert end_run(cluster.address, spec, "run-1") == [f"framework {row['framework']}"]
        assert leftovers(cluster.address, spec) == []
        it.event("a", "lost")
        with pytest.raises(ClusterError, match="Framework has been removed"):
            it.engine.launch([group("c")])
    with pytest.raises(UsageError, match="knows no run 'run-1'"):
        end_run(cluster.address, spec, "run-1")


def test_a_master_may_ask_who_we_are(tmp_path: Path) -> None:
    with running(tmp_path / "mesos", credentials=("hydra", "s3cret")) as cluster:
        with engine(cluster, tmp_path, principal="hydra", secret="s3cret") as it:
            it.run(group("a"))
            assert leftovers(cluster.address, MesosSettings(principal="hydra", secret="s3cret"))
            command = psutil.Process(it.engine._driver.process.pid).cmdline()
            assert not any("s3cret" in word for word in command)
        log = (tmp_path / "mesos.log").read_bytes()
        assert not any(form in log for form in (b"s3cret", base64.b64encode(b"hydra:s3cret")))
        wrong = MesosEngine(cluster.address, MesosSettings(user="root"), "run-2", None, tmp_path / "log")
        with closing(wrong), pytest.raises(ClusterError, match=r"401.*; set principal and secret under"):
            wrong.await_offers(SOON_S)
        with pytest.raises(ClusterError, match="set principal and secret under \\[mesos\\]"):
            leftovers(cluster.address, MesosSettings())


def test_resources_of_another_role_are_not_offered_and_reserved_ones_are_used(tmp_path: Path) -> None:
    agents = (("h1", "", "cpus:1;mem:500;cpus(hydra):2;mem(hydra):500"),)
    with running(tmp_path / "mesos", agents) as cluster, engine(cluster, tmp_path, role="hydra") as it:
        (agent,) = it.engine.agents()
        assert (agent.resources.cpus, agent.resources.mem) == (3.0, 1000.0)
        it.run(group("a", cpus=2.5, mem=900))


@pytest.mark.tier("quick")
@pytest.mark.parametrize("master", ["", "a/b", "h:port", "h1:5050,h2:5050", "zk://h1:2181", "zk://u:p@h1:2181/mesos"])
def test_what_is_no_address_is_refused(tmp_path: Path, master: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        MesosEngine(master, MesosSettings(user="root"), "run", None, tmp_path / "log")


@pytest.mark.tier("test")
def test_an_address_of_somebody_else_cannot_be_advertised(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no address of this machine"):
        MesosEngine("127.0.0.1:5050", MesosSettings(advertise="192.0.2.1"), "run", None, tmp_path / "log")
