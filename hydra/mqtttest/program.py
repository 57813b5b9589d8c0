"""Finds and starts mosquitto; see :class:`hydra.client.server_interface.ServerProgram`."""

from __future__ import annotations

import os
import re
import resource
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hydra.client.server_interface import InstalledProgram, how_to_install, installed
from hydra.client.tls import ServerTls
from hydra.errors import MissingDependencyError

KIND: Final = "mqtt-server"
CONFIGURATION: Final = "mosquitto.conf"
_PROGRAM: Final = "mosquitto"
_LEAST: Final = (2, 0)
"""Before 2.0, a server without users had no setting to accept all clients."""
_ANSWER_WITHIN_S: Final = 20.0


class MosquittoJoin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a server needs to start: its limits for one client, and its certificate.

    Attributes:
        max_queued_messages: the most messages that wait for one client, including QoS 0 in its connection; 0: no limit.
            Beyond, the server drops messages.
        max_inflight_messages: the most messages of QoS 1 and 2 that are sent and not yet answered.
        tls: its certificate; None: it uses no TLS.
    """

    max_queued_messages: int
    max_inflight_messages: int
    tls: ServerTls | None = None


class MosquittoProgram:
    """A mosquitto that stores nothing on disk and accepts all clients."""

    kind = KIND
    title = "MQTT server mosquitto"
    ports = 1

    def find(self) -> Mapping[str, str]:
        """Finds mosquitto and its version; see :func:`version_of`."""
        return {"mosquitto": version_of(find().path)}

    def prepare(self) -> Mapping[str, str]:
        """Finds mosquitto, for which nothing has to be made; see :meth:`find`."""
        return self.find()

    def sources(self) -> Mapping[str, str]:
        """The source of mosquitto."""
        return {_PROGRAM: find().source}

    def command(self, folder: Path, endpoint: str, join: Mapping[str, Any] | None) -> Sequence[str]:
        """Writes the configuration; returns the command that runs mosquitto with the highest limit of open files.

        Raises:
            MissingDependencyError: mosquitto is not installed.
            OSError: the file cannot be written.
            ValueError: ``join`` is invalid.
        """
        (folder / CONFIGURATION).write_text(configuration(folder, endpoint, msgspec.convert(join, MosquittoJoin)))
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
        return ["/bin/sh", "-c", f'ulimit -n {most}; exec "$0" -c {CONFIGURATION}', find().path]


def find() -> InstalledProgram:
    """The program mosquitto.

    Raises:
        MissingDependencyError: mosquitto is not installed.
    """
    return installed(_PROGRAM, {})


def version_of(program: str) -> str:
    """The version that a mosquitto program reports.

    Raises:
        MissingDependencyError: the program is too old, or reports no version.
    """
    help_text = subprocess.run([program, "-h"], capture_output=True, text=True, check=False, timeout=_ANSWER_WITHIN_S)
    found = re.search(r"mosquitto version (\d+)\.(\d+)(\S*)", help_text.stdout)
    if found is None:
        raise MissingDependencyError(f"{program} does not report its version", how_to_install(_PROGRAM, {}))
    if (int(found[1]), int(found[2])) < _LEAST:
        least = ".".join(map(str, _LEAST))
        raise MissingDependencyError(f"{program} is too old: {found[0]}", f"Hydra needs {least} or newer")
    return f"{found[1]}.{found[2]}{found[3]}"


def configuration(folder: Path, endpoint: str, join: MosquittoJoin) -> str:
    """The text of mosquitto's configuration file; writes the certificate into the folder."""
    host, _, port = endpoint.rpartition(":")
    tls = zip(("certfile", "keyfile"), join.tls.write(folder), strict=True) if join.tls else ()
    return "\n".join(
        [
            f"listener {port} {host}",
            *(" ".join(line) for line in tls),
            "allow_anonymous true",
            "persistence false",
            f"max_queued_messages {join.max_queued_messages}",
            f"max_inflight_messages {join.max_inflight_messages}",
            "set_tcp_nodelay true",
            "sys_interval 0",
            "connection_messages false",
            "log_dest stderr",
            "log_type error",
            "log_type warning",
            # Started by root, it would change to another user, and the kernel would no longer end it with its
            # supervisor. Other users need no name; in a container a user may have none.
            *(["user root"] if os.geteuid() == 0 else []),
            "",
        ]
    )
