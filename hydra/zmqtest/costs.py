"""What a client costs, measured on a virtual machine with 2 cores (docs/zmq.md, docs/scale.md): for `hydra plan`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hydra.analysis.constants import Cost, Costs
from hydra.zmqtest.footprints import ZMTP

_FRAME_BYTES: Final = 2
"""Flags and length of a short message (ZMTP 3.0, RFC 23)."""
_PUBLISHER_CORES: Final = Cost(1.3, "docs/zmq.md", 480)
"""One thread that sends and one that writes to sockets."""

COSTS: Final[Mapping[str, Costs]] = {
    ZMTP: Costs(
        subscriber_message_s=Cost(7e-6, "docs/scale.md", 100_000, rates=(1.0, 1.0)),
        publisher_message_s=Cost(18e-6, "docs/scale.md", 100_000, rates=(1.0, 1.0)),
        together_s=Cost(4e-6, "docs/scale.md", 100_000, rates=(20.0, 20.0)),
        publisher_cores=_PUBLISHER_CORES,
        frame_bytes=_FRAME_BYTES,
        ran=100_000,
    ),
    "native": Costs(
        subscriber_message_s=Cost(58e-6, "docs/models.md", 480, rates=(10.0, 10.0)),
        publisher_message_s=Cost(21e-6, "docs/models.md", 480, rates=(10.0, 10.0)),
        publisher_cores=_PUBLISHER_CORES,
        frame_bytes=_FRAME_BYTES,
        ran=19_000,
    ),
    "pyzmq": Costs(publisher_cores=_PUBLISHER_CORES, frame_bytes=_FRAME_BYTES, ran=1_000),
}
