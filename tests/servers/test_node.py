"""The program of a server's group, with a server that any system could have."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from hydra.control import curve
from hydra.control.controller import Controller
from hydra.system import wait_alone
from hydra.wire.clock import boot_id, network_namespace, time_namespace
from hydra.wire.messages import Join

from .toy import ToyCluster

pytestmark = pytest.mark.processes

SERVER = 2**31
FLAGS = ("-m", "tests.servers.toy", "toy-server", "--group", "servers-1", "--first-id", str(SERVER), "--count", "1")
HOUSE = Path(__file__).resolve().parents[2]


@pytest.fixture
def controller() -> Iterator[Controller]:
    made = Controller("run")
    made.roster.expect("servers-1", [SERVER])
    yield made
    made.close()


@contextlib.contextmanager
def started(controller: Controller, folder: Path, **env: str) -> Iterator[tuple[psutil.Popen, str]]:
    """One that has dialled in, and where it says that it will listen."""
    environment = {**os.environ, "PYTHONPATH": str(HOUSE), **controller.environment, **env}
    with (folder / "stderr").open("w") as stderr:
        process = psutil.Popen([sys.executable, *FLAGS], cwd=folder, env=environment, stderr=stderr)
    try:
        ready = controller.roster.answers.endpoints
        assert controller.wait_until(lambda: SERVER in ready, 30)
        yield process, ready[SERVER]
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@pytest.mark.parametrize("join", [None, {}, {"world": "hello"}])
def test_a_join_that_makes_no_sense_is_told(controller: Controller, tmp_path: Path, join: dict[str, str]) -> None:
    with started(controller, tmp_path) as (process, _):
        controller.tell([SERVER], Join(system=join))
        errors = controller.roster.answers.errors
        assert controller.wait_until(lambda: SERVER in errors, 10)
        assert errors[SERVER] == "the toy could not be started: nobody told it a word"
        assert process.wait(10) == 1
    assert (tmp_path / "stderr").read_text() == f"hydra group servers-1: {errors[SERVER]}\n"
    assert not (tmp_path / "server").exists()


def test_its_end_is_told_with_its_last_words(controller: Controller, tmp_path: Path) -> None:
    with started(controller, tmp_path) as (process, _):
        controller.tell([SERVER], Join(system={"word": "die"}))
        errors = controller.roster.answers.errors
        assert controller.wait_until(lambda: SERVER in errors, 10)
        assert errors[SERVER] == "the toy ended with 1: no such word"
        assert process.wait(10) == 1
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["server.log", "stderr"]


def test_it_listens_where_it_said_and_goes_with_its_program(controller: Controller, tmp_path: Path) -> None:
    cluster = ToyCluster()
    with started(controller, tmp_path, HYDRA_DATA_HOST="127.0.0.2") as (process, endpoint):
        assert endpoint.startswith("127.0.0.2:")
        (join,) = cluster.join([endpoint])
        controller.tell([SERVER], Join(system=join))
        assert controller.wait_until(lambda: cluster.up(endpoint), 10)
        process.kill()
        assert wait_alone(lambda: not cluster.up(endpoint), 5)
        assert wait_alone(lambda: not (tmp_path / "server").exists(), 5)


def test_it_watches_its_host_and_the_threads_of_its_server(controller: Controller, tmp_path: Path) -> None:
    """No relay may be where a server is."""
    cluster = ToyCluster()
    controller.roster.watch.own = ("another", "", "")
    with started(controller, tmp_path, HYDRA_AGENT="agent-7") as (process, endpoint):
        (join,) = cluster.join([endpoint])
        controller.tell([SERVER], Join(system=join))
        assert controller.wait_until(lambda: cluster.up(endpoint), 10)
        controller.watch_hosts(1, 0.1)
        watch = controller.roster.watch

        def busy() -> set[int]:
            return {thread.pid for _, sample in watch.samples() for thread in sample.threads}

        # It has been busy starting at least.
        assert controller.wait_until(lambda: bool(busy()), 20)
        assert busy() <= {process.pid, *(child.pid for child in process.children(recursive=True))}
        controller.end_watch()
        assert controller.wait_until(watch.answered, 5)
        ((place, agent, group),) = {(post.place, post.agent, post.group) for post, _ in watch.samples()}
        assert (place, agent, group) == ((boot_id(), time_namespace(), network_namespace()), "agent-7", "servers-1")
        assert all(sample.host is not None for _, sample in watch.samples())


@pytest.mark.parametrize(
    ("env", "code", "said"),
    [
        ({"HYDRA_PORTS": ","}, 4, "no welcome at tcp://127.0.0.1:9"),
        ({"HYDRA_PORTS": "31000,x"}, 2, "'x'"),
        ({"HYDRA_PORTS": "31000", "TOY_PORTS": "2"}, 2, "HYDRA_PORTS names 1 ports, and a toy needs 2"),
        ({"HYDRA_DATA_HOST": "192.0.2.1"}, 1, "cannot bind 192.0.2.1:0"),
    ],
)
def test_what_keeps_it_from_coming_up_is_one_line(tmp_path: Path, env: dict[str, str], code: int, said: str) -> None:
    dialling = curve.environment(curve.generate(), "tcp://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, *FLAGS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HOUSE), "HYDRA_WELCOME_S": "0.2", **dialling, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code
    (line,) = done.stderr.splitlines()
    assert said in line
