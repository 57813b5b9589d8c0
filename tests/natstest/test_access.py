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
from hydra.model import with_values
from hydra.native import client_command
from hydra.natstest.access import access_of, secrets_of
from hydra.natstest.connection import NatsConnection
from hydra.natstest.nkey import UserKey
from hydra.natstest.server_demands import tls_for
from hydra.natstest.settings import NatsSpec, spec_of
from hydra.natstest.streams import JetStreams
from hydra.natstest.system import NatsSystem
from hydra.system import wait_alone
from hydra.wire.messages import Error, Ready
from tests.conformance.bench import Bench
from tests.integration.command import hydra, interrupt, refusal, table
from tests.servers.access_cases import CA, LOGIN, PASSWORD, USER, Case, SecureServers, given, one_clear_line
from tests.servers.access_cases import CASES as COMMON
from tests.suite.fixtures import starts
from tests.suite.native_client import native_client
from tests.suite.waiting import SOON_S

from .secure import TOKEN, secure_servers, store_context

starts("secure", "native")
SEED: Final = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"


WITHOUT_TLS: Final = {"username": USER, "password": PASSWORD}
CASES: Final = {
    **COMMON,
    "NKEY": Case("user", "", {**CA, "nkey_file": "{user.nk}"}),
    "token": Case("plain", "", {"token_file": "{token}"}, "nats://{at}"),
    "token in the address": Case("plain", "", {}, "nats://a%20token%20of%20the%20test@{at}"),
    "credentials": Case("credentials", "", {"creds_file": "{me.creds}"}, "{at}"),
    "TLS that only the server demands": Case("user", "TLS: unknown CA: ", {}, "nats://{at}"),
    "two servers, one dead": Case("user", "", LOGIN, "tls://{none}, tls://{at}"),
    "wrong NKEY": Case("user", "login: the server rejects the NKEY", {**CA, "nkey_file": "{other.nk}"}),
    "wrong token": Case("plain", "login: the server rejects the token", {"token": "wrong"}, "nats://{at}"),
}
EACH: Final = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
OF_CONTROLLER: Final = {
    **CASES,
    "a subject that is not allowed": Case(
        "limited", "refuses this user: permissions violation for publish to", WITHOUT_TLS, "nats://{at}"
    ),
    # Only Hydra's own check connects to each server.
    "two servers, one rejects": Case("user", "TLS: the server requires a client certificate", LOGIN, "{at},{client}"),
}


@pytest.fixture(scope="module")
def secure(needs_nats: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureServers]:
    with secure_servers(tmp_path_factory.mktemp("secure") / "nats") as running:
        yield running


@pytest.fixture
def spec(secure: SecureServers, case: Case) -> NatsSpec:
    """The table of the case."""
    return NatsSpec(**case.table("servers", "tls", secure.addresses, secure.folder))  # type: ignore[arg-type]


@pytest.mark.parametrize("case", OF_CONTROLLER.values(), ids=OF_CONTROLLER)
def test_the_controller_is_let_in_or_says_why_not(spec: NatsSpec, case: Case) -> None:
    system = NatsSystem(load_scenario("nats-fixed", given("nats", spec)))
    if not case.reason:
        system.check()
        return
    with pytest.raises(UsageError) as refused:
        system.check()
    one_clear_line(str(refused.value), case.reason, TOKEN)
    assert refused.value.remedy


@EACH
def test_a_python_client_is_let_in_or_says_why_not(spec: NatsSpec, case: Case) -> None:
    connection = NatsConnection("test")
    try:
        if not case.reason:
            assert connection.open(access_of(spec))
            return
        with pytest.raises(AccessError) as refused:
            connection.open(access_of(spec))
    finally:
        connection.end()
    one_clear_line(str(refused.value), case.reason, TOKEN)


@pytest.fixture(scope="module")
def native() -> Iterator[Bench]:
    """A native publisher, 1."""
    program = native_client("nats-pub")
    if program is None:
        pytest.skip("the native client is not built")
    with closing(Bench()) as it:
        it.launch(program, "nats-pub")
        yield it


EPOCHS: Final = count(1)


@EACH
def test_a_native_client_is_let_in_or_names_the_layer(native: Bench, spec: NatsSpec, case: Case) -> None:
    epoch, access = next(EPOCHS), access_of(spec)
    reported = {key: value for key, value in msgspec.to_builtins(access).items() if value}
    system = {**reported, "subject": "test"}
    if not case.reason:
        native.configure_publisher(1, epoch, system=system)
        native.peer.heard(Ready, [1], epoch=epoch)
        return
    native.send_configure([1], epoch, system=system)
    text = native.peer.heard(Error, [1], epoch=epoch, timeout_s=SOON_S).message
    one_clear_line(text, f"{case.reason.partition(':')[0]}: ", TOKEN)


