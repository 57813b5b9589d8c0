"""How the native client is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.errors import MissingDependencyError
from hydra.model import NativeSpec, Role
from hydra.native import command


@pytest.mark.parametrize(
    ("system", "role", "spec", "has", "lacks"),
    [
        ("zmq", "subscriber", NativeSpec(clients_per_process=5), ("zmq-sub", "--clients-per-process 5"), "--secure"),
        (
            "zmq",
            "publisher",
            NativeSpec(pacing="bursty", system={"secure": True}),
            ("zmq-pub", "--secure", "--pacing bursty"),
            "--cl",
        ),
        (
            "zmq",
            "publisher",
            NativeSpec(system={"transport": "ipc", "sndbuf": 2, "secure": False}),
            ("--transport ipc", "--sndbuf 2"),
            "--cl",
        ),
        ("kafka", "publisher", NativeSpec(), ("kafka-pub",), "--transport"),
    ],
)
def test_the_command_line_has_the_flags_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, system: str, role: Role, spec: NativeSpec, has: tuple[str, ...], lacks: str
) -> None:
    monkeypatch.setattr(command, "find", lambda: Path("/program"))
    monkeypatch.setattr(command, "_offered", lambda _program: frozenset({"zmq-pub", "zmq-sub", "kafka-pub"}))
    line = " ".join(command.command(system, role, spec))
    assert line.startswith("/program ")
    assert all(words in line for words in has)
    assert lacks not in line


def test_a_program_that_was_not_built_is_one_line_that_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda: None)
    monkeypatch.setattr(command, "missing", lambda: ["libzmq3-dev"])
    with pytest.raises(MissingDependencyError, match="apt install libzmq3-dev"):
        command.command("zmq", "publisher", NativeSpec())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'kind:{zmq-pub,zmq-sub}'", "the native client was built without toy; apt install libtoy-dev, then"),
        ("echo 'no libtoy.so' >&2; exit 127", "does not run: no libtoy.so"),
    ],
)
def test_a_program_without_the_system_is_one_line_that_names_the_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
) -> None:
    program = tmp_path / "hydra-client"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(command, "find", lambda: program)
    monkeypatch.setattr(command, "missing", lambda: ["libtoy-dev"])
    with pytest.raises(MissingDependencyError) as refused:
        command.command("toy", "subscriber", NativeSpec())
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
