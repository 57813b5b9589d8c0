"""Words of commands that measure connecting."""

from __future__ import annotations

from tests.suite.native_client import native_client

SMALL = ("--set", "sweep.duration_s=0.3", "--connect-rate", "max")
NATS_PY = ("--implementation", "nats-py")
PAHO = ("--implementation", "paho-mqtt")


def native(system: str) -> tuple[str, ...]:
    """Native clients, all in one process, if the program has this system."""
    return ("--implementation", "native", "--clients-per-process", "8") if native_client(f"{system}-sub") else ()
