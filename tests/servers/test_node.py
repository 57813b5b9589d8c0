"""The program of a server's group, with a server that any system could have."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import psutil
import pytest

from hydra.control import curve_security
from hydra.control.controller import Controller
from hydra.wire.clock import boot_id, network_namespace, time_namespace
from hydra.wire.messages import Halt, Join, Look
from tests.suite.waiting import LONG_S, SOON_S, wait_until

from . import running
from .running import SERVER, TREE, expecting_one, join, node, served
from .toy import ToyCluster

pytestmark = pytest.mark.tier("all")

HOST = "127.0.0.2"
COMMAND = node("tests.servers.toy", "toy-server")


@pytest.fixture
def controller() -> Iterator[Controller]:
    with expecting_one(silence_s=2.0) as made:
        yield made


def started(controller: Controller, folder: Path) -> AbstractContextManager[tuple[psutil.Popen, str]]:
    return running.started(controller, folder, COMMAND, {"HYDRA_DATA_HOST": HOST, "HYDRA_AGENT": "agent-7"})


@pytest.mark.parametrize(
    ("reported", "error"),
    [
        pytest.param(
            {"world": "hello"}, "the toy could not be started: nobody told it a word", marks=pytest.mark.tier("test")
        ),
        ({"word": "die"}, "the toy ended with 1: no such word"),
    ],
)
def test_a_server_that_cannot_be_says_why(
    controller: Controller, tmp_path: Path, reported: dict[str, str], error: str
) -> None:
    with started(controller, tmp_path) as (process, _):
        controller.send_to([SERVER], Join(system=reported))
        errors = controller.roster.answers.errors
        served(controller, lambda: SERVER in errors, "its error")
        assert errors[SERVER] == error
        assert process.wait(SOON_S) == 1
    assert (tmp_path / "stderr").read_text() == f"hydra group servers-1: {error}\n"
    assert not (tmp_path / "server").exists()


@pytest.mark.parametrize(
    ("end", "status"),
    [pytest.param("quit", 0, marks=pytest.mark.tier("test")), ("SIGTERM", 0), ("SIGKILL", -9), ("silence", 4)],
)
def test_it_listens_where_it_said_and_its_server_goes_with_it_however_it_ends(
    controller: Controller, tmp_path: Path, end: str, status: int
) -> None:
    with started(controller, tmp_path) as (process, endpoint):
        assert endpoint.startswith(f"{HOST}:")
        # Until it gets its cluster it resends its message: either may have been lost.
        roster = controller.roster
        roster.begin(0)
        served(controller, lambda: roster.answers.endpoints == {SERVER: endpoint}, "its endpoint once more")
        cluster = ToyCluster()
        join(controller, cluster, endpoint)
        family = process.children(recursive=True)
        assert len(family) == 2, "the supervisor and the server"
        if end == "quit":
            controller.quit([SERVER])
        elif end != "silence":
            process.send_signal(signal.Signals[end])
        assert process.wait(SOON_S) == status
        wait_until(lambda: not any(p.is_running() for p in family), "the end of the supervisor and of the server")
        assert not cluster.up(endpoint)
        wait_until(lambda: not (tmp_path / "server").exists(), "the end of its folder")
    assert ("silent" in (tmp_path / "stderr").read_text()) == (end == "silence")


def acknowledged(controller: Controller, number: int) -> bool:
    return SERVER in controller.roster.answers.acked(number)


@pytest.mark.tier("test")
def test_a_server_that_is_halted_keeps_its_data_until_it_starts_again(
    controller: Controller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    monkeypatch.setattr(controller.roster.looks, "heard", lambda _, texts: read.append(texts.number))
    cluster, answers = ToyCluster("hello"), controller.roster.answers
    with started(controller, tmp_path) as (process, endpoint):
        join(controller, cluster, endpoint)
        (tmp_path / "server" / "kept").touch()
        for number in (1, 2):  # the second one changes nothing
            controller.send_to([SERVER], Halt(epoch=0, number=number, start=1))
            served(controller, partial(acknowledged, controller, number), "its end")
            assert not cluster.up(endpoint)
        controller.send_to([SERVER], Join(system={"word": "ignored"}, start=1))
        controller.send_to([SERVER], Join(system={"word": "hello"}, start=2))
        served(controller, lambda: cluster.up(endpoint), "its return")
        last = Look(number=7, patterns=[], most_bytes=1)
        for late in (Halt(epoch=0, number=3, start=1), Join(system={"word": "ignored"}, start=2), last):
            controller.send_to([SERVER], late)
        served(controller, lambda: read == [7], "the answer to what followed them")
        assert cluster.up(endpoint)
        assert (tmp_path / "server" / "kept").exists()
        controller.send_to([SERVER], Halt(epoch=0, number=4, start=2))
        served(controller, lambda: SERVER in answers.acked(4), "its second end")
        assert SERVER not in answers.acked(3)
        assert SERVER not in answers.errors
        process.kill()
        process.wait(SOON_S)
    wait_until(lambda: not (tmp_path / "server").exists(), "the end of its folder, although no server runs")


def test_it_watches_its_host_and_the_threads_of_its_server(controller: Controller, tmp_path: Path) -> None:
    """No relay may be where a server is."""
    watch = controller.roster.watch
    watch.own = ("another", "", "")
    with started(controller, tmp_path) as (process, endpoint):
        join(controller, ToyCluster(), endpoint)
        controller.watch_hosts(1, 0.1)

        def busy() -> set[int]:
            return {thread.pid for _, sample in watch.samples() for thread in sample.threads}

        served(controller, busy, "a thread that was busy: it has been starting at least")
        assert busy() <= {process.pid, *(child.pid for child in process.children(recursive=True))}
        controller.end_watch()
        served(controller, watch.answered, "the end of the watch")
        ((place, agent, group),) = {(post.place, post.agent, post.group) for post, _ in watch.samples()}
        assert (place, agent, group) == ((boot_id(), time_namespace(), network_namespace()), "agent-7", "servers-1")
        assert all(sample.host is not None for _, sample in watch.samples())


@pytest.mark.parametrize(
    ("env", "code", "text"),
    [
        ({"HYDRA_PORTS": ","}, 4, "no welcome at tcp://127.0.0.1:9"),
        ({"HYDRA_PORTS": "31000,x"}, 2, "'x'"),
        ({"HYDRA_PORTS": "31000", "TOY_PORTS": "2"}, 2, "HYDRA_PORTS names 1 ports, and a toy needs 2"),
        ({"HYDRA_DATA_HOST": "192.0.2.1"}, 1, "cannot bind 192.0.2.1:0"),
    ],
)
def test_what_keeps_it_from_coming_up_is_one_line(tmp_path: Path, env: dict[str, str], code: int, text: str) -> None:
    dialling = curve_security.environment(curve_security.generate(), "tcp://127.0.0.1:9")
    reported = {**os.environ, "PYTHONPATH": str(TREE), "HYDRA_WELCOME_S": "0.2", **dialling, **env}
    done = subprocess.run(
        COMMAND, cwd=tmp_path, env=reported, capture_output=True, text=True, timeout=LONG_S, check=False
    )
    assert done.returncode == code
    (line,) = done.stderr.splitlines()
    assert text in line
