"""The user's Kafka properties (``--kafka-prop key=value``) in librdkafka's names, for each client library."""

from __future__ import annotations

import difflib
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from hydra.errors import UsageError
from hydra.kafkatest.property_table import alike
from hydra.kafkatest.librdkafka_names import BOTH, CONSUMER, PRODUCER
from hydra.model import Role

JAVA_NAMES: Final = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.request.size": "message.max.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "buffer.memory": "queue.buffering.max.kbytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}
"""The Java client's names where librdkafka has another one for the same thing, and other names of librdkafka's."""

_SETTING: Final = "it is a setting of the step: use --set"
_OWN: Final = "Hydra sets it, its figures depend on it"
CONTROLLED: Final = {
    "bootstrap.servers": "use --bootstrap",
    "metadata.broker.list": "use --bootstrap",
    "acks": f"{_SETTING} settings.acks=…",
    "request.required.acks": f"{_SETTING} settings.acks=…",
    "linger.ms": f"{_SETTING} settings.linger_ms=…",
    "queue.buffering.max.ms": f"{_SETTING} settings.linger_ms=…",
    "batch.size": f"{_SETTING} settings.batch_bytes=…",
    "batch.num.messages": f"{_SETTING} settings.msg_batch=…",
    "compression.type": f"{_SETTING} settings.compression=…",
    "compression.codec": f"{_SETTING} settings.compression=…",
    "enable.idempotence": f"{_SETTING} settings.idempotence=…",
    "retries": f"{_SETTING} settings.retries=…",
    "message.send.max.retries": f"{_SETTING} settings.retries=…",
    "max.in.flight": f"{_SETTING} settings.max_in_flight=…",
    "max.in.flight.requests.per.connection": f"{_SETTING} settings.max_in_flight=…",
    "queue.buffering.max.kbytes": f"{_SETTING} settings.buffer_memory=…",
    "delivery.timeout.ms": f"{_SETTING} settings.delivery_timeout_ms=…",
    "message.timeout.ms": f"{_SETTING} settings.delivery_timeout_ms=…",
    "client.id": _OWN,
    "group.id": f"{_SETTING} settings.group=…",
    "group.instance.id": f"{_OWN}: a member that died is another one when it comes back",
    "group.protocol": f"{_OWN}: the members of a group are told alike in every client",
    "partition.assignment.strategy": f"{_OWN}: range, in every client",
    "auto.offset.reset": f"{_OWN}: subscribers start at the offset they are told",
    "enable.auto.commit": f"{_OWN}: a group commits what has been counted",
    "auto.commit.enable": f"{_OWN}: a group commits what has been counted",
    "enable.auto.offset.store": f"{_OWN}: a group commits what has been counted",
    "enable.partition.eof": _OWN,
    "enable.gapless.guarantee": _OWN,
    "transactional.id": _OWN,
    "delivery.report.only.error": f"{_OWN}: Tx counts acknowledgements",
    "statistics.interval.ms": _OWN,
    "log.queue": _OWN,
}
"""Properties that a user may not set, each with what to do instead."""

_SECRET: Final = re.compile(
    r"password|secret|passphrase|\.pem$|jaas|oauthbearer\.config|keystore\.key|assertion|kinit\.cmd", re.IGNORECASE
)
_PART: Final = re.compile(
    r"""\w*(?:password|secret|passphrase|token|key)\w*\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;,"']+))""", re.IGNORECASE
)
"""A secret inside a value that holds several things: a JAAS configuration, the settings of OAUTHBEARER."""
_LEAST_LINE: Final = 16
"""Characters of a line that is a secret by itself in a key of several lines."""

_FILE_CHARACTERS: Final = 1_000_000

KafkaPythonValue = str | int | bool | list[tuple[int, int, int]] | None


QUEUED: Final = "queued_messages"
"""Of :func:`kafka_python_config`: no argument of the library's, which has no such bound."""


