"""What both kinds of kafka-python clients do alike: their configuration, and what its errors mean."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

import crc32c  # noqa: F401  # kafka-python takes it by itself, and does without it in silence: here it cannot be missing
from kafka.errors import (
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
)

from hydra.errors import UsageError
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import ENDED
from hydra.kafkatest.properties import kafka_python_config, kafka_python_named
from hydra.kafkatest.property_table import alike
from hydra.model import Role

CONNECT_TIMEOUT_MS: Final = 10_000
_WITH_PASSWORD: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
"""SASL mechanisms for which the library needs user and password, and does not say so."""
_OVER: Final = (KafkaTimeoutError, RequestTimedOutError)


class _Diagnosis(logging.Handler):
    """The last error that the library logged: what it raises says only that time is over.

    A refusal of user and password stays: it is followed by ends of connections.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """See logging."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        # That time is over follows from the one before.
        found = [a for a in arguments if isinstance(a, BaseException) and not isinstance(a, _OVER)]
        if found and not isinstance(self._error, SaslAuthenticationFailedError):
            self._error = found[-1]

    def explain(self, answer: BaseException) -> str:
        """What is wrong, where a call got this answer."""
        told = text(self._error or answer)
        return f"{told}; {ENDED}" if "socket disconnected" in told else told


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Says of a cluster that does not answer, or of a configuration that cannot be, what is wrong."""
    logger, diagnosis = logging.getLogger("kafka"), _Diagnosis()
    logger.addHandler(diagnosis)
    try:
        yield
    # The last two when a codec's package is not there, or a value is out of its range.
    except (KafkaConfigurationError, AssertionError, RuntimeError) as e:
        raise ValueError(f"kafka-python refuses the configuration: {text(e)}") from None
    except KafkaError as e:
        raise OSError(f"Kafka does not answer: {diagnosis.explain(e)}") from None
    finally:
        logger.removeHandler(diagnosis)


def common_config(
    client: int, kafka: KafkaConfigure, role: Role, defaults: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """What both have; the user's properties replace what is alike everywhere and the further ``defaults``."""
    try:
        given = {
            **kafka_python_named(alike(role), role),
            **(defaults or {}),
            **kafka_python_config(kafka.properties, role),
        }
    except UsageError as e:
        raise ValueError(str(e)) from None
    needed = {"sasl_plain_username", "sasl_plain_password"} if given.get("sasl_mechanism") in _WITH_PASSWORD else set()
    if needed - given.keys():
        raise ValueError("sasl.username and sasl.password must be set")
    return {
        "bootstrap_timeout_ms": CONNECT_TIMEOUT_MS,
        **given,
        "bootstrap_servers": kafka.bootstrap.split(","),
        "client_id": f"hydra-{client}",
        # Its own metrics cost a tenth of the rate.
        "metrics_enabled": False,
    }


def text(e: BaseException) -> str:
    """The kind of the error and what it says."""
    return f"{type(e).__name__}: {e}".rstrip(": ")
