"""What the clients take: measured on one machine by counting in /proc (docs/limits.md says how), rounded up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.system import Footprint

ZMTP: Final = "zmtp"
"""The implementation whose subscribers speak ZMTP themselves; it has no publishers of its own."""

NATIVES: Final = ("native", ZMTP)
"""Those of Hydra's native program."""

LISTENER_BYTES: Final = 30_000
"""For each subscriber that is connected: 25 kB in a publisher's libzmq, and its half of the kernel's 10 kB for both
ends of a connection (docs/limits.md)."""

IMPLEMENTATIONS: Final[Mapping[str, Footprint]] = {
    "pyzmq": Footprint(threads=3, files=18, memory_bytes=8_000_000, cpus=0.002),
    "native": Footprint(3, 14, 700_000, further=Footprint(0, 2, 100_000), cpus=0.002),
    # One connection is all that a subscriber has; of 20,000 files that a process may open it needs some for itself.
    ZMTP: Footprint(3, 14, 700_000, further=Footprint(0, 1, 20_000), packed=19_900, cpus=0.0002, ports=4096),
}
