"""Brokers with TLS, and with SASL/SCRAM over it: right, wrong and missing trust and passwords, for every client."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from hydra.config.scenario import load_scenario
from hydra.errors import UsageError
from hydra.kafkatest import confluent, kafka_python, kafka_python_common
from hydra.kafkatest.system import KafkaSystem
from hydra.kafkatest.topics import Topics
from hydra.model import SharedSettings
from hydra.native.build import find
from hydra.system import wait_alone
from hydra.wire.header import pack
from hydra.wire.messages import PROBE_EPOCH, Configure, Error, Ready
from tests.conformance.bench import Bench

from .secure import PASSWORD, USER, SecureBroker, secure_broker

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Case:
    """Which of the broker's doors is tried, with what, and how each library says that it is the wrong key."""

    door: str
    properties: dict[str, str]
    librdkafka: str = ""
    kafka_python: str = ""


TLS: Final = {"security.protocol": "SSL"}
SCRAM: Final = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}
TRUST: Final = {"ssl.ca.location": "{authority}"}
RIGHT: Final = {"tls": Case("tls", {**TLS, **TRUST}), "scram": Case("scram", {**SCRAM, **TRUST})}
DENIED: Final = ("invalid credentials", "invalid credentials|password right")
"""kafka-python may lose the broker's last word."""
WRONG: Final = {
    "tls, wrong trust": Case(
        "tls", {**TLS, "ssl.ca.location": "{stranger}"}, "certificate verify failed", "CERTIFICATE_VERIFY_FAILED"
    ),
    "tls, no trust": Case("tls", TLS, "certificate verify failed", "CERTIFICATE_VERIFY_FAILED"),
    "tls, no such file": Case(
        "tls", {**TLS, "ssl.ca.location": "/nowhere/ca.pem"}, "ssl.ca.location failed", "No such file"
    ),
    "scram, wrong password": Case(
        "scram",
        {**SCRAM, **TRUST, "sasl.password": "wrong"},
        "invalid credentials",
        "invalid credentials|password right",
    ),
    "scram, wrong user": Case(
        "scram",
        {**SCRAM, **TRUST, "sasl.username": "nobody"},
        "invalid credentials",
        "invalid credentials|password right",
    ),
    "scram, no password": Case(
        "scram",
        {k: v for k, v in {**SCRAM, **TRUST}.items() if k != "sasl.password"},
        "sasl.username and sasl.password must be set",
        "sasl.username and sasl.password must be set",
    ),
    "scram, wrong trust": Case(
        "scram", {**SCRAM, "ssl.ca.location": "{stranger}"}, "certificate verify failed", "CERTIFICATE_VERIFY_FAILED"
    ),
}


@pytest.fixture(scope="module")
def secure(needs_kafka: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    running = secure_broker(tmp_path_factory.mktemp("secure") / "kafka")
    yield running
    running.broker.stop()


@pytest.fixture(scope="module")
def topic(secure: SecureBroker) -> str:
    return Topics(secure.plain, {}, "secure").create("data")


def address(secure: SecureBroker, case: Case) -> str:
    return secure.tls if case.door == "tls" else secure.scram


def properties(secure: SecureBroker, case: Case) -> dict[str, str]:
    files = {"{authority}": str(secure.authority), "{stranger}": str(secure.stranger)}
    return {key: files.get(value, value) for key, value in case.properties.items()}


def kafka(secure: SecureBroker, case: Case, topic: str) -> dict[str, Any]:
    end = Topics(secure.plain, {}, "reader").end_offsets(topic)
    own = properties(secure, case)
    return {"bootstrap": address(secure, case), "topic": topic, "offsets": end, "properties": own}


def one_clear_line(text: str, reason: str) -> None:
    assert re.search(reason, text), text
    assert "\n" not in text
    assert "Traceback" not in text
    assert PASSWORD not in text


def system(secure: SecureBroker, case: Case) -> KafkaSystem:
    more = {"kafka.bootstrap": address(secure, case), "kafka.properties": properties(secure, case)}
    return KafkaSystem(load_scenario("kafka-fixed", more))


@pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT)
def test_the_controller_makes_and_removes_its_topic(secure: SecureBroker, case: Case, tmp_path: Path) -> None:
    it = system(secure, case)
    it.check()
    it.open("run", tmp_path, wait_alone)
    told = it.configure(load_scenario("kafka-fixed").settings)
    assert told["offsets"] == {"0": 0}
    there = Topics(secure.plain, {}, "")
    assert told["topic"] in there.describe().topics
    it.close()
    assert told["topic"] not in there.describe().topics
    assert it.warnings() == []


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_the_controller_says_what_is_wrong_before_anything_is_made(secure: SecureBroker, case: Case) -> None:
    with pytest.raises(UsageError) as refusal:
        system(secure, case).check()
    one_clear_line(str(refusal.value), case.librdkafka)


