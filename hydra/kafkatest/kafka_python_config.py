"""The configuration of kafka-python clients, and the errors with which the library rejects it or a cluster it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    KafkaConfigurationError,
    KafkaError,
    KafkaTimeoutError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
)

from hydra.errors import UsageError
from hydra.kafkatest import record_batch_size
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import ENDED
from hydra.kafkatest.properties import kafka_python_config, kafka_python_named
from hydra.kafkatest.property_table import QUEUED, alike
from hydra.kafkatest.transport_base import fetch_config, session_config
from hydra.model import Role

CONNECT_TIMEOUT_MS: Final = 10_000
_WITH_PASSWORD: Final = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
"""SASL mechanisms for which the library needs user and password, but does not check them."""
OVER: Final = (KafkaTimeoutError, RequestTimedOutError)


class _Diagnosis(logging.Handler):
    """Keeps the last error that the library logged, as the library raises only timeouts.

    A rejection of user and password stays, as ends of connections follow it.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """See logging."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        # A timeout only follows from an earlier error.
        found = [a for a in arguments if isinstance(a, BaseException) and not isinstance(a, OVER)]
        if found and not isinstance(self._error, SaslAuthenticationFailedError):
            self._error = found[-1]

    def explain(self, answer: BaseException) -> str:
        """The cause of an error that a call has raised."""
        reason = text(self._error or answer)
        if isinstance(self._error, SaslAuthenticationFailedError):
            return f"login: {reason}"
        if "[SSL" in reason:  # the library has no class for it
            return f"TLS: {reason}"
        return f"{reason}; {ENDED}" if "socket disconnected" in reason else reason


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Explains an error: the cluster does not answer, or the library rejects the configuration."""
    logger, diagnosis = logging.getLogger("kafka"), _Diagnosis()
    logger.addHandler(diagnosis)
    try:
        yield
    # The last two errors: a codec's package is missing, or a value is out of its range.
    except (KafkaConfigurationError, AssertionError, RuntimeError) as e:
        raise ValueError(f"kafka-python refuses the configuration: {text(e)}") from None
    except KafkaError as e:
        raise OSError(f"Kafka does not answer: {diagnosis.explain(e)}") from None
    finally:
        logger.removeHandler(diagnosis)


def common_config(
    client: int, kafka: KafkaConfigure, role: Role, defaults: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """The configuration of both roles; the user's properties replace the common ones and the further ``defaults``."""
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
        # The library's own metrics cost a tenth of the rate.
        "metrics_enabled": False,
    }


def text(e: BaseException) -> str:
    """The kind and the text of an error."""
    return f"{type(e).__name__}: {e}".rstrip(": ")


def producer_config(client: int, kafka: KafkaConfigure, message_size: int, keys: int = 0) -> dict[str, Any]:
    """The library's configuration for these settings; ValueError if a property cannot be used."""
    size = kafka.batch_size(message_size, keys)
    defaults = {
        "max_request_size": record_batch_size.request_bytes(size, message_size),
        QUEUED: record_batch_size.queue_messages(kafka.msg_batch),
    }
    common = common_config(client, kafka, "publisher", defaults)
    # The library demands that a request's timeout is within that of a delivery.
    request_ms = min(common["request_timeout_ms"], kafka.delivery_timeout_ms - kafka.linger_ms)
    return {
        "max_block_ms": CONNECT_TIMEOUT_MS,
        **common,
        "request_timeout_ms": max(int(request_ms), 1),
        "acks": "all" if kafka.acks == "all" else int(kafka.acks),
        "linger_ms": kafka.linger_ms,
        "compression_type": None if kafka.compression == "none" else kafka.compression,
        "batch_size": size,
        "enable_idempotence": kafka.idempotence,
        "retries": kafka.most_retries,
        "max_in_flight_requests_per_connection": kafka.max_in_flight,
        "delivery_timeout_ms": kafka.delivery_timeout_ms,
        "allow_auto_create_topics": False,
    }


def consumer_config(client: int, kafka: KafkaConfigure) -> dict[str, Any]:
    """The library's configuration for these settings; ValueError if a property cannot be used."""
    strategy = {"partition_assignment_strategy": (RangePartitionAssignor,)} if kafka.group else {}
    return {
        **kafka_python_named({**fetch_config(kafka), **session_config(kafka)}, "subscriber"),
        **strategy,
        **common_config(client, kafka, "subscriber"),
        "group_id": kafka.group or None,
        "auto_offset_reset": "none",
        "enable_auto_commit": False,
        "allow_auto_create_topics": False,
    }