def _boolean(text: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in words:
        raise ValueError("true or false")
    return words[text.lower()]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _no_delay(text: str) -> list[tuple[int, int, int]]:
    return [(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(_boolean(text)))]


def _buffer_bytes(text: str) -> int | None:
    """0 is the kernel's own size, as librdkafka has it."""
    return _number(text) or None


def _upper(text: str) -> str:
    return text.upper()


def _checks_hostname(text: str) -> bool:
    if text.lower() not in {"https", "none", ""}:
        raise ValueError("https or none")
    return text.lower() == "https"


_Translation = tuple[str, Callable[[str], KafkaPythonValue]]
_PYTHON_BOTH: Final[dict[str, _Translation]] = {
    "security.protocol": ("security_protocol", _upper),
    "ssl.ca.location": ("ssl_cafile", str),
    "ssl.certificate.location": ("ssl_certfile", str),
    "ssl.key.location": ("ssl_keyfile", str),
    "ssl.key.password": ("ssl_password", str),
    "ssl.crl.location": ("ssl_crlfile", str),
    "ssl.cipher.suites": ("ssl_ciphers", str),
    "ssl.endpoint.identification.algorithm": ("ssl_check_hostname", _checks_hostname),
    "sasl.mechanism": ("sasl_mechanism", _upper),
    "sasl.mechanisms": ("sasl_mechanism", _upper),
    "sasl.username": ("sasl_plain_username", str),
    "sasl.password": ("sasl_plain_password", str),
    "sasl.kerberos.service.name": ("sasl_kerberos_service_name", str),
    "client.dns.lookup": ("client_dns_lookup", str),
    "metadata.max.age.ms": ("metadata_max_age_ms", _number),
    "connections.max.idle.ms": ("connections_max_idle_ms", _number),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", _number),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", _number),
    "retry.backoff.ms": ("retry_backoff_ms", _number),
    "socket.timeout.ms": ("request_timeout_ms", _number),
    "socket.nagle.disable": ("socket_options", _no_delay),
    "socket.send.buffer.bytes": ("send_buffer_bytes", _buffer_bytes),
    "socket.receive.buffer.bytes": ("receive_buffer_bytes", _buffer_bytes),
    "topic.metadata.refresh.interval.ms": ("metadata_max_age_ms", _number),
    "receive.message.max.bytes": ("receive_message_max_bytes", _number),
}
_PYTHON_PRODUCER: Final[dict[str, _Translation]] = {
    "message.max.bytes": ("max_request_size", _number),
    "request.timeout.ms": ("request_timeout_ms", _number),
    "queue.buffering.max.messages": (QUEUED, _number),
}
_PYTHON_CONSUMER: Final[dict[str, _Translation]] = {
    "client.rack": ("client_rack", str),
    "isolation.level": ("isolation_level", str),
    "check.crcs": ("check_crcs", _boolean),
    "fetch.min.bytes": ("fetch_min_bytes", _number),
    "fetch.max.bytes": ("fetch_max_bytes", _number),
    "fetch.wait.max.ms": ("fetch_max_wait_ms", _number),
    "max.partition.fetch.bytes": ("max_partition_fetch_bytes", _number),
    "session.timeout.ms": ("session_timeout_ms", _number),
    "heartbeat.interval.ms": ("heartbeat_interval_ms", _number),
    "max.poll.interval.ms": ("max_poll_interval_ms", _number),
}
_PYTHON_ALL: Final = {**_PYTHON_BOTH, **_PYTHON_PRODUCER, **_PYTHON_CONSUMER}


def parse(items: Iterable[str]) -> dict[str, str]:
    """``key=value`` items as a mapping, by the names that were given.

    Raises:
        UsageError: an item has no ``=``, or its key is not one that a user may set. The value is never shown.
    """
    found: dict[str, str] = {}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise UsageError("a --kafka-prop has no '='", "write --kafka-prop key=value")
        _known(key)
        found[key] = value
    return found


