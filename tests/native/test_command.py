"""How the native client is started: the program, and its flags for a system and a scenario."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import MissingDependencyError
from hydra.model import Figure, NativeSpec, Role
from hydra.native import build, client_command
from hydra.native.build import PROGRAM
from hydra.zmqtest.settings import DATA_KEY, DATA_SECRET
from hydra.zmqtest.system import ZmqSystem


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A native client is there, with some kinds."""
    monkeypatch.setattr(client_command, "find", lambda: Path("/program"))
    monkeypatch.setattr(client_command, "_help", lambda _program: "zmq-pub zmq-sub zmtp-sub kafka-pub")


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("system", "role", "spec", "options", "has", "lacks"),
    [
        ("zmq", "subscriber", NativeSpec(clients_per_process=5), {}, "zmq-sub --clients-per-process 5", "--secure"),
        ("zmq", "publisher", NativeSpec(pacing="bursty"), {}, "zmq-pub --pacing bursty", "--cl"),
        ("zmq", "publisher", NativeSpec(), {"transport": "ipc", "secure": True}, "--transport ipc --secure", "cl"),
        ("zmq", "publisher", NativeSpec(), {"sndbuf": 2, "secure": False}, "--sndbuf 2", "--secure"),
        ("kafka", "publisher", NativeSpec(), {}, "kafka-pub", "--transport"),
    ],
)
def test_the_command_line_has_the_flags_of_its_kind(
    system: str, role: Role, spec: NativeSpec, options: Mapping[str, Figure], has: str, lacks: str
) -> None:
    line = " ".join(client_command.command(system, role, spec, options))
    assert line.startswith("/program ")
    assert set(has.split()) <= set(line.split())
    assert lacks not in line


def test_a_program_that_was_not_built_is_one_line_that_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_command, "find", lambda: None)
    monkeypatch.setattr(client_command, "missing", lambda: ["libzmq3-dev"])
    monkeypatch.setattr(client_command, "has_sources", lambda: True)
    with pytest.raises(MissingDependencyError, match="apt-get install libzmq3-dev, then run the command again"):
        client_command.command("zmq", "publisher", NativeSpec())


def test_an_installed_copy_without_the_program_has_to_be_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_command, "find", lambda: None)
    monkeypatch.setattr(client_command, "missing", list)
    monkeypatch.setattr(client_command, "has_sources", lambda: False)
    with pytest.raises(MissingDependencyError, match=r"is not built; install Hydra again \(pip install \.\)"):
        client_command.command("zmq", "publisher", NativeSpec())


@pytest.mark.tier("test")
def test_the_first_command_compiles_the_program_and_reports_its_progress(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = """#!/bin/sh
[ "$1" = --build ] || exit 0
for percent in 3 7 12 55; do echo "[ $percent%] Building CXX object"; done
printf '#!/bin/sh\necho kind: zmq-pub' >"$2/hydra-client"
chmod +x "$2/hydra-client"
"""
    (tmp_path / "cmake").write_text(compiler)
    (tmp_path / "cmake").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program = tmp_path / "hydra" / PROGRAM
    monkeypatch.setattr(build, "_TREE", tmp_path)
    for module in (client_command, build):
        monkeypatch.setattr(module, "find", lambda: program if program.is_file() else None)
    for name, value in (("missing", []), ("has_sources", True)):
        monkeypatch.setattr(client_command, name, lambda value=value: value)
    for _ in range(2):
        assert client_command.command("zmq", "publisher", NativeSpec())[0] == str(program)
    output = [line.split(": ")[1] for line in capsys.readouterr().err.splitlines()]
    assert output == ["3 %", "12 %", "55 %"]


def test_a_folder_that_cannot_be_written_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "build").touch()
    monkeypatch.setattr(build, "_TREE", tmp_path)
    for name, value in (("find", None), ("missing", []), ("has_sources", True)):
        monkeypatch.setattr(client_command, name, lambda value=value: value)
    with pytest.raises(MissingDependencyError, match=r"Not a directory: .*; check its permissions"):
        client_command.command("zmq", "publisher", NativeSpec())


@pytest.mark.tier("test")
@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo 'kind:{zmq-pub,zmq-sub}'", "the native client was built without toy; apt-get install libtoy-dev, then"),
        ("echo 'no libtoy.so' >&2; exit 127", "does not run: no libtoy.so"),
    ],
)
def test_a_program_without_the_system_is_one_line_that_names_the_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, text: str
) -> None:
    program = tmp_path / "hydra-client"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(client_command, "find", lambda: program)
    monkeypatch.setattr(client_command, "missing", lambda: ["libtoy-dev"])
    with pytest.raises(MissingDependencyError) as refused:
        client_command.command("toy", "subscriber", NativeSpec())
    assert text in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("changes", "role", "begins", "has", "lacks"),
    [
        ({"client": "zmtp", "native.rcvbuf": 5000}, "subscriber", "/program zmtp-sub",
         ("--zmtp-rcvbuf 5000", "--clients-per-process 19900"), (" --rcvbuf", "--io-threads", "--transport")),
        ({"client": "zmtp", "native.sndbuf": 7}, "publisher", "/program zmq-pub",
         ("--sndbuf 7", "--io-threads 1", "--transport tcp"), ("--publisher", "--zmtp")),
        ({"client": "native"}, "subscriber", "/program zmq-sub", ("--rcvbuf 0",), ("--publisher", "--zmtp")),
        ({"client": "zmtp", "native.publisher": "pyzmq"}, "publisher", "python", ("hydra.zmqtest.pyzmq zmq-pub",), ()),
        ({"client": "native", "native.publisher": "pyzmq"}, "subscriber", "/program zmq-sub", (), ("--publisher",)),
    ],
)  # fmt: skip
def test_a_program_has_the_flags_that_it_knows(
    changes: dict[str, object], role: Role, begins: str, has: tuple[str, ...], lacks: tuple[str, ...]
) -> None:
    line = " ".join(ZmqSystem(load_scenario("zmqfixed", changes)).program(role).command)
    assert line.startswith(begins) or (begins == "python" and "python" in line.split()[0])
    assert all(words in line for words in has)
    assert not any(words in line for words in lacks)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("client", ["pyzmq", "native"])
def test_only_publishers_have_the_secret_key_for_data(client: str) -> None:
    plain, secure = (
        ZmqSystem(load_scenario("zmqfixed", {"client": client, "native.secure": it})) for it in (False, True)
    )
    publisher, subscriber = (secure.program(role).environment for role in ("publisher", "subscriber"))
    assert publisher[DATA_KEY] == subscriber[DATA_KEY] != publisher[DATA_SECRET]
    assert DATA_SECRET not in subscriber
    assert DATA_KEY not in plain.program("publisher").environment


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(("client", "reported"), [("pyzmq", True), ("native", True), ("zmtp", False)])
def test_only_subscribers_with_a_queue_are_told_of_its_mark(client: str, reported: bool) -> None:
    scenario = load_scenario("zmqfixed", {"client": client})
    configured = ZmqSystem(scenario).configure(scenario.settings)
    assert ("rcvhwm" in configured) == reported
    assert "subscriptions" not in configured
    assert {"sndhwm", "nodrop"} <= configured.keys()
