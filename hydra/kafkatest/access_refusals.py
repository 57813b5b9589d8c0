"""Why a cluster does not let Hydra in, by the reasons that all systems name.

librdkafka names few reasons, so a cluster that rejects it gets one more TLS handshake, by Python.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError

from hydra.client.tls import AccessError, ClientTls, access_error, certificate_error, secured, speaks_tls
from hydra.config.plugins import greetings
from hydra.kafkatest.librdkafka import LOGINS
from hydra.kafkatest.nodes import host_and_port
from hydra.kafkatest.properties import confluent_config
from hydra.system.listener import explained, together
from hydra.system.worker_thread import at_once

_WITHIN_S: Final = 1.0
"""How long a connection, each part of a handshake, and an alert after it may take."""
_SECURE: Final = ("ssl", "sasl_ssl")
_ONLY_LIBRDKAFKA: Final = (
    *("ssl.key.password", "ssl.keystore.location", "ssl.crl.location", "ssl.cipher.suites", "ssl.engine.location"),
    *("enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm"),
)
"""Properties with which a handshake by Python may have another result."""
_NAMES: Final = {
    "--ca-file": "ssl.ca.location",
    "--cert-file": "ssl.certificate.location",
    "--key-file": "ssl.key.location",
}
"""The property that has the place of each flag of other systems."""


def rejection(bootstrap: str, properties: Mapping[str, str], error: KafkaError | None) -> AccessError | None:
    """Why the brokers at these addresses do not let a client in; None if that is not known.

    Args:
        bootstrap: the addresses, separated by commas.
        properties: the user's Kafka properties.
        error: the last error of librdkafka.
    """
    config = confluent_config(properties, None)
    if error is not None and error.code() in LOGINS:
        if "nsupported" in error.str():
            return AccessError("login", error.str(), "check sasl.mechanism")
        return AccessError("login", "the server rejects this user or password", "check sasl.username and sasl.password")
    has_tls = config.get("security.protocol", "").lower() in _SECURE
    tls = _client_tls(config) if has_tls else None
    if has_tls and tls is None:
        return None
    addresses = [address.strip() for address in bootstrap.split(",")]
    found = zip(addresses, at_once(lambda address: _at(address, tls), addresses), strict=True)
    errors = {address: each for address, each in found if each is not None}
    reached = len(errors) < len(addresses) or (error is not None and error.code() == KafkaError._SSL)
    only_silent = all(each.layer == "network" for each in errors.values())
    return None if not errors or (only_silent and reached) else together(errors, "Kafka at")


def _at(address: str, tls: ClientTls | None) -> AccessError | None:
    """Why a broker rejects a client; None if that is not known."""
    host, port = host_and_port(address)
    try:
        with socket.create_connection((host, port), _WITHIN_S) as connection:
            if tls is None:
                return _TLS_DEMANDED if speaks_tls(connection) else _of_listener(address)
            with secured(connection, host, tls) as secure:
                return _rejected(secure, tls)
    except OSError as e:
        found = access_error(e, host, tls)
        remedy = found.remedy
        for flag, name in _NAMES.items():
            remedy = remedy.replace(flag, name)
        return AccessError(found.layer, found.reason, remedy)


def _of_listener(address: str) -> AccessError | None:
    """The error if what listens there is no broker; None if it is one, or nothing is known."""
    unknown = AccessError("network", "")
    found = explained(unknown, host_and_port(address), "Kafka", greetings(), f"Kafka at {address}")
    return None if found is unknown else found


def _rejected(secure: ssl.SSLSocket, tls: ClientTls) -> AccessError | None:
    """The error if the broker ends the connection after the handshake, before the client has sent anything."""
    secure.settimeout(_WITHIN_S)
    try:
        secure.read(1)
    except TimeoutError:
        return None
    except ConnectionError:
        pass
    return certificate_error(tls)


_TLS_DEMANDED: Final = AccessError(
    "TLS", "the server demands TLS", "add --kafka-prop security.protocol=SSL, or SASL_SSL with a login"
)


def _client_tls(config: Mapping[str, str]) -> ClientTls | None:
    """The TLS of a client with these properties; None if only librdkafka can know it."""
    if any(name in config for name in _ONLY_LIBRDKAFKA):
        return None
    try:
        ca, certificate, key = (
            config.get(f"ssl.{name}.pem") or _text(config.get(f"ssl.{name}.location"))
            for name in ("ca", "certificate", "key")
        )
    except (OSError, UnicodeDecodeError):
        return None
    return ClientTls(ca=ca, certificate=certificate, key=key)


def _text(path: str | None) -> str:
    return Path(path).read_text() if path else ""
