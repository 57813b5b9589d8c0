"""Kafka's own performance tools as clients: ``kafka-pub`` and ``kafka-sub`` that drive them, step by step."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from hydra.client import process_group
from hydra.client.transport import Kind
from hydra.errors import MissingDependencyError
from hydra.kafkatest.perf_tool_publisher import ToolPublisher
from hydra.kafkatest.perf_tool_run import installed
from hydra.kafkatest.perf_tool_subscriber import ToolSubscriber
from hydra.kafkatest.settings import TOOL


def _versions() -> dict[str, str]:
    try:
        java, jars = installed()
    except MissingDependencyError:
        return {}  # the first step says what is missing
    return {"kafka-tools": jars.version, "java": java.version}


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client that this module offers."""
    return {
        "kafka-pub": Kind("publisher", TOOL, _versions, ToolPublisher),
        "kafka-sub": Kind("subscriber", TOOL, _versions, ToolSubscriber),
    }


if __name__ == "__main__":
    _versions()  # looked for once, before the clients are forked
    sys.exit(process_group.main(kinds()))
