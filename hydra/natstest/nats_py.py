"""nats-py clients: ``nats-pub`` and ``nats-sub``, over core subjects or JetStream."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version

from hydra.client import process_group
from hydra.client.transport import Kind
from hydra.natstest.nats_publisher import NatsPublisher
from hydra.natstest.nats_subscriber import NatsSubscriber
from hydra.natstest.settings import NatsEnd, NatsStep


def _versions() -> dict[str, str]:
    return {"nats-py": version("nats-py"), "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The kinds of clients that this program offers, by name."""
    return {
        "nats-pub": Kind("publisher", "nats-py", _versions, NatsPublisher, [NatsStep]),
        "nats-sub": Kind("subscriber", "nats-py", _versions, NatsSubscriber, [NatsStep, NatsEnd]),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
