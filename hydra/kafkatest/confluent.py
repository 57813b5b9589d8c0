"""confluent-kafka clients: ``kafka-pub`` and ``kafka-sub`` on librdkafka."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import confluent_kafka

from hydra.client import process_group
from hydra.client.transport import Kind
from hydra.kafkatest.confluent_publisher import ConfluentPublisher
from hydra.kafkatest.confluent_subscriber import ConfluentSubscriber


def _versions() -> dict[str, str]:
    return {
        "confluent-kafka": str(confluent_kafka.__version__),
        "librdkafka": str(confluent_kafka.libversion()[0]),
        "python": sys.version.split()[0],
    }


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client that this module offers."""
    return {
        "kafka-pub": Kind("publisher", "confluent-kafka", _versions, lambda client, _: ConfluentPublisher(client)),
        "kafka-sub": Kind("subscriber", "confluent-kafka", _versions, lambda client, _: ConfluentSubscriber(client)),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
