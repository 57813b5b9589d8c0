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
from hydra.wire.data_message import pack
from hydra.wire.messages import PROBE_EPOCH, Configure, Error, Ready
from tests.conformance.bench import Bench
from tests.kafkatest.conftest import opened
from tests.suite.waiting import SOON_S, wait_until

from .secure import PASSWORD, USER, SecureBroker, secure_broker

pytestmark = [pytest.mark.tier("all"), pytest.mark.usefixtures("unclosed_sockets")]


@dataclass(frozen=True)
class Case:
    """Which of the broker's doors is tried, with what, and how librdkafka and kafka-python say: the wrong key."""

    door: str
    properties: dict[str, str]
    librdkafka: str = ""
    kafka_python: str = ""


TRUST: Final = "ssl.ca.location"
TLS: Final = {"security.protocol": "SSL", TRUST: "{authority}"}
SCRAM: Final = {
    **TLS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}


def without(properties: dict[str, str], key: str) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != key}


UNTRUSTED: Final = ("certificate verify failed", "CERTIFICATE_VERIFY_FAILED")
DENIED: Final = ("invalid credentials", "invalid credentials|password right")
"""kafka-python may lose the broker's last word."""
INCOMPLETE: Final = "sasl.username and sasl.password must be set"
RIGHT: Final = {"tls": Case("tls", TLS), "scram": Case("scram", SCRAM)}
WRONG: Final = {
    "tls, wrong trust": Case("tls", {**TLS, TRUST: "{stranger}"}, *UNTRUSTED),
    "tls, no trust": Case("tls", without(TLS, TRUST), *UNTRUSTED),
    "tls, no such file": Case("tls", {**TLS, TRUST: "/nowhere/ca.pem"}, "ssl.ca.location failed", "No such file"),
    "scram, wrong password": Case("scram", {**SCRAM, "sasl.password": "wrong"}, *DENIED),
    "scram, wrong user": Case("scram", {**SCRAM, "sasl.username": "nobody"}, *DENIED),
    "scram, no password": Case("scram", without(SCRAM, "sasl.password"), INCOMPLETE, INCOMPLETE),
}
PLAIN: Final = "are security.protocol, user and password right"
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
    files = {"{authority}": str(secure.authority), "{stranger}": str(secure.stranger)}
    properties = {key: files.get(value, value) for key, value in case.properties.items()}
    return {"bootstrap": secure.tls if case.door == "tls" else secure.scram, "properties": properties}


def told(secure: SecureBroker, case: Case, topic: str) -> dict[str, Any]:
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
    with closing(Topics(secure.plain, {}, "")) as there:
        assert made["topic"] in there.describe().topics
        it.close()
        assert made["topic"] not in there.describe().topics
    assert it.warnings() == []


@pytest.mark.parametrize(
    "case",
    [*WRONG.values(), Case("tls", {}, PLAIN), Case("scram", TLS, PLAIN)],
    ids=[*WRONG, "tls, no security", "scram, only tls"],
)
def test_the_controller_says_what_is_wrong_before_anything_is_made(secure: SecureBroker, case: Case) -> None:
    with pytest.raises(UsageError) as refusal:
        system(secure, case).check()
    one_clear_line(str(refusal.value), case.librdkafka)


def command(system: dict[str, Any]) -> Configure:
    return Configure(epoch=1, settings=SharedSettings(burst=100), publishers=[], probe=False, system=system)


@EITHER
def test_python_clients_are_let_in(library: ModuleType, secure: SecureBroker, topic: str, case: Case) -> None:
    configure = command(told(secure, case, topic))
    with closing(opened(library, "kafka-pub", 1)) as publisher, closing(opened(library, "kafka-sub", 2)) as subscriber:
        publisher.configure(configure)
        subscriber.configure(configure)
        publisher.probe(pack(PROBE_EPOCH, 1, 1, 0, 24))
        wait_until(lambda: len(subscriber.receive(0.1, 10)) == 1, "the probe")


@EACH
def test_python_clients_say_what_is_wrong(
    library: ModuleType, secure: SecureBroker, topic: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    # kafka-python tries again and again until its time is over.
    monkeypatch.setattr(kafka_python, "CONNECT_TIMEOUT_MS", 1500)
    with closing(opened(library, "kafka-pub", 1)) as publisher, pytest.raises((OSError, ValueError)) as refusal:
        publisher.configure(command(told(secure, case, topic)))
    one_clear_line(str(refusal.value), case.librdkafka if library is confluent else case.kafka_python)


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
    """What a client says of a configuration that it cannot take: a subscriber's last words."""
    epoch = next(EPOCHS)
    native.tell_configure([client], epoch, system=system, publishers={} if client == 1 else {1: ""})
    which = {"epoch": epoch} if client == 1 else {"fatal": True}
    return native.peer.heard(Error, [client], timeout_s=SOON_S, **which).message


@EITHER
def test_native_clients_are_let_in_or_say_that_their_library_is_too_old(
    native: Bench, secure: SecureBroker, topic: str, case: Case
) -> None:
    system = told(secure, case, topic)
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
    one_clear_line(refusal(native, 1, told(secure, case, topic)), case.librdkafka)


def test_a_native_subscriber_says_what_is_wrong_with_its_last_words(
    native: Bench, secure: SecureBroker, topic: str
) -> None:
    case = WRONG["scram, wrong password"]
    one_clear_line(refusal(native, 2, told(secure, case, topic)), case.librdkafka)
