"""The properties of Kafka's clients, one row each: names in every library, Hydra's value, and whether users may set it.

Defaults differ between versions of librdkafka (the native client uses the system's, confluent-kafka contains its own),
kafka-python and Java: a comparison of clients would compare defaults. So all clients get the same value (``value``) if
their library has the property. Settings of a step have no value here, as each implementation obeys them by itself.
``[kafka.properties]`` replaces any of these values.

``native/src/kafka/common_properties.h`` has the same values, and a test compares them; docs/kafka.md explains each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from hydra.model import Role

KafkaPythonValue = str | int | bool | list[tuple[int, int, int]] | None
SAME: Final = "="
"""The value of ``Property.java`` and ``python`` for librdkafka's name, in Python with underscores."""
QUEUED: Final = "queued_messages"
"""The value of ``Property.python`` for a limit that Hydra applies, as the library has no such argument."""
CA_PEM: Final = "ssl_ca_pem"
"""The value of ``Property.python`` for a text of CAs, which the library takes as part of an SSL context only."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a client.

    Attributes:
        names: librdkafka's name, and after it the names that librdkafka accepts as aliases.
        role: the role whose client reads it; None if both do.
        value: the value that every client gets; "" leaves the library's default.
        since: the first librdkafka with the property; earlier ones behave as with ``value``.
        java: the name in the Java client; "" if that has no such property.
        java_value: the value for the Java client, if its default differs.
        python: kafka-python's argument; "" if it has none.
        read: converts a text to the argument; its ValueError contains the possible values.
        only: the only role whose kafka-python client has it, if both of librdkafka's have.
        instead: why a user may not set it, or what to do instead.
    """

    names: str
    role: Role | None = None
    value: str = ""
    since: int = 0
    java: str = ""
    java_value: str = ""
    python: str = ""
    read: Callable[[str], KafkaPythonValue] = str
    only: Role | None = None
    instead: str = ""

    @property
    def name(self) -> str:
        """The name for librdkafka: the first of its names."""
        return self.names.split()[0]

    @property
    def java_name(self) -> str:
        """The name in the Java client, which may be librdkafka's."""
        return self.name if self.java == SAME else self.java

    @property
    def python_name(self) -> str:
        """The name in kafka-python, which may be librdkafka's with underscores."""
        return self.name.replace(".", "_") if self.python == SAME else self.python


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
    import socket

    return [(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(_boolean(text)))]


def _buffer_bytes(text: str) -> int | None:
    """Buffer bytes; None for 0, which in librdkafka is the kernel's own size."""
    return _number(text) or None


def _upper(text: str) -> str:
    return text.upper()


def _checks_hostname(text: str) -> bool:
    if text.lower() not in {"https", "none", ""}:
        raise ValueError("https or none")
    return text.lower() == "https"


_buffer = partial(Property, value="0", java_value="-1", read=_buffer_bytes)
_producer = partial(Property, role="publisher")
_consumer = partial(Property, role="subscriber")
_OWN: Final = "Hydra sets this property, because Hydra's figures depend on it"
_COMMITS: Final = f"{_OWN}: a consumer group commits the messages that were counted"


def _set(setting: str) -> str:
    return f"this property is a setting of the step: use --set settings.{setting}=…"