@pytest.mark.parametrize(("door", "given"), [("tls", {}), ("scram", {**TLS, **TRUST})], ids=["tls", "scram"])
def test_no_security_at_all_is_told(secure: SecureBroker, door: str, given: dict[str, str]) -> None:
    with pytest.raises(UsageError) as refusal:
        system(secure, Case(door, given)).check()
    one_clear_line(str(refusal.value), "are security.protocol, user and password right")


@pytest.fixture(params=[confluent, kafka_python], ids=["confluent", "kafka_python"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    # kafka-python tries again and again until its time is over.
    monkeypatch.setattr(kafka_python_common, "CONNECT_TIMEOUT_MS", 1500)
    chosen: ModuleType = request.param
    return chosen


def command(told: dict[str, Any]) -> Configure:
    return Configure(epoch=1, settings=SharedSettings(burst=100), publishers=[], probe=False, system=told)


@pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT)
def test_python_clients_are_let_in(
    library: ModuleType, secure: SecureBroker, topic: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_python_common, "CONNECT_TIMEOUT_MS", 10_000)
    told = kafka(secure, case, topic)
    publisher, subscriber = library.Publisher(1), library.Subscriber(2)
    try:
        publisher.configure(command(told))
        subscriber.configure(command(told))
        publisher.probe(pack(PROBE_EPOCH, 1, 1, 0, 24))
        assert wait_alone(lambda: len(subscriber.receive(0.1, 10)) == 1, 20)
    finally:
        publisher.close()
        subscriber.close()


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_python_clients_say_what_is_wrong(library: ModuleType, secure: SecureBroker, topic: str, case: Case) -> None:
    publisher = library.Publisher(1)
    with pytest.raises((OSError, ValueError)) as refusal:
        publisher.configure(command(kafka(secure, case, topic)))
    one_clear_line(str(refusal.value), case.librdkafka if library is confluent else case.kafka_python)
    publisher.close()


@pytest.fixture(scope="module")
def native() -> Iterator[Bench]:
    """A native publisher (1) and a native subscriber (2)."""
    program = find()
    if program is None:
        pytest.skip("the native client is not built")
    it = Bench()
    try:
        it.launch(str(program), "kafka-pub", first_id=1, group="p")
        it.launch(str(program), "kafka-sub", first_id=2, group="s")
        yield it
    finally:
        it.close()


@pytest.fixture(scope="module")
def epochs() -> Iterator[int]:
    return count(1)


@pytest.fixture
def epoch(epochs: Iterator[int]) -> int:
    """One that was not used before."""
    return next(epochs)


def old_for_scram(native: Bench) -> bool:
    """Whether the native client's librdkafka cannot log in to Kafka 4 with SCRAM."""
    version = native.peer.relay("p").versions["librdkafka"]
    return tuple(int(part) for part in version.split(".")[:3]) < (2, 6, 1)


@pytest.mark.parametrize("case", RIGHT.values(), ids=RIGHT)
def test_native_clients_are_let_in_or_say_that_their_library_is_too_old(
    native: Bench, epoch: int, secure: SecureBroker, topic: str, case: Case
) -> None:
    told = kafka(secure, case, topic)
    if case.door == "scram" and old_for_scram(native):
        native.tell_configure([1], epoch, system=told)
        one_clear_line(refusal(native, 1, epoch=epoch), r"librdkafka \S+ cannot log in to Kafka 4 with SCRAM")
        return
    native.configure_publisher(1, epoch, system=told)
    native.configure_subscribers([2], epoch, system=told, publishers={1: ""})
    native.peer.heard(Ready, [2], epoch=epoch)


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_native_publisher_says_what_is_wrong(
    native: Bench, epoch: int, secure: SecureBroker, topic: str, case: Case
) -> None:
    native.tell_configure([1], epoch, system=kafka(secure, case, topic))
    one_clear_line(refusal(native, 1, epoch=epoch), case.librdkafka)


def test_a_native_subscriber_says_what_is_wrong_with_its_last_words(
    native: Bench, epoch: int, secure: SecureBroker, topic: str
) -> None:
    case = WRONG["scram, wrong password"]
    native.tell_configure([2], epoch, system=kafka(secure, case, topic), publishers={1: ""})
    one_clear_line(refusal(native, 2, fatal=True), case.librdkafka)


def refusal(native: Bench, client: int, **which: Any) -> str:
    """What a client says of a configuration that it cannot take, at once: not only when its time is over."""
    return native.peer.heard(Error, [client], timeout_s=5, **which).message
