"""The implementation of clients if the user names none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from click.testing import CliRunner

from hydra.cli.chosen_clients import ClientFacts, DefaultClient, default_client, with_default_client
from hydra.cli.main import cli
from hydra.config.scenario import resolve
from hydra.model import Scenario
from hydra.native.build import has_sources
from hydra.options.engine_choice import choose
from hydra.run import launcher

USUAL = ClientFacts("slow", "native", build="make it")


@pytest.mark.parametrize(
    ("facts", "chosen"),
    [
        (USUAL, DefaultClient("native")),
        (ClientFacts("slow", "native", is_named=True, presence="absent"), DefaultClient("slow")),
        (ClientFacts("slow", "native", is_published=True, presence="unknown"), DefaultClient("slow")),
        (ClientFacts("slow", "", presence="absent"), DefaultClient("slow")),
        (ClientFacts("native", "native", presence="absent"), DefaultClient("native")),
        (ClientFacts("slow", "native", lacks="no sockets"), DefaultClient("slow", "no sockets")),
        (
            ClientFacts("slow", "native", presence="absent", lacks="no sockets", build="make it"),
            DefaultClient("slow", "the native program is not built; make it"),
        ),
        (
            ClientFacts("slow", "native", presence="unknown"),
            DefaultClient(
                "slow",
                "whether these hosts have the native program is not known before the start; --implementation native "
                "uses it",
            ),
        ),
    ],
)
def test_clients_are_native_if_nobody_names_others_and_they_are_there_and_can_do_it(
    facts: ClientFacts, chosen: DefaultClient
) -> None:
    assert default_client(facts) == chosen


class AnySystem:
    """A system whose programs are there."""

    def program(self, role: str) -> str:
        return role


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A native program that is there and has everything."""
    monkeypatch.setattr("hydra.cli.chosen_clients.find", lambda: Path("/there"))
    monkeypatch.setattr(launcher, "system_for", lambda _: AnySystem())


def client_of(name: str, replaced: Mapping[str, object] = MappingProxyType({}), master: str = "local") -> str:
    _, found, _ = with_default_client(name, resolve(name, replaced), replaced, choose(master, None))
    return resolve(name, found).scenario.client


@pytest.mark.parametrize(
    ("name", "replaced", "client"),
    [
        ("zmq-rate", {}, "native"),
        ("kafka-batch", {}, "native"),
        ("mqtt-connections", {}, "native"),
        ("zmq-rate", {"published": True}, "pyzmq"),
        ("zmq-rate", {"client": "pyzmq"}, "pyzmq"),
        ("zmq-rate", {"client": "zmtp"}, "zmtp"),
        ("mqtt-fixed", {"mqtt.broker": "ws://h:1"}, "paho-mqtt"),
        ("kafka-fixed", {"settings.compression": "zstd"}, "kafka-python"),
        ("kafka-fixed", {"settings.compression": "lz4"}, "native"),
        ("kafka-fixed", {"kafka.properties": {"sasl.mechanism": "GSSAPI"}}, "kafka-python"),
        ("kafka-fixed", {"kafka.properties": {"sasl.mechanism": "SCRAM-SHA-256"}}, "kafka-python"),
        ("kafka-fixed", {"kafka.properties": {"sasl.mechanism": "PLAIN"}}, "native"),
        (
            "kafka-fixed",
            {"kafka.properties": {"sasl.mechanism": "SCRAM-SHA-256", "security.protocol": "SASL_SSL"}},
            "native",
        ),
    ],
)
def test_what_a_scenario_asks_for_decides_whether_its_clients_are_native(
    built: None, name: str, replaced: dict[str, object], client: str
) -> None:
    assert client_of(name, replaced) == client


def test_a_file_of_the_user_names_its_clients(built: None, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('system = "zmq"\nclient = "pyzmq"\ntable = "fixed"\n[sweep]\nclients = [1]\nduration_s = 1.0\n')
    assert client_of(str(file)) == "pyzmq"


def test_hosts_whose_programs_are_not_known_run_the_usual_clients(built: None) -> None:
    _, found, note = with_default_client("zmq-rate", resolve("zmq-rate"), {}, choose("ssh", None))
    assert found == {}
    assert note.startswith("pyzmq clients: whether these hosts have the native program is not known")


def test_a_check_notes_in_one_line_why_its_clients_are_not_native() -> None:
    done = CliRunner().invoke(cli, ["check", "zmqfixed", "--clients", "2", "--json"])
    found = json.loads(done.stdout)
    assert found["client"] == "pyzmq"
    (note,) = (note for note in found["notes"] if note.startswith("pyzmq clients: the native program is not built; "))
    # An installed Hydra has no sources from which it could be built.
    assert ("make native" if has_sources() else "docs/packaging.md") in note


def test_nothing_is_compiled_to_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> Scenario:
        raise AssertionError("the program was compiled")

    monkeypatch.setattr("hydra.native.client_command.compile_once", refused)
    assert client_of("nats-rate") == "nats-py"
