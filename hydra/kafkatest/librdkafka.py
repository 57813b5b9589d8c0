"""Configuration, objects and errors of librdkafka, for all code that uses confluent-kafka."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from hydra.client.tls import Layer
from hydra.errors import UsageError
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.properties import confluent_config
from hydra.kafkatest.property_table import alike
from hydra.model import Role

_C = TypeVar("_C", Producer, Consumer)

LOGINS: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED})
"""Errors of user and password, or of their mechanism."""
_REFUSALS: Final = LOGINS | {KafkaError._SSL}
"""Errors that another attempt does not repair."""
_OF_CERTIFICATE: Final = re.compile(r"SSL routines.* alert .*(certificate|unknown ca)")
"""An alert with which a broker rejects the client's certificate, or its absence; the library has no code for it."""
ENDED: Final = "the broker ends Hydra's connections: are security.protocol, user and password right?"
"""The probable cause if the library reports no other."""

_CAUSES: Final = {
    KafkaError._ALL_BROKERS_DOWN: ENDED,
    KafkaError._BAD_MSG: "what answers at this port does not speak Kafka",
}
"""The probable cause by the library's codes whose texts do not name it."""


def common_config(
    client: int, kafka: KafkaConfigure, role: Role, defaults: Mapping[str, int] | None = None
) -> dict[str, str | int | float]:
    """The configuration of both roles; the user's properties replace the common ones and the further ``defaults``."""
    try:
        given = confluent_config(kafka.properties, role)
    except UsageError as e:
        raise ValueError(str(e)) from None
    return {
        "log_level": 0,  # errors arrive by callbacks; lines on stderr would only fill the sandbox
        **alike(role),
        **(defaults or {}),
        **given,
        "bootstrap.servers": kafka.bootstrap,
        "client.id": f"hydra-{client}",
    }


def made(kind: type[_C], config: Mapping[str, object]) -> _C:
    """A producer or consumer with this configuration; raises ValueError if the library rejects it."""
    try:
        return kind(dict(config))
    except KafkaException as e:
        raise ValueError(f"Kafka's library refuses the configuration: {text(e)}") from None


_BROKER: Final = re.compile(r"(?:\w+://)?(?P<address>\S+)/(?P<id>\d+): ")
"""The name of a broker whose id is known, at the beginning of an error of librdkafka: ``ssl://10.0.0.5:9093/1: …``."""


class Complaint:
    """The most informative error so far; a client's ``error_cb``."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None

    def __call__(self, error: KafkaError) -> None:
        """Takes an error, unless a more informative one is known."""
        if self.error is None or _weight(error) >= _weight(self.error):
            self.error = error

    @property
    def refused(self) -> bool:
        """Whether the cluster rejects this client, or this client the cluster."""
        return self.error is not None and _is_refusal(self.error)

    @property
    def broker(self) -> tuple[int, str] | None:
        """The id and the advertised address of the broker that the error is about; None: it is about no such broker."""
        found = _BROKER.match(self.error.str()) if self.error is not None else None
        return None if found is None else (int(found["id"]), found["address"])

    def forget(self) -> None:
        """Drops the error, as calls succeed again."""
        self.error = None

    def explain(self, answer: BaseException) -> str:
        """The cause of an error that a call has raised."""
        if self.error is None or is_refusal(answer):
            return text(answer)
        # A cluster that accepts no connections causes another error before this one.
        reason = _CAUSES.get(self.error.code()) or _error_text(self.error)
        layer = _layer(self.error)
        return f"{layer}: {reason}" if layer else reason


def text(answer: BaseException) -> str:
    """The text of a call's error."""
    error = answer.args[0] if answer.args else "no answer"
    return _error_text(error) if isinstance(error, KafkaError) else str(error)


def _error_text(error: KafkaError) -> str:
    """The error's text; the general one of its code if a broker gives no reason, or only the request's name."""
    text = error.str().strip().rstrip(":; ")
    if text and text == error.str().strip():
        return text
    return ": ".join(filter(None, (text, KafkaError(error.code()).str())))


def is_refusal(answer: BaseException) -> bool:
    """Whether a broker has answered with an error; otherwise the library found none that answers."""
    return (code(answer) or 0) > 0


def code(answer: BaseException) -> int | None:
    """The code of a call's Kafka error, None for another error."""
    error = answer.args[0] if isinstance(answer, KafkaException) else None
    return error.code() if isinstance(error, KafkaError) else None


def _layer(error: KafkaError) -> Layer | None:
    """Where a connection failed; None: the error does not show it."""
    if error.code() in LOGINS:
        return "login"
    if error.code() == KafkaError._SSL or "SSL routines" in error.str():
        return "TLS"
    return "network" if error.code() in (KafkaError._TRANSPORT, KafkaError._RESOLVE) else None


def _is_refusal(error: KafkaError) -> bool:
    return error.code() in _REFUSALS or _OF_CERTIFICATE.search(error.str()) is not None


def _weight(error: KafkaError) -> int:
    if _is_refusal(error):
        return 2
    # This error only follows from another one.
    return 0 if error.code() == KafkaError._ALL_BROKERS_DOWN else 1
