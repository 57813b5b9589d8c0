"""Servers that run as a group of a controller, how they are killed, and how far their clients are."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import psutil

from hydra.control.controller import Controller
from hydra.system import ServerCluster
from hydra.system.local_server import LocalServer
from hydra.wire.messages import Join, Ping, Progress
from tests.conformance.bench import Bench
from tests.suite.waiting import LONG_S, wait_until

SERVER = 2**31
TREE = Path(__file__).resolve().parents[2]


def kill(server: LocalServer) -> None:
    """Ends the server as a power cut would."""
    assert server.pids is not None
    os.kill(server.pids[1], signal.SIGKILL)


def node(module: str, kind: str) -> list[str]:
    """The command of a server's group."""
    flags = ("--group", "servers-1", "--first-id", str(SERVER), "--count", "1")
    return [sys.executable, "-m", module, kind, *flags]


def progressed(bench: Bench, client: int, epoch: int, messages: int) -> None:
    """Waits until a client has reported this many messages."""
    reported = partial(bench.peer.messages_of, Progress, client, epoch=epoch)
    bench.peer.wait(lambda: any(p.messages >= messages for p in reported()), f"progress of {messages} messages", LONG_S)


@contextlib.contextmanager
def expecting_one(silence_s: float = 30.0) -> Iterator[Controller]:
    """A controller that expects the group."""
    with contextlib.closing(Controller("run", silence_s=silence_s)) as made:
        made.roster.expect("servers-1", [SERVER])
        yield made


def served(controller: Controller, condition: Callable[[], object], what: str) -> None:
    """Waits while the controller serves its clients, and is never silent."""

    def serve() -> None:
        controller.broadcast(Ping(time_ns=0))
        controller.poll(0.02)

    wait_until(condition, what, LONG_S, between=serve)


@contextlib.contextmanager
def started(
    controller: Controller, folder: Path, command: list[str], env: Mapping[str, str] | None = None
) -> Iterator[tuple[psutil.Popen, str]]:
    """One that has dialled in, and the endpoint at which it will listen."""
    with (folder / "stderr").open("w") as stderr:
        environment = {**os.environ, "PYTHONPATH": str(TREE), **(env or {}), **controller.environment}
        process = psutil.Popen(command, cwd=folder, env=environment, stderr=stderr)
    try:
        endpoints = controller.roster.answers.endpoints
        served(controller, lambda: SERVER in endpoints, "its endpoint")
        yield process, endpoints[SERVER]
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        process.wait()


def join(controller: Controller, cluster: ServerCluster, endpoint: str) -> None:
    """Makes it a cluster of one, and waits until that is up."""
    (reported,) = cluster.join([endpoint])
    controller.send_to([SERVER], Join(system=reported))
    served(controller, lambda: cluster.up(endpoint), "its server")
