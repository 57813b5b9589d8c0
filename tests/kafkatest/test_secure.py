"""Brokers with TLS, and with SASL/SCRAM over it: right, wrong and missing trust and passwords, for every client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import UsageError
from hydra.kafkatest import confluent, kafka_python
from hydra.kafkatest.system import KafkaSystem
from hydra.kafkatest.topics import Topics
from hydra.model import SharedSettings
from hydra.native.build import find
from hydra.system import wait_alone
from hydra.system.run_certificates import RunAuthority
from hydra.wire.data_message import pack
from hydra.wire.messages import PROBE_EPOCH, Configure, Error, Ready
from tests.conformance.bench import Bench
from tests.integration.command import hydra
from tests.kafkatest.conftest import opened
from tests.suite.waiting import SOON_S, wait_until

from .secure import HOST, PASSWORD, USER, SecureBroker, secure_broker

pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("unclosed_sockets")]


@dataclass(frozen=True)
class Case:
    """Which of the broker's doors is tried (or several, with commas), and with what; {NAME} is a file of the test.

    The reasons are what the controller, librdkafka and kafka-python report: "", or patterns.
    """

    door: str
    properties: dict[str, str]
    controller: str = ""
    librdkafka: str = ""
    kafka_python: str = ""
    host: str = HOST


TRUST: Final = "ssl.ca.location"
TLS: Final = {"security.protocol": "SSL", TRUST: "{ca.pem}"}
SCRAM: Final = {
    **TLS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}


def without(properties: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != key}


CERTIFIED: Final = {**TLS, "ssl.certificate.location": "{client.crt}", "ssl.key.location": "{client.key}"}
UNTRUSTED: Final = ("TLS: .*certificate verify failed", "TLS: .*CERTIFICATE_VERIFY_FAILED")
STRANGE: Final = ("TLS: unknown CA: none of the CAs.*; name the file of its CA with ssl.ca.location", *UNTRUSTED)
DENIED: Final = (
    "login: the server rejects this user or password; check sasl.username and sasl.password",
    *("login: .*invalid credentials", "login: .*invalid credentials|password right"),
)
"""kafka-python may lose the broker's last word."""
MISSING: Final = ("ssl.ca.location failed", "ssl.ca.location failed", "No such file")
INCOMPLETE: Final = "sasl.username and sasl.password must be set"
CASES: Final = (
    "TLS: the server requires a client certificate; name yours with ssl.certificate.location",
    *("TLS: .*SSL routines::.*alert bad certificate", "ALERT_BAD_CERTIFICATE|disconnected"),
)
RIGHT: Final = {
    "tls": Case("tls", TLS),
    "scram": Case("scram", SCRAM),
    "client": Case("client", CERTIFIED),
    "tls, one of two brokers dead": Case("none, tls", TLS),
}
WRONG: Final = {
    "tls, wrong trust": Case("tls", {**TLS, TRUST: "{stranger.pem}"}, *STRANGE),
    "tls, no trust": Case("tls", without(TLS, TRUST), *STRANGE),
    "tls, no such file": Case("tls", {**TLS, TRUST: "/nowhere/ca.pem"}, *MISSING),
    "scram, wrong password": Case("scram", {**SCRAM, "sasl.password": "wrong"}, *DENIED),
    "scram, wrong user": Case("scram", {**SCRAM, "sasl.username": "nobody"}, *DENIED),
    "scram, no password": Case("scram", without(SCRAM, "sasl.password"), INCOMPLETE, INCOMPLETE, INCOMPLETE),
    "expired": Case("expired", TLS, "TLS: the server's certificate has expired; renew it", *UNTRUSTED),
    "wrong host": Case("tls", TLS, "TLS: wrong host name: .* not for localhost", *UNTRUSTED, "localhost"),
    "no client certificate": Case("client", TLS, *CASES),
}
UNKNOWN: Final = {
    "tls, no security": Case("tls", {}, "TLS: the server demands TLS; add --kafka-prop security.protocol=SSL"),
    "scram, only tls": Case("scram", TLS, "are security.protocol, user and password right"),
    "plain": Case("", TLS, "TLS: the server ended the handshake; check that it uses TLS at this port"),
    "advertised elsewhere": Case(
        "stray", {}, "advertises broker 1 at 127.0.0.1:1, which does not answer: Connection refused"
    ),
    "no server": Case("none", TLS, "does not answer: network: Connection refused"),
}
EITHER: Final = pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT)
EACH: Final = pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)


