"""What a system says of its server's program, and the ports that a server takes.

Imported on agents, which have only what clients need: it uses the standard library alone.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from hydra.errors import MissingDependencyError

SYSTEM_PROGRAMS: Final = "/usr/local/sbin:/usr/sbin:/sbin"
"""Where distributions install servers, which is not in everybody's PATH."""


def installed(program: str, what: str, remedy: str) -> str:
    """The path of a program.

    Raises:
        MissingDependencyError: ``what`` is not installed.
    """
    found = shutil.which(program) or shutil.which(program, path=SYSTEM_PROGRAMS)
    if found is None:
        raise MissingDependencyError(f"{what} is not installed", remedy)
    return found


class ServerProgram(Protocol):
    """How one server of a system is prepared and started, on an agent or on this machine.

    Attributes:
        kind: of its group, on the command line of the group's program and in ``hello``.
        title: what a server is called in texts.
        ports: how many it listens at; the first is for clients.
    """

    kind: str
    title: str
    ports: int

    def prepare(self) -> Mapping[str, str]:
        """Looks for all that it needs; returns versions by name. May take long the first time on a machine.

        Raises:
            MissingDependencyError: something is not installed, or too old.
            ServerError: it could not be made ready.
        """

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Writes what the server reads into its folder; returns the command that runs it there.

        Args:
            folder: its working directory, empty and its own; removed when it ends.
            endpoint: where it is to listen, ``host:port`` for each of its ports, with commas.
            join: what :meth:`hydra.system.ServerCluster.join` made for it.

        Raises:
            ServerError, OSError, ValueError: it cannot be started with that.
        """


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