_ROWS: Final = (
    # Properties of both roles.
    Property("bootstrap.servers metadata.broker.list", instead="use --servers"),
    Property("client.id", instead=_OWN),
    Property("security.protocol", java=SAME, python=SAME, read=_upper),
    Property("ssl.ca.location", python="ssl_cafile"),
    Property("ssl.ca.pem", java="ssl.truststore.certificates", python=CA_PEM),
    Property("ssl.certificate.location", python="ssl_certfile"),
    Property("ssl.certificate.pem", java="ssl.keystore.certificate.chain"),
    Property("ssl.key.location", python="ssl_keyfile"),
    Property("ssl.key.pem", java="ssl.keystore.key"),
    Property("ssl.key.password", java=SAME, python="ssl_password"),
    Property("ssl.crl.location", python="ssl_crlfile"),
    Property("ssl.cipher.suites", java=SAME, python="ssl_ciphers"),
    Property("ssl.providers", java=SAME),
    Property("ssl.endpoint.identification.algorithm", java=SAME, python="ssl_check_hostname", read=_checks_hostname),
    Property("sasl.mechanism sasl.mechanisms", java=SAME, python=SAME, read=_upper),
    Property("sasl.username", python="sasl_plain_username"),
    Property("sasl.password", python="sasl_plain_password"),
    Property("sasl.kerberos.service.name", java=SAME, python=SAME),
    Property("client.dns.lookup", java=SAME, python=SAME),
    Property("client.rack", java=SAME, python=SAME, only="subscriber"),
    Property("socket.nagle.disable", value="true", python="socket_options", read=_no_delay),
    Property("socket.keepalive.enable", value="false"),
    _buffer("socket.send.buffer.bytes", java="send.buffer.bytes", python="send_buffer_bytes"),
    _buffer("socket.receive.buffer.bytes", java="receive.buffer.bytes", python="receive_buffer_bytes"),
    Property("socket.timeout.ms", value="60000", java="request.timeout.ms", python="request_timeout_ms", read=_number),
    Property("socket.connection.setup.timeout.ms", java=SAME),
    Property("connections.max.idle.ms", value="540000", java=SAME, python=SAME, read=_number),
    Property("reconnect.backoff.ms", value="100", java=SAME, java_value="100", python=SAME, read=_number),
    Property("reconnect.backoff.max.ms", value="10000", java=SAME, java_value="10000", python=SAME, read=_number),
    Property("retry.backoff.ms", value="100", java=SAME, java_value="100", python=SAME, read=_number),
    Property("retry.backoff.max.ms", value="100", since=0x02030000, java=SAME, java_value="100"),
    Property("metadata.max.age.ms", java=SAME, python=SAME, read=_number),
    Property("topic.metadata.refresh.interval.ms", value="300000", python="metadata_max_age_ms", read=_number),
    Property("enable.metrics.push", value="false", since=0x02050000, java_value="false"),
    Property("message.max.bytes", java="max.request.size", python="max_request_size", read=_number, only="publisher"),
    Property("receive.message.max.bytes", python=SAME, read=_number),
    Property("max.in.flight max.in.flight.requests.per.connection", instead=_set("max_in_flight")),
    Property("statistics.interval.ms", instead=_OWN),
    Property("log.queue", instead=_OWN),
    # Properties of producers.
    _producer("request.timeout.ms", value="30000", java=SAME, python=SAME, read=_number),
    _producer("queue.buffering.max.messages", value="100000", python=QUEUED, read=_number),
    _producer("queue.buffering.backpressure.threshold", value="1"),
    _producer("queue.buffering.max.kbytes", java="buffer.memory", instead=_set("buffer_memory")),
    _producer("acks request.required.acks", instead=_set("acks")),
    _producer("linger.ms queue.buffering.max.ms", instead=_set("linger_ms")),
    _producer("batch.size", instead=_set("batch_bytes")),
    _producer("batch.num.messages", instead=_set("msg_batch")),
    _producer("compression.type compression.codec", instead=_set("compression")),
    _producer("enable.idempotence", instead=_set("idempotence")),
    _producer("retries message.send.max.retries", instead=_set("retries")),
    _producer("delivery.timeout.ms message.timeout.ms", instead=_set("delivery_timeout_ms")),
    _producer(
        "delivery.report.only.error", instead=f"{_OWN}: the number of messages sent (Tx) counts acknowledgements"
    ),
    _producer("enable.gapless.guarantee", instead=_OWN),
    _producer("transactional.id", instead=_OWN),
    # Properties of consumers.
    _consumer("queued.min.messages", value="100000"),
    _consumer("queued.max.messages.kbytes", value="65536"),
    _consumer("fetch.error.backoff.ms", value="500"),
    _consumer("fetch.queue.backoff.ms", value="1000", since=0x02020000),
    _consumer("isolation.level", value="read_uncommitted", java=SAME, python=SAME),
    _consumer("check.crcs", python=SAME, read=_boolean),
    _consumer("fetch.min.bytes", python=SAME, read=_number),
    _consumer("fetch.max.bytes", python=SAME, read=_number),
    _consumer("fetch.wait.max.ms", java="fetch.max.wait.ms", python="fetch_max_wait_ms", read=_number),
    _consumer("max.partition.fetch.bytes fetch.message.max.bytes", python=SAME, read=_number),
    _consumer("session.timeout.ms", python=SAME, read=_number),
    _consumer("heartbeat.interval.ms", java=SAME, python=SAME, read=_number),
    _consumer("max.poll.interval.ms", java=SAME, python=SAME, read=_number),
    _consumer("group.id", instead=_set("group")),
    _consumer("group.instance.id", instead=f"{_OWN}: a member that died and was started again is a new member"),
    _consumer("group.protocol", instead=f"{_OWN}: all clients use the same protocol for a consumer group"),
    _consumer("partition.assignment.strategy", instead=f"{_OWN}: every client uses the assignment strategy range"),
    _consumer(
        "auto.offset.reset", instead=f"{_OWN}: the step's configuration has the offset at which a subscriber starts"
    ),
    _consumer("enable.auto.commit auto.commit.enable", instead=_COMMITS),
    _consumer("enable.auto.offset.store", instead=_COMMITS),
    _consumer("enable.partition.eof", instead=_OWN),
)


