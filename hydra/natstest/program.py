"""Prepares and starts a nats-server; see :class:`hydra.client.server_interface.ServerProgram`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.client.server_interface import InstalledProgram, how_to_install, installed
from hydra.client.tls import ServerTls
from hydra.errors import MissingDependencyError, ServerError
from hydra.natstest.settings import SERVER_PACKAGES

KIND: Final = "nats-server"
PROGRAM: Final = "nats-server"
OLDEST: Final = (2, 7)
"""The first version whose unnamed pull consumers have what Hydra's clients need."""
MAX_PAYLOAD_BYTES: Final = 64 * 1024 * 1024
"""The largest payload that the server supports, which is also the largest size of Hydra's messages."""


class NatsJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one server gets to start: its name, which identifies it at its port, and the servers of its cluster.

    ``endpoints`` are those that the servers sent in ``ready``: where each listens for clients and for other servers.
    ``tls`` is for connections with clients; None: there is none. Routes between servers have none.
    """

    name: str
    cluster: str
    endpoints: list[str]
    tls: ServerTls | None = None


class NatsProgram:
    """Runs the installed nats-server with JetStream switched on."""

    kind = KIND
    title = "NATS server"
    ports = 2

    def find(self) -> Mapping[str, str]:
        """Finds the program and its version.

        Raises:
            MissingDependencyError: the program is missing or too old.
            ServerError: the program does not run.
        """
        program = find_server().path
        try:
            answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError) as e:
            raise ServerError(f"{program} does not run: {e}", how_to_install(PROGRAM, SERVER_PACKAGES)) from e
        version = answer.stdout.rpartition("v")[2].strip()
        numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            remedy = how_to_install(PROGRAM, SERVER_PACKAGES)
            raise MissingDependencyError(f"{program} is version {version}, and {oldest} is needed", remedy)
        return {PROGRAM: version}

    def prepare(self) -> Mapping[str, str]:
        """Finds the program, for which nothing has to be made; see :meth:`find`."""
        return self.find()

    def sources(self) -> Mapping[str, str]:
        """The source of nats-server."""
        return {PROGRAM: find_server().source}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Writes the server's configuration; returns the command that runs it.

        Raises:
            MissingDependencyError: the program is not installed any more.
            OSError: the file cannot be written.
            ValueError: ``join`` is invalid.
        """
        file = folder / "server.conf"
        # The server's configuration format includes JSON.
        file.write_text(json.dumps(configuration(folder, endpoint, msgspec.convert(join, NatsJoin)), indent=2))
        return (find_server().path, "-c", str(file))


def find_server() -> InstalledProgram:
    """The program nats-server.

    Raises:
        MissingDependencyError: the program is not installed.
    """
    return installed(PROGRAM, SERVER_PACKAGES)


def configuration(folder: Path, endpoint: str, join: NatsJoin) -> dict[str, Any]:
    """The configuration of one server: its addresses, its folder for streams, and the other servers of its cluster.

    Certificate and key are written into the folder.
    """
    clients, routes = endpoint.split(",")
    values: dict[str, Any] = {
        "server_name": join.name,
        "listen": clients,
        "max_payload": MAX_PAYLOAD_BYTES,
        "jetstream": {"store_dir": str(folder / "streams")},
    }
    if join.tls is not None:
        certificate, key = join.tls.write(folder)
        values["tls"] = {"cert_file": certificate, "key_file": key}
    if len(join.endpoints) > 1:
        others = [each.split(",")[1] for each in join.endpoints if each != endpoint]
        values["cluster"] = {
            "name": join.cluster,
            "listen": routes,
            "routes": [f"nats-route://{other}" for other in others],
        }
    return values
