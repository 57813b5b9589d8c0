"""The limits of a client's own host at which no connection can be made: then no server has refused anything.

:mod:`hydra.client.local_limits` recognizes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class LocalLimit(NamedTuple):
    """A limit of a host: what the host had none of, and how to raise the limit."""

    what: str
    remedy: str


_PORTS: Final = LocalLimit("no free local port", 'widen the range: sysctl -w net.ipv4.ip_local_port_range="1024 65535"')
IN_USE: Final = "EADDRINUSE"
"""A client that binds before it connects gets this error if no port is free; for a server it has another meaning."""
LOCAL_LIMITS: Final[Mapping[str, LocalLimit]] = {
    "EADDRNOTAVAIL": _PORTS,
    IN_USE: _PORTS,
    "ENFILE": LocalLimit("too few open files for all processes", "raise the limit of open files (sysctl fs.file-max)"),
    "EMFILE": LocalLimit("too few open files for a process", "raise the limit of open files (ulimit -n)"),
    "ENOBUFS": LocalLimit(
        "no memory for another socket", "raise the limits of sockets (sysctl net.ipv4.tcp_mem), or use fewer clients"
    ),
    "ENOMEM": LocalLimit("no memory left", "use fewer clients, more hosts, or a host with more memory"),
}
"""The limits by the name of the kernel's error. The text of ENFILE contains that of EMFILE."""
