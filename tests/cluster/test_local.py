"""The local engine, with real processes; with real network namespaces, which need root."""

from __future__ import annotations

import itertools
import math
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import psutil
import pytest

from hydra.client.network_interfaces import interfaces, traffic
from hydra.engine.interface import Engine
from hydra.errors import ClusterError, PlacementError
from hydra.kafkatest.metrics import of_interfaces
from hydra.local.engine import LocalEngine
from hydra.model import Agent, Demand, Group, GroupEvent, Resources
from tests.mesos.namespaces import hosts
from tests.suite.waiting import SOON_S, wait_until

pytestmark = pytest.mark.tier("test")

FOREVER = "import signal; print('up', flush=True); signal.pause()"
DEAF = "import signal as s; s.signal(s.SIGTERM, s.SIG_IGN); print('up', flush=True)\nwhile True: s.pause()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {DEAF!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""
"""Starts a child that ignores SIGTERM and prints its pid."""

Processes = set[psutil.Process]
Monkey = pytest.MonkeyPatch
AGENTS = (
    Agent("one", "one", {"group": "a"}, Resources(cpus=2, mem=100, ports=((31000, 31003),))),
    Agent("two", "two", {"group": "b"}, Resources(cpus=2, mem=100)),
)


def group(name: str, program: str = FOREVER, **changes: Any) -> Group:
    command = (sys.executable, "-S", "-c", program)
    return replace(Group(name, "subscriber", 0, 1, command, {}, Demand(base_cpus=0.5, base_mem=10)), **changes)


@pytest.fixture
def others() -> Processes:
    """Processes that this one had before the test: a broker that lives for the whole session may be among them."""
    return set(psutil.Process().children(recursive=True))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    with closing(LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=0.2)) as engine:
        yield engine


def events_until(engine: Engine, *required: tuple[str, str]) -> list[GroupEvent]:
    seen: list[GroupEvent] = []

    def all_seen() -> bool:
        seen.extend(engine.events())
        return set(required) <= {(e.group, e.state) for e in seen}

    wait_until(all_seen, f"{required}", saw=lambda: seen)
    return seen


def output_of(tmp_path: Path, name: str, end: str = "\n") -> str:
    path = tmp_path / "sandbox" / name / "stdout"
    wait_until(lambda: path.exists() and path.read_text().endswith(end), f"{end!r} in {path}")
    return path.read_text().strip()


def pid_of(events: list[GroupEvent], name: str) -> int:
    return next(int(e.detail.removeprefix("pid ")) for e in events if (e.group, e.state) == (name, "running"))


def has_ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_group_runs_in_its_sandbox_with_its_environment(engine: LocalEngine, tmp_path: Path) -> None:
    program = """
import itertools
import math
import os
print(os.getcwd(), os.getpgid(0) == os.getpid(), *(os.environ[k] for k in ("WORD", "HYDRA_AGENT", "HYDRA_PORTS")))
os.set_blocking(int(os.environ["HYDRA_LIFELINE"]), False)
try:
    os.read(int(os.environ["HYDRA_LIFELINE"]), 1)
except BlockingIOError:
    print("the lifeline is open")
"""
    requests = group("g", program, environment={"WORD": "hello"}, demand=Demand(ports=2))
    (launch,) = engine.launch([requests])
    events = events_until(engine, ("g", "running"), ("g", "finished"))
    assert launch.ports == (31000, 31001)
    where = f"{tmp_path}/sandbox/g"
    assert output_of(tmp_path, "g").splitlines() == [f"{where} True hello one 31000,31001", "the lifeline is open"]
    assert [(e.state, e.agent) for e in events] == [("running", "one"), ("finished", "one")]


