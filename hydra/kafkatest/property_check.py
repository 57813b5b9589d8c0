"""What librdkafka says of the values of the user's properties, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, Producer

from hydra.errors import UsageError
from hydra.kafkatest.properties import confluent_config


def check_values(properties: Mapping[str, str]) -> None:
    """Makes a producer and a consumer with these properties, without naming a broker, and discards them.

    Raises:
        UsageError: a property is unknown, or Hydra's own, or its value is refused; the text is the library's.
    """
    silent: dict[str, str | int] = {"log_level": 0}
    try:
        Producer({**confluent_config(properties, "publisher"), **silent})
        Consumer({**confluent_config(properties, "subscriber"), **silent, "group.id": "hydra"}).close()
    except KafkaException as e:
        raise UsageError(e.args[0].str().strip(), "look at the Kafka properties") from None