@pytest.mark.parametrize("ca", ["ca", "stranger"])
def test_a_native_client_trusts_only_the_ca_that_is_named(secure: SecureServers, ca: str) -> None:
    """The machine trusts the CA that has signed the server's certificate."""
    native = native_client("nats-pub")
    if native is None:
        pytest.skip("the native client is not built")
    spec = NatsSpec(
        servers=secure.addresses["user"], ca_file=secure.file(f"{ca}.pem"), username=USER, password=PASSWORD
    )
    scenario = load_scenario("nats-fixed", {"client": "native", **given("nats", spec)})
    environment, access = NatsSystem(scenario).program("publisher").environment, access_of(spec)
    system = {**{key: value for key, value in msgspec.to_builtins(access).items() if value}, "subject": "test"}
    with closing(Bench()) as bench:
        bench.launch(native, "nats-pub", env={"SSL_CERT_FILE": secure.file("ca.pem"), **environment})
        bench.send_configure([1], 1, system=system)
        if ca == "ca":
            bench.peer.heard(Ready, [1], epoch=1, timeout_s=SOON_S)
        else:
            assert "TLS: " in bench.peer.heard(Error, [1], epoch=1, timeout_s=SOON_S).message


@pytest.mark.parametrize("case", [CASES["user"]], ids=["user"])
def test_what_a_run_makes_on_a_server_with_a_password_is_removed(spec: NatsSpec, tmp_path: Path) -> None:
    system = NatsSystem(load_scenario("nats-fixed", given("nats", spec)))
    system.open("run", tmp_path, wait_alone)
    made = system.configure(with_values(system._scenario.settings, {"mode": "jetstream"}))
    assert made is not None
    with closing(JetStreams(access_of(spec))) as present:
        assert made["stream"] in present.names()
        # A killed run leaves it; the run that continues with its folder knows how to log in.
        resumed = NatsSystem(load_scenario("nats-fixed", given("nats", spec)))
        resumed.open("run", tmp_path, wait_alone)
        assert made["stream"] not in present.names()
        resumed.close()
    assert [type(each).__name__ for each in resumed.warnings()] == ["EarlierCleanup"]
    system.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", [CASES["wrong password"]], ids=["wrong password"])
