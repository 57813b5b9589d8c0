"""Which program, with which flags, a scenario of raw ZMQ starts for its publishers and its subscribers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydra.config.scenario import load_scenario
from hydra.model import Role
from hydra.native import command
from hydra.zmqtest.system import ZmqSystem


@pytest.fixture(autouse=True)
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find", lambda: Path("/program"))
    monkeypatch.setattr(command, "_offered", lambda _program: frozenset({"zmq-pub", "zmq-sub", "zmtp-sub"}))


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


@pytest.mark.parametrize(("client", "told"), [("pyzmq", True), ("native", True), ("zmtp", False)])
def test_only_subscribers_with_a_queue_are_told_of_its_mark(client: str, told: bool) -> None:
    scenario = load_scenario("zmqfixed", {"client": client})
    configured = ZmqSystem(scenario).configure(scenario.settings)
    assert ("rcvhwm" in configured) == told
    assert "subscriptions" not in configured
    assert {"sndhwm", "nodrop"} <= configured.keys()
