"""Footprints of the clients: counted in /proc on one machine (method: docs/limits.md), and rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.system import Footprint

ZMTP: Final = "zmtp"
"""The implementation whose subscribers speak ZMTP without libzmq; it has no publishers."""

NATIVES: Final = ("native", ZMTP)
"""The implementations of Hydra's native program."""

LISTENER_BYTES: Final = 30_000
"""A publisher's memory for each connected subscriber: 25 kB in libzmq, and half of the kernel's 10 kB for both ends of
a connection (docs/limits.md)."""

IMPLEMENTATIONS: Final[Mapping[str, Footprint]] = {
    "pyzmq": Footprint(threads=3, files=18, memory_bytes=8_000_000, cpus=0.002),
    "native": Footprint(3, 14, 700_000, further=Footprint(0, 2, 100_000), cpus=0.002),
    # A subscriber has one connection; of the 20,000 files that a process may open, it needs some itself.
    ZMTP: Footprint(3, 14, 700_000, further=Footprint(0, 1, 20_000), packed=19_900, cpus=0.0002, ports=4096),
}