def test_a_group_sees_the_end_of_its_lifeline_when_the_controller_is_killed(tmp_path: Path) -> None:
    watcher = "import os; print('up', flush=True); os.read(int(os.environ['HYDRA_LIFELINE']), 1); print('end')"
    controller = f"""
import pathlib, sys
from hydra.local.engine import LocalEngine
from hydra.model import Agent, Demand, Group, Resources
engine = LocalEngine([Agent("a", "a", {{}}, Resources())], pathlib.Path({str(tmp_path / "sandbox")!r}))
command = (sys.executable, "-S", "-c", {watcher!r})
engine.launch([Group(n, "subscriber", 0, 1, command, {{}}, Demand()) for n in ("g", "h")])
print("launched", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", controller], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"launched\n"
        assert output_of(tmp_path, "g") == output_of(tmp_path, "h") == "up"
        process.kill()
    assert output_of(tmp_path, "g", "end\n") == output_of(tmp_path, "h", "end\n") == "up\nend"


def test_launching_takes_resources_and_an_end_gives_them_back(engine: LocalEngine) -> None:
    engine.launch([group("g", demand=Demand(base_cpus=0.7, base_mem=30, ports=3))])
    assert engine.agents()[0].resources == Resources(cpus=1.3, mem=70, ports=((31003, 31003),))
    assert engine.agents()[1] == AGENTS[1]
    engine.kill(["g"])
    events_until(engine, ("g", "killed"))
    assert engine.agents() == list(AGENTS)


def test_groups_of_a_role_spread_over_several_launches(engine: LocalEngine) -> None:
    assert [launch.agent.id for name in "gh" for launch in engine.launch([group(name)])] == ["one", "two"]


@pytest.mark.parametrize(
    ("program", "state", "detail"),
    [
        ("pass", "finished", "exit status 0"),
        ("import sys; print('a\\nb', file=sys.stderr); sys.exit(3)", "failed", "exit status 3: a | b"),
        ("raise SystemExit(4)", "failed", "is empty"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "failed", "killed by SIGKILL"),
        (
            "import sys; [print(n, file=sys.stderr) for n in range(9999)]; sys.exit(1)",
            "failed",
            "exit status 1: 9994 | 9995 | 9996 | 9997 | 9998",
        ),
    ],
)
def test_an_end_is_told_with_its_reason(engine: LocalEngine, program: str, state: str, detail: str) -> None:
    engine.launch([group("g", program)])
    events = events_until(engine, ("g", state))
    assert detail in events[-1].detail
    assert engine.events() == []


def test_killing_is_told_and_an_unknown_group_is_ignored(tmp_path: Path) -> None:
    with closing(LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=20.0)) as engine:
        engine.launch([group("g"), group("h")])
        output_of(tmp_path, "g")
        engine.kill(["g", "nobody"])
        engine.kill(["g"])
        events = events_until(engine, ("g", "killed"))
        assert events[-1].detail == "killed by SIGTERM"
        assert not has_ended(pid_of(events, "h"))


def test_killing_does_not_wait_and_ends_what_ignores_sigterm_in_time(tmp_path: Path, monkeypatch: Monkey) -> None:
    now = [0.0]

    def waits(_: float) -> NoReturn:
        now[0] = math.inf
        pytest.fail("it waits")

    with closing(LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=1.5, clock=lambda: now[0])) as engine:
        engine.launch([group("g", DEAF)])
        output_of(tmp_path, "g")
        with monkeypatch.context() as patch:
            patch.setattr("hydra.local.engine.time.sleep", waits)
            engine.kill(["g"])
        now[0] = 1.4
        assert [(e.state, has_ended(pid_of([e], "g"))) for e in engine.events()] == [("running", False)]
        now[0] = 1.5
        (event,) = events_until(engine, ("g", "killed"))
        assert event.detail == "killed by SIGKILL, as SIGTERM was not enough"


@pytest.mark.parametrize("ending", ["", "import os; os._exit(5)", FOREVER])
def test_nothing_of_a_group_outlives_its_parent(engine: LocalEngine, tmp_path: Path, ending: str) -> None:
    engine.launch([group("g", PARENT + ending)])
    child = int(output_of(tmp_path, "g").split()[0])
    engine.kill(["g"] if ending == FOREVER else [])
    wait_until(lambda: (engine.events(), has_ended(child))[1], "the end of the child")


def test_a_missing_program_starts_nothing(engine: LocalEngine, tmp_path: Path, others: Processes) -> None:
    missing = group("h", command=("/no/such/program",))
    with pytest.raises(ClusterError, match="group h cannot be started on two: /no/such/program") as caught:
        engine.launch([group("g"), missing])
    assert "ulimit" in caught.value.remedy
    assert engine.events() == []
    assert engine.agents() == list(AGENTS)
    assert set(psutil.Process().children()) <= others


def interrupted(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def test_an_interrupted_launch_starts_nothing(engine: LocalEngine, monkeypatch: Monkey, others: Processes) -> None:
    once = iter([subprocess.Popen])
    # There is none for the second group.
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **more: next(once, interrupted)(*args, **more))
    with pytest.raises(KeyboardInterrupt):
        engine.launch([group("g"), group("h")])
    assert set(psutil.Process().children()) <= others


def test_what_cannot_be_placed_starts_nothing(engine: LocalEngine) -> None:
    large = group("h", count=7, demand=Demand(cpus_per_client=1))
    with pytest.raises(PlacementError, match=r"group h \(7 subscriber clients\): needs cpus 7") as caught:
        engine.launch([group("g"), large])
    assert caught.value.remedy
    assert engine.agents() == list(AGENTS)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        *([[group("g", command=command)], "cannot be started"] for command in ((), ("a\0b",))),
        *([[group(name) for name in names], "group"] for names in (("g", "g"), ("../g",), ("",), ("a/b",), ("..",))),
    ],
)
def test_an_impossible_command_or_id_is_refused(engine: LocalEngine, groups: list[Group], expected: str) -> None:
    with pytest.raises(ClusterError, match=expected):
        engine.launch(groups)


def test_closing_leaves_no_process_and_no_descriptor(tmp_path: Path, others: Processes) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    engine = LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=0.2)
    engine.launch([group("g"), group("h", DEAF), group("i", PARENT + FOREVER), group("j", "pass")])
    child = int(output_of(tmp_path, "i").split()[0])
    output_of(tmp_path, "h")
    pids = [p.pid for p in psutil.Process().children(recursive=True) if p not in others]
    engine.close()
    engine.close()
    assert set(psutil.Process().children()) <= others
    wait_until(lambda: all(map(has_ended, [*pids, child])), "the end of every process")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    states = {e.group: e.state for e in engine.events()}
    assert states == {**dict.fromkeys("ghi", "killed"), "j": states["j"]}
    assert states["j"] in ("finished", "killed")
    with pytest.raises(ClusterError, match="closed"):
        engine.launch([group("k")])


def test_an_interrupted_close_still_kills(tmp_path: Path, monkeypatch: Monkey, others: Processes) -> None:
    engine = LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=30)
    engine.launch([group("g", DEAF)])
    output_of(tmp_path, "g")
    ctrl_c_in_the_first_pause = Mock(side_effect=itertools.chain([KeyboardInterrupt], itertools.repeat(None)))
    monkeypatch.setattr("hydra.local.engine.time.sleep", ctrl_c_in_the_first_pause)
    with pytest.raises(KeyboardInterrupt):
        engine.close()
    assert set(psutil.Process().children()) <= others


# --- in network namespaces --------------------------------------------------------------------------------------------

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
BYTES = 200_000
SENDS = f"""
import os, socket
with socket.socket() as s:
    s.bind((os.environ["HYDRA_DATA_HOST"], 0))
    s.connect(("HERE", PORT))
    s.sendall(bytes({BYTES}))
    s.shutdown(socket.SHUT_WR)
    s.recv(1)
