"""How one nats-server is prepared and started; see :class:`hydra.client.server_interface.ServerProgram`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.client.server_interface import installed
from hydra.errors import MissingDependencyError, ServerError

KIND: Final = "nats-server"
PROGRAM: Final = "nats-server"
OLDEST: Final = (2, 7)
"""The first version that gives a pull consumer without a name what the clients here ask for."""
MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024
"""The most that the server knows, and what Hydra's messages may have."""
_INSTALL: Final = "install the package nats-server, or name servers of yours with --servers host:port"


class NatsJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """To one server: its name, which tells it from a stranger at its port, and the servers of its cluster.

    ``endpoints`` are what they said in ``ready``: where each listens for clients and for the others.
    """

    name: str
    cluster: str
    endpoints: list[str]


class NatsProgram:
    """nats-server with JetStream, as this machine has it installed."""

    kind = KIND
    title = "NATS server"
    ports = 2

    def prepare(self) -> Mapping[str, str]:
        """Finds the program and asks for its version.

        Raises:
            MissingDependencyError: there is none, or it is too old.
            ServerError: it does not run.
        """
        program = find_server()
        try:
            said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError) as e:
            raise ServerError(f"{program} does not run: {e}", "reinstall the package nats-server") from None
        version = said.stdout.rpartition("v")[2].strip()
        numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise MissingDependencyError(f"{program} is version {version}, and {oldest} is needed", _INSTALL)
        return {PROGRAM: version}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Writes the server's configuration; returns the command that runs it.

        Raises:
            MissingDependencyError: it is not installed any more.
            OSError: there is no room.
            ValueError: ``join`` makes no sense.
        """
        file = folder / "server.conf"
        # Its own format takes JSON as well.
        file.write_text(json.dumps(configuration(folder, endpoint, msgspec.convert(join, NatsJoin)), indent=2))
        return (find_server(), "-c", str(file))


def find_server() -> str:
    """The path of nats-server.

    Raises:
        MissingDependencyError: there is none.
    """
    return installed(PROGRAM, f"the program {PROGRAM}", _INSTALL)


def configuration(folder: Path, endpoint: str, join: NatsJoin) -> dict[str, Any]:
    """What one server reads: where it listens and keeps streams, and where the others of its cluster are."""
    clients, routes = endpoint.split(",")
    values: dict[str, Any] = {
        "server_name": join.name,
        "listen": clients,
        "max_payload": MAX_PAYLOAD_BYTES,
        "jetstream": {"store_dir": str(folder / "streams")},
    }
    if len(join.endpoints) > 1:
        others = [each.split(",")[1] for each in join.endpoints if each != endpoint]
        values["cluster"] = {
            "name": join.cluster,
            "listen": routes,
            "routes": [f"nats-route://{other}" for other in others],
        }
    return values
