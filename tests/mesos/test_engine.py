"""The Mesos engine against the test master: the interface of every engine, and what a cluster does to it."""

from __future__ import annotations

import asyncio
import base64
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import psutil
import pytest

from hydra.cluster.driven import Driver
from hydra.cluster.mesos import engine as module
from hydra.cluster.mesos.engine import MesosEngine
from hydra.cluster.mesos.leftovers import end_run, leftovers
from hydra.cluster.mesos.settings import MesosSettings
from hydra.errors import ClusterError, PlacementError, UsageError
from hydra.model import Constraint, Demand, Group, GroupEvent
from tests.integration.command import wait_until
from tests.mesos.agent import Agent
from tests.mesos.cluster import Cluster, running

pytestmark = pytest.mark.processes
pytest.importorskip("pymesos", reason="pip install ./shims/http-parser '.[mesos]'")

LARGE = (Constraint("group", "CLUSTER", "cpu16-mem60"),)
SLEEP = ("/bin/sleep", "100")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running(tmp_path / "mesos", ping_timeout_s=0.2, allocation_s=0.1) as cluster:
        yield cluster


class Watched:
    """An engine whose events are kept."""

    def __init__(self, engine: MesosEngine) -> None:
        self.engine = engine
        self.seen: list[GroupEvent] = []

    def await_event(self, group: str, state: str) -> GroupEvent:
        def found() -> list[GroupEvent]:
            self.seen += self.engine.events()
            return [e for e in self.seen if (e.group, e.state) == (group, state)]

        wait_until(found, 20, f"group {group} {state}; seen {self.seen}")
        return found()[0]


@contextmanager
def engine(cluster: Cluster, folder: Path, **spec: Any) -> Iterator[Watched]:
    made = MesosEngine(cluster.address, MesosSettings(user="root", **spec), "run-1", None, folder / "mesos.log")
    with closing(made):
        made.await_offers()
        yield Watched(made)


def group(name: str, command: tuple[str, ...] = SLEEP, **more: Any) -> Group:
    return Group(name, "subscriber", 0, 1, command, {"KEY": "k"}, Demand(0.5, 64.0), **more)