"""


def agent(name: str, netns: str) -> Agent:
    return Agent(name, name, {}, Resources(cpus=2, mem=100), netns)


def test_a_namespace_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"the agents' network namespace hydra-no-such.*scripts/namespaces"):
        LocalEngine([agent("one", "hydra-no-such")], tmp_path)


@needs_root
def test_a_group_runs_in_its_agents_namespace_and_its_bytes_are_counted(tmp_path: Path) -> None:
    with hosts(2) as network, socket.create_server((network.here, 0)) as server:
        server.settimeout(SOON_S)
        with closing(LocalEngine([agent("one", network.names[0])], tmp_path)) as engine:
            assert engine.address == network.here
            endpoints = [f"{address}:1,{address}:2" for address in network.addresses]
            before = of_interfaces(endpoints)
            assert list(before) == ["broker 1", "broker 2"]
            program = SENDS.replace("HERE", network.here).replace("PORT", str(server.getsockname()[1]))
            engine.launch([group("g", program)])
            connection, (source, _) = server.accept()
            with connection:
                assert source == network.addresses[0]
                left = BYTES
                while left:
                    left -= len(connection.recv(left))
            wait_until(lambda: "finished" in [event.state for event in engine.events()], "its end")
            after = of_interfaces(endpoints)
        counter = "interface_out_bytes_total"
        sent = {name: after[name][counter] - before[name][counter] for name in after}
        assert BYTES < sent["broker 1"] < 1.2 * BYTES
        assert sent["broker 2"] < 0.1 * BYTES


@needs_root
def test_brokers_that_share_an_address_have_no_interface_of_their_own() -> None:
    with hosts(1) as network:
        (address,) = network.addresses
        assert [each.address for each in interfaces(network.names[0])] == [address]
        assert traffic([address]).keys() == {address}
        assert of_interfaces([f"{address}:1,{address}:2", f"{address}:3,{address}:4"]) == {}
        assert of_interfaces(["127.0.0.1:1,127.0.0.1:2"]) == {}
