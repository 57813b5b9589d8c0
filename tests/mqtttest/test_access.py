"""Servers that demand TLS and a login: right, wrong and missing, for the controller and for each implementation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from hydra.client.tls import AccessError
from hydra.config.scenario import load_scenario
from hydra.errors import ConfigError, MissingDependencyError, UsageError
from hydra.mqtttest.access import access_of, secrets_of, users_of
from hydra.mqtttest.settings import MqttSpec, spec_of
from hydra.mqtttest.system import MqttSystem, access_to, forget, reach
from hydra.native import client_command
from hydra.natstest.program import find_server
from hydra.wire.messages import Error, Ready
from tests.conformance.bench import Bench
from tests.integration.command import assert_all_arrived, hydra, interrupt, refusal, table
from tests.servers.access_cases import CASES, ENCODED, PASSWORD, USER, Case, SecureServers, given, one_clear_line
from tests.suite.fixtures import starts
from tests.suite.waiting import SOON_S

from .conftest import PAHO
from .ends import system_of
from .secure import secure_servers, websocket_server

starts("secure", "tried_client")
SMALL: Final = ("--clients", 1, "--rate", 20, "--duration", 1, "--set", "warmup_s=0")
EACH: Final = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServers]:
    with secure_servers(tmp_path_factory.mktemp("secure") / "mqtt") as running:
        yield running


@pytest.fixture
def spec(secure: SecureServers, case: Case) -> MqttSpec:
    """The table of the case."""
    return MqttSpec(**case.table("broker", "mqtts", secure.addresses, secure.folder))  # type: ignore[arg-type]


@EACH
def test_the_controller_is_let_in_or_reports_why_not(spec: MqttSpec, case: Case) -> None:
    system = MqttSystem(load_scenario("mqtt-fixed", given("mqtt", spec)))
    if not case.reason:
        system.check()
        return
    with pytest.raises(UsageError) as refused:
        system.check()
    one_clear_line(str(refused.value), case.reason)
    assert refused.value.remedy


@pytest.fixture(scope="module", params=["paho-mqtt", "native"])
def tried_client(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """A publisher, 1; it is native if its name is."""
    native = request.param == "native"
    command = request.getfixturevalue("native") if native else PAHO
    with closing(Bench()) as it:
        it.launch(command, "mqtt-pub")
        yield it


EPOCHS: Final = count(1)


@EACH
def test_a_client_is_let_in_or_names_the_layer(tried_client: Bench, spec: MqttSpec, case: Case) -> None:
    epoch, access = next(EPOCHS), access_of(spec)
    reported = {name: value for name, value in msgspec.to_builtins(access).items() if value}
    system = system_of(f"{access.host}:{access.port}", "test", **reported)
    if not case.reason:
        tried_client.configure_publisher(1, epoch, system=system, probe=False)
        tried_client.peer.heard(Ready, [1], epoch=epoch)
        return
    tried_client.send_configure([1], epoch, system=system, probe=False)
    error = tried_client.peer.heard(Error, [1], epoch=epoch, timeout_s=SOON_S).message
    native = tried_client.peer.relay().implementation == "native"
    one_clear_line(error, f"{case.layer}: " if native else case.reason)


@pytest.mark.tier("all")
@pytest.mark.parametrize("case", [CASES["user"]], ids=["user"])
def test_what_a_run_leaves_on_a_server_with_a_password_is_removed(spec: MqttSpec, tmp_path: Path) -> None:
    run = tmp_path / "run"
    flags = [word for name, value in given("mqtt", spec).items() for word in ("--set", f"{name}={json.dumps(value)}")]
    hydra("mqtt-fixed", *SMALL, "--retain", *flags, "--out", run)
    assert_all_arrived(table(run)[0], 20)
    assert forget(access_of(spec), "hydra") == 0


@pytest.mark.parametrize("case", [CASES["wrong password"]], ids=["wrong password"])
def test_a_command_that_is_not_let_in_leaves_nothing(spec: MqttSpec, tmp_path: Path) -> None:
    flags = [word for name, value in given("mqtt", spec).items() for word in ("--set", f"{name}={json.dumps(value)}")]
    done = hydra("mqtt-fixed", *flags, "--out", tmp_path / "run", expect=2)
    server = spec.broker.removeprefix("mqtts://")
    assert done.stderr.splitlines() == [
        f"hydra: the MQTT server at {server}: login: the server rejects this user or password; "
        "check --username and --password-file"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tier("all")
def test_an_interrupted_run_is_resumed_with_its_login(secure: SecureServers, tmp_path: Path) -> None:
    run = tmp_path / "run"
    login = ("--servers", f"mqtts://{USER}:{ENCODED}@{secure.addresses['user']}")
    interrupt(run, "mqtt-fixed", *login, "--ca-file", secure.file("ca.pem"), "--retain")
    assert "secrets are not stored with a run: mqtt.broker;" in refusal("mqtt-fixed", "--resume", run)
    hydra("mqtt-fixed", "--resume", run, *login)
    assert [row["status"] for row in table(run)] == ["ok"] * 3


@pytest.mark.tier("test")
@pytest.mark.parametrize("implementation", ["paho-mqtt", "native"])
def test_a_server_that_hydra_starts_uses_tls(
    implementation: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if implementation == "native":
        request.getfixturevalue("native")
    run = tmp_path / "run"
    words = ("--connect-rate", "max", "--implementation", implementation, *SMALL, "--qos", 1, "--out", run)
    hydra("mqtt-fixed", "--tls", *words)
    (row,) = table(run)
    assert_all_arrived(row, 20)
    # libmosquitto does not separate the handshake.
    assert (row["connect_tls_p50_ms"] != "", row["connected_clients"]) == (implementation == "paho-mqtt", "1")
    assert 0 < float(row["connect_tls_p50_ms"] or row["connected_p50_ms"]) <= float(row["connected_p50_ms"])
    assert not [path for path in run.rglob("*") if path.suffix == ".pem" or path.name.startswith("server-")]


# --- WebSocket --------------------------------------------------------------------------------------------------------


@pytest.mark.tier("all")
def test_data_passes_a_websocket_with_tls(secure: SecureServers, needs_nats: None, tmp_path: Path) -> None:
    password, ca = (secure.file(name) for name in ("password", "ca.pem"))
    certificate = [secure.file(f"right/server-{part}.pem") for part in ("certificate", "key")]
    with websocket_server(find_server().path, tmp_path / "nats", certificate) as address:
        login = ("--servers", f"wss://{address}", "--ca-file", ca, "--username", USER, "--password-file", password)
        hydra("mqtt-fixed", *SMALL, *login, "--qos", 1, "--message-size", 1000, "--out", tmp_path / "run")
        assert_all_arrived(table(tmp_path / "run")[0], 20)


# Where no WebSocket is, paho leaves its socket to Python.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_websocket_is_named_where_it_fails(secure: SecureServers, needs_nats: None, tmp_path: Path) -> None:
    plain = secure.addresses["plain"]
    with websocket_server(find_server().path, tmp_path / "nats") as address:
        login: dict[str, Any] = {"username": USER, "password": PASSWORD}
        for at, more, reason in (
            (f"ws://{address}", login, ""),
            (f"ws://{address}", {**login, "password": "wrong"}, "login: the server rejects this user or password"),
            (f"wss://{address}", login, "TLS: the server does not use TLS at this port"),
            (f"ws://{plain}", {}, "network: the server does not use WebSocket at this port"),
            (f"ws://{secure.addresses['user']}", {}, "TLS: the server demands TLS"),
            (secure.addresses["user"], {}, "TLS: the server demands TLS"),
        ):
            access = access_of(MqttSpec(broker=at, **more))
            if not reason:
                reach(access)
                continue
            with pytest.raises(AccessError) as refused:
                reach(access)
            one_clear_line(str(refused.value), reason)


# --- without a server -------------------------------------------------------------------------------------------------


def test_a_native_client_without_tls_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_command, "find", lambda: Path("/hydra-client"))
    monkeypatch.setattr(client_command, "_help", lambda _: "KIND: mqtt-pub, mqtt-sub\n\nTLS: nats\n")
    for more in ({"mqtt.broker": "mqtts://h"}, {"mqtt.broker": "h", "mqtt.cert_file": "f"}, {"mqtt.tls": True}):
        system = MqttSystem(load_scenario("mqtt-fixed", {"client": "native", **more}))
        with pytest.raises(
            MissingDependencyError, match=r"built without TLS for mqtt.*choose another --implementation"
        ):
            system.program("subscriber")
    MqttSystem(load_scenario("mqtt-fixed", {"client": "native", "mqtt.broker": "h"})).program("subscriber")


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({"client": "native", "mqtt.broker": "wss://h"}, "wss://: native clients of MQTT have no WebSocket"),
        ({"mqtt.broker": "tls://h"}, "write mqtt:// or mqtts:// or ws:// or wss://"),
        ({"mqtt.broker": "mqtt://me:secret@h", "mqtt.username": "u"}, "broker and username both name a login"),
        ({"mqtt.broker": "mqtt://me:secret@h/a"}, "'mqtt://***@h/a' is no address"),
        ({"mqtt.broker": "h", "mqtt.tls": True}, "mqtt.tls: has no effect in this run: it needs no mqtt.broker"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(more: dict[str, Any], refused: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_scenario("mqtt-fixed", more)
    assert refused in str(error.value)
    assert "secret" not in str(error.value)


def test_an_address_has_all_that_a_client_needs() -> None:
    access = access_of(MqttSpec(broker="wss://me:a%2Fsecret@h/path"))
    assert (access.host, access.port, access.websocket) == ("h", 443, "/path")
    assert (access.username, access.password, access.tls is not None) == ("me", "a/secret", True)
    assert access_of(MqttSpec(broker="ws://h")).websocket == "/mqtt"
    assert access_to("h:1").tls is access_of(MqttSpec(broker="mqtt://h")).tls is None


def test_the_secrets_of_a_login_are_known() -> None:
    spec = spec_of(load_scenario("mqtt-fixed", {"mqtt.broker": f"mqtts://me:{ENCODED}@h"}))
    assert [*secrets_of(spec), *users_of(spec)] == [PASSWORD, "me"]