def _only_librdkafka(names: str, role: Role | None = None) -> tuple[Property, ...]:
    """Properties of librdkafka only that a user may set (CONFIGURATION.md, without callbacks)."""
    return tuple(Property(name, role) for name in names.split())


TABLE: Final = (
    *_ROWS,
    *_only_librdkafka(
        """
        allow.auto.create.topics api.version.fallback.ms api.version.request api.version.request.timeout.ms
        broker.address.family broker.address.ttl broker.version.fallback debug enable.random.seed
        enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification https.ca.location https.ca.pem
        log.connection.close log.thread.name log_level message.copy.max.bytes
        metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy reconnect.backoff.jitter.ms
        sasl.kerberos.keytab sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.principal sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.jwt.template.file sasl.oauthbearer.assertion.private.key.file
        sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.private.key.pem
        sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
        sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.config
        sasl.oauthbearer.extensions sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type
        sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name
        sasl.oauthbearer.token.endpoint.url socket.blocking.max.ms socket.max.fails ssl.ca.certificate.stores
        ssl.curves.list ssl.engine.id ssl.engine.location ssl.keystore.location ssl.keystore.password
        ssl.sigalgs.list topic.blacklist topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
        topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.sparse
        """,
    ),
    *_only_librdkafka(
        """
        compression.level partitioner produce.offset.report queuing.strategy sticky.partitioning.linger.ms
        transaction.timeout.ms
        """,
        role="publisher",
    ),
    *_only_librdkafka(
        """
        auto.commit.interval.ms consume.callback.max.messages coordinator.query.interval.ms group.protocol.type
        group.remote.assignor offset.store.method offset.store.path offset.store.sync.interval.ms
        """,
        role="subscriber",
    ),
)
PROPERTIES: Final[Mapping[str, Property]] = {
    **{row.java_name: row for row in TABLE if row.java},
    **{name: row for row in TABLE for name in row.names.split()},
}
"""The properties by every name that a user may use: librdkafka's, and Java's if librdkafka has no such name."""


def alike(role: Role) -> Mapping[str, str]:
    """The values for a role's client, by librdkafka's names."""
    return {row.name: row.value for row in TABLE if row.value and row.role in (None, role)}
