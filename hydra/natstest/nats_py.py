"""The Python client of NATS, on nats-py: ``nats-pub`` and ``nats-sub``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import version

from hydra.client import process_group
from hydra.client.transport import Kind
from hydra.natstest.publisher import Publisher
from hydra.natstest.subscriber import Subscriber


def _versions() -> dict[str, str]:
    return {"nats-py": version("nats-py"), "python": sys.version.split()[0]}


def kinds() -> Mapping[str, Kind]:
    """The clients that this program offers."""
    return {
        "nats-pub": Kind("publisher", "nats-py", _versions, Publisher),
        "nats-sub": Kind("subscriber", "nats-py", _versions, Subscriber),
    }


if __name__ == "__main__":
    sys.exit(process_group.main(kinds()))
