"""The interface of a system's server program, and the ports that a server uses.

Imported on agents, which have only what clients need: it uses the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from hydra.client.linux_process import local_limit
from hydra.errors import MissingDependencyError

SYSTEM_PROGRAMS: Final = "/usr/local/sbin:/usr/sbin:/sbin"
"""Folders in which distributions install servers, and which are not in every user's PATH."""


PROVE: Final = "--prove"
"""The argument with which the program of a server's group only checks that its host has what the server needs."""


@dataclass(frozen=True, slots=True)
class InstalledProgram:
    """The program of a server on this host.

    Attributes:
        path: its file.
        source: ``PATH``, or the name of the Python package with the file.
    """

    path: str
    source: str


def installed(program: str, packages: Mapping[str, str]) -> InstalledProgram:
    """A server's program: that on ``PATH`` or in ``SYSTEM_PROGRAMS``, otherwise that of an installed Python package.

    Args:
        program: name of the program, and of its Debian package.
        packages: the Python packages with programs, by program (``ServerKind.packages``).

    Raises:
        MissingDependencyError: the program is not installed.
    """
    found = shutil.which(program) or shutil.which(program, path=SYSTEM_PROGRAMS)
    package = packages.get(program)
    # An activated environment has the programs of its packages on PATH.
    if package and (found is None or found.startswith(sys.prefix)):
        packaged = _packaged(program, package)
        if packaged and (found is None or Path(packaged).samefile(found)):
            return InstalledProgram(packaged, package)
    if found is None:
        raise MissingDependencyError(f"the program {program} is not installed", how_to_install(program, packages))
    return InstalledProgram(found, "PATH")


def how_to_install(program: str, packages: Mapping[str, str]) -> str:
    """The remedy for a missing or old program; arguments as for :func:`installed`."""
    pip = "pip install 'hydra-scale[servers]', " if program in packages else ""
    return f"apt install {program}, {pip}or name your servers with --servers HOST:PORT"


def _packaged(program: str, package: str) -> str:
    """The file of the program in this Python package; "" if the package is not installed, or lacks the program."""
    from importlib import metadata  # most hosts have the program on PATH

    with contextlib.suppress(metadata.PackageNotFoundError):
        found = metadata.distribution(package)
        paths = (str(found.locate_file(file)) for file in found.files or () if file.name == program)
        return next((path for path in paths if os.access(path, os.X_OK)), "")
    return ""


class ServerProgram(Protocol):
    """How one server of a system is prepared and started, on an agent or on this machine.

    Attributes:
        kind: name of the group's kind, on its command line and in ``hello``.
        title: name of a server in texts.
        ports: number of ports at which a server listens; the first is for clients.
    """

    kind: str
    title: str
    ports: int

    def find(self) -> Mapping[str, str]:
        """Finds the programs that the server needs; returns versions by name.

        Raises:
            MissingDependencyError: something is not installed, or too old.
            ServerError: a program does not run.
        """

    def prepare(self) -> Mapping[str, str]:
        """Finds and makes all that the server needs; returns versions by name. The first call on a host may take long.

        Raises:
            MissingDependencyError: something is not installed, or too old.
            ServerError: the server could not be prepared.
        """

    def sources(self) -> Mapping[str, str]:
        """The sources of the programs of :meth:`find` by name (:class:`InstalledProgram`), those that are known.

        Raises:
            MissingDependencyError: something is not installed.
        """

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Writes the server's files into its folder; returns the command that runs the server there.

        Args:
            folder: the server's working directory, empty and its own; removed when the server ends.
            endpoint: where the server has to listen: ``host:port`` for each of its ports, separated by commas. A socket
                may be bound to them that does not listen, so the server sets ``SO_REUSEADDR``.
            join: the object from :meth:`hydra.system.ServerCluster.join` for this server.

        Raises:
            ServerError, OSError, ValueError: the server cannot be started with this object.
        """


_CONNECT_WITHIN_S: Final = 0.2


@contextlib.contextmanager
def kept_ports(host: str, ports: Sequence[int]) -> Iterator[list[int]]:
    """Binds these ports, 0 for any free one, and yields their numbers; meanwhile a server can listen at them.

    A process that asks the kernel for any port gets none of them, and neither does a connection to another host. A
    server names its port and sets ``SO_REUSEADDR``, as all servers do, so it shares the port with the bound socket,
    which does not listen.

    Raises:
        OSError: another process listens at a port, or ``host`` is not an address of this machine.
    """
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in ports]
        for kept, port in zip(sockets, ports, strict=True):
            try:
                # A server that has just ended leaves its ports to the next one.
                kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                kept.bind((host, port))
            except OSError as e:
                raise OSError(
                    f"cannot bind {host}:{port}: {e.strerror}; look at HYDRA_DATA_HOST and the ports"
                ) from None
        yield [int(kept.getsockname()[1]) for kept in sockets]


def free_ports(host: str, count: int) -> list[int]:
    """Ports that were free on ``host`` a moment ago; another process may bind them before the caller does."""
    with kept_ports(host, [0] * count) as ports:
        return ports


def endpoint_of(host: str, ports: Sequence[int]) -> str:
    """A server's endpoint: ``host:port`` of each port, separated by commas, an address of IPv6 in brackets."""
    shown = f"[{host}]" if ":" in host else host
    return ",".join(f"{shown}:{port}" for port in ports)


def accepts(host: str, port: int, within_s: float = _CONNECT_WITHIN_S) -> bool:
    """Whether a process listens there; the kernel accepts the connection even if the process is busy."""
    return _trouble(host, port, within_s) is None


def may_listen(host: str, port: int, within_s: float = _CONNECT_WITHIN_S) -> bool:
    """Whether a process listens there, or a limit of this host prevents a connection, which proves nothing."""
    trouble = _trouble(host, port, within_s)
    return trouble is None or bool(local_limit(trouble))


def _trouble(host: str, port: int, within_s: float) -> OSError | UnicodeError | None:
    try:
        with socket.create_connection((host, port), within_s):
            return None
    except (OSError, UnicodeError) as e:  # UnicodeError: this cannot be the name of a host
        return e
