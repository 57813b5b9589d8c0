"""Servers of our own as one NATS; see :class:`hydra.system.ServerCluster`."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from hydra.errors import ServerError
from hydra.natstest.program import NatsJoin
from hydra.natstest.streams import Streams

_ANSWER_TIMEOUT_S: Final = 0.5
_WARM_UP_WITHIN_S: Final = 20.0
_ASK_AGAIN_S: Final = 0.2


class NatsCluster:
    """One server, or several with a route from each to all others."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def join(self, endpoints: Sequence[str]) -> list[dict[str, Any] | None]:
        """New names, and to each server the addresses of all."""
        cluster = f"hydra-{secrets.token_hex(8)}"
        self._names = [f"{cluster}-{number}" for number in range(1, len(endpoints) + 1)]
        return [
            msgspec.to_builtins(NatsJoin(name=name, cluster=cluster, endpoints=list(endpoints))) for name in self._names
        ]

    def address(self, endpoints: Sequence[str]) -> str:
        """``host:port`` of every server, with commas."""
        return ",".join(endpoint.split(",")[0] for endpoint in endpoints)

    def up(self, address: str) -> bool:
        """Whether each of them answers there; its name tells it from a stranger who was quicker to bind the port."""
        return [greeting(server).get("server_name") for server in address.split(",")] == self._names

    def warm_up(self, address: str) -> None:
        """A stream that comes and goes: several servers agree on one only when they have a leader.

        Raises:
            ServerError: they do not in time.
        """
        deadline = time.monotonic() + _WARM_UP_WITHIN_S
        name = f"hydra-warm-up-{secrets.token_hex(4)}"
        with contextlib.closing(Streams(address.split(","))) as streams:
            while True:
                try:
                    streams.create(name, name, "memory")
                    streams.delete(name)
                except ServerError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_ASK_AGAIN_S)
                else:
                    return


def greeting(server: str) -> dict[str, Any]:
    """What the server at ``host:port`` says of itself to everybody who connects; empty if nothing does."""
    host, _, port = server.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), _ANSWER_TIMEOUT_S) as connection:
            connection.settimeout(_ANSWER_TIMEOUT_S)
            line = connection.makefile("rb").readline(65_536)
        info = json.loads(line.removeprefix(b"INFO "))
    except (OSError, ValueError):
        return {}
    return info if isinstance(info, dict) else {}
