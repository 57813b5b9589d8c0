"""Kafka's own performance tools as clients: ``kafka-pub`` and ``kafka-sub`` that drive them, step by step."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hydra.client import process_group
from hydra.client.transport import Kind
from hydra.errors import MissingDependencyError
from hydra.kafkatest.settings import TOOL
from hydra.kafkatest.perf_tool_publisher import ToolPublisher
from hydra.kafkatest.perf_tool_run import installed
from hydra.kafkatest.perf_tool_subscriber import ToolSubscriber

if TYPE_CHECKING:
    from hydra.control.client import ControlClient


def _versions() -> dict[str, str]:
    try:
        java, jars = installed()
    except MissingDependencyError:
        return {}  # the first step says what is missing
    return {"kafka-tools": jars.version, "java": java.version}


def kinds() -> Mapping[str, Kind]:
    """The two kinds of client that this module offers."""

    def publisher(client: int, control: ControlClient) -> ToolPublisher:
        return ToolPublisher(client, control)

    def subscriber(client: int, control: ControlClient) -> ToolSubscriber:
        return ToolSubscriber(client, control)

    return {
        "kafka-pub": Kind("publisher", TOOL, _versions, publisher),
        "kafka-sub": Kind("subscriber", TOOL, _versions, subscriber),
    }


if __name__ == "__main__":
    _versions()  # looked for once, before the clients are forked
    sys.exit(process_group.main(kinds()))