def parse_file(path: Path) -> dict[str, str]:
    """The properties in a file: ``key=value`` a line, nothing is escaped; ``#`` begins a comment line.

    Raises:
        UsageError: it cannot be read, or a line is no property that a user may set. A value is never shown.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_FILE_CHARACTERS + 1)
    except OSError as e:
        raise UsageError(f"--kafka-prop-file {path}: cannot be read: {e.strerror}", "name a readable file") from e
    except UnicodeDecodeError as e:
        raise UsageError(f"--kafka-prop-file {path}: is not UTF-8", "write one key=value a line") from e
    if len(text) > _FILE_CHARACTERS:
        raise UsageError(
            f"--kafka-prop-file {path}: has more than {_FILE_CHARACTERS} characters", "name a file of key=value lines"
        )
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if "=" not in line:
            raise UsageError(f"--kafka-prop-file {path}: line {number} has no '='", "write one key=value a line")
        found |= parse([line])
    return found


def is_secret(key: str) -> bool:
    """Whether the value of a property is secret; ``key`` may be a dotted key of a scenario that ends with its name."""
    return _SECRET.search(key) is not None


def secret_values(properties: Mapping[str, str]) -> Iterator[str]:
    """The values that nobody may see: those of secret properties, and the passwords and keys inside of them."""
    for key, value in properties.items():
        if is_secret(key):
            yield value
            yield from (part for parts in _PART.findall(value) for part in parts if part)
            lines = value.splitlines()
            if len(lines) > 1:
                yield from (line for line in lines if len(line) >= _LEAST_LINE and not line.startswith("-----"))


def confluent_config(properties: Mapping[str, str], role: Role | None) -> dict[str, str]:
    """The configuration for confluent-kafka: what the role's client reads, in librdkafka's names.

    A publisher gets no consumer properties and the other way round; role None (the controller) gets neither.

    Raises:
        UsageError: a property is unknown, or Hydra's own.
    """
    required = BOTH | {"publisher": PRODUCER, "subscriber": CONSUMER, None: frozenset[str]()}[role]
    named = {_known(k): v for k, v in properties.items()}
    return {k: v for k, v in named.items() if k in required}


def kafka_python_config(properties: Mapping[str, str], role: Role) -> dict[str, KafkaPythonValue]:
    """The keyword arguments for kafka-python's ``KafkaProducer`` or ``KafkaConsumer``; ``QUEUED`` is not the library's.

    Raises:
        UsageError: a property is unknown, Hydra's own, has no counterpart in kafka-python, or an impossible value.
    """
    required = _python_names(role)
    arguments: dict[str, KafkaPythonValue] = {}
    for given, value in properties.items():
        key = _known(given)
        if key not in _PYTHON_ALL:
            raise UsageError(
                f"kafka-python has nothing like the Kafka property {given!r}",
                f"{_nearest(key, _PYTHON_ALL)}or use --client confluent-kafka",
            )
        if key in required:
            name, convert = required[key]
            try:
                arguments[name] = convert(value)
            except ValueError as e:
                raise UsageError(f"the Kafka property {given!r} has an impossible value", f"give {e}") from None
    return arguments


def kafka_python_alike(role: Role) -> dict[str, KafkaPythonValue]:
    """What all clients are told alike, as far as the library has such a thing; as ``kafka_python_config``."""
    names = _python_names(role)
    return {names[key][0]: names[key][1](value) for key, value in alike(role).items() if key in names}


def _python_names(role: Role) -> Mapping[str, _Translation]:
    return {**_PYTHON_BOTH, **(_PYTHON_PRODUCER if role == "publisher" else _PYTHON_CONSUMER)}


def _known(key: str) -> str:
    canonical = JAVA_NAMES.get(key, key)
    if canonical in CONTROLLED:
        raise UsageError(f"the Kafka property {key!r} cannot be set", CONTROLLED[canonical])
    known = BOTH | PRODUCER | CONSUMER
    if canonical not in known:
        raise UsageError(
            f"there is no Kafka property {key!r}",
            f"{_nearest(canonical, known - CONTROLLED.keys())}names are librdkafka's or the Java client's",
        )
    return canonical


def _nearest(key: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(key, sorted(known), 1, 0.6)
    return f"did you mean {close[0]!r}? " if close else ""
