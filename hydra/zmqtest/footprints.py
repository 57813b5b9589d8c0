"""What the clients take: measured on one machine by counting in /proc (docs/limits.md says how), rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.system import Footprint

IMPLEMENTATIONS: Final[Mapping[str, Footprint]] = {
    "pyzmq": Footprint(threads=3, files=18, memory_bytes=8_000_000),
    "native": Footprint(3, 14, 700_000, further=Footprint(0, 2, 100_000)),
}
