"""The processes of this host that listen at the addresses of the user's servers: they are sampled like Hydra's own."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from typing import Final

import psutil

_PROXIES: Final = re.compile(
    "docker-proxy|envoy|haproxy|kubectl|nginx|rootlessport|slirp4netns|socat|systemd|(?:auto)?s{2}hd?"
)
"""Programs that listen in place of a server whose process is elsewhere."""
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104  # compared, not bound
"""What a socket for all addresses of IPv4, and of both versions of IP, listens at."""


def listeners(addresses: str) -> tuple[int, ...]:
    """The ids of the processes behind some addresses; empty if none is on this host, or its sockets cannot be read.

    It resolves names and reads the sockets of all processes: never while a step begins or runs.

    Args:
        addresses: ``host:port`` of each server, separated by commas.
    """
    return _listening(set(_of_this_host(addresses)))


def _of_this_host(addresses: str) -> Iterator[tuple[str, int]]:
    """The addresses that belong to this host: a socket can be bound to them."""
    for address in addresses.split(","):
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError, ValueError):
            for family, kind, _, _, where in socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM):
                with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                    probe.bind((where[0], 0))
                    yield str(where[0]), int(port)


def _listening(addresses: set[tuple[str, int]]) -> tuple[int, ...]:
    if not addresses:
        return ()
    try:
        sockets = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return ()
    wanted = addresses | {(every, port) for host, port in addresses for every in (_ANY[1:] if ":" in host else _ANY)}
    pids = {
        its.pid: None
        for its in sockets
        if its.status == psutil.CONN_LISTEN and its.pid and its.pid != os.getpid() and tuple(its.laddr) in wanted
    }
    return tuple(pid for pid in pids if (name := _name(pid)) and not _PROXIES.fullmatch(name))


def _name(pid: int) -> str:
    """The name of a process; "" if it has ended."""
    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""
