"""What both kinds of confluent-kafka clients do alike: their configuration, and librdkafka's objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

from hydra.errors import UsageError
from hydra.kafkatest.property_table import alike
from hydra.kafkatest.control_messages import KafkaConfigure
from hydra.kafkatest.librdkafka import text
from hydra.kafkatest.properties import confluent_config
from hydra.model import Role

_C = TypeVar("_C", Producer, Consumer)


def common_config(
    client: int, kafka: KafkaConfigure, role: Role, defaults: Mapping[str, int] | None = None
) -> dict[str, str | int | float]:
    """What both have; the user's properties replace what is alike everywhere and the further ``defaults``."""
    try:
        given = confluent_config(kafka.properties, role)
    except UsageError as e:
        raise ValueError(str(e)) from None
    return {
        "log_level": 0,  # errors come as callbacks; lines on stderr would only fill the sandbox
        **alike(role),
        **(defaults or {}),
        **given,
        "bootstrap.servers": kafka.bootstrap,
        "client.id": f"hydra-{client}",
    }


def made(kind: type[_C], config: Mapping[str, object]) -> _C:
    """A producer or consumer of this configuration; raises ValueError where the library refuses it."""
    try:
        return kind(dict(config))
    except KafkaException as e:
        raise ValueError(f"Kafka's library refuses the configuration: {text(e)}") from None
