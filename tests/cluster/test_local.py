"""The embedded engine, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from hydra.cluster.engine import Engine
from hydra.cluster.local.engine import LocalEngine
from hydra.errors import ClusterError, PlacementError
from hydra.model import Agent, Demand, Group, GroupEvent, Resources

DEADLINE_S = 15.0
FOREVER = "import signal; print('up', flush=True); signal.pause()"
DEAF = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {DEAF!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
"""
"""Starts a child that ignores SIGTERM and prints its pid."""

AGENTS = (
    Agent("one", "one", {"group": "a"}, Resources(cpus=2, mem=100, ports=((31000, 31003),))),
    Agent("two", "two", {"group": "b"}, Resources(cpus=2, mem=100)),
)


def group(name: str, program: str = FOREVER, **changes: object) -> Group:
    values: dict[str, object] = {
        "id": name,
        "role": "subscriber",
        "first_client": 0,
        "count": 1,
        "command": (sys.executable, "-S", "-c", program),
        "environment": {},
        "demand": Demand(base_cpus=0.5, base_mem=10),
    }
    return Group(**{**values, **changes})  # type: ignore[arg-type]


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        time.sleep(0.005)


@pytest.fixture
def others() -> set[psutil.Process]:
    """Processes that this one had before the test: a broker that lives for the whole session may be among them."""
    return set(psutil.Process().children(recursive=True))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    engine = LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=0.2)
    yield engine
    engine.close()


def events_until(engine: Engine, *required: tuple[str, str]) -> list[GroupEvent]:
    seen: list[GroupEvent] = []

    def all_seen() -> bool:
        seen.extend(engine.events())
        return set(required) <= {(e.group, e.state) for e in seen}

    wait_until(all_seen, f"{required}, saw {seen}")
    return seen


def said(tmp_path: Path, name: str, file: str = "stdout") -> str:
    path = tmp_path / "sandbox" / name / file
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), f"a line in {path}")
    return path.read_text().strip()


def pid_of(events: list[GroupEvent], name: str) -> int:
    return next(int(e.detail.removeprefix("pid ")) for e in events if (e.group, e.state) == (name, "running"))


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_group_runs_in_its_sandbox_with_its_environment(engine: LocalEngine, tmp_path: Path) -> None:
    program = """
import os
print(os.getcwd(), os.getpgid(0) == os.getpid(), *(os.environ[k] for k in ("WORD", "HYDRA_AGENT", "HYDRA_PORTS")))
os.set_blocking(int(os.environ["HYDRA_LIFELINE"]), False)
try:
    os.read(int(os.environ["HYDRA_LIFELINE"]), 1)
except BlockingIOError:
    print("the lifeline is open")
"""
    asked = group("g", program, environment={"WORD": "hello"}, demand=Demand(ports=2))
    (launch,) = engine.launch([asked])
    events = events_until(engine, ("g", "running"), ("g", "finished"))
    assert launch.ports == (31000, 31001)
    assert said(tmp_path, "g").splitlines() == [
        f"{tmp_path}/sandbox/g True hello one 31000,31001",
        "the lifeline is open",
    ]
    assert [(e.state, e.agent) for e in events] == [("running", "one"), ("finished", "one")]