def test_groups_are_placed_started_ended_and_explained(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:
        assert [agent.hostname for agent in it.engine.agents()] == ["agent-pub", "agent-sub-1", "agent-sub-2"]
        script = 'echo "$KEY $HYDRA_DATA_HOST" >&2; exit 3'
        launches = it.engine.launch([group("a", ("/bin/sh", "-c", script), constraints=LARGE), group("b")])
        assert {launch.agent.hostname for launch in launches} <= {"agent-pub", "agent-sub-1", "agent-sub-2"}
        it.await_event("b", "running")
        failed = it.await_event("a", "failed")
        assert failed.detail == "k 127.0.0.1 (TASK_FAILED: Command exited with status 3)"
        it.engine.kill(["b", "unknown"])
        it.await_event("b", "killed")
        with pytest.raises(PlacementError, match="0 of 3 agents match group CLUSTER huge; seen: cpu16-mem60 x2, cpu4"):
            it.engine.launch([group("c", constraints=(Constraint("group", "CLUSTER", "huge"),))])
    (subscribe,) = cluster.calls("SUBSCRIBE")
    info = subscribe["subscribe"]["framework_info"]
    assert (info["name"], info["capabilities"]) == ("hydra/run-1", [{"type": "PARTITION_AWARE"}])


def test_the_end_tears_the_framework_down_and_its_tasks_with_it(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:
        it.engine.launch([group("a"), group("b")])
        it.await_event("b", "running")
        driver = it.engine._driver.process
    assert driver.poll() == 0
    wait_until(lambda: set(cluster.states().values()) == {"TASK_KILLED"}, 5, "the end of the tasks")
    assert cluster.ask(lambda: cluster.master.frameworks) == {}
    it.engine.close()


def test_no_call_blocks_although_a_master_never_answers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        made = MesosEngine(address, MesosSettings(user="root"), "run-1", None, tmp_path / "log")
        calls: list[Callable[[], object]] = [made.agents, made.events, lambda: made.kill(["a"])]
        for call in calls:
            began = time.monotonic()
            call()
            assert time.monotonic() - began < 0.1
        with pytest.raises(ClusterError, match=r"took our framework within 0\.3 s"):
            made.await_offers(0.3)
        made._driver.process.kill()
        made.close()


@pytest.mark.parametrize("fails", ["_program", "MesosState", "getpass"])
def test_nothing_is_left_of_an_engine_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    class NotMadeError(Exception):
        """In the middle of it."""

    def fail(*_: object) -> NoReturn:
        raise NotMadeError

    made: list[Driver] = []

    def drive(program: str, log: Path) -> Driver:
        made.append(Driver(program, log))
        return made[0]

    monkeypatch.setattr(module, "Driver", drive)
    monkeypatch.setattr(module, fails, SimpleNamespace(getuser=fail) if fails == "getpass" else fail)
    with pytest.raises(NotMadeError):
        MesosEngine("127.0.0.1:1", MesosSettings(), "run-1", None, tmp_path / "mesos.log")
    try:
        assert made[0].closed
    finally:
        made[0].close()


def test_a_hundred_groups_are_launched_by_one_short_call(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:
        groups = [
            Group(f"g{n}", "subscriber", n, 1, ("/bin/true",), {"KEY": "k" * 900}, Demand(0.1, 32.0))
            for n in range(100)
        ]
        began = time.process_time()
        it.engine.launch(groups)
        assert time.process_time() - began < 0.1
        for n in range(100):
            it.await_event(f"g{n}", "finished")
        assert len(cluster.calls("ACCEPT")) <= 6


def test_a_master_failover_keeps_the_framework_and_its_tasks(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:
        it.engine.launch([group("a")])
        it.await_event("a", "running")
        known = cluster.ask(lambda: list(cluster.master.frameworks))
        cluster.fail_over()
        wait_until(
            lambda: (it.engine.events(), cluster.ask(lambda: list(cluster.master.frameworks)) == known)[1],
            20,
            "the framework at the new master",
        )
        wait_until(lambda: (it.engine.events(), cluster.calls("RECONCILE"))[1], 5, "reconciliation")
        assert cluster.states() == {"a.1": "TASK_RUNNING"}
        it.engine.launch([group("b")])
        it.await_event("b", "running")
        it.engine.kill(["a"])
        it.await_event("a", "killed")
    assert cluster.calls("TEARDOWN")


def test_a_lost_agent_loses_its_groups_and_others_take_their_place(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledge = Agent.acknowledge

    def late(agent: Agent, framework: str, task: str, update: str) -> None:
        """The acknowledgement of TASK_RUNNING arrives when the agent is gone."""
        asyncio.get_running_loop().call_later(0.1, acknowledge, agent, framework, task, update)

    monkeypatch.setattr(Agent, "acknowledge", late)
    with engine(cluster, tmp_path) as it:
        launches = it.engine.launch([group("a", constraints=LARGE), group("b", constraints=LARGE)])
        home = {launch.group.id: launch.agent.hostname for launch in launches}
        it.await_event("a", "running")
        it.await_event("b", "running")
        (agent,) = (a for a in cluster.agents if a.hostname == home["a"])
        cluster.lose(agent)
        lost = it.await_event("a", "lost")
        assert lost.detail == "TASK_UNREACHABLE: health check timed out (REASON_AGENT_REMOVED)"
        (again,) = it.engine.launch([group("a-again", constraints=LARGE)])
        assert again.agent.hostname == home["b"]
        it.await_event("a-again", "running")
        assert all(e.group != "b" or e.state == "running" for e in it.seen)


def test_rescinded_offers_do_no_harm(cluster: Cluster, tmp_path: Path) -> None:
    with engine(cluster, tmp_path) as it:

        def rescind_all() -> None:
            for offer in list(cluster.master.offers.values()):
                cluster.master.rescind(offer)

        cluster.ask(rescind_all)
        it.engine.launch([group("a"), group("b")])
        it.await_event("a", "running")
        it.await_event("b", "running")


def test_a_refused_launch_is_told_without_the_key_in_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine(cluster, tmp_path) as it:
        told: list[dict[str, Any]] = []
        handle = it.engine._state.handle

        def overhear(message: dict[str, Any], now: float) -> None:
            told.append(message)
            handle(message, now)

        monkeypatch.setattr(it.engine._state, "handle", overhear)

        def mix_up_streams() -> None:
            for framework in cluster.master.frameworks.values():
                framework.stream_id = "another"

        cluster.ask(mix_up_streams)
        key = "k3y-of-the-run"
        it.engine.launch([Group("a", "subscriber", 0, 1, SLEEP, {"KEY": key}, Demand(0.5, 64.0))])

        def failed() -> list[dict[str, Any]]:
            it.engine.events()
            return [message for message in told if message.get("call") == "accept"]

        wait_until(failed, 10, "the refusal")
        assert (failed()[0]["sure"], failed()[0]["tasks"]) == (True, ["a.1"])
        assert "400" in failed()[0]["message"]
        assert key not in str(told)
    assert key not in (tmp_path / "mesos.log").read_text()


def test_a_driver_whose_engine_is_gone_leaves_nothing(cluster: Cluster, tmp_path: Path) -> None:
    made = MesosEngine(cluster.address, MesosSettings(user="root"), "run-1", None, tmp_path / "log")
    made.await_offers()
    made.launch([group("a")])
    wait_until(lambda: (made.events(), cluster.states() == {"a.1": "TASK_RUNNING"})[1], 10, "its task")
    driver = psutil.Process(made._driver.process.pid)
    made._driver._channel.close()  # as when the process is killed
    wait_until(lambda: cluster.states() == {"a.1": "TASK_KILLED"}, 10, "the end of its task")
    made._driver.process.wait(10)
    assert not driver.is_running()
    made.close()


def test_what_is_left_of_a_run_is_listed_and_ended(cluster: Cluster, tmp_path: Path) -> None:
    spec = MesosSettings(user="root")
    with engine(cluster, tmp_path) as it:
        it.engine.launch([group("a"), group("b")])
        it.await_event("a", "running")
        it.await_event("b", "running")
        (row,) = leftovers(cluster.address, spec)
        assert {key: row[key] for key in ("run", "connected", "tasks")} == {
            "run": "run-1",
            "connected": "yes",
            "tasks": 2,
        }
        assert end_run(cluster.address, spec, "run-1") == [f"framework {row['framework']}"]
        assert leftovers(cluster.address, spec) == []
        it.await_event("a", "lost")
        with pytest.raises(ClusterError, match="Framework has been removed"):
            it.engine.launch([group("c")])
    with pytest.raises(UsageError, match="knows no run 'run-1'"):
        end_run(cluster.address, spec, "run-1")


def test_a_master_may_ask_who_we_are(tmp_path: Path) -> None:
    with running(tmp_path / "mesos", credentials=("hydra", "s3cret")) as cluster:
        with engine(cluster, tmp_path, principal="hydra", secret="s3cret") as it:
            it.engine.launch([group("a")])
            it.await_event("a", "running")
            assert leftovers(cluster.address, MesosSettings(principal="hydra", secret="s3cret"))
            command = psutil.Process(it.engine._driver.process.pid).cmdline()
            assert not any("s3cret" in word for word in command)
        log = (tmp_path / "mesos.log").read_bytes()
        assert not any(form in log for form in (b"s3cret", base64.b64encode(b"hydra:s3cret")))
        wrong = MesosEngine(cluster.address, MesosSettings(user="root"), "run-2", None, tmp_path / "log")
        with closing(wrong), pytest.raises(ClusterError, match="401"):
            wrong.await_offers(10)
        with pytest.raises(ClusterError, match="set principal and secret under \\[mesos\\]"):
            leftovers(cluster.address, MesosSettings())


def test_resources_of_another_role_are_not_offered_and_reserved_ones_are_used(tmp_path: Path) -> None:
    agents = (("h1", "", "cpus:1;mem:500;cpus(hydra):2;mem(hydra):500"),)
    with running(tmp_path / "mesos", agents) as cluster, engine(cluster, tmp_path, role="hydra") as it:
        (agent,) = it.engine.agents()
        assert (agent.resources.cpus, agent.resources.mem) == (3.0, 1000.0)
        it.engine.launch([Group("a", "subscriber", 0, 1, SLEEP, {}, Demand(2.5, 900.0))])
        it.await_event("a", "running")


@pytest.mark.parametrize("master", ["", "a/b", "h:port", "h1:5050,h2:5050", "zk://h1:2181", "zk://u:p@h1:2181/mesos"])
def test_what_is_no_address_is_refused(tmp_path: Path, master: str) -> None:
    with pytest.raises(UsageError, match="--master"):
        MesosEngine(master, MesosSettings(user="root"), "run", None, tmp_path / "log")


def test_an_address_of_somebody_else_cannot_be_advertised(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no address of this machine"):
        MesosEngine("127.0.0.1:5050", MesosSettings(advertise="192.0.2.1"), "run", None, tmp_path / "log")
