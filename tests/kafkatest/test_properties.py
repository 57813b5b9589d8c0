from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from hydra.errors import UsageError
from hydra.kafkatest import properties
from hydra.kafkatest.property_table import TABLE
from hydra.model import Role

SECURE = {
    "security.protocol": "sasl_ssl",
    "ssl.ca.location": "ca.pem",
    "sasl.mechanism": "scram-sha-256",
    "sasl.username": "me",
    "sasl.password": "geheim",
}


def test_items_are_parsed() -> None:
    assert properties.parse(["send.buffer.bytes=7", " sasl.password = a=b "]) == {
        "send.buffer.bytes": "7",
        "sasl.password": "a=b",
    }


def test_a_file_has_one_property_a_line(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# mine\n\nsasl.username=me\n  sasl.password = a=b\\#c\n")
    assert properties.parse_file(file) == {"sasl.username": "me", "sasl.password": "a=b\\#c"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"sasl.username=me\ngeheim\n", "line 2 has no '='"),
        (b"sasl.pasword=geheim", "did you mean 'sasl.password'"),
        (b"sasl.password=geheim\xff", "is not UTF-8"),
        (b"sasl.password=" + 200_000 * b"geheim", "more than 1000000 characters"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_file_that_is_none_is_refused_without_a_value(tmp_path: Path, content: bytes | None, text: str) -> None:
    file = tmp_path / "client.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError) as refusal:
        properties.parse_file(file)
    assert text in str(refusal.value)
    assert "geheim" not in str(refusal.value)


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("geheim", "no '='"),
        ("=geheim", "no '='"),
        ("sasl.pasword=geheim", "did you mean 'sasl.password'"),
        ("bootstrap.servers=geheim", "use --servers"),
        ("acks=geheim", "settings.acks"),
        ("group.id=geheim", "settings.group"),
        ("fetch.message.max.bytes.x=geheim", "no Kafka property"),
        ("max.request.size.x=geheim", "no Kafka property"),
        ("buffer.memory=geheim", "settings.buffer_memory"),
        ("enable.idempotence=geheim", "settings.idempotence"),
    ],
)
def test_a_refusal_names_the_key_and_a_remedy_and_hides_the_value(item: str, text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        properties.parse([item])
    assert text in str(refusal.value)
    assert "geheim" not in str(refusal.value)


def test_each_role_gets_its_own() -> None:
    given = {**SECURE, "queued.min.messages": "5", "request.timeout.ms": "3"}
    assert properties.confluent_config(given, "publisher") == {**SECURE, "request.timeout.ms": "3"}
    assert properties.confluent_config(given, "subscriber") == {**SECURE, "queued.min.messages": "5"}
    assert properties.confluent_config(given, None) == SECURE


def test_kafka_python_gets_keyword_arguments() -> None:
    given = {**SECURE, "isolation.level": "read_committed", "message.max.bytes": "7", "socket.nagle.disable": "false"}
    secure = {
        "security_protocol": "SASL_SSL",
        "ssl_cafile": "ca.pem",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "me",
        "sasl_plain_password": "geheim",
        "socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)],
    }
    assert properties.kafka_python_config(given, "publisher") == {**secure, "max_request_size": 7}
    assert properties.kafka_python_config(given, "subscriber") == {**secure, "isolation_level": "read_committed"}


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("fetch.queue.backoff.ms", "5", "kafka-python has nothing like"),
        ("socket.timeout.ms", "many", "a whole number"),
        ("socket.nagle.disable", "perhaps", "true or false"),
    ],
)
def test_what_kafka_python_cannot_do_is_refused(key: str, value: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        properties.kafka_python_config({key: value}, "subscriber")


def test_secrets_are_told_from_the_rest_and_found_inside_of_values() -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END PRIVATE KEY-----"
    given = {
        **SECURE,
        "ssl.key.pem": pem,
        "sasl.jaas.config": 'PlainLoginModule required username="me" password="in quotes";',
        "sasl.oauthbearer.config": "principal=me clientSecret=bare scope=all",
    }
    assert [key for key in given if properties.is_secret(key)] == ["sasl.password", *list(given)[-3:]]
    assert set(properties.secret_values(given)) == {
        "geheim",
        pem,
        "MIIEvQIBADANBgkqhkiG",
        given["sasl.jaas.config"],
        "in quotes",
        given["sasl.oauthbearer.config"],
        "bare",
    }


TREE = Path(__file__).resolve().parents[2]
NATIVE = TREE / "native" / "src" / "kafka" / "common_properties.h"
ENTRY = re.compile(r'CommonProperty\{"([^"]+)", "([^"]*)"(?:, (0x[0-9a-f]+))?\}')


@pytest.mark.parametrize(("table", "role"), [("BOTH", None), ("PRODUCER", "publisher"), ("CONSUMER", "subscriber")])
def test_the_native_client_is_told_the_same(table: str, role: Role | None) -> None:
    if not NATIVE.exists():
        pytest.skip("the source of the native client is not here")
    (part,) = re.findall(rf"// common: {table}\n(.*?)\n\}};", NATIVE.read_text(encoding="utf-8"), re.DOTALL)
    entries = [(name, value, int(since or "0", 16)) for name, value, since in ENTRY.findall(part)]
    messages = [(row.name, row.value, row.since) for row in TABLE if row.value and row.role == role]
    assert sorted(entries) == sorted(messages)


def test_each_is_in_the_docs_with_its_value() -> None:
    page = (TREE / "docs" / "kafka.md").read_text(encoding="utf-8")
    for row in TABLE:
        assert not row.value or f"| `{row.name}` | {row.value} |" in page, row.name


def test_none_is_a_setting_and_no_name_is_given_twice() -> None:
    for row in TABLE:
        assert not (row.value and row.instead), row.name
    names = [name for row in TABLE for name in row.names.split()]
    assert len(names) == len(set(names))
