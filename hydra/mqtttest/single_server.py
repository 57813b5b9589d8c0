"""A server of our own, embedded or on an agent; see :class:`hydra.system.ServerCluster`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec

from hydra.mqtttest.broker import reach
from hydra.mqtttest.program import ServerLimits


class SingleServer:
    """One mosquitto by itself: it forms no clusters.

    Arguments:
        limits: what it keeps for one client.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """The limits, to each."""
        return [msgspec.to_builtins(self._limits) for _ in endpoints]

    def address(self, endpoints: Sequence[str]) -> str:
        """The first one's."""
        return endpoints[0]

    def up(self, address: str) -> bool:
        """Whether it takes a client."""
        with contextlib.suppress(OSError):
            reach(address)
            return True
        return False

    def warm_up(self, address: str) -> None:
        """It is as quick as it will be."""
