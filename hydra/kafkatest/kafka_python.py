"""kafka-python clients: ``kafka-pub`` and ``kafka-sub`` in Python, checksums in C."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from importlib.metadata import version

import kafka

from hydra.client import process_group
from hydra.client.transport import Kind
from hydra.kafkatest.kafka_python_publisher import KafkaPythonPublisher
from hydra.kafkatest.kafka_python_subscriber import KafkaPythonSubscriber


def _versions() -> dict[str, str]:
    return {"crc32c": version("crc32c"), "kafka-python": kafka.__version__, "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client that this module offers."""
    # What goes wrong comes back as an exception; the library's log lines would only fill the sandbox.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    return {
        "kafka-pub": Kind("publisher", "kafka-python", _versions, lambda client, _: KafkaPythonPublisher(client)),
        "kafka-sub": Kind("subscriber", "kafka-python", _versions, lambda client, _: KafkaPythonSubscriber(client)),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