@pytest.fixture(scope="module")
def secure(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    running = secure_broker(tmp_path_factory.mktemp("secure") / "kafka")
    yield running
    running.broker.stop()


@pytest.fixture(scope="module")
def topic(secure: SecureBroker) -> Iterator[str]:
    with closing(Topics(secure.plain, {}, "secure")) as topics:
        yield topics.create("data")


def kafka(secure: SecureBroker, case: Case) -> dict[str, Any]:
    """Where the case's door is, and the properties with which it is tried."""
    properties = {key: secure.file(v[1:-1]) if v.startswith("{") else v for key, v in case.properties.items()}
    addresses = {**secure.doors, "": secure.plain, "none": f"{HOST}:1"}
    bootstrap = ", ".join(addresses[door] for door in case.door.split(", "))
    return {"bootstrap": bootstrap.replace(HOST, case.host), "properties": properties}


def outcome(secure: SecureBroker, case: Case, topic: str) -> dict[str, Any]:
    with closing(Topics(secure.plain, {}, "reader")) as reader:
        return {**kafka(secure, case), "topic": topic, "offsets": reader.end_offsets(topic)}


def one_clear_line(text: str, reason: str) -> None:
    assert re.search(reason, text), text
    assert "\n" not in text
    assert "Traceback" not in text
    assert PASSWORD not in text


def system(secure: SecureBroker, case: Case) -> KafkaSystem:
    more = {f"kafka.{key}": value for key, value in kafka(secure, case).items()}
    return KafkaSystem(load_scenario("kafka-fixed", more))


@EITHER
def test_the_controller_makes_and_removes_its_topic(secure: SecureBroker, case: Case, tmp_path: Path) -> None:
    it = system(secure, case)
    it.check()
    it.open("run", tmp_path, wait_alone)
    made = it.configure(load_scenario("kafka-fixed").settings)
    assert made["offsets"] == {"0": 0}
    with closing(Topics(secure.plain, {}, "")) as present:
        assert made["topic"] in present.describe().topics
        it.close()
        assert made["topic"] not in present.describe().topics
    assert [warning.kind for warning in it.warnings()] == ["addresses_silent"] * case.door.startswith("none")


@pytest.mark.parametrize("case", (WRONG | UNKNOWN).values(), ids=WRONG | UNKNOWN)
def test_the_controller_says_what_is_wrong_before_anything_is_made(secure: SecureBroker, case: Case) -> None:
    with pytest.raises(UsageError) as refusal:
        system(secure, case).check()
    one_clear_line(str(refusal.value), case.controller)


def test_a_command_that_is_not_let_in_leaves_nothing(secure: SecureBroker, tmp_path: Path) -> None:
    given = kafka(secure, WRONG["expired"])
    properties = [word for key, value in given["properties"].items() for word in ("--kafka-prop", f"{key}={value}")]
    done = hydra("kafka-fixed", "--servers", given["bootstrap"], *properties, "--out", tmp_path / "run", expect=2)
    assert done.stderr.splitlines() == [
        f"hydra: Kafka at {given['bootstrap']}: TLS: the server's certificate has expired; renew it"
    ]
    assert list(tmp_path.iterdir()) == []


def command(system: dict[str, Any]) -> Configure:
    return Configure(epoch=1, number=1, settings=SharedSettings(burst=100), publishers=[], probe=False, system=system)


@EITHER
def test_python_clients_are_let_in(library: ModuleType, secure: SecureBroker, topic: str, case: Case) -> None:
    reach_each_other(library, command(outcome(secure, case, topic)))


def reach_each_other(library: ModuleType, configure: Configure) -> None:
    with closing(opened(library, "kafka-pub", 1)) as publisher, closing(opened(library, "kafka-sub", 2)) as subscriber:
        publisher.configure(configure)
        subscriber.configure(configure)
        publisher.probe(pack(PROBE_EPOCH, 1, 1, 0, 24))
        wait_until(lambda: len(subscriber.receive(0.1, 10)) == 1, "the probe")


@EACH
def test_python_clients_say_what_is_wrong(
    library: ModuleType, secure: SecureBroker, topic: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = case.librdkafka if library is confluent else case.kafka_python
    # The libraries try again and again until their time is over, which a loaded machine needs more of.
    for seconds in (1.5, 5.0, 15.0):
        monkeypatch.setattr(kafka_python, "CONNECT_TIMEOUT_MS", round(1000 * seconds))
        monkeypatch.setattr(confluent, "CONNECT_TIMEOUT_S", seconds)
        with closing(opened(library, "kafka-pub", 1)) as publisher, pytest.raises((OSError, ValueError)) as refused:
            publisher.configure(command(outcome(secure, case, topic)))
        if re.search(reason, str(refused.value)):
            break
    one_clear_line(str(refused.value), reason)


@pytest.fixture(scope="module")
def native() -> Iterator[Bench]:
    """A native publisher (1) and a native subscriber (2)."""
    program = find()
    if program is None:
        pytest.skip("the native client is not built")
    with closing(Bench()) as it:
        it.launch(str(program), "kafka-pub", first_id=1, group="p")
        it.launch(str(program), "kafka-sub", first_id=2, group="s")
        yield it


EPOCHS: Final = count(1)


def refusal(native: Bench, client: int, system: dict[str, Any]) -> str:
    """The error of a client that rejects a configuration: a subscriber's last message."""
    epoch = next(EPOCHS)
    native.send_configure([client], epoch, system=system, publishers={} if client == 1 else {1: ""})
    which = {"epoch": epoch} if client == 1 else {"fatal": True}
    return native.peer.heard(Error, [client], timeout_s=SOON_S, **which).message


@EITHER
def test_native_clients_are_let_in_or_say_that_their_library_is_too_old(
    native: Bench, secure: SecureBroker, topic: str, case: Case
) -> None:
    system = outcome(secure, case, topic)
    version = native.peer.relay("p").versions["librdkafka"]
    if case.door == "scram" and tuple(int(part) for part in version.split(".")[:3]) < (2, 6, 1):
        one_clear_line(refusal(native, 1, system), r"librdkafka \S+ cannot log in to Kafka 4 with SCRAM")
        return
    epoch = next(EPOCHS)
    native.configure_publisher(1, epoch, system=system)
    native.configure_subscribers([2], epoch, system=system, publishers={1: ""})
    native.peer.heard(Ready, [2], epoch=epoch)


@EACH
def test_a_native_publisher_says_what_is_wrong(native: Bench, secure: SecureBroker, topic: str, case: Case) -> None:
    one_clear_line(refusal(native, 1, outcome(secure, case, topic)), case.librdkafka)


def test_a_native_subscriber_says_what_is_wrong_with_its_last_words(
    native: Bench, secure: SecureBroker, topic: str
) -> None:
    case = WRONG["scram, wrong password"]
    one_clear_line(refusal(native, 2, outcome(secure, case, topic)), case.librdkafka)


def test_brokers_that_hydra_starts_use_tls(native: Bench, tmp_path: Path, needs_kafka: None) -> None:
    system = KafkaSystem(load_scenario("kafka-fixed", {"kafka.tls": True}))
    system.open("run", tmp_path, wait_alone)
    try:
        keys = [path for path in tmp_path.rglob("*.pem") if "PRIVATE KEY" in path.read_text()]
        assert [path.stat().st_mode & 0o777 for path in keys] == [0o600]
        for library in (confluent, kafka_python):
            reach_each_other(library, command(system.configure(load_scenario("kafka-fixed").settings)))
        reported = system.configure(load_scenario("kafka-fixed").settings)
        epoch = next(EPOCHS)
        native.configure_publisher(1, epoch, system=reported)
        native.configure_subscribers([2], epoch, system=reported, publishers={1: ""})
        native.peer.heard(Ready, [2], epoch=epoch)
        strange = {**reported["properties"], "ssl.ca.pem": RunAuthority().client.ca}
        one_clear_line(refusal(native, 1, {**reported, "properties": strange}), "TLS: .*certificate verify failed")
    finally:
        system.close()
    assert not [*tmp_path.rglob("*.pem")]
