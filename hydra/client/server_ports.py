"""Ports for servers: which are free, how they are kept until a server binds them, and whether somebody listens."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from typing import Final

_CONNECT_WITHIN_S: Final = 0.2


@contextlib.contextmanager
def kept_ports(host: str, ports: Sequence[int]) -> Iterator[list[int]]:
    """Binds these ports, 0 for any free one, so that nobody else is given them meanwhile; yields their numbers.

    Raises:
        OSError: one is taken, or ``host`` is no address of this machine.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in ports]
        for kept, port in zip(sockets, ports, strict=True):
            try:
                # A server that has just gone leaves its ports to the next one; that listens does not share them.
                kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(port != 0))
                kept.bind((host, port))
                kept.listen(1)
            except OSError as e:
                raise OSError(
                    f"cannot bind {host}:{port}: {e.strerror}; look at HYDRA_DATA_HOST and the ports"
                ) from None
        yield [int(kept.getsockname()[1]) for kept in sockets]


def free_ports(host: str, count: int) -> list[int]:
    """Ports that were free on ``host`` a moment ago; whoever binds them must be ready for another to be quicker."""
    with kept_ports(host, [0] * count) as ports:
        return ports


def endpoint_of(host: str, ports: Sequence[int]) -> str:
    """Where a server listens, as it tells it on the control channel: ``host:port`` of each port, with commas."""
    return ",".join(f"{host}:{port}" for port in ports)


def accepts(host: str, port: int, within_s: float = _CONNECT_WITHIN_S) -> bool:
    """Whether somebody listens there: the kernel answers for a process that is busy."""
    # UnicodeError: no host can have this name.
    with contextlib.suppress(OSError, UnicodeError), socket.create_connection((host, port), within_s):
        return True
    return False
