"""The user's Kafka properties and a step's settings under the names of the Java client, and as a properties file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hydra.errors import UsageError
from hydra.kafkatest import record_batch_size
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.properties import confluent_config
from hydra.kafkatest.property_table import PROPERTIES, TABLE
from hydra.model import Role

_SET: Final = {row.java_name or row.name: row.java_value for row in TABLE if row.java_value}
REQUEST_TIMEOUT_MS: Final = 30_000
"""The Java client's default."""
LEAST_REQUEST_BYTES: Final = 1_048_576
"""The Java client's default of ``max.request.size``."""

_READ: Final = {
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
"""Files whose text the Java client takes in a property, as it reads no file with only one of the two."""
_FILES: Final = {"ssl.ca.location": "ssl.truststore.location", **{name: name for name in _READ}}
"""Names of file properties before the files are read. Users cannot set the first: the Java client takes any store."""
_HOST_CHECK: Final = "ssl.endpoint.identification.algorithm"
_LOGIN: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_config(properties: Mapping[str, str], role: Role | None) -> dict[str, str]:
    """The user's properties that the role's client reads, under the names of the Java client.

    Files are not read here: they have librdkafka's names until :func:`with_files`.

    Raises:
        UsageError: a property is unknown, Hydra's own, or has no counterpart in the Java client.
    """
    given = confluent_config(properties, role)
    user, password = given.pop("sasl.username", None), given.pop("sasl.password", None)
    config: dict[str, str] = {}
    for name, value in given.items():
        java_name = _FILES.get(name) or PROPERTIES[name].java_name
        if not java_name:
            raise UsageError(
                f"Kafka's own tools have nothing like the property {name!r}", "use --implementation confluent-kafka"
            )
        config[java_name] = "" if name == _HOST_CHECK and value.lower() == "none" else value
    if "security.protocol" in config:
        config["security.protocol"] = config["security.protocol"].upper()
    for store in ("truststore", "keystore"):
        if any(f"ssl.{store}." in _READ.get(name, name) for name in config):
            config[f"ssl.{store}.type"] = "PEM"
    if user is not None or password is not None:
        mechanism = config.get("sasl.mechanism", "PLAIN").upper()
        if mechanism not in _LOGIN:
            raise UsageError(
                f"Hydra cannot pass user and password for SASL {mechanism} to Kafka's own tools",
                f"use {', '.join(_LOGIN)}, or --implementation confluent-kafka",
            )
        config["sasl.mechanism"] = mechanism
        config["sasl.jaas.config"] = (
            f"{_LOGIN[mechanism]} required username={_quoted(user or '')} password={_quoted(password or '')};"
        )
    return config


def with_files(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration with the text of the files that the Java client does not read itself.

    Raises:
        OSError: a file cannot be read.
    """
    return {
        _READ.get(name, name): Path(value).read_text(encoding="utf-8") if name in _READ else value
        for name, value in config.items()
    }


def producer_config(client: int, kafka: KafkaConfigure, message_size: int) -> dict[str, str]:
    """The configuration of ProducerPerformance's producer.

    Raises:
        UsageError: as for :func:`java_config`.
    """
    size = kafka.batch_size(message_size)
    linger_ms = round(kafka.linger_ms)
    # The producer rejects a delivery timeout that is shorter than linger and one request together.
    request_ms = min(REQUEST_TIMEOUT_MS, max(kafka.delivery_timeout_ms - linger_ms, 1))
    config: dict[str, object] = {
        "max.request.size": max(LEAST_REQUEST_BYTES, record_batch_size.request_bytes(size, message_size)),
        "request.timeout.ms": request_ms,
        **_SET,
        **java_config(kafka.properties, "publisher"),
        **_common(client, kafka),
        "acks": kafka.acks,
        "linger.ms": linger_ms,
        "batch.size": size,
        "compression.type": kafka.compression,
        "enable.idempotence": str(kafka.idempotence).lower(),
        "max.in.flight.requests.per.connection": kafka.max_in_flight,
        "buffer.memory": max(kafka.buffer_memory, size),
        "delivery.timeout.ms": max(kafka.delivery_timeout_ms, linger_ms + request_ms),
    }
    if kafka.retries is not None:
        config["retries"] = kafka.retries
    return {name: str(value) for name, value in config.items()}


def consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, str]:
    """The configuration of ConsumerPerformance's consumer, without the settings that the tool has flags for.

    Raises:
        UsageError: as for :func:`java_config`.
    """
    config: dict[str, object] = {
        **_SET,
        **java_config(kafka.properties, "subscriber"),
        **_common(client, kafka),
        "fetch.min.bytes": kafka.fetch_min_bytes,
        "fetch.max.wait.ms": kafka.fetch_wait_max_ms,
        "fetch.max.bytes": kafka.fetch_max_bytes,
    }
    if kafka.session_timeout_ms is not None:
        config["session.timeout.ms"] = kafka.session_timeout_ms
    return {name: str(value) for name, value in config.items()}


def written(config: Mapping[str, str]) -> str:
    """The text of a file of properties as ``java.util.Properties`` reads it; it is ASCII."""
    return "".join(f"{name}={_escaped(value)}\n" for name, value in config.items())


def _common(client: int, kafka: KafkaConfigure) -> dict[str, str]:
    return {"bootstrap.servers": kafka.bootstrap, "client.id": f"hydra-{client}"}


def _escaped(value: str) -> str:
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    if text.startswith(" "):
        text = "\\" + text
    units = text.encode("utf-16-be")
    codes = (int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2))
    return "".join(chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04x}" for code in codes)


def _quoted(value: str) -> str:
    text = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
