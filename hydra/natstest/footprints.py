"""What NATS' clients and a server take, measured on one machine by counting in /proc (docs/nats.md), rounded up."""

from __future__ import annotations

from typing import Final

from hydra.system import Footprint, ServerFootprint

IMPLEMENTATIONS: Final = {
    "nats-py": Footprint(threads=3, files=20, memory_bytes=12_000_000),
    "native": Footprint(10, 16, 2_500_000, further=Footprint(4, 2, 700_000)),
}
SERVER: Final = ServerFootprint(
    processes=2,  # nats-server, and its supervisor
    threads=40,
    files=50,
    connections=1,
    memory_bytes=200_000_000,
    record_bytes=30,
    steps_kept=2,  # the step that runs and the one before it; see system.py
    late_s=1.0,
)