def test_a_command_that_is_not_let_in_leaves_nothing(spec: NatsSpec, tmp_path: Path) -> None:
    sets = [word for key, value in given("nats", spec).items() for word in ("--set", f"{key}={json.dumps(value)}")]
    done = hydra("nats-fixed", *sets, "--out", tmp_path / "run", expect=2)
    assert done.stderr.splitlines() == [
        f"hydra: NATS at {spec.servers.removeprefix('tls://')}: login: the server rejects this user or password; "
        "check --username and --password-file"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tier("all")
def test_an_interrupted_run_is_resumed_with_its_context(
    secure: SecureServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    address, ca = f"tls://{secure.addresses['user']}", secure.file("ca.pem")
    store_context(tmp_path, "mine", {"url": address, "user": USER, "password": PASSWORD, "ca": ca})
    run, context = tmp_path / "run", ("--nats-context", "mine")
    interrupt(run, "nats-fixed", *context, "--mode", "jetstream")
    assert "secrets are not stored with a run: nats.password;" in refusal("nats-fixed", "--resume", run)
    hydra("nats-fixed", "--resume", run, *context)
    assert [row["status"] for row in table(run)] == ["ok"] * 3


@pytest.mark.tier("test")
@pytest.mark.parametrize("implementation", ["nats-py", "native"])
def test_servers_that_hydra_starts_use_tls(implementation: str, needs_nats: None, tmp_path: Path) -> None:
    if implementation == "native" and native_client("nats-pub") is None:
        pytest.skip("the native client is not built")
    run = tmp_path / "run"
    small = ("--clients", 1, "--rate", 100, "--duration", 0.2, "--set", "warmup_s=0", "--mode", "jetstream")
    hydra("nats-fixed", "--tls", "--connect-rate", "max", "--implementation", implementation, *small, "--out", run)
    assert " · TLS · nats-server " in (run / "table.md").read_text()
    (row,) = table(run)
    # libnats does not separate the handshake.
    assert (row["connect_tls_p50_ms"] != "", row["connected_clients"]) == (implementation == "nats-py", "1")
    assert 0 < float(row["connect_tls_p50_ms"] or row["connected_p50_ms"]) <= float(row["connected_p50_ms"])
    assert not [path for path in run.rglob("*") if path.suffix == ".pem" or path.name.startswith("server-")]


# --- without a server -------------------------------------------------------------------------------------------------


def test_a_native_client_without_tls_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_command, "find", lambda: Path("/hydra-client"))
    monkeypatch.setattr(client_command, "_help", lambda _: "KIND: nats-pub, nats-sub\n\nTLS: mqtt\n")
    for more in ({"nats.servers": "tls://h"}, {"nats.tls": True}):
        system = NatsSystem(load_scenario("nats-fixed", {"client": "native", **more}))
        with pytest.raises(
            MissingDependencyError, match=r"built without TLS for nats.*choose another --implementation"
        ):
            system.program("subscriber")
    NatsSystem(load_scenario("nats-fixed", {"client": "native"})).program("subscriber")


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ({"nats.servers": "wss://h"}, "wss://: Hydra does not use WebSocket with NATS; name the port for clients"),
        ({"nats.servers": "nats://me:secret@h", "nats.token": "t"}, "servers and token both name a login; leave one"),
        ({"nats.servers": "h:1", "nats.tls": True}, "nats.tls: has no effect in this run: it needs no nats.servers"),
        ({"nats.token": "t"}, "nats.token: has no effect in this run: it needs nats.servers"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(more: dict[str, Any], refused: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_scenario("nats-fixed", more)
    assert refused in str(error.value).replace("servers: 'wss", "'wss")
    assert "secret" not in str(error.value)


def test_a_file_without_a_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("SU" + "A" * 56)
    for key, refused in (("creds_file", "has no JWT of a user"), ("nkey_file", "the seed of the user is damaged")):
        with pytest.raises(ConfigError, match=f"nats.{key}: .*{refused}; name another file"):
            access_of(NatsSpec(servers="h:1", **{key: str(tmp_path / "key")}))  # type: ignore[arg-type]


def test_a_seed_and_its_public_key_are_those_of_nats() -> None:
    key = UserKey(SEED)
    assert key.public == "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"


def test_a_server_that_leaves_tls_to_its_clients_is_refused() -> None:
    spec = NatsSpec(servers="tls://h:1")
    with pytest.raises(AccessError, match="leaves TLS to its clients"):
        tls_for({"tls_available": True}, access_of(spec).tls)


def test_a_context_of_nats_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    stored = {"description": "", "url": "tls://a:1,b:2", "user": USER, "password": PASSWORD, "inbox_prefix": ""}
    store_context(tmp_path, "mine", {**stored, "ca": "~/ca.pem"})
    store_context(tmp_path, "proxied", {**stored, "socks_proxy": "socks5://p"})
    store_context(tmp_path, "seeded", {"url": "tls://a:1", "user_seed": PASSWORD})
    for words, refused in (
        (["--nats-context", "other"], "has no context 'other'; known contexts: mine, proxied, seeded"),
        (["--nats-context", "proxied"], "the context 'proxied' has socks_proxy, which Hydra does not use"),
        (["--nats-context", "seeded"], "the context 'seeded' has user_seed, which Hydra does not use"),
        (["--nats-context", "mine"], f"nats.ca_file: {Path.home()}/ca.pem cannot be read"),
        (["--nats-context", "mine", "--servers", "ws://a"], "--servers: ws://: Hydra does not use WebSocket"),
    ):
        text = refusal("nats-fixed", *words)
        assert refused in text
        assert PASSWORD not in text


@pytest.mark.parametrize(
    ("keys", "text", "secrets"),
    [
        ({"servers": "nats://me:a%2Fsecret@h:1"}, "", ["a/secret"]),
        ({"servers": "nats://a%20token@h:1"}, "", ["a token"]),
        ({"username": "me", "password_file": "{}"}, "a secret\n", ["a secret"]),
        ({"token_file": "{}"}, "a token\n", ["a token"]),
        ({"nkey_file": "{}"}, f"# mine\n{SEED}\n", [SEED]),
        ({"creds_file": "{}"}, f"---BEGIN NATS USER JWT---\na.b.c\n---END NATS USER JWT---\n{SEED}\n", [SEED, "a.b.c"]),
        ({"creds_file": "{}"}, "damaged", []),
    ],
)
def test_the_secrets_of_a_login_are_known(keys: dict[str, str], text: str, secrets: list[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    named = {f"nats.{key}": value.format(file) for key, value in {"servers": "h:1", **keys}.items()}
    assert list(secrets_of(spec_of(load_scenario("nats-fixed", named)))) == secrets