def test_a_group_sees_the_end_of_its_lifeline_when_the_controller_is_killed(tmp_path: Path) -> None:
    watcher = "import os; print('up', flush=True); os.read(int(os.environ['HYDRA_LIFELINE']), 1); print('end')"
    controller = f"""
import pathlib, sys
from hydra.cluster.local.engine import LocalEngine
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
        assert said(tmp_path, "g") == said(tmp_path, "h") == "up"
        process.kill()
    for name in ("g", "h"):
        path = tmp_path / "sandbox" / name / "stdout"
        wait_until(lambda path=path: path.read_text() == "up\nend\n", "the end of the lifeline")  # type: ignore[misc]


def test_launching_takes_resources_and_an_end_gives_them_back(engine: LocalEngine) -> None:
    engine.launch([group("g", demand=Demand(base_cpus=0.7, base_mem=30, ports=3))])
    assert engine.agents()[0].resources == Resources(cpus=1.3, mem=70, ports=((31003, 31003),))
    assert engine.agents()[1] == AGENTS[1]
    engine.kill(["g"])
    events_until(engine, ("g", "killed"))
    assert engine.agents() == list(AGENTS)


def test_groups_of_a_role_spread_over_several_launches(engine: LocalEngine) -> None:
    first = engine.launch([group("g0")])
    second = engine.launch([group("g1")])
    assert [x.agent.id for x in first + second] == ["one", "two"]


@pytest.mark.parametrize(
    ("program", "state", "detail"),
    [
        ("pass", "finished", "exit status 0"),
        ("import sys; print('a\\nb', file=sys.stderr); sys.exit(3)", "failed", "exit status 3: a | b"),
        ("raise SystemExit(4)", "failed", "is empty"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "failed", "killed by SIGKILL"),
    ],
)
def test_an_end_is_told_with_its_reason(engine: LocalEngine, program: str, state: str, detail: str) -> None:
    engine.launch([group("g", program)])
    events = events_until(engine, ("g", state))
    assert detail in events[-1].detail
    assert engine.events() == []


def test_a_long_stderr_is_told_by_its_end(engine: LocalEngine) -> None:
    engine.launch([group("g", "import sys; [print(n, file=sys.stderr) for n in range(9999)]; sys.exit(1)")])
    events = events_until(engine, ("g", "failed"))
    assert events[-1].detail == "exit status 1: 9994 | 9995 | 9996 | 9997 | 9998"


def test_killing_is_told_and_an_unknown_group_is_ignored(tmp_path: Path) -> None:
    with closing(LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=20.0)) as engine:
        engine.launch([group("g"), group("h")])
        said(tmp_path, "g")
        engine.kill(["g", "nobody"])
        engine.kill(["g"])
        events = events_until(engine, ("g", "killed"))
        assert events[-1].detail == "killed by SIGTERM"
        assert not gone(pid_of(events, "h"))


def test_killing_does_not_wait_and_ends_what_ignores_sigterm(tmp_path: Path) -> None:
    with closing(LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=1.5)) as engine:
        engine.launch([group("g", DEAF)])
        said(tmp_path, "g")
        start = time.monotonic()
        engine.kill(["g"])
        assert time.monotonic() - start < 1.0  # less than the grace: that was not waited for
        assert [e.state for e in engine.events()] == ["running"]
        events = events_until(engine, ("g", "killed"))
        assert events[-1].detail == "killed by SIGKILL, as SIGTERM was not enough"


@pytest.mark.parametrize("ending", ["", "import os; os._exit(5)", FOREVER])
def test_nothing_of_a_group_outlives_its_parent(engine: LocalEngine, tmp_path: Path, ending: str) -> None:
    engine.launch([group("g", PARENT + ending)])
    child = int(said(tmp_path, "g").split()[0])
    engine.kill(["g"] if ending == FOREVER else [])

    def child_is_gone() -> bool:
        engine.events()
        return gone(child)

    wait_until(child_is_gone, "the end of the child")


def test_a_missing_program_starts_nothing(engine: LocalEngine, tmp_path: Path, others: set[psutil.Process]) -> None:
    missing = group("h", command=("/no/such/program",))
    with pytest.raises(ClusterError, match="group h cannot be started on two: /no/such/program") as caught:
        engine.launch([group("g"), missing])
    assert "ulimit" in caught.value.remedy
    assert engine.events() == []
    assert engine.agents() == list(AGENTS)
    assert set(psutil.Process().children()) <= others


@pytest.mark.parametrize("command", [(), ("a\0b",)])
def test_an_impossible_command_is_refused(engine: LocalEngine, command: tuple[str, ...]) -> None:
    with pytest.raises(ClusterError, match="cannot be started"):
        engine.launch([group("g", command=command)])


def test_an_interrupt_while_launching_starts_nothing(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch, others: set[psutil.Process]
) -> None:
    real, calls = subprocess.Popen, []

    def interrupted(*args: object, **kwargs: object) -> object:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.launch([group("g"), group("h")])
    assert set(psutil.Process().children()) <= others


def test_what_cannot_be_placed_starts_nothing(engine: LocalEngine) -> None:
    large = group("h", count=7, demand=Demand(cpus_per_client=1))
    with pytest.raises(PlacementError, match=r"group h \(7 subscriber clients\): needs cpus 7") as caught:
        engine.launch([group("g"), large])
    assert caught.value.remedy
    assert engine.agents() == list(AGENTS)


@pytest.mark.parametrize("names", [("g", "g"), ("../g",), ("",), ("a/b",), ("..",)])
def test_an_id_that_cannot_name_a_sandbox_is_refused(engine: LocalEngine, names: tuple[str, ...]) -> None:
    with pytest.raises(ClusterError, match="group"):
        engine.launch([group(name) for name in names])


def test_closing_leaves_no_process_and_no_descriptor(tmp_path: Path, others: set[psutil.Process]) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    engine = LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=0.2)
    engine.launch([group("g"), group("h", DEAF), group("i", PARENT + FOREVER), group("j", "pass")])
    child = int(said(tmp_path, "i").split()[0])
    said(tmp_path, "h")
    pids = [p.pid for p in psutil.Process().children(recursive=True) if p not in others]
    start = time.monotonic()
    engine.close()
    engine.close()
    assert time.monotonic() - start < 4
    assert set(psutil.Process().children()) <= others
    wait_until(lambda: all(map(gone, [*pids, child])), "the end of every process")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    states = {e.group: e.state for e in engine.events()}
    assert states["g"] == states["h"] == states["i"] == "killed"
    assert states["j"] in ("finished", "killed")
    with pytest.raises(ClusterError, match="closed"):
        engine.launch([group("k")])


def test_an_interrupted_close_still_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: set[psutil.Process]
) -> None:
    engine = LocalEngine(AGENTS, tmp_path / "sandbox", grace_s=30)
    engine.launch([group("g", DEAF)])
    said(tmp_path, "g")
    pauses: list[float] = []

    def ctrl_c_in_the_first_pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("hydra.cluster.local.engine.time.sleep", ctrl_c_in_the_first_pause)
    with pytest.raises(KeyboardInterrupt):
        engine.close()
    assert set(psutil.Process().children()) <= others


def test_an_engine_is_what_the_interface_asks_for(engine: LocalEngine) -> None:
    same: Engine = engine
    assert [a.id for a in same.agents()] == ["one", "two"]
