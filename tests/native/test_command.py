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
    line = " ".join(command.command(system, role, spec))
    assert line.startswith("/program ")
    assert all(words in line for words in has)
    assert lacks not in line


def test_a_program_that_was_not_built_is_one_line_that_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda: None)
    monkeypatch.setattr(command, "missing", lambda: ["libzmq3-dev"])
    with pytest.raises(MissingDependencyError, match="apt install libzmq3-dev"):
        command.command("zmq", "publisher", NativeSpec())
