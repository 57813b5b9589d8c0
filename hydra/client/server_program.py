"""What a system says of its server's program; everything else about running one is the same for all systems.

Imported on agents, which have only what clients need: it uses the standard library alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
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
